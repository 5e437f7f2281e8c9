"""A real HTTP server on loopback that answers as a test says, with or without TLS, and the kubeconfigs to reach it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """Where the server listens, and what it was asked."""

    url: str = ""
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    """Method, path with query, headers, body."""


@contextlib.asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that gives every request to `answer`."""
    server = Server()

    async def note(request: web.Request) -> web.StreamResponse:
        body = await request.text()
        server.requests.append(
            (request.method, request.path_qs, dict(request.headers), json.loads(body) if body else None)
        )
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", note)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def speaking(raw: bytes) -> AsyncIterator[str]:
    """A server that answers every connection with some bytes and closes it; its URL."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def replies(*answers: tuple[int, Any] | web.Response) -> Answer:
    """One answer after the other, the last one again and again; a body that is not text becomes JSON."""
    left = list(answers)

    async def reply(request: web.Request) -> web.StreamResponse:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, web.Response):
            return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        status, body = answer
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status, content_type="application/json")

    return reply


def status(code: int, reason: str, message: str = "no", **details: Any) -> tuple[int, dict[str, Any]]:
    """A refusal as the API server words it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


def kubeconfig(folder: Path, server: str, user: dict[str, Any] | None, **cluster: Any) -> Path:
    """A kubeconfig with one context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}] if user is not None else [],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def data(self) -> str:
        """The certificate as a kubeconfig holds it."""
        return base64.b64encode(self.certificate).decode()

    @property
    def key_data(self) -> str:
        """The key as a kubeconfig holds it."""
        return base64.b64encode(self.key).decode()


@cache
def pair(name: str, issuer: str = "") -> Pair:
    """A certificate of an authority of that name or, with an issuer, of a server and client at 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    began = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + dt.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=not issuer, path_length=None), critical=True)
    )
    if issuer:
        parent = pair(issuer)
        signer = serialization.load_pem_private_key(parent.key, None)
        issued_by = x509.load_pem_x509_certificate(parent.certificate).subject
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = builder.add_extension(names, critical=False)
    else:
        signer, issued_by = key, subject
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    certificate = builder.issuer_name(issued_by).sign(signer, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)


def tls(folder: Path, clients: str = "") -> ssl.SSLContext:
    """TLS of a server whose certificate the authority "ca" issued; `clients` is whose client certificates it wants."""
    own = pair("server", "ca")
    file = folder / "server.pem"
    file.write_bytes(own.certificate + own.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pair(clients).certificate.decode())
    return context
