"""The processes as an administrator meets them: help, exit codes, signals, and what they say of what is missing."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from cluster.running import SOON, Installation, Operator, Service, World, clear
from edge_operator.server.settings import ServerSettings
from edge_operator.settings import Settings
from harness.cluster import Cluster
from harness.operator import command, environment
from harness.processes import Process, wait_until

BACKEND = {"backends": [{"id": "bkdtg_1"}]}
STOP_SECONDS = 2.0


class Begin(Protocol):
    """Makes an operator, which ends with the test."""

    def __call__(self, **flags: str) -> Operator: ...


@pytest.fixture
def begin(installation: Installation, service: Service, key_file: Path, tmp_path: Path) -> Iterator[Begin]:
    with ExitStack() as stack:
        log = tmp_path / "operator.log"
        yield lambda **flags: stack.enter_context(Operator(installation, service.url, key_file, log, **flags))


@pytest.fixture
def alone(crds: Cluster, service: Service, namespace: str) -> World:
    """A namespace that no operator looks at unless the test begins one."""
    return World(crds, service, namespace)


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command with these arguments, to its end."""
    return subprocess.run(
        command(*args), text=True, capture_output=True, check=False, timeout=60, env=environment(**env)
    )


@pytest.mark.parametrize(("command", "settings"), [("run", Settings), ("serve-api", ServerSettings)])
def test_help_tells_every_option_with_its_text_its_variable_and_its_default(command: str, settings: Any) -> None:
    done = run(command, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    flags = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", done.stdout, re.MULTILINE)) - {"--help"}
    for flag in flags:
        assert f"env var: EDGE_OPERATOR_{flag[2:].replace('-', '_').upper()}" in shown
    texts = [f.description for name, f in settings.model_fields.items() if f.description and name not in HIDDEN]
    whole = "".join(done.stdout.split())  # lines are broken at hyphens too
    assert [text for text in texts if "".join(text.split()) not in whole] == []


HIDDEN = {
    "host",
    "port",
    "control",
    "request_log",
    "retry_after",
    "echo_secrets",
    "unauthenticated_status",
    "registered_ids",
}
"""Settings of the reference API for tests, and the two that are one option, --listen."""


def test_help_names_the_commands_and_the_exit_codes() -> None:
    done = run("--help")

    assert done.returncode == 0
    assert "Exit codes: 0 after a graceful stop, 1 after a failure that the log explains, 2 for wrong options." in (
        " ".join(done.stdout.split())
    )
    assert re.search(r"^  run ", done.stdout, re.MULTILINE)
    assert re.search(r"^  serve-api ", done.stdout, re.MULTILINE)


def test_wrong_options_end_with_2_and_name_the_option() -> None:
    given = ["run", "--api-url", "http://127.0.0.1:1", "--api-key-file", "/dev/null"]
    cases = {
        ("run", "--api-url", "http://127.0.0.1:1"): "--api-url and --api-key-file come together",
        (*given, "--grace", "soon"): "write 50ms, 2s or 1m",
        (*given, "--workers", "0"): "--workers",
        (*given, "--lease", "10s", "--lease-renew", "5s"): "--call-timeout should be shorter",
        (*given, "--lease-renew", "30s"): "--lease should exceed --lease-renew",
        ("serve-api", "--listen", "8080"): "127.0.0.1:8080",
        ("serve-api", "--page-size", "0"): "--page-size",
    }
    for args, text in cases.items():
        done = run(*args)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("content", "text"), [(None, "cannot be read (FileNotFoundError)"), ("\n", "holds no API key")]
)
def test_a_key_file_that_is_of_no_use_is_named_in_one_plain_line(
    crds: Cluster, tmp_path: Path, content: str | None, text: str
) -> None:
    file = tmp_path / "api-key"
    if content is not None:
        file.write_text(content)

    done = run(
        "run", "--kubeconfig", str(crds.kubeconfig), "--api-url", "http://127.0.0.1:1", "--api-key-file", str(file)
    )

    assert done.returncode == 1
    assert re.fullmatch(rf"\S+ ERROR +cannot start: {file}: .*{re.escape(text)}.*\n", done.stderr), done.stderr


def test_a_missing_kubeconfig_is_named_in_one_plain_line(tmp_path: Path) -> None:
    key = tmp_path / "api-key"
    key.write_text("ak_1")
    nowhere = str(tmp_path / "kubeconfig")

    done = run("run", "--api-url", "http://127.0.0.1:1", "--api-key-file", str(key), "--kubeconfig", nowhere)

    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{nowhere}: there is no such file" in done.stderr


def test_every_option_is_an_environment_variable_too(tmp_path: Path) -> None:
    key = str(tmp_path / "api-key")
    variables = {"API_URL": "http://127.0.0.1:1", "API_KEY_FILE": key, "KUBECONFIG": "/nowhere", "LOG_FORMAT": "json"}

    done = run("run", **{f"EDGE_OPERATOR_{name}": value for name, value in variables.items()})

    assert done.returncode == 1
    assert '"level": "error"' in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_operator_ends_well_within_two_seconds(begin: Begin, alone: World, number: signal.Signals) -> None:
    """With work done a moment ago, and a connection of a scraper open."""
    operator = begin().lead()
    alone.make("FailoverBackend", "blue", BACKEND)
    alone.ready("FailoverBackend", "blue")
    clear(alone)
    with socket.create_connection(("127.0.0.1", operator.health)) as scraper:
        scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert scraper.recv(100).startswith(b"HTTP/1.1 200")
        operator.rest()
        began = time.monotonic()
        operator.running.signal(number)
        code = operator.running.wait(SOON)
        took = time.monotonic() - began

    assert code == 0
    assert took < STOP_SECONDS
    assert "Traceback" not in operator.text()


def test_a_stop_lets_a_call_under_way_end_and_records_what_it_made(begin: Begin, alone: World) -> None:
    operator = begin().lead()
    mark = alone.service.mark()
    alone.service.faults({"kind": "latency", "seconds": 1.0, "method": "POST"})
    made = alone.make("FailoverBackend", "blue", BACKEND)
    arrived = lambda: any(e["method"] == "POST" and e["number"] > mark for e in alone.service.journal())
    wait_until(arrived, "the creation to be under way", SOON, 0.01)

    code, _ = operator.stop()

    assert code == 0
    found = alone.ready("FailoverBackend", "blue")
    assert [o["id"] for o in alone.service.owned(made)] == [found["status"]["id"]]
    begin().lead()
    clear(alone)


def test_an_address_that_is_in_use_ends_both_processes_with_a_plain_line(
    crds: Cluster, key_file: Path, service: Service
) -> None:
    listen = f"127.0.0.1:{service.port}"
    key = ["--api-url", service.url, "--api-key-file", str(key_file), "--kubeconfig", str(crds.kubeconfig)]
    for args in (["serve-api", "--listen", listen], ["run", *key, "--health-listen", listen]):
        done = run(*args)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
        assert "address already in use" in done.stderr.lower()


def test_the_reference_api_says_one_line_and_ends_well(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    process = Process("service", command("serve-api", "--listen", "127.0.0.1:0"), log)
    wait_until(lambda: "ready at" in log.read_text(), "the reference API", SOON, 0.02)
    process.signal(signal.SIGTERM)

    assert process.wait(STOP_SECONDS + SOON) == 0
    assert re.fullmatch(r"reference API ready at http://127\.0\.0\.1:\d+ \(profile neutral\)\n", log.read_text())
