"""Probes of containers, really asked: HTTP, TCP and exec, with Kubernetes' thresholds and defaults."""

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

POD_IP = "127.0.0.1"


class Probe:
    """One probe of a container, and how often it succeeded or failed in a row.

    `passed` starts as `initially` (a liveness probe passes until it fails, a readiness probe fails until it passes).
    """

    def __init__(self, spec: Mapping[str, Any], container: Mapping[str, Any], initially: bool) -> None:
        self._spec = spec
        self._container = container
        self._due: float | None = None
        self._streak = 0
        self._failures = 0
        self.passed = initially
        self.message = ""
        """What the last failure was; empty after a success."""

    @property
    def exhausted(self) -> bool:
        """Whether it failed as often in a row as it may, without ever passing."""
        return not self.passed and self._failures >= self._spec.get("failureThreshold", 3)

    def tick(self, started: float, now: float, env: Mapping[str, str], folder: Path) -> None:
        """Ask, if it is time to. All times in seconds of one monotonic clock; `started` is the container's."""
        if self._due is None:
            self._due = started + float(self._spec.get("initialDelaySeconds", 0))
        if now < self._due:
            return
        self._due = now + float(self._spec.get("periodSeconds", 10))
        self.message = self._ask(env, folder)
        success = not self.message
        self._failures = 0 if success else self._failures + 1
        self._streak = self._streak + 1 if success != self.passed else 0
        threshold = self._spec.get("successThreshold", 1) if success else self._spec.get("failureThreshold", 3)
        if self._streak >= threshold:
            self.passed, self._streak = success, 0

    def _ask(self, env: Mapping[str, str], folder: Path) -> str:
        """What is wrong, or nothing."""
        timeout = float(self._spec.get("timeoutSeconds", 1))
        if "httpGet" in self._spec:
            return self._ask_http(self._spec["httpGet"], timeout)
        if "tcpSocket" in self._spec:
            action = self._spec["tcpSocket"]
            with contextlib.suppress(OSError), socket.create_connection((POD_IP, self._port(action)), timeout):
                return ""
            return f"nothing listens on {POD_IP}:{self._port(action)}"
        if "exec" in self._spec:
            return _ask_command(self._spec["exec"]["command"], timeout, env, folder)
        return "the fake kubelet has httpGet, tcpSocket and exec probes, and this is neither"

    def _ask_http(self, action: Mapping[str, Any], timeout: float) -> str:
        scheme = action.get("scheme", "HTTP").lower()
        url = f"{scheme}://{action.get('host', POD_IP)}:{self._port(action)}{action.get('path', '/')}"
        headers = {header["name"]: header["value"] for header in action.get("httpHeaders", [])}
        verify = _unverified() if scheme == "https" else True
        try:
            answer = httpx.get(url, headers=headers, timeout=timeout, verify=verify, trust_env=False)
        except httpx.TransportError as error:
            return f"GET {url}: {error or type(error).__name__}"
        return "" if 200 <= answer.status_code < 400 else f"GET {url}: {answer.status_code}"

    def _port(self, action: Mapping[str, Any]) -> int:
        """The port's number, looked up in the container if it is a name."""
        for port in self._container.get("ports", []):
            if port.get("name") == action["port"]:
                return int(port["containerPort"])
        return int(action["port"])


def _ask_command(command: list[str], timeout: float, env: Mapping[str, str], folder: Path) -> str:
    try:
        done = subprocess.run(command, timeout=timeout, env=dict(env), cwd=folder, capture_output=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else f"{command[0]}: exit code {done.returncode}"


def _unverified() -> ssl.SSLContext:
    """TLS settings without a look at the certificate, as kubelets probe."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
