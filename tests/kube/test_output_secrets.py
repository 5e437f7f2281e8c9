"""The type of an output Secret says whether a private key is inside, and cannot change."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from edge_operator.engine.operations import Restart, Stalled
from edge_operator.engine.reasons import Stalls
from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.secrets import Secrets

KIND, NAMESPACE = "SSHUserCertificate", "default"


class OneNamespace:
    """Secrets in memory, as the API server treats them: a type that stays, merge patches, versions."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}

    async def get(self, path: str) -> dict[str, Any]:
        name = path.rsplit("/", 1)[-1]
        if name not in self.secrets:
            raise errors.NotFound("no such Secret")
        found: dict[str, Any] = json.loads(json.dumps(self.secrets[name]))
        return found

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        self.secrets[body["metadata"]["name"]] = stored
        return stored

    async def merge_patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        before = self.secrets[path.rsplit("/", 1)[-1]]
        assert body.get("type", before["type"]) == before["type"], "the type of a Secret cannot change"
        assert body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        data = {**before["data"], **body.get("data", {})}
        before["data"] = {k: v for k, v in data.items() if v is not None}
        before["metadata"] |= body["metadata"] | {"resourceVersion": before["metadata"]["resourceVersion"] + "1"}
        return before

    def data(self, name: str) -> dict[str, str]:
        return {k: base64.b64decode(v).decode() for k, v in self.secrets[name]["data"].items()}


def leads() -> None:
    """This replica leads, and goes on to."""


RESOURCE = {
    "apiVersion": "edge-operator.dev/v1alpha1",
    "kind": KIND,
    "metadata": {"name": "example", "namespace": NAMESPACE, "uid": "1"},
}
PUBLIC = {"ssh-publickey": "public", "ssh-certificate": "signed", "ca.pub": "authority"}
WHOLE = {**PUBLIC, "ssh-privatekey": "private"}


@pytest.mark.parametrize(("data", "type_"), [(WHOLE, "kubernetes.io/ssh-auth"), (PUBLIC, "Opaque")])
async def test_the_type_says_whether_a_private_key_is_inside(data: dict[str, str], type_: str) -> None:
    api = OneNamespace()
    await Secrets(api, leads).publish(KINDS[KIND], RESOURCE, "s", "scrt_1", data, None)  # type: ignore[arg-type]  # as far as used
    assert (api.secrets["s"]["type"], api.data("s")) == (type_, data)


async def test_a_secret_of_the_ssh_type_is_renewed_in_place() -> None:
    api = OneNamespace()
    secrets = Secrets(api, leads)  # type: ignore[arg-type]  # as far as used
    seen = await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_1", WHOLE, None)
    await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_2", {**WHOLE, "ssh-certificate": "newer"}, seen)
    assert api.data("s")["ssh-certificate"] == "newer"
    found = await secrets.published(KINDS[KIND], RESOURCE, "s")
    assert found is not None
    assert (found.ours, found.id, found.keys) == (True, "scrt_2", frozenset(WHOLE))


async def test_a_secret_that_would_lose_the_key_that_its_type_needs_is_not_written() -> None:
    """The API server would refuse it; the message says what to do."""
    api = OneNamespace()
    secrets = Secrets(api, leads)  # type: ignore[arg-type]  # as far as used
    seen = await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_1", WHOLE, None)
    with pytest.raises(Stalled, match="delete it") as refused:
        await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_2", PUBLIC, seen)
    assert refused.value.reason is Stalls.SECRET_CONFLICT
    assert api.data("s") == WHOLE


async def test_a_private_key_that_comes_later_stays_in_the_secret_that_there_is() -> None:
    api = OneNamespace()
    secrets = Secrets(api, leads)  # type: ignore[arg-type]  # as far as used
    seen = await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_1", PUBLIC, None)
    await secrets.publish(KINDS[KIND], RESOURCE, "s", "scrt_2", WHOLE, seen)
    assert (api.secrets["s"]["type"], api.data("s")) == ("Opaque", WHOLE)


def left(**meta: Any) -> dict[str, Any]:
    """A Secret that a resource of this kind and name, which is gone, has left."""
    owner = {"kind": KIND, "name": "example", "uid": "0"}
    known = {"labels": {"edge-operator.dev/kind": KIND}, "ownerReferences": [owner], "resourceVersion": "1"}
    return {"type": "Opaque", "data": {}, "metadata": {"name": "s", **known, **meta}}


async def test_the_secret_of_a_resource_of_this_name_that_is_gone_can_be_taken_over() -> None:
    namespace = OneNamespace()
    namespace.secrets["s"] = left()
    secrets = Secrets(namespace, leads)  # type: ignore[arg-type]
    before = await secrets.published(KINDS[KIND], RESOURCE, "s")

    written = await secrets.take_over(KINDS[KIND], RESOURCE, "s", before)

    after = await secrets.published(KINDS[KIND], RESOURCE, "s")
    assert before is not None
    assert after is not None
    assert (before.ours, before.forsaken) == (False, True)
    assert (after.ours, after.forsaken) == (True, False)
    assert written == after


@pytest.mark.parametrize(
    "meta",
    [
        {"labels": {}},
        {"ownerReferences": [{"kind": KIND, "name": "other", "uid": "0"}]},
        {"ownerReferences": [{"kind": "TLSEdge", "name": "example", "uid": "0"}]},
    ],
    ids=["not written by the operator", "of another name", "of another kind"],
)
async def test_no_other_secret_is_taken_over(meta: dict[str, Any]) -> None:
    namespace = OneNamespace()
    namespace.secrets["s"] = left(**meta)
    secrets = Secrets(namespace, leads)  # type: ignore[arg-type]
    found = await secrets.published(KINDS[KIND], RESOURCE, "s")

    with pytest.raises(Restart):
        await secrets.take_over(KINDS[KIND], RESOURCE, "s", found)

    assert found is not None
    assert not found.forsaken
    assert namespace.secrets["s"] == left(**meta)
