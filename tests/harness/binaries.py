"""Where the binaries come from: `$KUBEBUILDER_ASSETS`, else our cache, else a build, once.

`python -m harness.binaries` prepares all of them and prints where they are. The cache is `edge-operator` under
`$XDG_CACHE_HOME` or `~/.cache`; its entries are keyed by everything that goes into a build, so a stale one is never
used, and any of them may be deleted.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import toolchain
from harness.processes import HarnessError

TESTS = Path(__file__).resolve().parents[1]
PROGRESS_SECONDS = 15.0


@dataclass(frozen=True)
class Module:
    """A Go module of the tests, and what it is built into."""

    title: str
    folder: Path
    package: str
    parts: tuple[str, ...]
    """The names that the one binary is called by; it picks its role by the name."""
    versioned: str
    """The dependency whose version the binary calls its own."""
    variables: tuple[str, ...]
    """The packages that keep that version."""
    takes: str

    def version(self) -> str:
        """The version that go.mod gives the dependency, for example `v1.36.3`."""
        found = re.search(
            rf"^\s*{re.escape(self.versioned)} (v\S+)", (self.folder / "go.mod").read_text(), re.MULTILINE
        )
        if not found:
            raise HarnessError(f"{self.folder / 'go.mod'} does not require {self.versioned}")
        return found[1]

    def ldflags(self) -> str:
        """The linker's flags: no debugging symbols, and the version where `--version` and `/version` read it."""
        version = self.version()
        major, minor = version.removeprefix("v").split(".")[:2]
        values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
        if self.versioned.startswith("helm.sh/"):
            values = {"version": version}
        return " ".join(
            ["-s -w", *(f"-X {package}.{key}={value}" for package in self.variables for key, value in values.items())]
        )


CONTROL_PLANE = Module(
    title="the control plane (etcd, kube-apiserver, kube-controller-manager, kubectl)",
    folder=TESTS / "controlplane",
    package=".",
    parts=("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"),
    versioned="k8s.io/kubernetes",
    variables=("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"),
    takes="about 5 minutes on 2 cores",
)
HELM = Module(
    title="helm",
    folder=TESTS / "devtools",
    package="helm.sh/helm/v4/cmd/helm",
    parts=("helm",),
    versioned="helm.sh/helm/v4",
    variables=("helm.sh/helm/v4/internal/version",),
    takes="about a minute on 2 cores",
)
MODULES = (CONTROL_PLANE, HELM)


def find(part: str) -> Path:
    """The path of one binary: etcd, kube-apiserver, kube-controller-manager, kubectl or helm.

    Raises:
        HarnessError: it is not here and cannot be built; the message says what is missing and how to get it.
    """
    for module in MODULES:
        if part in module.parts:
            return folder(module) / part
    known = ", ".join(part for module in MODULES for part in module.parts)
    raise HarnessError(f"{part!r} is none of the binaries that the harness knows: {known}")


@functools.cache
def folder(module: Module) -> Path:
    """The folder with all parts of a module, built if need be; parts of different origin are never mixed."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        missing = [part for part in module.parts if not os.access(Path(assets) / part, os.X_OK)]
        if not missing:
            return Path(assets)
        sys.stderr.write(f"KUBEBUILDER_ASSETS={assets} has no {', '.join(missing)}: using our own {module.title}\n")
    go = toolchain.find(cache())
    target = cache() / f"{module.parts[0]}-{_key(module, go)}"
    if not target.exists():
        with _lock(cache() / f"{module.parts[0]}.lock"):
            if not target.exists():
                _build(module, toolchain.ready(go), target)
    return target


def cache() -> Path:
    """The folder that built binaries are kept in."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edge-operator"


def _key(module: Module, go: toolchain.Toolchain) -> str:
    """A short hash of everything that goes into a build."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {go.version} {module.ldflags()}".encode())
    for source in sorted([module.folder / "go.mod", module.folder / "go.sum", *module.folder.glob("*.go")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that other processes on this machine wait for; the system frees it when a holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"waiting for another process that builds {path.stem}\n")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(module: Module, go: toolchain.Toolchain, target: Path) -> None:
    """Build a module next to its place in the cache, and move it there in one step."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as scratch:
        result = Path(scratch) / "parts"
        result.mkdir()
        binary = result / module.parts[0]
        _compile(module, go, binary)
        for alias in module.parts[1:]:
            (result / alias).symlink_to(binary.name)
        result.rename(target)


def _compile(module: Module, go: toolchain.Toolchain, binary: Path) -> None:
    """Run `go build`, with a line about progress every quarter minute.

    Raises:
        HarnessError: the build failed; the message ends with what Go said.
    """
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    command = [go.command, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", module.ldflags()]
    started = time.monotonic()
    _say(f"building {module.title} {module.version()} with {go.version}, once, {module.takes} ...")
    with subprocess.Popen(
        [*command, "-o", str(binary), module.package],
        cwd=module.folder, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        done = threading.Event()
        lines: list[str] = []
        threading.Thread(target=_report, args=(module, started, lines, done), daemon=True).start()
        try:
            while line := process.stderr.readline() if process.stderr else "":
                lines.append(line)
        except BaseException:
            process.terminate()
            raise
        finally:
            done.set()
    if process.returncode != 0:
        raise HarnessError(f"`go build` of {module.title} in {module.folder} failed:\n{''.join(lines[-20:])}")
    _say(f"built {module.title} in {time.monotonic() - started:.0f} s; kept in {binary.parents[2]}")


def _report(module: Module, started: float, lines: list[str], done: threading.Event) -> None:
    """Say how far a build is, until it is done."""
    while not done.wait(PROGRESS_SECONDS):
        minutes, seconds = divmod(int(time.monotonic() - started), 60)
        _say(f"  still building {module.parts[0]}: {minutes}:{seconds:02d}, {len(lines)} packages ({module.takes})")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    """Prepare every binary and print where it is."""
    for module in MODULES:
        place = folder(module)
        for part in module.parts:
            print(place / part)


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(str(error))
