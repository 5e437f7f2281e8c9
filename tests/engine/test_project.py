"""From a spec to a request body: every mark does what it says, and what is unset stays absent."""

from __future__ import annotations

from typing import Any

import pytest

from derive.specs import merge
from edge_operator.declare import Kind, SecretKeyRef
from edge_operator.derive import samples
from edge_operator.engine import project
from edge_operator.engine.operations import Stalled
from edge_operator.engine.project import Bindings, fields
from edge_operator.engine.reasons import Stalls
from edge_operator.kinds import KINDS
from engine.account import wanted

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_the_body_of_an_example_is_one_that_the_document_knows(kind: Kind[Any]) -> None:
    """Strictly: no unknown member, no wrong type."""
    assert kind.api.create is not None
    kind.api.create.model_validate(wanted(kind).body("nonce"))


@every_kind
def test_what_is_local_or_in_the_address_is_never_in_the_body(kind: Kind[Any]) -> None:
    apart = {f.wire for f in fields(kind.spec) if f.local or f.in_path}

    assert set() == apart & wanted(kind).plain.keys()


@every_kind
def test_every_field_that_is_sent_is_remembered_by_its_name_in_the_spec(kind: Kind[Any]) -> None:
    desired = wanted(kind)
    wires = {f.alias: f.wire for f in fields(kind.spec)}

    assert {*desired.plain} - {"certificate_pem", "private_key_pem"} <= {wires[alias] for alias in desired.applied}


@pytest.mark.parametrize(
    ("kind", "change", "member", "value", "reason"),
    [
        ("HTTPSRoute", {}, "compression", {"enabled": True}, "an empty module is switched on"),
        ("HTTPSRoute", {}, "description", "", "absent means empty, so that a removal is a change"),
        ("HTTPSRoute", {}, "backend", {"enabled": True, "backend_id": "bkdwd_example"}, "a reference is an id"),
        (
            "HTTPSRoute",
            {"webhookVerification": {"provider": "aws_sns", "secret": None}},
            "webhook_verification",
            {"enabled": True, "provider": "aws_sns"},
            "what is unset stays absent",
        ),
        (
            "HTTPSRoute",
            {"saml": {"idpMetadata": {"value": "<x/>", "secretKeyRef": None}, "forceAuthn": None}},
            "saml",
            {
                "enabled": True,
                "idp_metadata": "<x/>",
                "authorized_groups": ["admins"],
                "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
            },
            "a text may stand in the spec",
        ),
        (
            "WeightedBackend",
            {},
            "backends",
            {"bkdfo_example": 90, "bkdtg_2yrt9ZkAqlNPxGdGEsGS0fYYjNj": 10},
            "a keyed list is a map",
        ),
        (
            "WeightedBackend",
            {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 0}]},
            "backends",
            {"bkdhr_1": 0},
            "zero",
        ),
        ("TunnelCredential", {"acl": ["*"]}, "acl", [], "a lone star is no rule"),
        (
            "TLSEdge",
            {},
            "ip_restriction",
            {"enabled": True, "ip_policy_ids": ["ipp_2yrt9bq0U3H2dBBOxrYmAkFMnvJ"]},
            "ids",
        ),
        ("EventDestination", {}, "format", "json", "a default that the document gives"),
    ],
)
def test_a_field_is_sent_as_its_marks_say(
    kind: str, change: dict[str, Any], member: str, value: Any, reason: str
) -> None:
    assert value == wanted(KINDS[kind], change).plain[member], reason


@pytest.mark.parametrize(
    ("kind", "absent"),
    [
        ("TunnelCredential", "owner_id"),
        ("TLSEdge", "metadata_"),
        ("SSHHostCertificate", "valid_for"),
        ("SSHHostCertificate", "public_key"),
        ("SSHCertificateAuthority", "key_size"),
        ("TLSCertificate", "secret_ref"),
        ("HTTPSRoute", "edge_id"),
    ],
)
def test_what_the_service_is_not_to_hear_is_absent(kind: str, absent: str) -> None:
    assert absent not in wanted(KINDS[kind]).plain


def test_the_parent_of_a_route_is_in_its_address() -> None:
    assert {"edge_id": "edghts_example"} == wanted(KINDS["HTTPSRoute"]).path
    assert {} == wanted(KINDS["HTTPSEdge"]).path


@pytest.mark.parametrize(
    ("children", "message"),
    [
        (
            [{"ref": {"id": "bkdhr_1"}, "weight": 1}, {"ref": {"id": "bkdhr_1"}, "weight": 2}],
            "spec.backends[1].ref: bkdhr_1 is listed twice; list each backend once",
        ),
        (
            [
                {"ref": {"id": "bkdhr_1"}, "weight": 1},
                {"ref": {"id": "bkdwd_example"}, "weight": 1},
                {"ref": {"kind": "WeightedBackend", "name": "example"}, "weight": 2},
            ],
            "spec.backends[2].ref: bkdwd_example is listed twice; list each backend once",
        ),
    ],
)
def test_two_entries_that_mean_one_object_are_refused(children: list[Any], message: str) -> None:
    """By name and by id too, which no schema can see."""
    with pytest.raises(Stalled) as stalled:
        wanted(KINDS["WeightedBackend"], {"backends": children})

    assert (Stalls.DUPLICATE_REFERENCE, message) == (stalled.value.reason, stalled.value.message)


def test_a_missing_binding_is_an_error_and_no_empty_value() -> None:
    kind = KINDS["EventDestination"]
    spec = kind.spec.model_validate(merge(samples.spec(kind), {}))

    with pytest.raises(KeyError):
        project.body(spec, Bindings({}, {SecretKeyRef(name="example-monitoring", key="other"): "x"}))


@every_kind
def test_the_wire_names_of_a_spec_are_those_of_the_creation(kind: Kind[Any]) -> None:
    assert kind.api.create is not None
    sent = {f.wire for f in fields(kind.spec) if not f.local and not f.in_path} - {"secret_ref"}

    assert set() == sent - kind.api.create.model_fields.keys() - {"valid_for", "private_key"}
