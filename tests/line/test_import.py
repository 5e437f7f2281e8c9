"""A brownfield account: what `edge-operator import` writes adopts what is there, without one remote change."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from doubles.rig import Rig
from edge_operator.declare import Uploaded
from edge_operator.derive import samples
from edge_operator.engine import brownfield
from edge_operator.engine.state import FINALIZER
from edge_operator.kinds import KINDS


async def brownfield_rig(rig: Rig, kind: str) -> list[dict[str, Any]]:
    """An account with a kind's example in it, as if somebody had made it by hand; and its objects."""
    rig.sample(kind)
    await rig.settle()
    assert rig.ready(kind), rig.message(kind)
    for key in [k for k in rig.api.objects if k[0] in KINDS]:
        rig.api.objects[key]["metadata"]["finalizers"] = [
            f for f in rig.api.objects[key]["metadata"].get("finalizers") or () if f != FINALIZER
        ]
        del rig.api.objects[key]
    for key in [k for k in rig.api.objects if k[0] == "Secret"]:
        del rig.api.objects[key]
    client = rig.process.client.of(KINDS[kind].api).raw
    found = []
    for answer in rig.remote(kind):
        path = {"edge_id": answer["edge_id"]} if kind == "HTTPSRoute" else {}
        found.append(await client.update(answer["id"], {"metadata": "by hand"}, **path))
    await rig.restart()
    rig.forget()
    return found


@pytest.mark.parametrize("kind", [k for k in KINDS if not isinstance(KINDS[k].lifecycle, Uploaded)])
async def test_what_is_imported_is_adopted_without_a_remote_change(kind: str) -> None:
    async with Rig() as rig:
        (answer,) = await brownfield_rig(rig, kind)
        made = brownfield.manifest(KINDS[kind], answer, "default")
        assert made is not None
        document = yaml.safe_load(yaml.safe_dump(made.document))
        name = document["metadata"]["name"]
        rig.secret(name, secrets_for(kind))
        rig.apply(kind, name, document["spec"])

        await rig.settle()

        assert rig.ready(kind, name), rig.message(kind, name)
        assert rig.id(kind, name) == answer["id"]
        assert {call.split()[0] for call in rig.calls} == {"GET"}


def secrets_for(kind: str) -> dict[str, str]:
    """What a user puts into the Secret that a manifest needs: the values that the service holds."""
    needs = next((d for d in yaml.safe_load_all(KINDS[kind].needs) if d), None)
    values = dict(needs["stringData"]) if needs else {}
    named = {
        "EventDestination": {"target.monitoring.apiKey": "api-key"},
        "HTTPSRoute": {
            "webhookVerification.secret": "webhook",
            "oauth.provider.codeHostA.clientSecret": "oauth",
            "oidc.clientSecret": "oidc",
        },
    }
    return {key: values[old] for key, old in named.get(kind, {}).items()} or {"unused": "nothing-reads-this"}


async def test_an_object_with_an_owner_is_left_out() -> None:
    async with Rig() as rig:
        rig.sample("FailoverBackend")
        await rig.settle()
        (answer,) = rig.remote("FailoverBackend")

        assert brownfield.manifest(KINDS["FailoverBackend"], answer, "default") is None


async def test_an_upload_names_the_secret_that_it_needs() -> None:
    async with Rig() as rig:
        (answer,) = await brownfield_rig(rig, "TLSCertificate")

        made = brownfield.manifest(KINDS["TLSCertificate"], answer, "default")

        assert made is not None
        assert made.document["spec"]["secretRef"] == {"name": f"{made.document['metadata']['name']}-tls"}
        assert any("kubernetes.io/tls" in need for need in made.needs)


def test_no_secret_value_is_in_a_manifest() -> None:
    answer = {
        "id": "ed_1",
        "target": {"monitoring": {"api_key": "canary_value", "service": "edge"}},
        "format": "json",
    }

    made = brownfield.manifest(KINDS["EventDestination"], answer, "default")

    assert made is not None
    assert "canary_value" not in str(made)
    assert samples.NAME not in made.document["metadata"]["name"]
