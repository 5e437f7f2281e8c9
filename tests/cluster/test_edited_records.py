"""Statuses and annotations edited with kubectl: the real process finds its own object again and touches no other."""

from __future__ import annotations

import json
from typing import Any

from cluster.running import SOON, Operator, World
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.processes import wait_until

KIND = "SSHCertificateAuthority"
"""The kind that is lost for good where a second object takes its place."""


def patch(world: World, name: str, body: dict[str, Any], *flags: str) -> None:
    """Edit a resource as a person does."""
    what = f"{KINDS[KIND].plural}.edge-operator.dev"
    world.cluster.kubectl(
        "patch", what, name, "--namespace", world.namespace, "--type=merge", "--patch", json.dumps(body), *flags
    )


def made(world: World, name: str) -> dict[str, Any]:
    world.make(KIND, name, samples.spec(KINDS[KIND]))
    return world.ready(KIND, name)


def held(world: World) -> dict[str, Any]:
    return {found["id"]: found for found in world.service.objects(KIND)}


def test_an_edited_status_leads_back_to_our_own_object(operator: Operator, world: World) -> None:
    foreign = world.service.ask("POST", KINDS[KIND].api.path, {"description": "not ours"})
    before = made(world, "ca")
    objects = held(world)
    edit = {"id": foreign["id"], "previous": [{"id": foreign["id"] + "x"}, {"id": foreign["id"]}]}

    patch(world, "ca", {"status": edit}, "--subresource=status")

    def healed() -> bool:
        status = (world.get(KIND, "ca") or {})["status"]
        return {k: status.get(k) for k in ("id", "seal", "previous")} == {
            "id": before["status"]["id"],
            "seal": before["status"]["seal"],
            "previous": None,
        }

    wait_until(healed, "the status to be as it was", SOON, 0.1, lambda: str(world.get(KIND, "ca")))
    operator.rest()
    assert held(world) == objects

    patch(world, "ca", {"status": edit}, "--subresource=status")
    world.delete(KIND, "ca")
    world.gone(KIND, "ca")
    assert held(world) == {id_: found for id_, found in objects.items() if id_ != before["status"]["id"]}


def test_the_annotations_of_another_resource_change_nothing(operator: Operator, world: World) -> None:
    before, other = made(world, "ca"), made(world, "other")
    objects, name = held(world), "edge-operator.dev/claim"

    patch(world, "ca", {"metadata": {"annotations": other["metadata"]["annotations"]}})

    def claim() -> str:
        found: str = (world.get(KIND, "ca") or {})["metadata"]["annotations"][name]
        return found

    own = before["metadata"]["annotations"][name]
    wait_until(lambda: claim() == own, "the claim to be as it was", SOON, 0.1, claim)
    operator.rest()
    assert world.ready(KIND, "ca")["status"] == before["status"]
    assert held(world) == objects
