"""Answers that lack a member, or hold another type there: what the line relies on is looked at before it is used."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from doubles.odd import ODD, answering, named, with_member
from doubles.rig import Rig
from doubles.scenarios import effect_of
from edge_operator.kinds import KINDS

from .test_answers import needs_only
from .test_drift import touch
from .test_life import made

ROUTE, CERTIFICATE, AUTHORITY = "HTTPSRoute", "SSHHostCertificate", "SSHCertificateAuthority"
odd = pytest.mark.parametrize("value", ODD, ids=named)


@pytest.mark.fault("times that are none, in the answer to a creation")
@pytest.mark.parametrize("value", [*ODD, "yesterday", "9999-12-31T23:59:59Z"], ids=named)
@pytest.mark.parametrize("kind", ["WeightedBackend", "APIKey", CERTIFICATE, ROUTE])
async def test_a_time_that_is_none_is_as_absent_and_the_id_is_recorded(kind, value):
    rotated = {"rotation": {"interval": "24h", "overlap": "1h"}} if kind == "APIKey" else {}
    async with Rig() as rig:
        await needs_only(rig, kind)
        names = ("created_at", "valid_after", "valid_until")

        def change(call: str, answer: dict[str, Any]) -> dict[str, Any]:
            for name in names if "id" in answer else ():
                answer = with_member(answer, name, value) if name in answer else answer
            return answer

        with answering(rig, change):
            rig.sample(kind, **rotated)
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
            rig.wake_all()
            rig.annotate(kind, reconcile_requested_at="now")
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]
        assert [call.split()[0] for call in rig.calls].count("POST") == 1


@pytest.mark.fault("members of another type that a status shows")
@odd
@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_member_of_another_type_does_not_keep_the_id_from_being_recorded(kind, value):
    """A cluster refuses a status with one of them as a whole."""
    kept = {"id", "token", "certificate", "public_key", "metadata", "description"}

    def change(call: str, answer: dict[str, Any]) -> dict[str, Any]:
        if not call.startswith("POST"):
            return answer
        shown = [name for name in answer if name not in kept and isinstance(answer[name], str | list | None)]
        for name in shown:
            answer = with_member(answer, name, value if value != ["x"] or name != "ns_targets" else [7])
        return answer

    async with Rig() as rig:
        await needs_only(rig, kind)
        with answering(rig, change):
            rig.sample(kind)
            await rig.settle(0)
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]
        rig.annotate(kind, reconcile_requested_at="now")
        await rig.settle()
        assert rig.status(kind)["uri"].endswith(rig.id(kind))


@pytest.mark.fault("a token that is no text")
@odd
@pytest.mark.parametrize("kind", ["APIKey", "TunnelCredential"])
async def test_a_token_that_is_no_text_is_none(kind, value):
    if value == ["x"]:
        value = ""
    async with Rig() as rig:
        await needs_only(rig, kind)
        with answering(rig, lambda call, a: with_member(a, "token", value) if call.startswith("POST") else a):
            rig.sample(kind)
            await rig.settle(10)
            assert rig.reason(kind) == "ServiceUnavailable"
            assert rig.published(f"example-{kind.lower()}") is None
            assert rig.remote(kind) == []
            assert len([said for said in rig.writes if said.endswith("status")]) == 1
        await rig.sleep(100)
        assert rig.ready(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.fault("a certificate that is no text")
@odd
@pytest.mark.parametrize("kind", [CERTIFICATE, "SSHUserCertificate"])
async def test_a_certificate_that_is_no_text_is_not_published_and_not_kept(kind, value):
    async with Rig() as rig:
        await needs_only(rig, kind)
        with answering(rig, lambda call, a: with_member(a, "certificate", value) if call.startswith("POST") else a):
            rig.sample(kind)
            await rig.settle()
            assert rig.reason(kind) == "InvalidCertificate"
            assert rig.published(f"example-{kind.lower()}") is None
            assert rig.remote(kind) == []
        await rig.resync(kind)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.fault("an authority whose public key is no text")
@odd
@pytest.mark.parametrize("by", ["name", "id"])
async def test_an_authority_without_a_public_key_is_waited_for(by, value):
    async with Rig() as rig:
        if by == "id":
            await needs_only(rig, CERTIFICATE)
            authority = {"authority": {"id": rig.id(AUTHORITY)}}
        else:
            authority = {}
        with answering(rig, lambda call, a: with_member(a, "public_key", value) if "auth" in call else a):
            rig.sample(CERTIFICATE, **authority)
            await rig.settle()
            assert rig.reason(CERTIFICATE) == "ReferenceNotReady"
            assert "public key is not known yet" in rig.message(CERTIFICATE)
            assert rig.remote(CERTIFICATE) == []
        rig.annotate(AUTHORITY, reconcile_requested_at="now")
        await rig.settle()
        rig.wake_all()
        await rig.settle()
        assert rig.ready(CERTIFICATE), rig.message(CERTIFICATE)


def nulled(kind: str) -> Any:
    """A change of every object into one whose modules are null."""
    modules = KINDS[kind].api.modules

    def change(_: str, answer: dict[str, Any]) -> dict[str, Any]:
        if KINDS["HTTPSEdge"].api.items in answer and kind == ROUTE:
            items = KINDS["HTTPSEdge"].api.items
            edges = [{**e, "routes": [r | dict.fromkeys(modules) for r in e["routes"]]} for e in answer[items]]
            return {**answer, items: edges}
        if KINDS[kind].api.items in answer:
            items = KINDS[kind].api.items
            return {**answer, items: [item | dict.fromkeys(modules) for item in answer[items]]}
        return answer | dict.fromkeys(modules) if "id" in answer else answer

    return change


@pytest.mark.fault("modules null in an answer")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].api.modules])
async def test_modules_that_are_null_are_off(kind):
    async with Rig() as rig:
        await needs_only(rig, kind)
        with answering(rig, nulled(kind)):
            rig.sample(kind)
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
            rig.edit(kind, description="edited")
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
            for _ in range(2):  # the first of them takes what a module said of itself out of the status
                rig.forget()
                await rig.resync(kind)
                await rig.settle()
            assert rig.ready(kind), rig.message(kind)
            assert rig.writes == []
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]
        rig.forget()
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} <= {"GET"}, "nothing was changed for it"


@pytest.mark.fault("unknown fields in an answer")
@pytest.mark.parametrize("kind", list(KINDS))
async def test_what_a_newer_service_says_besides_changes_nothing(kind):
    entries = {"backends", "critical_options", "extensions", "add"}  # what is in them has names of the user's

    def more(value: Any) -> Any:
        match value:
            case dict():
                inner = {name: item if name in entries else more(item) for name, item in value.items()}
                return inner | {"newer": {"id": None, "list": [1]}}
            case list():
                return [more(item) for item in value]
            case _:
                return value

    def change(_: str, answer: dict[str, Any]) -> dict[str, Any]:
        if isinstance(found := answer.get(KINDS[kind].api.items), list):
            return {**answer, KINDS[kind].api.items: more(found), "newer": 1}
        return {name: value if name in entries else more(value) for name, value in answer.items()} | {"newer": [None]}

    async with Rig() as rig:
        with answering(rig, change):
            rig.sample(kind)
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
            rig.forget()
            await rig.resync(kind)
            assert {call.split()[0] for call in rig.calls} == {"GET"}
            assert (rig.writes, rig.events()) == ([], [])
            rig.edit(kind, description="edited")
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
        assert rig.remote(kind)[0]["description"] == "edited"


METHODS = ["POST", "PATCH", "PUT", "GET", "DELETE"]


async def once_odd(rig: Rig, kind: str, method: str, odd_one: Any) -> None:
    """The first answers to a method are odd, though the request is carried out; in the end all is as it should be."""
    await (needs_only(rig, kind) if method == "POST" else made(rig, kind))
    left = [1, 2]

    def change(call: str, answer: dict[str, Any]) -> Any:
        return odd_one() if call.startswith(method) and left and left.pop() else answer

    with answering(rig, change):
        match method:
            case "POST":
                rig.sample(kind)
            case "PATCH":
                rig.edit(kind, description="edited")
            case "PUT":
                rig.edit(kind, compression={"enabled": False})
            case "GET":
                await touch(rig, kind, {"description": "somebody else's"})
                rig.annotate(kind, reconcile_requested_at="now")
            case _:
                rig.delete(kind)
        await rig.settle()
        assert not left or method in ("POST", "PATCH", "PUT", "DELETE")
    assert not rig.exists(kind) if method == "DELETE" else rig.ready(kind), rig.outcomes
    assert [doc["id"] for doc in rig.remote(kind)] == ([] if method == "DELETE" else [rig.id(kind)])
    if method in ("PATCH", "GET"):
        assert rig.remote(kind)[0]["description"] == rig.get(kind)["spec"].get("description", "")


@pytest.mark.fault("answers that come later than a call may take")
@pytest.mark.parametrize("method", METHODS)
async def test_an_answer_that_comes_too_late_is_unknown_and_nothing_is_made_twice(method):
    async with Rig() as rig:
        await once_odd(rig, ROUTE, method, lambda: httpx.ReadTimeout("too late"))


@pytest.mark.fault("answers without a body")
@pytest.mark.parametrize("method", METHODS)
async def test_a_success_without_a_body_is_asked_after(method):
    async with Rig() as rig:
        await once_odd(rig, ROUTE, method, lambda: httpx.Response(200))
        assert [effect_of(call) for call in rig.calls].count("POST") <= 1
