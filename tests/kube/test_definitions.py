"""Whether a CRD is being removed, as the API server says it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.definitions import LONG_AGO, Definitions

KIND = KINDS["TCPEdge"]
SINCE = "2026-01-01T00:00:00Z"
DISCOVERY = "/apis/edge-operator.dev/v1alpha1"


class Api:
    """An API server with one answer for each path."""

    def __init__(self, **answers: Any) -> None:
        self.crd, self.discovery = answers["crd"], answers.get("discovery")
        self.asked: list[str] = []

    async def get(self, path: str, *, metadata_only: bool = False) -> Any:
        self.asked.append(path)
        await asyncio.sleep(0)
        assert metadata_only or path == DISCOVERY
        answer = self.discovery if path == DISCOVERY else self.crd
        if isinstance(answer, Exception):
            raise answer
        return answer


def definitions(api: Api) -> Definitions:
    return Definitions(api, itertools.count().__next__)  # type: ignore[arg-type]


def discovered(*verbs: str) -> Any:
    return {"resources": [{"name": "tcpedges", "verbs": verbs}, {"name": "tlsedges", "verbs": ["create"]}]}


FORBIDDEN = errors.Forbidden("no")


@pytest.mark.parametrize(
    ("crd", "discovery", "expected"),
    [
        ({"metadata": {}}, None, None),
        ({"metadata": {"deletionTimestamp": SINCE}}, None, SINCE),
        (errors.NotFound("gone"), None, LONG_AGO),
        (FORBIDDEN, discovered("create", "get"), None),
        (FORBIDDEN, discovered("get", "delete"), LONG_AGO),
        (FORBIDDEN, {"resources": []}, LONG_AGO),
        (FORBIDDEN, errors.NotFound("gone"), LONG_AGO),
    ],
    ids=["stays", "goes", "gone", "discovered", "goes, discovered", "not offered", "group not offered"],
)
async def test_what_the_api_server_says_of_a_definition(crd: Any, discovery: Any, expected: str | None) -> None:
    assert await definitions(Api(crd=crd, discovery=discovery)).removal(KIND) == expected


async def test_where_it_cannot_be_told_nothing_is_said() -> None:
    with pytest.raises(errors.Unavailable):
        await definitions(Api(crd=errors.Unavailable("busy"))).removal(KIND)


async def test_many_at_once_share_a_read_and_who_asks_later_has_a_new_one() -> None:
    """An answer that was under way before the question may be of before the removal."""
    api = Api(crd={"metadata": {}})
    asking = Definitions(api, lambda: 1.0)  # type: ignore[arg-type]

    await asyncio.gather(*(asking.removal(KIND) for _ in range(20)))
    assert len(api.asked) == 1

    later = Definitions(api, itertools.count().__next__)  # type: ignore[arg-type]
    await later.removal(KIND)
    api.crd = {"metadata": {"deletionTimestamp": SINCE}}
    assert await later.removal(KIND) == SINCE
