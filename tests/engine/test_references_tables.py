"""References: found in a spec, turned into ids, and each message says where, what was found, what is expected."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_operator.engine import references
from edge_operator.engine.operations import Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import Named, Referent
from edge_operator.kinds import KINDS

READY = {("WeightedBackend", "blue"): Referent("bkdwd_1"), ("HTTPSEdge", "front"): Referent("edghts_1")}


def spec(kind: str, **members):
    return KINDS[kind].spec.model_validate(members)


@pytest.mark.parametrize(
    ("kind", "members", "known", "message"),
    [
        pytest.param(
            "FailoverBackend",
            {"backends": [{"id": "bkdhr_1"}, {"kind": "WeightedBackend", "name": "blue"}]},
            {},
            "spec.backends[1]: there is no WeightedBackend named 'blue' in this namespace",
            id="absent",
        ),
        pytest.param(
            "TLSEdge",
            {"hostports": ["a.example.com:443"], "backend": {"ref": {"kind": "WeightedBackend", "name": "blue"}}},
            {("WeightedBackend", "blue"): Referent(None)},
            "spec.backend.ref: WeightedBackend 'blue' has no id yet",
            id="without id",
        ),
        pytest.param(
            "HTTPSRoute",
            {"edge": {"name": "front"}, "matchType": "exact_path", "match": "/"},
            {("HTTPSEdge", "front"): Referent("edghts_1", deleting=True)},
            "spec.edge: HTTPSEdge 'front' is being deleted",
            id="being deleted",
        ),
    ],
)
def test_what_is_not_ready_is_waited_for_by_name(kind, members, known: Mapping[Named, Referent], message):
    with pytest.raises(Waiting) as waiting:
        references.ids(spec(kind, **members), known.get)
    assert (Waits.REFERENCE_NOT_READY, message) == (waiting.value.reason, waiting.value.message)


@pytest.mark.parametrize(
    ("kind", "members", "message"),
    [
        pytest.param(
            "WeightedBackend",
            {"backends": [{"ref": {"id": "edghts_1"}, "weight": 1}]},
            "spec.backends[0].ref: 'edghts_1' should start with bkdwd_ or bkdfo_ or bkdhr_ or bkdtg_",
            id="prefix",
        ),
        pytest.param(
            "FailoverBackend",
            {"backends": [{"kind": "TLSEdge", "name": "db"}]},
            "spec.backends[0]: TLSEdge does not fit here; use WeightedBackend or FailoverBackend",
            id="kind",
        ),
        pytest.param(
            "TLSEdge",
            {"hostports": ["a.example.com:443"], "ipRestriction": {"ipPolicies": [{"id": "ipp_1"}, {"id": "ca_1"}]}},
            "spec.ipRestriction.ipPolicies[1]: 'ca_1' should start with ipp_",
            id="in a list of a module",
        ),
        pytest.param(
            "HTTPSRoute",
            {"edge": {"id": "edgtls_1"}, "matchType": "exact_path", "match": "/"},
            "spec.edge: 'edgtls_1' should start with edghts_",
            id="in the path",
        ),
    ],
)
def test_what_cannot_be_right_is_stalled(kind, members, message):
    with pytest.raises(Stalled) as stalled:
        references.ids(spec(kind, **members), READY.get)
    assert (Stalls.INVALID_REFERENCE, message) == (stalled.value.reason, stalled.value.message)


def test_names_become_ids_and_ids_stay():
    members = {"backends": [{"ref": {"kind": "WeightedBackend", "name": "blue"}, "weight": 1},
                            {"ref": {"id": "bkdhr_9"}, "weight": 2}]}  # fmt: skip
    assert {("WeightedBackend", "blue"): "bkdwd_1"} == references.ids(spec("WeightedBackend", **members), READY.get)


def test_every_secret_key_is_named_with_its_place():
    from edge_operator.derive import samples

    kind = KINDS["HTTPSRoute"]
    found = references.secret_keys(kind.spec.model_validate(samples.spec(kind)))
    assert {
        "spec.webhookVerification.secret": "webhook",
        "spec.oauth.provider.codeHostA.clientSecret": "oauth",
        "spec.saml.idpMetadata": "idp",
        "spec.oidc.clientSecret": "oidc",
    } == {at: ref.key for ref, at in found.items()}


nodes = st.sampled_from([("FailoverBackend", name) for name in "abcdef"])
graphs = st.dictionaries(nodes, st.lists(nodes, max_size=4), max_size=6)


@given(graphs, nodes)
def test_a_circle_is_found_exactly_where_there_is_one(graph: dict[Named, list[Named]], start: Named):
    reached: set[Named] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += graph.get(node, ())
    circle = references.cycle(start, lambda node: graph.get(node, ()))
    assert (start in reached) == (circle is not None)
    if circle is not None:
        for one, following in zip(circle, [*circle[1:], start], strict=True):
            assert following in graph[one], "each points at the next"
        assert len(set(circle)) == len(circle)
