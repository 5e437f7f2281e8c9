"""What a status shows of an answer."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from edge_operator import report
from edge_operator.declare import Kind, to_camel
from edge_operator.derive import crd
from edge_operator.engine import reported
from edge_operator.kinds import KINDS

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def paths(tree: reported.Tree, prefix: str = "") -> Iterator[str]:
    for member in tree:
        yield prefix + member.name
        yield from paths(member.inside, f"{prefix}{member.name}.")


@pytest.mark.parametrize(
    ("kind", "besides"),
    [
        ("TLSEdge", []),
        ("HTTPSEdge", []),  # routes are resources of their own
        ("EventDestination", []),
        ("SSHCertificateAuthority", ["publicKey", "keyType"]),
        ("SSHHostCertificate", ["keyType", "validAfter", "validUntil"]),  # certificate and key are in the Secret
        (
            "HTTPSRoute",
            [
                "saml",
                "saml.idpMetadataURL",
                "saml.entityID",
                "saml.assertionConsumerServiceURL",
                "saml.singleLogoutURL",
                "saml.requestSigningCertificatePEM",
                "saml.metadataURL",
            ],
        ),
    ],
)
def test_a_status_shows_what_the_service_says_and_the_user_does_not(kind: str, besides: list[str]) -> None:
    assert ["id", "uri", "createdAt", *besides] == [*paths(reported.fields(KINDS[kind]))]


@every_kind
def test_no_secret_is_shown(kind: Kind[Any]) -> None:
    shown = {name.rsplit(".", 1)[-1] for name in paths(reported.fields(kind))}

    assert not shown & {"token", "clientSecret", "secret", "apiKey", "cloudSecretAccessKey", "certificate"}


@every_kind
def test_every_shown_value_has_a_place_in_the_schema(kind: Kind[Any]) -> None:
    schema = crd.schema(kind)["properties"]["status"]
    for path in paths(reported.fields(kind)):
        place = schema
        for name in path.split("."):
            place = place["properties"][name]


def test_everything_that_the_line_writes_has_a_place_in_the_schema() -> None:
    """The API server drops what it does not know, and what is dropped is done again with every pass."""
    written = set(re.findall(r'\bstatus\["(\w+)"\] = ', inspect.getsource(report)))
    places = [crd.schema(kind)["properties"]["status"]["properties"].keys() for kind in KINDS.values()]

    assert written >= {"applied", "conditions", "lastHandledReconcileAt", "observedGeneration", "previous"}
    assert written <= set().union(*places)


def test_values_come_from_the_answer_and_nulls_are_left_out() -> None:
    answer = {
        "id": "edghtsrt_1",
        "uri": None,
        "created_at": "2026-01-02T03:04:05Z",
        "match": "/api",
        "saml": {"entity_id": "https://sp.example.com", "idp_metadata": "<x/>", "metadata_url": None},
        "oidc": {"client_secret": "canary"},
    }

    assert reported.values(KINDS["HTTPSRoute"], answer) == {
        "id": "edghtsrt_1",
        "createdAt": "2026-01-02T03:04:05Z",
        "saml": {"entityID": "https://sp.example.com"},
    }


def test_a_module_that_is_off_is_not_shown() -> None:
    assert reported.values(KINDS["HTTPSRoute"], {"id": "edghtsrt_1", "saml": None}) == {"id": "edghtsrt_1"}


def test_a_module_without_read_only_values_is_not_shown() -> None:
    assert reported.values(KINDS["HTTPSRoute"], {"id": "a", "saml": {"idp_metadata": "<x/>"}}) == {"id": "a"}


@every_kind
def test_names_are_those_of_kubernetes(kind: Kind[Any]) -> None:
    for member in reported.fields(kind):
        assert member.name == to_camel(member.wire)
