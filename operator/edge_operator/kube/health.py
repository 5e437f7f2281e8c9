"""A small HTTP server for probes and metrics: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from aiohttp import web

from edge_operator.kube import metrics

Check = Callable[[], str]
"""What is wrong, in a few words; an empty text while all is well. It must not wait for anything."""


class Health:
    """Serves at HOST:PORT from `start` to `stop`; also a context manager.

    `alive` failing has the process restarted; `ready` failing takes it out of what a rollout counts.
    """

    def __init__(self, listen: str, *, alive: Check, ready: Check, metrics_text: Callable[[], bytes]) -> None:
        self._host, self._port = address(listen)
        self._alive, self._ready, self._metrics = alive, ready, metrics_text
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """The port in use, which the system chose if 0 was asked for."""
        if self._runner is None or not self._runner.addresses:
            return self._port
        return int(self._runner.addresses[0][1])

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            OSError: the address cannot be listened at.
        """
        app = web.Application()
        app.router.add_get("/healthz", self._show_alive)
        app.router.add_get("/readyz", self._show_ready)
        app.router.add_get("/metrics", self._show_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host or None, self._port).start()

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _show_alive(self, _: web.Request) -> web.Response:
        return _answer(self._alive())

    async def _show_ready(self, _: web.Request) -> web.Response:
        return _answer(self._ready())

    async def _show_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": metrics.CONTENT_TYPE})


def address(listen: str) -> tuple[str, int]:
    """Host and port of "127.0.0.1:8080", "[::1]:8080" or ":8080", which is every address of the machine.

    Raises:
        ValueError: it is none of these.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError(f"{listen!r} should be HOST:PORT, for example 0.0.0.0:8080 or [::]:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _answer(wrong: str) -> web.Response:
    return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)
