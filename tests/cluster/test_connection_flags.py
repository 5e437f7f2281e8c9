"""Operators of their own in chosen namespaces: without flags, and with flags that come to lead elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.running import Installation, Operator, Service, World, message, says
from cluster.test_connections import KIND, SECRET, SPEC, THROUGH, connect, ids
from harness.cluster import Cluster


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Another account, of another service."""
    with Service(tmp_path_factory.mktemp("other")) as found:
        found.start()
        yield found


def test_an_operator_without_flags_works_with_connections_alone(
    crds: Cluster, namespace: str, other: Service, tmp_path: Path
) -> None:
    world = World(crds, other, namespace)
    own = Installation(crds, namespace, watch=[namespace])
    with Operator(own, "", tmp_path / "no-key", tmp_path / "operator.log") as running:
        running.lead()
        connect(world, other)
        world.make(KIND, "x", THROUGH)
        world.make(KIND, "y", SPEC)
        assert world.ready(KIND, "x")["status"]["id"] in world.left()
        said = message(world.until(KIND, "y", "ConnectionNotReady"))
        assert "uses no ClusterConnection; name a Connection of this namespace" in said
        world.make(
            "Connection", "unused", {"url": other.url, "apiKey": {"secretKeyRef": {"name": SECRET, "key": "api-key"}}}
        )
        assert says(world.until("Connection", "unused", "Connected")) == "Connected"
        for kind, name in ((KIND, "x"), (KIND, "y"), ("Connection", "main"), ("Connection", "unused")):
            world.delete(kind, name)
            world.gone(kind, name)


@pytest.mark.fault("flags that lead to another account")
def test_flags_that_lead_to_another_account_neither_empty_nor_double_anything(
    crds: Cluster, namespace: str, service: Service, other: Service, key_file: Path, tmp_path: Path
) -> None:
    world, own = World(crds, service, namespace), Installation(crds, namespace, watch=[namespace])
    wrong_key = tmp_path / "wrong-key"
    wrong_key.write_text(other.operator_key)
    with Operator(own, service.url, key_file, tmp_path / "right.log") as right:
        right.lead()
        world.make(KIND, "x", SPEC)
        made = world.ready(KIND, "x")["status"]["id"]
        right.stop()
    with Operator(own, other.url, wrong_key, tmp_path / "wrong.log") as wrong:
        wrong.lead()
        wrong.says("AccountMismatch: the account holds none of the objects")
        world.delete(KIND, "x")
        assert "the operator's own connection cannot be used" in message(world.until(KIND, "x", "ConnectionNotReady"))
        wrong.stop()
    assert (world.left(), ids(other, world)) == ([made], [])
    with Operator(own, service.url, key_file, tmp_path / "right-again.log") as again:
        again.lead()
        world.gone(KIND, "x")
        again.stop()
    assert world.left() == []
