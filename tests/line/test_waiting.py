"""What is not there yet is waited for, by name, without calls; it heals by itself. What is wrong is said."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from doubles.scenarios import NAME
from edge_operator.derive import samples
from edge_operator.kinds import KINDS

from .test_life import made

POINTING = [
    ("FailoverBackend", {"backends": [{"kind": "WeightedBackend", "name": "later"}]}, "spec.backends[0]"),
    (
        "WeightedBackend",
        {"backends": [{"ref": {"kind": "FailoverBackend", "name": "later"}, "weight": 1}]},
        "spec.backends[0].ref",
    ),
    ("TLSEdge", {"backend": {"ref": {"kind": "WeightedBackend", "name": "later"}}}, "spec.backend.ref"),
    ("TCPEdge", {"backend": {"ref": {"kind": "WeightedBackend", "name": "later"}}}, "spec.backend.ref"),
    ("HTTPSRoute", {"backend": {"ref": {"kind": "FailoverBackend", "name": "later"}}}, "spec.backend.ref"),
    ("HTTPSRoute", {"edge": {"name": "later"}}, "spec.edge"),
    ("SSHHostCertificate", {"authority": {"name": "later"}}, "spec.authority"),
]


def _target(members: dict) -> str:
    text = str(members)
    named = next((kind for kind in KINDS if f"'{kind}'" in text), None)
    return named or ("HTTPSEdge" if "edge" in members else "SSHCertificateAuthority")


@pytest.mark.fault("a reference that is not there yet")
@pytest.mark.parametrize(("kind", "members", "where"), POINTING, ids=lambda value: str(value)[:60])
async def test_a_resource_waits_for_one_it_names_and_goes_on_when_it_is_there(kind, members, where):
    target = _target(members)
    async with Rig() as rig:
        rig.sample(kind, **members)
        await rig.settle()
        rig.forget()
        assert rig.reason(kind) == "ReferenceNotReady"
        assert rig.message(kind) == f"{where}: there is no {target} named 'later' in this namespace"
        assert rig.remote(kind) == []
        await rig.sleep(3600)
        assert (rig.calls, rig.writes) == ([], []), "waiting costs nothing"
        spec = samples.spec(KINDS[target])
        rig.apply(target, "later", {"hostports": ["later.example.com:443"]} if target == "HTTPSEdge" else spec)
        if target == "WeightedBackend":
            rig.edit("WeightedBackend", "later", backends=[{"ref": {"id": "bkdhr_1"}, "weight": 1}])
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)


async def test_references_applied_together_in_any_order_need_no_word_of_waiting():
    async with Rig() as rig:
        for kind in ("HTTPSRoute", "TLSEdge"):
            rig.sample(kind)
        rig.process.dirty = dict(reversed(list(rig.process.dirty.items())))
        await rig.settle()
        assert [said for said in rig.writes if "status" in said].count("PATCH HTTPSRoute/example status") == 1
        assert rig.ready("HTTPSRoute")


async def test_a_reference_by_id_needs_nobody():
    async with Rig() as rig:
        rig.apply("WeightedBackend", NAME, {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 3}]})
        await rig.settle()
        assert rig.remote("WeightedBackend")[0]["backends"] == {"bkdhr_1": 3}


async def test_an_id_of_another_kind_is_stalled_and_says_what_is_expected():
    async with Rig() as rig:
        rig.apply("FailoverBackend", NAME, {"backends": [{"id": "ipp_1"}]})
        await rig.settle()
        assert rig.reason("FailoverBackend") == "InvalidReference"
        expected = "spec.backends[0]: 'ipp_1' should start with bkdwd_ or bkdfo_ or bkdhr_ or bkdtg_"
        assert rig.message("FailoverBackend") == expected
        assert rig.calls == []


async def test_two_entries_for_one_backend_are_a_duplicate_reference():
    async with Rig() as rig:
        rig.apply("FailoverBackend", "child", {"backends": [{"id": "bkdhr_1"}]})
        await rig.settle()
        child = rig.id("FailoverBackend", "child")
        named = {"ref": {"kind": "FailoverBackend", "name": "child"}, "weight": 1}
        rig.apply("WeightedBackend", NAME, {"backends": [named, {"ref": {"id": child}, "weight": 2}]})
        await rig.settle()
        assert rig.reason("WeightedBackend") == "DuplicateReference"
        assert rig.message("WeightedBackend").startswith("spec.backends[1].ref: ")
        assert rig.remote("WeightedBackend") == []


async def test_a_circle_is_named_and_heals_when_it_is_broken():
    async with Rig() as rig:
        rig.apply("FailoverBackend", "a", {"backends": [{"kind": "FailoverBackend", "name": "b"}]})
        rig.apply("FailoverBackend", "b", {"backends": [{"kind": "FailoverBackend", "name": "a"}]})
        await rig.settle()
        assert rig.reason("FailoverBackend", "a") == "ReferenceCycle"
        assert "FailoverBackend/a → FailoverBackend/b → FailoverBackend/a" in rig.message("FailoverBackend", "a")
        rig.apply("FailoverBackend", "b", {"backends": [{"id": "bkdhr_1"}]})
        await rig.settle()
        assert rig.ready("FailoverBackend", "a")
        assert rig.ready("FailoverBackend", "b")


@pytest.mark.fault("a Secret that is not there")
@pytest.mark.parametrize(
    ("kind", "secret", "where"),
    [
        ("EventDestination", "example-monitoring", "spec.target.monitoring.apiKey"),
        ("HTTPSRoute", "example-route", "spec.webhookVerification.secret"),
    ],
)
async def test_a_missing_secret_is_waited_for_by_name(kind, secret, where):
    async with Rig() as rig:
        rig.sample(kind)
        held = rig.published(secret)["data"]
        rig.api.delete(("Secret", "default", secret))
        await rig.settle()
        assert rig.reason(kind) == "SecretNotReady"
        assert rig.message(kind) == f"{where}: there is no Secret {secret!r} in this namespace"
        rig.forget()
        await rig.sleep(3600)
        assert (rig.calls, rig.writes) == ([], [])
        rig.secret(secret, {"other": "value"})
        await rig.settle()
        assert rig.message(kind).startswith(f"{where}: Secret {secret!r} has no key ")
        rig.secret(secret, held)
        await rig.settle()
        assert rig.ready(kind)


async def test_a_changed_secret_value_is_sent_in_one_call():
    async with Rig() as rig:
        await made(rig, "EventDestination")
        rig.secret("example-monitoring", {"api-key": "another-monitoring-key"})
        await rig.settle()
        assert [call.split()[0] for call in rig.calls] == ["PATCH"]
        assert rig.remote("EventDestination")[0]["target"]["monitoring"]["api_key"] == "another-monitoring-key"
        assert rig.writes == ["PATCH EventDestination/example status"]


async def test_a_changed_module_secret_puts_that_module_alone():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        held = rig.published("example-route")["data"]
        rig.secret("example-route", {**held, "oidc": "another-client-secret"})
        await rig.settle()
        assert [call.rsplit("/", 1)[-1] for call in rig.calls] == ["oidc 200"]


ABSENT = {"ref": {"id": "bkdwd_2yrt9bq0U3H2dBBOxrYmAkFMnvJ"}}


async def test_what_the_service_refuses_is_stalled_with_its_message_and_heals_with_the_spec():
    async with Rig() as rig:
        rig.sample("TLSEdge", backend=ABSENT)
        await rig.settle()
        assert rig.reason("TLSEdge") == "InvalidSpec"
        said = f"the service refuses it: backend.backend_id: '{ABSENT['ref']['id']}' does not exist"
        assert rig.message("TLSEdge") == said
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert rig.writes == [], "a restart says nothing new of what is stalled"
        assert rig.remote("TLSEdge") == []
        rig.edit("TLSEdge", backend={"ref": {"id": "bkdhr_1"}})
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert len(rig.remote("TLSEdge")) == 1


async def test_a_refused_edit_is_stalled_and_the_edit_back_heals():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        before = rig.get("TLSEdge")["spec"]["backend"]
        rig.edit("TLSEdge", backend=ABSENT)
        await rig.settle()
        assert rig.reason("TLSEdge") == "InvalidSpec"
        rig.edit("TLSEdge", backend=before)
        await rig.settle()
        assert rig.ready("TLSEdge")
        rig.forget()
        await rig.resync("TLSEdge")
        assert rig.writes == []


async def test_a_spec_that_only_a_model_refuses_is_stalled_and_says_where():
    async with Rig() as rig:
        rig.sample("TLSEdge", hostports=[])
        await rig.settle()
        assert rig.reason("TLSEdge") == "InvalidSpec"
        assert rig.message("TLSEdge").startswith("spec.hostports: ")
        assert rig.calls == [call for call in rig.calls if "/edges" not in call]


async def test_a_fixed_field_that_changed_is_stalled_and_never_sent():
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        rig.edit("SSHCertificateAuthority", ellipticCurve="p521")
        await rig.settle()
        assert rig.reason("SSHCertificateAuthority") == "ImmutableFieldChanged"
        assert rig.message("SSHCertificateAuthority").startswith("spec.ellipticCurve: fixed at creation")
        assert rig.calls == []
        rig.edit("SSHCertificateAuthority", ellipticCurve=None, privateKeyType=None)
        await rig.settle()
        assert rig.reason("SSHCertificateAuthority") == "ImmutableFieldChanged"
        rig.edit("SSHCertificateAuthority", ellipticCurve="p384", privateKeyType="ecdsa")
        await rig.settle()
        assert rig.ready("SSHCertificateAuthority")


async def test_a_changed_id_is_followed_by_who_names_it():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        old = rig.id("WeightedBackend")
        await rig.outside.tls_edges.raw.delete(rig.id("TLSEdge"))
        await rig.outside.weighted_backends.raw.delete(old)
        await rig.resync("WeightedBackend")
        assert rig.id("WeightedBackend") != old
        await rig.resync("TLSEdge")
        assert rig.remote("TLSEdge")[0]["backend"]["backend_id"] == rig.id("WeightedBackend")


async def test_a_recreated_edge_takes_its_routes_along():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        old = rig.id("HTTPSRoute")
        await rig.outside.https_edges.raw.delete(rig.id("HTTPSEdge"))
        assert rig.remote("HTTPSRoute") == []
        rig.forget()
        await rig.resync("HTTPSEdge")
        assert {call.split()[0] for call in rig.calls} == {"GET", "POST"}, "what went with its edge needs no deletion"
        (route,) = rig.remote("HTTPSRoute")
        assert route["edge_id"] == rig.id("HTTPSEdge")
        assert route["id"] == rig.id("HTTPSRoute") != old
        assert rig.ready("HTTPSRoute")
        assert rig.status("HTTPSRoute")["path"] == {"edge_id": rig.id("HTTPSEdge")}
