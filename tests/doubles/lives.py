"""What happens to a resource of each kind in its life: made, changed, rotated, renewed, replaced, let go, deleted."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from doubles.apiserver import copied
from doubles.effects import Died
from doubles.foreign import foreign
from doubles.hands import NAMESPACE
from doubles.pairs import issuing, leaf
from doubles.rig import Rig
from doubles.scenarios import EDITS
from edge_operator.declare import Issued, Token, Uploaded
from edge_operator.derive import samples
from edge_operator.engine import project
from edge_operator.kinds import KINDS

HOUR = 3600.0
ROTATION = {"interval": "100h", "overlap": "10h"}
Act = Callable[[str, Rig], Awaitable[None]]


class End(StrEnum):
    """What is to be left at the end: the resource in sync; nothing; or, without the resource, its remote object."""

    LIVES = "lives"
    GONE = "gone"
    LEFT = "left"


@dataclass(frozen=True)
class Scenario:
    """`prepare` without faults, then `act` with some."""

    name: str
    prepare: Callable[[Rig], Awaitable[None]]
    act: Callable[[Rig], Awaitable[None]]
    end: End = End.LIVES
    rounds: tuple[str, ...] = ()
    """Kinds whose drift rounds it takes to notice what happened."""
    foreign: int = 3
    """How many objects of others are beside ours at the end."""
    marked: bool = True
    """Whether the connection has owner markers on."""
    adopts: bool = False
    """Whether the resource adopts an object rather than makes one; see `doubles.adoptions`."""
    stalls: str = ""
    """The reason why an adoption comes to nothing."""

    def __str__(self) -> str:
        return self.name


def of(kind: str) -> Iterator[Scenario]:
    """Every scenario of a kind."""
    in_sync = functools.partial(_in_sync, kind)
    yield _scenario(kind, "create", _create, _needs_only)
    yield _scenario(kind, "create and delete", _create_and_delete, _needs_only, end=End.GONE)
    yield _scenario(kind, "delete", _delete, end=End.GONE)
    yield _scenario(kind, "delete, retained", _retain, end=End.LEFT)
    yield _scenario(kind, "abandon", _abandon, end=End.LEFT)
    for edit in EDITS[kind]:
        yield Scenario(f"edit {edit}", in_sync, functools.partial(_edit, kind, edit.members))
    for member in _removable_modules(kind):
        off = {member: None}
        on = {member: copied(samples.spec(KINDS[kind])[member])}
        yield Scenario(f"{member} off", in_sync, functools.partial(_edit, kind, off))
        yield Scenario(f"{member} on", functools.partial(_in_sync, kind, **off), functools.partial(_edit, kind, on))
    yield _scenario(kind, "status wiped", _wipe_status)
    yield _scenario(kind, "id wiped", _wipe_id)
    yield _scenario(kind, "vanish", _vanish, _in_sync_recreating, rounds=(kind,))
    if kind == "HTTPSRoute":
        yield _scenario(kind, "edge vanished", _edge_vanish, rounds=("HTTPSEdge", kind), foreign=0)
    match KINDS[kind].lifecycle:
        case Issued():
            yield _scenario(kind, "renewal", _pass_lifetime)
            yield _scenario(kind, "rotation asked for", _ask)
            yield _scenario(kind, "Secret lost", _lose_secret)
            yield _scenario(kind, "Secret emptied", _empty_secret)
        case Token():
            yield _scenario(kind, "rotation", _pass_interval, _in_sync_rotating)
            yield _scenario(kind, "rotation asked for", _ask, _in_sync_never_rotating)
            yield _scenario(kind, "rotation asked for, with overlap", _ask_and_wait, _in_sync_rotating)
            yield _scenario(kind, "delete in the overlap", _delete, _in_overlap, end=End.GONE)
            yield _scenario(kind, "Secret lost", _lose_secret, _in_sync_never_rotating)
            yield _scenario(kind, "Secret lost in the overlap", _lose_secret_and_wait, _in_overlap)
            yield _scenario(kind, "Secret emptied", _empty_secret, _in_sync_never_rotating)
        case Uploaded():
            yield _scenario(kind, "Secret changed", _change_secret)
            yield _scenario(kind, "Secret half written", _change_secret_in_two_writes)


def _scenario(kind: str, name: str, act: Act, prepare: Act | None = None, **members: Any) -> Scenario:
    part = functools.partial
    return Scenario(name, part(prepare or _in_sync, kind), part(act, kind), **members)


def _removable_modules(kind: str) -> list[str]:
    """Modules of the example that a spec may do without, by their names in Kubernetes."""
    spec = KINDS[kind].spec
    given = samples.spec(KINDS[kind])
    return [
        f.alias
        for f in project.fields(spec)
        if f.module is not None and f.alias in given and not spec.model_fields[f.name].is_required()
    ]


# Before --------------------------------------------------------------------------------------------


async def _in_sync(kind: str, rig: Rig, **members: Any) -> None:
    rig.sample(kind, **members)
    await rig.settle()
    assert rig.ready(kind), rig.message(kind)
    await foreign(rig, kind)


async def _needs_only(kind: str, rig: Rig) -> None:
    await _in_sync(kind, rig)
    rig.delete(kind)
    await rig.settle()
    rig.forget()


async def _in_sync_recreating(kind: str, rig: Rig) -> None:
    await _in_sync(kind, rig, onRemoteMissing="Recreate")


async def _in_sync_rotating(kind: str, rig: Rig) -> None:
    await _in_sync(kind, rig, rotation=ROTATION)


async def _in_sync_never_rotating(kind: str, rig: Rig) -> None:
    await _in_sync(kind, rig, rotation=None)


async def _in_overlap(kind: str, rig: Rig) -> None:
    await _in_sync_rotating(kind, rig)
    rig.annotate(kind, rotate_requested_at="once")
    await rig.settle()
    assert "previous" in rig.status(kind)


# What happens --------------------------------------------------------------------------------------


async def _create(kind: str, rig: Rig) -> None:
    rig.sample(kind)


async def _create_and_delete(kind: str, rig: Rig) -> None:
    """Deleted before the operator looks twice."""
    rig.sample(kind)
    with contextlib.suppress(Died):
        await rig.work()
    if rig.exists(kind):
        rig.delete(kind)


async def _delete(kind: str, rig: Rig) -> None:
    rig.delete(kind)


async def _retain(kind: str, rig: Rig) -> None:
    rig.edit(kind, deletionPolicy="Retain")
    rig.delete(kind)


async def _abandon(kind: str, rig: Rig) -> None:
    rig.annotate(kind, abandon="true")
    rig.delete(kind)


async def _edit(kind: str, members: dict[str, Any], rig: Rig) -> None:
    rig.edit(kind, **members)


async def _wipe_status(kind: str, rig: Rig) -> None:
    """Somebody edits the status: the id is gone, the claim stays."""
    gone = dict.fromkeys(rig.status(kind))
    rig.api.patch_status((kind, NAMESPACE, "example"), None, gone, "user")


async def _wipe_id(kind: str, rig: Rig) -> None:
    rig.api.patch_status((kind, NAMESPACE, "example"), None, {"id": None}, "user")


async def _vanish(kind: str, rig: Rig) -> None:
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    await rig.outside.of(KINDS[kind].api).raw.delete(rig.id(kind), **path)


async def _edge_vanish(kind: str, rig: Rig) -> None:
    del kind
    await rig.outside.of(KINDS["HTTPSEdge"].api).raw.delete(rig.id("HTTPSEdge"))


async def _pass_lifetime(kind: str, rig: Rig) -> None:
    """Past the time for renewal, not past the end."""
    await rig.sleep(61 * 24 * HOUR if kind == "SSHHostCertificate" else 17 * HOUR)


async def _pass_interval(kind: str, rig: Rig) -> None:
    """Past the rotation, and past the overlap that follows."""
    del kind
    await rig.sleep(100 * HOUR)
    await rig.sleep(11 * HOUR)


async def _ask(kind: str, rig: Rig) -> None:
    rig.annotate(kind, rotate_requested_at="2026-01-01T00:00:00Z")


async def _ask_and_wait(kind: str, rig: Rig) -> None:
    await _ask(kind, rig)
    await rig.settle()
    await rig.sleep(11 * HOUR)


def secret_of(kind: str) -> str:
    """The name of the output Secret of a kind's example."""
    return f"{samples.NAME}-{kind.lower()}"


async def _lose_secret(kind: str, rig: Rig) -> None:
    rig.api.delete(("Secret", NAMESPACE, secret_of(kind)))


async def _lose_secret_and_wait(kind: str, rig: Rig) -> None:
    await _lose_secret(kind, rig)
    await rig.settle()
    await rig.sleep(11 * HOUR)


async def _empty_secret(kind: str, rig: Rig) -> None:
    rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {}})


def _put(rig: Rig, crt: str, key: str) -> None:
    data = {"tls.crt": crt, "tls.key": key}
    rig.api.apply(("Secret", NAMESPACE, "example-tls"), {"type": "kubernetes.io/tls", "data": data})


async def _change_secret(kind: str, rig: Rig) -> None:
    del kind
    _put(rig, leaf(1).crt + issuing().crt, leaf(1).pem_key)


async def _change_secret_in_two_writes(kind: str, rig: Rig) -> None:
    del kind
    held = rig.published("example-tls")
    assert held is not None
    _put(rig, leaf(1).crt + issuing().crt, held["data"]["tls.key"])
    await rig.settle()
    _put(rig, leaf(1).crt + issuing().crt, leaf(1).pem_key)
