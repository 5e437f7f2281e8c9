"""`make demo` is what a stranger runs first: it shows the main job, cleans up, and says what went wrong.

`make bench` is made of the same parts, and counts.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from edge_operator.kinds import KINDS
from harness import binaries
from harness.cluster import run
from harness.operator import ROOT, environment

PYTHONPATH = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
DEMO = [sys.executable, "-m", "harness.demo"]
ENOUGH_SECONDS = 240
WAITING = """
apiVersion: edge-operator.dev/v1alpha1
kind: EventDestination
metadata: {name: lonely}
spec:
  target: {monitoring: {apiKey: {secretKeyRef: {name: nowhere, key: api-key}}}}
"""


@pytest.fixture(autouse=True, scope="module")
def _built(pytestconfig: pytest.Config) -> None:
    """Build what is missing before any time limit runs."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for module in binaries.MODULES:
            binaries.folder(module)


def demo(*options: str, path: str | None = None) -> tuple[int, str]:
    """The exit code of a demo and all that it printed."""
    return run_module("harness.demo", *options, **({"PATH": path} if path else {}))


def run_module(name: str, *options: str, **env: str) -> tuple[int, str]:
    """The exit code of a module of the harness, run as make does it, and all that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", name, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=ENOUGH_SECONDS,
        env=environment(PYTHONPATH=PYTHONPATH, **env),
        cwd=ROOT,
    )
    return done.returncode, done.stdout + done.stderr


def listens(url: str) -> bool:
    """Whether anything is at an address of the form scheme://host:port."""
    host, port = url.rpartition("/")[2].split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def found(pattern: str, text: str) -> str:
    """The group that a pattern finds, which has to be there."""
    match = re.search(pattern, text)
    assert match, f"{pattern} is not in:\n{text}"
    return match[1]


def test_once_shows_every_kind_cleans_up_and_succeeds() -> None:
    code, text = demo("--once")

    assert code == 0, text
    assert f"{len(KINDS)} of {len(KINDS)} resources are Ready" in text
    missing = [f"{kind.name}/example" for kind in KINDS.values() if f"{kind.api.prefix}" not in text]
    assert missing == []
    assert "example-sshhostcertificate   SSHHostCertificate/example   ca.pub, ssh-host-key" in text
    assert re.search(r"example +True +Completed +Restart +(ts_\w+) +(?!\1)ts_\w+", text), text
    assert text.count("192.0.2.44") == 2, "the session before the restart, and the one after it"
    assert "it is empty again" in text
    assert "SUCCEEDED" in text
    assert "PRIVATE KEY" not in text
    assert "Traceback" not in text


def test_what_does_not_become_ready_is_named_with_its_conditions_and_the_operators_log(tmp_path: Path) -> None:
    sample = tmp_path / "lonely.yaml"
    sample.write_text(WAITING)

    code, text = demo("--once", "--samples", str(sample), "--limit", "3")

    assert code == 1
    assert "not Ready: EventDestination/lonely" in text
    assert "Ready=False SecretNotReady" in text
    assert "INFO" in text.partition("The operator's last log lines")[2]
    assert "FAILED" in text
    assert "Traceback" not in text


def test_it_stays_usable_until_ctrl_c_and_leaves_nothing() -> None:
    env = environment(PYTHONPATH=PYTHONPATH)
    with subprocess.Popen(
        DEMO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=ROOT
    ) as process:
        try:
            text = until("until you press Ctrl-C", process)
            kubeconfig = Path(found(r"export KUBECONFIG=(\S+)", text))
            kubectl = found(r"alias kubectl=(\S+)", text)
            addresses = [found(r"at (https://\S+)", text), found(r"at (http://\S+),", text)]
            key_file = Path(found(r"API key +(/\S+)", text))
            version, url = found(r'" -H "(.+:.+)" http', text).split(": "), found(r"curl .* (http\S+)", text)
            headers = {"Authorization": f"Bearer {key_file.read_text()}", version[0]: version[1]}
            answer = httpx.get(url, headers=headers, trust_env=False)
            shown = run([kubectl, "--kubeconfig", kubeconfig, "get", "edge", "-o", "name"])
            assert key_file.read_text() not in text
            assert all(listens(address) for address in addresses)

            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.terminate()  # after a failure; it cleans up

    assert len(shown.split()) == len(KINDS) + 1, "one of each kind, and the order to the agent"
    assert len(answer.json()["https_edges"]) == 1
    assert process.returncode == 0, rest
    assert "nothing is left running" in rest
    assert "Traceback" not in rest
    assert not kubeconfig.parent.exists()
    assert not any(listens(address) for address in addresses)


def until(sign: str, process: "subprocess.Popen[str]") -> str:
    """What a process prints up to the line with a sign; all of it, if that never comes."""
    lines: list[str] = []
    for line in process.stdout or ():
        lines.append(line)
        if sign in line:
            break
    return "".join(lines)


@pytest.mark.parametrize("engine", [None, "docker"], ids=["none is there", "it does not answer"])
def test_kind_without_a_container_engine_says_what_it_needs(tmp_path: Path, engine: str | None) -> None:
    if engine:
        broken = tmp_path / engine
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)

    code, text = demo("--cluster", "kind", path=os.pathsep.join([str(tmp_path), "/nowhere"]))

    assert code == 1
    assert "needs docker or podman" in text
    assert "Ways to get one" in text
    assert ("docker does not answer" if engine else "neither is on PATH") in text
    assert "Traceback" not in text


def test_bench_reports_what_resources_cost(tmp_path: Path) -> None:
    """Counts are compared here; seconds are only reported."""
    out = tmp_path / "figures.json"

    code, text = run_module("harness.bench", "--count", "4", "--latency", "1ms", "--out", str(out))

    assert code == 0, text
    phases = json.loads(out.read_text())["phases"]
    assert [(phase["phase"], phase["kind"], phase["api_calls"], phase["writes"]) for phase in phases] == [
        ("create", "WeightedBackend", 4, 8),
        ("create", "TLSEdge", 4, 8),
        ("restart", "all", 0, 0),
        ("delete", "TLSEdge", 4, 4),
        ("delete", "WeightedBackend", 4, 4),
    ]
    assert all(phase["seconds"] > 0 for phase in phases)
    if sys.platform == "linux":  # elsewhere the figures of the process are null
        assert all(phase["cpu_seconds"] > 0 and phase["peak_mib"] > 0 for phase in phases)
    assert "Peak MiB" in text
