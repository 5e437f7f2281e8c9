"""Runs the reference API on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from edge_operator.api.profiles import ProfileError
from edge_operator.server.app import App, create_app
from edge_operator.server.front import Scope
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import StoreError
from edge_operator.server.world import World

STOPPED: Final = 0
"""Exit code: told to stop, and stopped."""
NOT_STARTED: Final = 1
"""Exit code: the address, the database or the profile cannot be used."""
_GRACE_SECONDS: Final = 5
_KEEP_ALIVE_SECONDS: Final = 75
_BACKLOG: Final = 2048


class _Connections:
    """The open connections by the caller's address, so that one can be cut without an answer."""

    def __init__(self) -> None:
        self._open: dict[Any, asyncio.Transport] = {}

    def cut(self, scope: Scope) -> bool:
        transport = self._open.get(tuple(scope["client"] or ()))
        if transport is None:
            return False
        transport.abort()
        return True

    def protocol(self) -> type[asyncio.Protocol]:
        """The HTTP protocol of uvicorn, which here also keeps this list."""
        connections = self._open

        class Tracked(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # uvicorn picks the class at run time
            def connection_made(self, transport: asyncio.Transport) -> None:
                self._peer = tuple((transport.get_extra_info("peername") or ())[:2])
                connections[self._peer] = transport
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.pop(self._peer, None)
                super().connection_lost(exc)

        return Tracked


def _bound(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio turns Nagle's algorithm off; without, each answer waits 40 ms for it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller, so that it can also run inside a test, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def running(settings: ServerSettings, world: World | None = None) -> AsyncIterator[tuple[str, App]]:
    """The server, listening on a real socket, for the length of a `with` block: its address and its application.

    Raises:
        OSError: the address cannot be used.
        StoreError: the database cannot be used.
        ProfileError: there is no such wire-name profile.
    """
    connections = _Connections()
    listener = _bound(settings)
    try:
        app = create_app(settings, world=world, cut=connections.cut)
    except BaseException:
        listener.close()
        raise
    config = uvicorn.Config(
        app,
        http=connections.protocol(),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.ready.wait()
        yield _address(listener), app
    finally:
        server.should_exit = True
        await task
        listener.close()
        app.close()


async def serve(settings: ServerSettings) -> int:
    """Serves until SIGTERM or SIGINT, finishes the requests under way, and returns the process's exit code.

    Prints one line to standard output when it is ready, and one to standard error where it cannot start.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        async with running(settings) as (address, app):
            print(f"reference API ready at {address} (profile {app.profile.name})", flush=True)  # noqa: T201
            await stop.wait()
    except (OSError, StoreError, ProfileError) as error:
        print(f"reference API cannot start on {settings.host}:{settings.port}: {error}", file=sys.stderr)  # noqa: T201
        return NOT_STARTED
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    return STOPPED
