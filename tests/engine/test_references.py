"""What a spec points at: found wherever it stands, and resolved, or refused with where, what and what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from derive.specs import merge
from edge_operator.declare import Kind, SecretKeyRef
from edge_operator.derive import samples
from edge_operator.engine import references
from edge_operator.engine.operations import Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import Named, Referent
from edge_operator.kinds import KINDS

BACKENDS = "bkdwd_ or bkdfo_ or bkdhr_ or bkdtg_"


def spec(kind: str, change: dict[str, Any] | None = None) -> Any:
    return KINDS[kind].spec.model_validate(merge(samples.spec(KINDS[kind]), change or {}))


def known(**ids: Referent | None) -> Callable[[Named], Referent | None]:
    return lambda named: ids.get(f"{named[0]}_{named[1]}")


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("AgentIngress", {}),
        ("FailoverBackend", {"spec.backends[0]": None, "spec.backends[1]": None}),
        ("HTTPSEdge", {"spec.mutualTLS.certificateAuthorities[0]": None}),
        (
            "HTTPSRoute",
            {
                "spec.edge": ("HTTPSEdge", "example"),
                "spec.backend.ref": ("WeightedBackend", "example"),
                "spec.ipRestriction.ipPolicies[0]": None,
            },
        ),
        ("SSHHostCertificate", {"spec.authority": ("SSHCertificateAuthority", "example")}),
        ("WeightedBackend", {"spec.backends[0].ref": ("FailoverBackend", "example"), "spec.backends[1].ref": None}),
    ],
)
def test_every_reference_is_found_where_it_stands(kind: str, found: dict[str, Named | None]) -> None:
    assert found == {p.at: p.named for p in references.pointers(spec(kind))}


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("TLSEdge", {}),
        ("EventDestination", {("example-monitoring", "api-key"): "spec.target.monitoring.apiKey"}),
        (
            "TLSCertificate",
            {("example-tls", "tls.crt"): "spec.secretRef", ("example-tls", "tls.key"): "spec.secretRef"},
        ),
        (
            "HTTPSRoute",
            {
                ("example-route", "webhook"): "spec.webhookVerification.secret",
                ("example-route", "oauth"): "spec.oauth.provider.codeHostA.clientSecret",
                ("example-route", "idp"): "spec.saml.idpMetadata",
                ("example-route", "oidc"): "spec.oidc.clientSecret",
            },
        ),
    ],
)
def test_every_key_of_a_secret_is_found_where_it_stands(kind: str, found: dict[tuple[str, str], str]) -> None:
    assert {SecretKeyRef(name=n, key=k): at for (n, k), at in found.items()} == references.secret_keys(spec(kind))


@pytest.mark.parametrize(
    ("kind", "change", "reason", "message"),
    [
        (
            "HTTPSRoute",
            {"backend": {"ref": {"kind": "TLSEdge"}}},
            Stalls.INVALID_REFERENCE,
            "spec.backend.ref: TLSEdge does not fit here; use WeightedBackend or FailoverBackend",
        ),
        (
            "HTTPSRoute",
            {"edge": {"name": None, "id": "edgtls_1"}},
            Stalls.INVALID_REFERENCE,
            "spec.edge: 'edgtls_1' should start with edghts_",
        ),
        (
            "TLSEdge",
            {"backend": {"ref": {"kind": None, "name": None, "id": "bkdxx_1"}}},
            Stalls.INVALID_REFERENCE,
            f"spec.backend.ref: 'bkdxx_1' should start with {BACKENDS}",
        ),
        (
            "FailoverBackend",
            {"backends": [{"id": "bkdhr_1"}, {"id": "ipp_1"}]},
            Stalls.INVALID_REFERENCE,
            f"spec.backends[1]: 'ipp_1' should start with {BACKENDS}",
        ),
        (
            "TCPEdge",
            {"ipRestriction": {"ipPolicies": [{"id": "ip_1"}]}},
            Stalls.INVALID_REFERENCE,
            "spec.ipRestriction.ipPolicies[0]: 'ip_1' should start with ipp_",
        ),
        (
            "TLSEdge",
            {"mutualTLS": {"certificateAuthorities": [{"id": "cert_1"}]}},
            Stalls.INVALID_REFERENCE,
            "spec.mutualTLS.certificateAuthorities[0]: 'cert_1' should start with ca_",
        ),
    ],
)
def test_what_cannot_fit_is_refused_where_it_stands(
    kind: str, change: dict[str, Any], reason: Stalls, message: str
) -> None:
    everything = Referent("id")

    with pytest.raises(Stalled) as stalled:
        references.ids(spec(kind, change), lambda _: everything)

    assert (reason, message) == (stalled.value.reason, stalled.value.message)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "spec.authority: there is no SSHCertificateAuthority named 'example' in this namespace"),
        (Referent(None), "spec.authority: SSHCertificateAuthority 'example' has no id yet"),
        (Referent(None, deleting=True), "spec.authority: SSHCertificateAuthority 'example' is being deleted"),
        (Referent("sshca_1", deleting=True), "spec.authority: SSHCertificateAuthority 'example' is being deleted"),
    ],
)
def test_what_is_not_there_yet_is_waited_for(found: Referent | None, message: str) -> None:
    with pytest.raises(Waiting) as waiting:
        references.ids(spec("SSHHostCertificate"), known(SSHCertificateAuthority_example=found))

    assert (Waits.REFERENCE_NOT_READY, message) == (waiting.value.reason, waiting.value.message)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_example_resolves_when_everything_it_names_is_there(kind: Kind[Any]) -> None:
    parsed = spec(kind.name)
    named = {p.named for p in references.pointers(parsed) if p.named}

    found = references.ids(parsed, lambda n: Referent(f"{KINDS[n[0]].api.prefix}{n[1]}"))

    assert {n: f"{KINDS[n[0]].api.prefix}example" for n in named} == found


# Circles -------------------------------------------------------------------------------------

A, B, C, D = (("FailoverBackend", name) for name in "abcd")


@pytest.mark.parametrize(
    ("graph", "circle", "reason"),
    [
        ({}, None, "points at nothing"),
        ({A: [B], B: [C]}, None, "a line"),
        ({A: [A]}, [A], "points at itself"),
        ({A: [B], B: [A]}, [A, B], "two"),
        ({A: [D, B], B: [C], C: [A]}, [A, B, C], "three, and a way that leads nowhere"),
        ({A: [B, C], B: [D], C: [D]}, None, "two ways to one place"),
        ({A: [B], B: [C], C: [B]}, None, "a circle that A is not part of"),
        ({A: [B], B: [D, C], D: [B], C: [A]}, [A, B, C], "a circle beside the one that A is part of"),
    ],
)
def test_a_circle_is_found_by_each_that_is_part_of_it(
    graph: dict[Named, list[Named]], circle: list[Named] | None, reason: str
) -> None:
    assert circle == references.cycle(A, lambda named: graph.get(named, [])), reason


def test_a_chain_of_any_length_is_followed_to_its_end() -> None:
    line = {("FailoverBackend", str(n)): [("FailoverBackend", str(n + 1))] for n in range(5000)}

    assert None is references.cycle(("FailoverBackend", "0"), lambda named: line.get(named, []))
    line["FailoverBackend", "5000"] = [("FailoverBackend", "0")]
    assert 5001 == len(references.cycle(("FailoverBackend", "0"), lambda named: line.get(named, [])) or [])
