"""A client against a server that answers as a test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from edge_operator.kube import paths
from edge_operator.kube.client import KubeAPI, Options
from edge_operator.kube.credentials import Credentials

from .apiserver import Answer, Server, kubeconfig, pair, serving

TOKEN = "canary-token-4471"
SECRETS = paths.secret("shop")
EDGES = paths.resource("edge-operator.dev", "v1alpha1", "httpsedges", "shop")
QUICK = Options(request_timeout_seconds=0.25, connect_timeout_seconds=0.2, watch_silence_seconds=0.1)


class Naps:
    """Sleeps that take no time, and are remembered."""

    def __init__(self) -> None:
        self.all: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.all.append(seconds)


@asynccontextmanager
async def api_of(folder: Path, url: str, options: Options | None = None, **more: Any) -> AsyncIterator[KubeAPI]:
    credentials = await Credentials.load(kubeconfig(folder, url, {"token": TOKEN}))
    credentials.configuration.ca_cert_data = pair("ca").certificate.decode()  # else the system's are read: 0.2 s
    async with KubeAPI(credentials, options, **more) as api:
        yield api


@asynccontextmanager
async def talking(
    folder: Path, answer: Answer, options: Options | None = None, **more: Any
) -> AsyncIterator[tuple[KubeAPI, Server]]:
    async with serving(answer) as server, api_of(folder, server.url, options, **more) as api:
        yield api, server


def stream(*chunks: bytes, end: bool = True) -> Answer:
    async def reply(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        for chunk in chunks:
            await answer.write(chunk)
            await asyncio.sleep(0)
        if not end:
            await asyncio.sleep(3600)
        return answer

    return reply


def event(type_: str, **item: Any) -> bytes:
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


async def watched(api: KubeAPI) -> list[tuple[str, Any]]:
    async with aclosing(api.watch(EDGES, resource_version="5", metadata_only=True, labelSelector="a")) as events:
        return [found async for found in events]
