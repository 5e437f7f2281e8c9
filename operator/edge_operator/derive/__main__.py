"""`python -m edge_operator.derive` writes every derived file, `--check` fails when one differs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edge_operator.derive import files
from edge_operator.kinds import DECLARED


def main() -> int:
    """Write or compare, and say what differs. The exit code is 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m edge_operator.derive", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file differs")
    parser.add_argument("--root", type=Path, default=Path(), help="the root of the repository (default: here)")
    given = parser.parse_args()
    if not (given.root / "pyproject.toml").is_file():
        sys.stderr.write(f"{given.root.resolve()} is not the root of the repository: there is no pyproject.toml\n")
        return 2
    wanted = files.expected(given.root, DECLARED.values())
    changed = files.differences(given.root, wanted) if given.check else files.write(given.root, wanted)
    for path in changed:
        sys.stdout.write(f"{'differs' if given.check else 'wrote'}: {path}\n")
    if given.check and changed:
        sys.stderr.write("derived files differ from the declarations: run `make derive` and commit the result\n")
        return 1
    sys.stdout.write(f"{len(wanted)} derived files are up to date\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
