"""What the API server's refusal in a namespace that is being deleted leads to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edge_operator.engine.operations import Waiting
from edge_operator.engine.reasons import Waits
from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.cluster import KubeCluster
from edge_operator.kube.endings import BELIEVED_SECONDS, Endings

from .test_output_secrets import OneNamespace

KEY = {
    "apiVersion": "edge-operator.dev/v1alpha1",
    "kind": "APIKey",
    "metadata": {"name": "own", "namespace": "a", "uid": "1", "resourceVersion": "1"},
}


class Refusing(OneNamespace):
    """An API server that creates no Secret."""

    def __init__(self, *causes: str) -> None:
        super().__init__()
        self.causes = causes

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        raise errors.Forbidden("no", causes=self.causes)


def cluster(api: OneNamespace) -> KubeCluster:
    return KubeCluster(
        api,  # type: ignore[arg-type]  # what is asked of it
        SimpleNamespace(),  # type: ignore[arg-type]  # likewise
        cluster_id="c",
        digest_key=b"k",
        may_write=lambda: None,
        tell=lambda *_: None,
        wake=lambda _: None,
    )


async def test_nothing_is_claimed_once_a_namespace_turned_out_to_be_going() -> None:
    found = cluster(Refusing("NamespaceTerminating"))
    with pytest.raises(Waiting, match="the namespace is being deleted") as why:
        await found.publish(KINDS["APIKey"], KEY, "own-apikey", "ak_1", {"token": "t"}, None)
    assert why.value.reason is Waits.DELETING
    with pytest.raises(Waiting, match="the namespace is being deleted"):
        await found.claim(KINDS["APIKey"], KEY, "n")


async def test_a_lack_of_rights_is_no_such_thing() -> None:
    with pytest.raises(errors.Forbidden):
        await cluster(Refusing()).publish(KINDS["APIKey"], KEY, "own-apikey", "ak_1", {"token": "t"}, None)


def test_a_namespace_of_the_same_name_is_not_held_back_for_long() -> None:
    now = 100.0
    found = Endings(lambda: now)
    with pytest.raises(Waiting):
        found.note("a", errors.Forbidden("no", causes=("NamespaceTerminating",)))
    found.check("b")
    now += BELIEVED_SECONDS
    found.check("a")
