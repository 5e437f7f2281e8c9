"""What can be said of a key or a credential: whose it is, and what its token may bind."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.rig import Rig
from edge_operator.kinds import KINDS

from .test_life import made
from .test_tokens import CREDENTIAL, TOKENS


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_owner_is_the_caller_unless_the_spec_names_another(kind):
    async with Rig() as rig:
        await made(rig, kind)
        admin = rig.remote(kind)[0]["owner_id"]
        assert rig.status(kind).get("ownerID") in (None, admin)
        rig.sample(kind, "other", ownerID="usr_2yrt9bq0U3H2dBBOxrYmAkFMnvJ")
        await rig.settle()
        assert rig.ready(kind, "other"), rig.message(kind, "other")
        assert rig.remote(kind)[-1]["owner_id"] == "usr_2yrt9bq0U3H2dBBOxrYmAkFMnvJ" != admin
        rig.forget()
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


async def acl_of(rig: Rig) -> list[str]:
    found: list[str] = rig.remote(CREDENTIAL)[0]["acl"]
    return found


async def with_acl(rig: Rig, acl: Any) -> None:
    rig.sample(CREDENTIAL, acl=acl)
    await rig.settle()
    assert rig.ready(CREDENTIAL), rig.message(CREDENTIAL)
    rig.forget()


async def test_the_order_of_acl_rules_means_nothing():
    async with Rig() as rig:
        await with_acl(rig, ["bind:b.example.com", "bind:env=*", "bind:*=*"])
        rig.edit(CREDENTIAL, acl=["bind:*=*", "bind:b.example.com", "bind:env=*"])
        await rig.settle()
        assert rig.calls == []
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(
            rig.id(CREDENTIAL), {"acl": ["bind:env=*", "bind:*=*", "bind:b.example.com"]}
        )
        await rig.resync(CREDENTIAL)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


@pytest.mark.parametrize(("before", "after"), [(None, ["*"]), (["*"], None), (["*"], [])])
async def test_a_lone_star_equals_no_rule(before, after):
    async with Rig() as rig:
        await with_acl(rig, before)
        rig.edit(CREDENTIAL, acl=after)
        await rig.settle()
        assert rig.calls == []
        assert await acl_of(rig) in ([], ["*"])


@pytest.mark.parametrize("acl", [None, ["*"]])
async def test_a_lone_star_that_the_service_holds_is_no_difference(acl):
    async with Rig() as rig:
        await with_acl(rig, acl)
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(rig.id(CREDENTIAL), {"acl": ["*"]})
        await rig.resync(CREDENTIAL)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


async def test_removed_rules_go_back_to_none_and_a_rule_added_elsewhere_is_undone():
    async with Rig() as rig:
        await with_acl(rig, ["bind:*.example.com"])
        rig.edit(CREDENTIAL, acl=None)
        await rig.settle()
        assert [(sent.method, sent.body) for sent in rig.sent] == [("PATCH", {"acl": []})]
        assert await acl_of(rig) == []
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(rig.id(CREDENTIAL), {"acl": ["bind:evil.example.com"]})
        await rig.resync(CREDENTIAL)
        assert await acl_of(rig) == []
        assert rig.events()[-1].reason == "DriftCorrected"


async def test_a_rule_is_sent_as_it_is_written():
    rules = ["bind:*.example.com", "bind:env=*", "bind:*=blue", "bind:tcp.example.com:5672"]
    async with Rig() as rig:
        await with_acl(rig, rules)
        assert await acl_of(rig) == rules


@pytest.mark.parametrize("acl", [["connect:a.example.com"], ["bind:"], ["*", "bind:a.example.com"], ["*", "*"]])
async def test_a_rule_of_another_form_is_refused_before_anything_is_made(acl):
    async with Rig() as rig:
        rig.sample(CREDENTIAL, acl=acl)
        await rig.settle()
        assert rig.reason(CREDENTIAL) == "InvalidSpec"
        assert "acl" in rig.message(CREDENTIAL)
        assert rig.remote(CREDENTIAL) == []
