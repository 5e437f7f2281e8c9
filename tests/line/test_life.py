"""The plain life of each kind: what is called, what is written, in which order, and nothing besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from doubles import golden
from doubles.rig import Rig
from doubles.scenarios import EDITS, Edit, effect_of
from edge_operator.kinds import KINDS

GOLDEN = Path(__file__).parent / "golden"
EDITED = [pytest.param(kind, edit, id=f"{kind}: {edit}") for kind, edits in EDITS.items() for edit in edits]


async def made(rig: Rig, kind: str) -> None:
    """The kind's example in sync, with everything it needs, and empty logs."""
    rig.sample(kind)
    await rig.settle()
    assert rig.ready(kind), rig.message(kind)
    rig.forget()


async def made_needs(rig: Rig, kind: str) -> None:
    """Everything that the kind's example needs in sync, and empty logs."""
    await made(rig, kind)
    rig.delete(kind)
    await rig.settle()
    rig.forget()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_creation_costs_one_call_and_two_writes_or_three_with_a_secret(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.sample(kind)
        await rig.settle()
        path = KINDS[kind].api.path
        assert [effect_of(call) for call in rig.calls] == ["POST"]
        assert "{" in path or rig.calls[0] == f"POST {path} 201"
        secret = [f"POST Secret/example-{kind.lower()}"] if KINDS[kind].outputs else []
        words = [said.split(" for ")[0].split(",")[0] for said in rig.writes]
        assert words == [f"PATCH {kind}/example finalizer", *secret, f"PATCH {kind}/example status"]
        assert rig.ready(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hundred_passes_of_what_is_in_sync_call_and_write_nothing(kind):
    async with Rig() as rig:
        await made(rig, kind)
        for _ in range(100):
            rig.process.dirty.update(dict.fromkeys(k for k in rig.api.objects if k[0] in KINDS))
            await rig.settle()
        assert (rig.calls, rig.writes, rig.events()) == ([], [], [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_restart_calls_and_writes_nothing(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes, rig.events()) == ([], [], [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_resync_of_what_is_in_sync_is_one_list_and_no_write(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert len({call.split("?")[0] for call in rig.calls}) == 1
        assert (rig.writes, rig.events()) == ([], [])


@pytest.mark.parametrize(("kind", "edit"), EDITED)
async def test_an_edit_costs_its_calls_and_one_status_write(kind: str, edit: Edit):
    async with Rig() as rig:
        await made(rig, kind)
        rig.edit(kind, **edit.members)
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == list(edit.calls)
        if "POST" not in edit.calls:
            assert rig.writes == [f"PATCH {kind}/example status"]
            assert [event.reason for event in rig.events()] == ["Updated"]
        assert rig.ready(kind)
        await rig.restart()
        rig.forget()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])


@pytest.mark.parametrize(("kind", "edit"), EDITED)
async def test_what_an_edit_made_is_what_a_list_shows(kind: str, edit: Edit):
    """Nothing is left to heal after an edit: no field was forgotten, none stands in two ways."""
    async with Rig() as rig:
        await made(rig, kind)
        rig.edit(kind, **edit.members)
        await rig.settle()
        rig.forget()
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert (rig.writes, rig.events()) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
async def test_an_edit_back_and_forth_ends_where_it_began(kind):
    async with Rig() as rig:
        await made(rig, kind)
        before, spec = rig.remote(kind)[0], rig.get(kind)["spec"]
        for edit in EDITS[kind]:
            rig.edit(kind, **edit.members)
            await rig.settle()
        rig.apply(kind, "example", spec)
        await rig.settle()
        (after,) = rig.remote(kind)
        made_anew = {"id", "created_at", "certificate", "public_key", "valid_after", "valid_until", "metadata", "saml"}
        gone = made_anew if KINDS[kind].outputs else {"saml"}
        assert {k: v for k, v in before.items() if k not in gone} == {k: v for k, v in after.items() if k not in gone}
        assert rig.ready(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deletion_costs_one_call_and_one_write(kind):
    async with Rig() as rig:
        await made(rig, kind)
        rig.delete(kind)
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == ["DELETE"]
        assert rig.writes == [f"PATCH {kind}/example finalizer off"]
        assert not rig.exists(kind)
        assert rig.remote(kind) == []
        assert [event.reason for event in rig.events()] == ["Deleted"]
        assert rig.published(f"example-{kind.lower()}") is None


@pytest.mark.parametrize("kind", KINDS)
async def test_the_life_of_a_resource_is_as_it_was(kind):
    """Golden: a change of behaviour shows as a difference of a committed file."""
    async with Rig() as rig:
        await made_needs(rig, kind)
        masks, text = golden.Masks(), []

        async def step(what: str) -> None:
            await rig.settle()
            text.extend([f"# {what}", *golden.lines(rig.cluster.journal, masks), ""])
            text[-1:] = [*(f"event: {e.reason}: {masks(e.message)}" for e in rig.events()), ""]
            rig.forget()

        rig.sample(kind)
        await step("create")
        for edit in EDITS[kind]:
            rig.edit(kind, **edit.members)
            await step(edit.what)
        rig.delete(kind)
        await step("delete")
        golden.compare(GOLDEN / f"{kind}.txt", "\n".join(text))
