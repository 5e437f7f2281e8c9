"""Runs a scenario once for each effect and each thing that can go wrong there, and judges how it ends."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography.hazmat.primitives import serialization

from doubles.cluster import ID
from doubles.effects import Fate
from doubles.rig import GRACE_SECONDS, Rig
from doubles.world import key_pair
from edge_operator.declare import Issued, Token
from edge_operator.engine import marker, ssh
from edge_operator.engine.state import CLAIM, FINALIZER
from edge_operator.kinds import KINDS

EVERYWHERE = (Fate.DIE_BEFORE, Fate.DIE_AFTER)
CLUSTER = (Fate.CONFLICT, Fate.LOST_WRITE)
REMOTE = (Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.FAULT_AFTER, Fate.GARBAGE_AFTER)
FOREIGN = "not ours"
LAG = {"kind": "lag", "seconds": 0.6 * GRACE_SECONDS}
"""Lists leave out what is younger than that; the grace is longer, as it has to be."""


@dataclass(frozen=True)
class Scenario:
    """`prepare` without faults, then `act` with one; `gone` where nothing is to be left of the resource."""

    name: str
    prepare: Callable[[Rig], Awaitable[None]]
    act: Callable[[Rig], Awaitable[None]]
    gone: bool = False
    rounds: bool = False
    """Whether it takes a look at the service (a drift round) to notice what happened."""

    def __str__(self) -> str:
        return self.name


@dataclass
class Tally:
    """What was run, for the summary."""

    schedules: int = 0
    injected: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)


TALLY = Tally()


async def effects_of(kind: str, scenario: Scenario, seed: int = 0) -> list[str]:
    """The names of the scenario's effects, undisturbed."""
    async with Rig(seed=seed) as rig:
        await scenario.prepare(rig)
        done = len(rig.effects.log)
        await _run(rig, kind, scenario)
        await judge(rig, kind, scenario)
        return rig.effects.log[done:]


def schedules(effects: list[str]) -> Iterator[dict[int, Fate]]:
    """One fate at one effect."""
    for number, name in enumerate(effects, 1):
        for fate in (*EVERYWHERE, *(CLUSTER if name.startswith("cluster") else REMOTE)):
            yield {number: fate}


def pairs(effects: list[str]) -> Iterator[dict[int, Fate]]:
    """A death at one effect, and another at one of those that follow it, in the next life."""
    for number in range(1, len(effects) + 1):
        for distance in range(1, len(effects) + 3):
            for first in (Fate.DIE_AFTER, Fate.CUT_AFTER):
                if first is Fate.DIE_AFTER or not effects[number - 1].startswith("cluster"):
                    yield {number: first, number + distance: Fate.DIE_AFTER}


@dataclass(frozen=True)
class Meddling:
    """What a user does at one effect; `gone` where the resource is to be gone at the end."""

    what: str
    act: Callable[[Rig], object]
    gone: bool = False

    def __str__(self) -> str:
        return self.what


async def survive(
    kind: str,
    scenario: Scenario,
    fates: Mapping[int, Fate],
    meddling: Mapping[int, Meddling] | None = None,
    *,
    stale: bool = False,
    seed: int = 0,
) -> None:
    """Run it with those fates, effects counted from where `act` begins, and judge the end."""
    async with Rig(seed=seed) as rig:
        await scenario.prepare(rig)
        done = len(rig.effects.log)
        rig.faults(LAG)
        rig.stale = stale
        rig.effects.fates = {done + number: fate for number, fate in fates.items()}
        for number, user in (meddling or {}).items():
            rig.effects.meddling[done + number] = functools.partial(user.act, rig)
            scenario = replace(scenario, gone=scenario.gone or user.gone)
        try:
            await _run(rig, kind, scenario)
            rig.effects.fates, rig.effects.meddling, rig.stale = {}, {}, False
            await rig.settle()
            await judge(rig, kind, scenario)
        except Exception as error:
            told = "\n  ".join(rig.effects.log[done:])
            what = {number: str(user) for number, user in (meddling or {}).items()}
            raise AssertionError(f"{kind}, {scenario}, {fates} {what}: {error!r}\n  {told}") from error
        TALLY.schedules += 1
        TALLY.injected += len(rig.effects.met) + len(meddling or {})
        TALLY.by_kind[kind] = TALLY.by_kind.get(kind, 0) + 1


async def _run(rig: Rig, kind: str, scenario: Scenario) -> None:
    await scenario.act(rig)
    await rig.settle()
    if scenario.rounds:
        await rig.resync(kind)
        await rig.resync(kind)


async def foreign(rig: Rig, kind: str) -> None:
    """Put objects beside ours that are not ours: one without a marker, one of another cluster, one of another uid."""
    collection = rig.outside.of(KINDS[kind].api).raw
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    uid = "99999999-0000-4000-8000-000000000000"
    for number, metadata in enumerate(
        (
            "mine",
            marker.attach("", marker.owner("another-cluster", "00000000-0000-4000-8000-000000000001", "n", "a", "b")),
            marker.attach("{}", marker.owner(rig.cluster.id, uid, "nonce1", "default", "other")),
        )
    ):
        body = {"description": FOREIGN, "metadata": metadata, **_least(rig, kind, number)}
        await collection.create(body, **path)


def _least(rig: Rig, kind: str, number: int) -> dict[str, Any]:
    match kind:
        case "HTTPSRoute":
            return {"match_type": "exact_path", "match": f"/foreign/{number}"}
        case "EventDestination":
            return {"format": "json", "target": {"monitoring": {"api_key": "foreign"}}}
        case "SSHHostCertificate":
            key = _any_public_key()
            return {"ssh_certificate_authority_id": rig.id("SSHCertificateAuthority"), "public_key": key}
        case "AgentIngress":
            return {"domain": f"foreign-{number}.example.com"}
        case "TLSCertificate":
            held = next(o["data"] for o in rig.api.objects.values() if "tls.crt" in o.get("data", {}))
            return {"certificate_pem": held["tls.crt"], "private_key_pem": held["tls.key"]}
        case "SSHUserCertificate":
            key = _any_public_key()
            return {"ssh_certificate_authority_id": rig.id("SSHCertificateAuthority"), "public_key": key}
        case "TCPEdge" | "TLSEdge" | "HTTPSEdge":
            return {"hostports": [f"foreign-{kind.lower()}-{number}.example.com:443"]}
        case _:
            return {}


def _any_public_key() -> str:
    return key_pair(number=999).public


async def judge(rig: Rig, kind: str, scenario: Scenario) -> None:
    """What has to hold at the end of every scenario."""
    ours = [doc for doc in rig.remote(kind) if doc["description"] != FOREIGN]
    assert len(rig.remote(kind)) - len(ours) == 3, "a foreign object was touched"
    assert not rig.process.dirty, "something is still to be done"
    if scenario.gone:
        assert not rig.exists(kind), f"still there: {rig.message(kind)}"
        assert ours == [], "orphans"
        assert rig.published(f"example-{kind.lower()}") is None
        return
    assert rig.ready(kind), f"{rig.reason(kind)}: {rig.message(kind)}"
    resource = rig.get(kind)
    status, meta = resource["status"], resource["metadata"]
    assert [doc["id"] for doc in ours] == [status["id"]], f"{len(ours)} objects, {status['id']} recorded"
    assert "previous" not in status
    assert FINALIZER in meta["finalizers"]
    assert meta["annotations"][CLAIM] == f"{meta['uid']}.{status['nonce']}"
    owner = marker.split(ours[0]["metadata"])[1]
    assert owner is not None
    assert (owner.uid, owner.nonce) == (meta["uid"], status["nonce"])
    _judge_secret(rig, kind, ours[0])
    await _judge_quiet(rig, kind)


def _judge_secret(rig: Rig, kind: str, remote: dict[str, Any]) -> None:
    outputs = KINDS[kind].outputs
    if not outputs:
        return
    name = f"example-{kind.lower()}"
    secret = rig.published(name)
    assert secret is not None
    assert secret["metadata"]["annotations"][ID] == remote["id"], "the Secret is of another object"
    assert rig.status(kind)["secretName"] == name
    values = {o.source: secret["data"].get(o.key) for o in outputs}
    match KINDS[kind].lifecycle:
        case Issued():
            assert values["certificate"] is not None
            assert values["certificate"].strip() == remote["certificate"]
            _judge_certificate(rig, kind, values)
        case Token():
            if kind == "APIKey":
                with rig.app.store.read() as tx:
                    assert rig.app.keyring.holder(tx, values["token"] or "") == remote["id"], "the token opens nothing"
            assert values["token"], "a token was lost"
            assert values["id"] == remote["id"]
            assert values["previous.token"] is None, "a token of a predecessor that is gone"


def _judge_certificate(rig: Rig, kind: str, values: dict[str, Any]) -> None:
    spec, lifecycle = rig.get(kind)["spec"], KINDS[kind].lifecycle
    assert isinstance(lifecycle, Issued)
    wish = ssh.Wish(
        host=lifecycle.host,
        public_key=values["public_key"],
        principals=spec["principals"],
        authority=values["authority.public_key"],
    )
    ssh.verify(values["certificate"], wish, rig.world.now())
    if "privateKey" in spec:
        key = serialization.load_ssh_private_key(values["private_key"].encode(), None)
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        assert public.decode() == values["public_key"].strip(), "private and public key do not belong together"


async def _judge_quiet(rig: Rig, kind: str) -> None:
    """A list finds nothing to heal, and a restart nothing to do."""
    rig.forget()
    await rig.resync(kind)
    assert {call.split()[0] for call in rig.calls} <= {"GET"}, f"a list found something to heal: {rig.calls}"
    assert rig.writes == []
    rig.forget()
    await rig.restart()
    await rig.settle()
    assert (rig.calls, rig.writes) == ([], []), "a restart found something to do"
