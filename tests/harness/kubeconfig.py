"""Kubeconfig files: written for a token, and read into an HTTP client."""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from harness.processes import HarnessError


@dataclass(frozen=True)
class Server:
    """Where an API server is, and the certificate authority (PEM) that vouches for it."""

    url: str
    authority: bytes | None
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """The TLS settings of a client of this server."""
        authority = self.authority.decode() if self.authority else None
        context = ssl.create_default_context(cadata=authority)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def write(path: Path, server: Server, user: str, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig, readable by the owner only, that names its one context after the user."""
    cluster: dict[str, Any] = {"server": server.url}
    if server.authority:
        cluster["certificate-authority-data"] = base64.b64encode(server.authority).decode()
    if server.insecure:
        cluster["insecure-skip-tls-verify"] = True
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "control-plane", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": user, "context": {"cluster": "control-plane", "user": user, "namespace": namespace}}],
        "current-context": user,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def read(path: Path) -> tuple[Server, httpx.Client]:
    """The server that the current context of a kubeconfig names, and a client that is its user.

    Raises:
        HarnessError: the user logs in by a way that is not read here (a plugin, a password).
    """
    document = yaml.safe_load(path.read_text())
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"]).get("user") or {}
    server = Server(
        cluster["server"], _data(path, cluster, "certificate-authority"), bool(cluster.get("insecure-skip-tls-verify"))
    )
    tls, headers = server.context(), {}
    token = _data(path, user, "token", file_key="tokenFile", encoded=False)
    if token:
        headers["Authorization"] = f"Bearer {token.decode().strip()}"
    elif "client-certificate" in user or "client-certificate-data" in user:
        _load_certificate(tls, path, user)
    else:
        raise HarnessError(f"{path}: its user has neither a token nor a client certificate, which the harness needs")
    client = httpx.Client(base_url=server.url, headers=headers, verify=tls, trust_env=False, timeout=30)
    return server, client


def _load_certificate(tls: ssl.SSLContext, path: Path, user: Mapping[str, Any]) -> None:
    """Give the client its certificate; the ssl module wants files, so they exist for a moment."""
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for name in ("client-certificate", "client-key"):
            file = Path(scratch) / name
            file.write_bytes(_data(path, user, name) or b"")
            files.append(str(file))
        tls.load_cert_chain(*files)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise HarnessError(f"the kubeconfig has no entry named {name!r}")


def _data(
    path: Path, entry: Mapping[str, Any], key: str, file_key: str | None = None, encoded: bool = True
) -> bytes | None:
    """A value that is either inline or in a file, which may be relative to the kubeconfig."""
    inline = entry.get(f"{key}-data" if encoded else key)
    if inline:
        return base64.b64decode(inline) if encoded else inline.encode()
    file = entry.get(file_key or key)
    return (path.parent / file).read_bytes() if file else None
