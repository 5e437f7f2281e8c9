"""The server in the same process, and a world that stands still until a test moves it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from edge_operator.server.app import App, create_app
from edge_operator.server.settings import ServerSettings
from edge_operator.server.world import World

KEY = "seeded-admin-key"
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@dataclass
class StillWorld:
    """Time moves only by `pass_seconds` and by sleeping; randomness is seeded."""

    moment: datetime = START
    elapsed: float = 0.0
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    slept: list[float] = field(default_factory=list)

    def value(self) -> World:
        return World(
            now=lambda: self.moment,
            monotonic=lambda: self.elapsed,
            random_bytes=self.dice.randbytes,
            sleep=self._sleep,
        )

    def pass_seconds(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.elapsed += seconds

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.pass_seconds(seconds)


def settings(**values: Any) -> ServerSettings:
    return ServerSettings(**{"seed_api_key": KEY, **values})


def caller(
    app: App, key: str | None = KEY, base: str = "http://api.test", version: str | None = "2"
) -> httpx.AsyncClient:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if version is not None:
        headers[app.profile.version_header] = version
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base, headers=headers)


@dataclass
class Account:
    """What most tests need: the application, its world, and the admin's client."""

    app: App
    world: StillWorld
    client: httpx.AsyncClient

    @classmethod
    def open(cls, **values: Any) -> Account:
        world = StillWorld()
        app = create_app(settings(**values), world=world.value())
        return cls(app, world, caller(app))

    async def ask(self, method: str, path: str, body: Any = None, status: int | None = None) -> Any:
        """Makes a call and returns its JSON, None where there is none; the status is checked."""
        response = await self.client.request(method, path, **({} if body is None else {"json": body}))
        expected = status or {"POST": 201, "DELETE": 204}.get(method, 200)
        assert expected == response.status_code, response.text
        return response.json() if response.content else None

    async def make(self, path: str, **body: Any) -> Any:
        return await self.ask("POST", path, body)

    async def refused(self, method: str, path: str, body: Any = None, *, status: int = 400) -> str:
        """The message of a call that is refused; the shape of the error is checked."""
        error = await self.ask(method, path, body, status)
        code = {"error_code"} if "error_code" in error else set()
        assert {"status_code", "msg", "details"} | code == set(error)
        assert status == error["status_code"]
        assert (status == 404) == ("error_code" not in error)
        assert error["details"]["operation_id"].startswith("op_")
        assert isinstance(error["msg"], str)
        return str(error["msg"])
