"""Mirrors online sessions as TunnelSessions in the operator's namespace: one list per interval, writes on change only.

Where the service refuses or does not answer, what was mirrored of it stays. Switched off, what is left goes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from edge_operator.api import catalog
from edge_operator.declare import GROUP, VERSION, Body, to_camel
from edge_operator.door import NotLeading
from edge_operator.engine import conditions
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Missing, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Ready
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import errors, metrics
from edge_operator.kube.client import JSON, Listing
from edge_operator.kube.cluster import path
from edge_operator.kube.logs import where
from edge_operator.ports import World
from edge_operator.remote import Listing as Sessions
from edge_operator.statuses import Conditioned

_log = logging.getLogger(__name__)

KIND = COMPANIONS["TunnelSession"]
CONNECTION = f"{GROUP}/connection"
"""Label that names the connection through which a session was seen."""
DEFAULT = "default"
"""The connection that the operator's own settings describe."""
LEAD_SECONDS = 1.0
"""How often a follower asks whether it leads."""


class Objects(Protocol):
    """What is needed of the Kubernetes API."""

    async def list(self, path: str) -> Listing:
        """A whole collection."""

    async def create(self, path: str, body: JSON) -> JSON:
        """The created object."""

    async def merge_patch(self, path: str, body: JSON, *, subresource: str = "") -> JSON:
        """The object after a merge patch."""

    async def delete(self, path: str, *, uid: str = "") -> JSON:
        """What the API server says of a deletion."""


class Account(Protocol):
    """What is needed of the management API."""

    async def listing(self, collection: Any, since: float) -> Sessions:
        """The collection by a list that began at or after `since`."""


def name(connection: str, session_id: str) -> str:
    """The name of a session's mirror: `ts-0ujsszwn8nry24yaxitie2vwdts-3f2a91c0`. Ids differ in case, names cannot."""
    readable = re.sub(r"[^a-z0-9]+", "-", session_id.lower()).strip("-")[:200]
    digest = hashlib.blake2b(f"{connection}/{session_id}".encode(), digest_size=4).hexdigest()
    return f"{readable}-{digest}".lstrip("-")


class SessionMirror:
    """`accounts()` yields the name of each connection and its account; none where sessions are not mirrored."""

    def __init__(
        self,
        api: Objects,
        namespace: str,
        accounts: Callable[[], Iterable[tuple[str, Account]]],
        world: World,
        *,
        interval_seconds: float,
        may_look: Callable[[], bool],
        may_write: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api, self._namespace, self._accounts, self._world = api, namespace, accounts, world
        self._interval, self._may_look, self._may_write = interval_seconds, may_look, may_write
        self._sleep = sleep

    async def run(self) -> None:
        """Mirror for ever, while this replica leads."""
        while True:
            while not self._may_look():
                await self._sleep(LEAD_SECONDS)
            began = self._world.monotonic()
            try:
                await self.round()
            except NotLeading:
                await self._sleep(LEAD_SECONDS)
                continue
            except errors.KubeError as error:
                _log.warning("sessions are not mirrored in this round: %s", error)
            except Exception as error:  # noqa: BLE001 - the mirror must not end everything else
                _log.error("sessions are not mirrored in this round: a defect of the operator: %s", where(error))
                metrics.defective("sessions")
            jitter = 1 + (random.random() - 0.5) / 5  # noqa: S311 - spreads load, guards nothing
            await self._sleep(max(0.0, self._interval * jitter - (self._world.monotonic() - began)))

    async def clear(self) -> None:
        """Remove what an earlier run mirrored, once this replica leads; then wait for ever."""
        while True:
            while not self._may_look():
                await self._sleep(LEAD_SECONDS)
            try:
                await self.round()
            except errors.NotFound:
                pass  # without the CRD there is nothing to remove
            except (NotLeading, errors.KubeError) as error:
                _log.info("what is left of mirrored sessions cannot be removed yet: %s", error or "not leading")
                await self._sleep(self._interval)
                continue
            await asyncio.Event().wait()

    async def round(self) -> None:
        """Look once, and write what differs.

        Raises:
            NotLeading: this replica may not write.
            KubeError: the API server refuses or does not answer.
        """
        wanted: dict[str, tuple[str, Body]] = {}
        silent: set[str] = set()
        for connection, account in self._accounts():
            try:
                seen = await account.listing(catalog.tunnel_sessions, self._world.monotonic())
            except (Waiting, Stalled, Unsupported, Missing) as why:
                _log.info("sessions of the connection %s cannot be listed now: %s", connection, why)
                silent.add(connection)
            else:
                wanted |= {name(connection, id_): (connection, session) for id_, session in seen.objects.items()}
        present = {item["metadata"]["name"]: item for item in (await self._api.list(self._at())).items}
        for called, item in present.items():
            through = (item["metadata"].get("labels") or {}).get(CONNECTION)
            if called in wanted and through == wanted[called][0]:
                await self._update(item, wanted[called][1])
            elif through not in silent:
                await self._delete(item)
        for called in wanted.keys() - present.keys():
            await self._create(called, *wanted[called])

    async def _create(self, called: str, connection: str, session: Body) -> None:
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND.name,
            "metadata": {"name": called, "labels": {CONNECTION: connection}},
            "spec": {"sessionID": session["id"]},
        }
        self._may_write()
        try:
            made = await self._api.create(self._at(), body)
        except errors.AlreadyExists:
            return  # it is being deleted, or another replica made it; the next round looks again
        except errors.Invalid as error:
            _log.warning("the session %s cannot be mirrored: %s", session["id"], error)
            return
        await self._update(made, session)

    async def _update(self, item: JSON, session: Body) -> None:
        meta, before = item["metadata"], item.get("status") or {}
        patch = conditions.difference(before, self._status(session, before, meta["generation"]))
        if not patch or meta.get("deletionTimestamp"):
            return
        body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": patch}
        self._may_write()
        try:
            await self._api.merge_patch(self._at(meta["name"]), body, subresource="status")
        except (errors.Conflict, errors.NotFound):
            return  # somebody touched it; the next round looks again

    async def _delete(self, item: JSON) -> None:
        self._may_write()
        try:
            await self._api.delete(self._at(item["metadata"]["name"]), uid=item["metadata"]["uid"])
        except (errors.Conflict, errors.NotFound):
            return  # gone already

    def _status(self, session: Body, before: Mapping[str, Any], generation: int) -> dict[str, Any]:
        """The whole status of a mirror, in the spelling of Kubernetes."""
        credential = _texts(session.get("credential"))
        known = {
            **{to: _texts(session).get(of) for of, to in _FIELDS.items()},
            "credential": {part: credential[part] for part in ("id", "uri") if credential.get(part)} or None,
        }
        verdict = Verdict(Ready.ONLINE, "the service lists the session")
        said = conditions.conditions(verdict, before.get("conditions") or (), generation, self._world.now())
        told = {member: value for member, value in known.items() if value is not None}
        return {**told, "observedGeneration": generation, "conditions": said}

    def _at(self, called: str = "") -> str:
        return path(KIND, self._namespace, called)


def _texts(answer: Any) -> dict[str, str]:
    """The members that are texts, as all that a mirror shows are; a cluster would refuse the status for another."""
    return {k: v for k, v in answer.items() if isinstance(v, str)} if isinstance(answer, Mapping) else {}


_SAID = frozenset(Conditioned.model_fields)
_FIELDS = {field: to_camel(field) for field in KIND.status.model_fields if field not in {*_SAID, "credential"}}
"""Members of a session and their names in a status."""
