"""The seal of a status: it fits what the operator wrote for that resource, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edge_operator.engine import seal, state
from edge_operator.engine.seal import Seal
from edge_operator.engine.state import CLAIM, THROUGH, Published

KEY, OTHER = b"k" * 32, b"o" * 32
STATUS: dict[str, Any] = {
    "id": "rd_1",
    "nonce": "n1",
    "path": {"edge_id": "edghts_1"},
    "previous": [{"id": "rd_0", "nonce": "n0", "deleteAfter": "2026-01-01T00:00:00Z", "path": {"edge_id": "edghts_1"}}],
    "conditions": [{"type": "Ready"}],
}
SEALED = {**STATUS, "seal": seal.of(KEY, "uid-1", STATUS, "Connection/main")}


def test_a_seal_fits_what_it_was_made_for_and_names_the_connection() -> None:
    assert seal.judged(KEY, "uid-1", SEALED) is Seal.FITS
    assert seal.connection(SEALED, "team-a") == ("Connection", "team-a", "main")
    assert seal.judged(KEY, "uid-1", {**SEALED, "uri": "https://x", "conditions": []}) is Seal.FITS


@pytest.mark.parametrize(
    "edit",
    [
        {"id": "rd_2"},
        {"id": None},
        {"nonce": "n2"},
        {"nonce": None},
        {"path": {"edge_id": "edghts_2"}},
        {"path": None},
        {"previous": []},
        {"previous": [{**STATUS["previous"][0], "id": "rd_9"}]},
        {"previous": [{**STATUS["previous"][0], "nonce": "n9"}]},
        {"previous": [{**STATUS["previous"][0], "deleteAfter": "2020-01-01T00:00:00Z"}]},
        {"previous": [{**STATUS["previous"][0], "path": {}}]},
        {"seal": str(SEALED["seal"]).replace("Connection/main", "Connection/other")},
        {"seal": str(SEALED["seal"]).partition(" ")[0]},
    ],
)
def test_an_edit_of_what_is_sealed_breaks_the_seal(edit: dict[str, Any]) -> None:
    assert seal.judged(KEY, "uid-1", {**SEALED, **edit}) is Seal.BROKEN


def test_a_seal_of_another_resource_does_not_fit() -> None:
    assert seal.judged(KEY, "uid-2", SEALED) is Seal.BROKEN


@pytest.mark.parametrize("text", [None, "", "something else"])
def test_without_a_seal_of_the_key_nothing_is_known(text: str | None) -> None:
    assert seal.judged(KEY, "uid-1", {**SEALED, "seal": text}) is Seal.UNKNOWN
    assert seal.judged(OTHER, "uid-1", SEALED) is Seal.UNKNOWN


def test_a_status_that_names_no_object_has_no_seal() -> None:
    assert seal.of(KEY, "uid-1", {"nonce": "n1", "path": {}, "previous": []}, "Connection/main") is None
    assert seal.of(KEY, "uid-1", {"previous": STATUS["previous"]}, "Connection/main") is not None


@pytest.mark.parametrize("text", ["", "Connection", "Connection/", "Secret/main"])
def test_what_names_no_connection_names_none(text: str) -> None:
    assert seal.named(text, "team-a") is None


def test_short_names_of_connections_come_back() -> None:
    for connection in (("Connection", "team-a", "main"), ("ClusterConnection", "", "default")):
        assert seal.named(seal.short(connection), "team-a") == connection


def resource(claim: str, status: dict[str, Any], through: str = "Connection/main") -> dict[str, Any]:
    meta = {"uid": "uid-1", "namespace": "team-a", "annotations": {CLAIM: claim, THROUGH: through}}
    return {"metadata": meta, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("claim", "status", "counts"),
    [
        ("uid-1.n1", SEALED, True),
        ("uid-2.n1", SEALED, True),
        ("uid-1.n1", {**SEALED, "id": "rd_2"}, False),
        ("uid-1.n1", STATUS, True),
        ("uid-2.n1", STATUS, False),
    ],
    ids=["ours", "claim overwritten", "edited", "not sealed", "not sealed, not ours"],
)
def test_whose_a_status_is(claim: str, status: dict[str, Any], counts: bool) -> None:
    assert state.own_status(resource(claim, status), KEY) == (status if counts else {})


def test_the_sealed_connection_goes_before_the_annotation() -> None:
    assert state.through(resource("uid-1.n1", SEALED, "Connection/other")) == ("Connection", "team-a", "main")
    assert state.through(resource("uid-1.n1", STATUS, "Connection/other")) == ("Connection", "team-a", "other")
    assert state.through(resource("uid-2.n1", SEALED, "Connection/other")) is None


def test_what_is_recorded_is_trusted_if_its_seal_fits_whatever_the_claim_says() -> None:
    found = state.recorded(resource("uid-2.n1", SEALED), KEY)
    assert (found.id, found.nonce, found.claim, found.foreign, found.trusted) == ("rd_1", "n1", None, None, True)
    assert found.ids == {"rd_1", "rd_0"}
    edited = state.recorded(resource("uid-1.n1", {**SEALED, "id": "rd_2"}), KEY)
    assert (edited.id, edited.trusted) == ("rd_2", False)
    assert state.recorded(resource("uid-1.n1", {}), KEY).trusted


def test_without_its_current_object_a_record_forgets_what_it_said_of_that_one_alone() -> None:
    found = state.recorded(resource("uid-1.n1", {**SEALED, "applied": {"a": "b"}}), KEY).without_current()
    assert (found.id, found.nonce, found.path, found.applied, found.claim) == (None, None, {}, {}, "n1")
    assert found.status.keys() == {"previous", "conditions", "seal"}
    assert found.ids == {"rd_0"}


def test_a_secret_that_came_or_went_is_another_than_was_seen() -> None:
    held = Published(ours=True, id="ak_1", keys=frozenset({"token"}))
    assert state.undisturbed(None, None)
    assert not state.undisturbed(None, held)
    assert not state.undisturbed(held, None)
    assert not state.undisturbed(held, replace(held, id="ak_2"))
    assert state.undisturbed(held, replace(held, keys=frozenset()))
