"""Leadership by a Lease: one replica acts, the others wait, and no effect outlives the right to it.

client-go's rules: another's lease is judged by how long we have seen it unchanged on our own clock, never by the times
that stand in it; every write carries the resourceVersion; a holder whose renewal fails for too long gives up before
anybody may take over. Beyond them: the lease is given back on exit, unless effects may be under way still, and
`still_leading` can be asked before each effect whether it will end in time.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from edge_operator.kube import errors, paths

_log = logging.getLogger(__name__)
JSON = dict[str, Any]


class Leases(Protocol):
    """What is needed of the API; nothing is cached on the way, and every answer is a live one."""

    async def get(self, path: str) -> JSON:
        """The object at a path, or NotFound."""

    async def create(self, path: str, body: JSON) -> JSON:
        """The created object, or AlreadyExists."""

    async def replace(self, path: str, body: JSON) -> JSON:
        """The replaced object, or Conflict where its version is not the one in the body."""


@dataclass(frozen=True)
class Terms:
    """How long things last, in seconds. The defaults are client-go's."""

    lease_seconds: float = 15.0
    """How long others wait, after they have seen the lease change, before they take over."""
    renew_deadline_seconds: float = 10.0
    """How long renewal may fail before we give up."""
    retry_seconds: float = 2.0
    """How often the holder renews. Others look twice as often, so that a lease given back is found within it."""

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > self.retry_seconds > 0:
            raise ValueError("lease_seconds should exceed renew_deadline_seconds, and that retry_seconds, and that 0")

    @property
    def margin_seconds(self) -> float:
        """What is kept between our last effect and a successor's first, for clocks that run at different speeds."""
        return self.lease_seconds / 15


def clock() -> float:
    """A monotonic time in seconds that goes on while the machine sleeps, where the system has one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def identity() -> str:
    """A name for this process that no other ever has, for example `edge-operator-7d9f_5f0c9a31`."""
    return f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"


class Leadership:
    """A contender for one Lease. Ask `still_leading` before every effect."""

    def __init__(
        self,
        api: Leases,
        namespace: str,
        name: str,
        *,
        holder: str | None = None,
        terms: Terms | None = None,
        monotonic: Callable[[], float] = clock,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        source: random.Random | None = None,
    ) -> None:
        self.holder = holder or identity()
        self._api = api
        self._namespace = namespace
        self._name = name
        self._path = paths.resource("coordination.k8s.io", "v1", "leases", namespace, name)
        self._terms = terms or Terms()
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._random = source or random.Random()  # noqa: S311  # jitter
        self._leads = False
        self._renewed = -math.inf
        self._lease: JSON | None = None
        self._wrote = False
        self._kept = False
        self._seen: tuple[JSON, float] = ({}, -math.inf)

    @property
    def leading(self) -> bool:
        """Whether this process may act at this moment."""
        return self.still_leading()

    def still_leading(self, for_seconds: float = 0.0) -> bool:
        """Whether an effect that takes so long at most ends while nobody else can be leading.

        It looks at our own clock only, so it is false in a process that was frozen from its first moment awake.
        """
        if not self._leads:
            return False
        now, terms = self._monotonic(), self._terms
        renewing = now < self._renewed + terms.renew_deadline_seconds
        return renewing and now + for_seconds < self._renewed + terms.lease_seconds - terms.margin_seconds

    def keep(self) -> None:
        """Do not give the lease back at the end, because effects may be under way still; it runs out by itself."""
        self._kept = True

    async def run(self, on_started: Callable[[], Awaitable[None]], on_lost: Callable[[], Awaitable[None]]) -> None:
        """Contend until cancelled, then give the lease back, unless it is to be kept.

        `on_started` begins to act, and is cancelled if leadership is lost meanwhile; `on_lost` is called after each
        term, when `still_leading` is false already. To let work end within the term, drain it before cancelling.
        """
        try:
            while True:
                await self._until_ours()
                _log.info("%s leads now, by lease %s/%s", self.holder, self._namespace, self._name)
                try:
                    await self._serve(on_started)
                    _log.warning("%s leads no more: lease %s/%s is lost", self.holder, self._namespace, self._name)
                finally:
                    self._leads = False
                    await on_lost()
        finally:
            await self._give_back()

    async def _serve(self, on_started: Callable[[], Awaitable[None]]) -> None:
        """Renew for as long as that succeeds, while `on_started` runs beside."""
        starting = asyncio.ensure_future(on_started())
        renewing = asyncio.ensure_future(self._until_lost())
        try:
            await asyncio.wait({starting, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            await renewing
        finally:
            self._leads = False
            for task in (starting, renewing):
                task.cancel()
            await asyncio.gather(starting, renewing, return_exceptions=True)

    async def _until_ours(self) -> None:
        """Look at the lease again and again until it is ours."""
        look_seconds = self._terms.retry_seconds / 2
        while not await self._attempt(self._terms.renew_deadline_seconds / 2):
            await self._sleep(look_seconds * self._random.uniform(0.9, 1.0))

    async def _until_lost(self) -> None:
        """Renew the lease until it is somebody else's, or could be soon."""
        while True:
            await self._sleep(self._terms.retry_seconds)
            left = self._renewed + self._terms.renew_deadline_seconds - self._monotonic()
            if left <= 0:
                return
            ours = await self._attempt(min(left, self._terms.renew_deadline_seconds / 2))
            if not ours and self._is_anothers():
                return

    async def _attempt(self, limit_seconds: float) -> bool:
        """Get or renew the lease; whether that succeeded. No error of the API comes out of it."""
        try:
            async with asyncio.timeout(limit_seconds):
                return await self._renew() or await self._get_and_take()
        except TimeoutError:
            _log.warning("lease %s/%s: no answer in %.1f s", self._namespace, self._name, limit_seconds)
        except errors.Conflict:
            _log.debug("lease %s/%s: somebody else was faster", self._namespace, self._name)
        except errors.KubeError as error:
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
        return False

    async def _renew(self) -> bool:
        """Renew the lease as we last wrote it; False if it is not ours, or was written by somebody meanwhile."""
        if not self._leads or self._lease is None:
            return False
        try:
            await self._write(self._lease)
        except (errors.Conflict, errors.NotFound):
            return False
        return True

    async def _get_and_take(self) -> bool:
        """Look at the lease, and take it if we may.

        Raises:
            Conflict: somebody else took it in between.
            KubeError: the API server did not do it, or did and its answer was lost.
        """
        try:
            self._lease = await self._api.get(self._path)
        except errors.NotFound:
            self._lease = None
        else:
            spec = self._lease.get("spec") or {}
            if spec != self._seen[0]:
                self._seen = (spec, self._monotonic())
            if not self._may_take(spec):
                return False
        await self._write(self._lease)
        return True

    def _may_take(self, spec: JSON) -> bool:
        """Whether the lease is ours or, unless we are leading by it, free or unchanged for as long as it lasts."""
        holder = spec.get("holderIdentity")
        if holder == self.holder or self._leads:
            return bool(holder == self.holder)
        lasts = max(float(spec.get("leaseDurationSeconds") or 0), self._terms.lease_seconds)
        return not holder or self._monotonic() >= self._seen[1] + lasts

    def _is_anothers(self) -> bool:
        """Whether the lease as we last saw it names another holder, or none."""
        return self._lease is not None and (self._lease.get("spec") or {}).get("holderIdentity") != self.holder

    async def _write(self, lease: JSON | None) -> None:
        """Write the lease with us as its holder; our term counts from before the request, not from its answer."""
        before, self._wrote = self._monotonic(), True
        body = self._body(lease)
        if lease is None:
            self._lease = await self._api.create(self._path.rpartition("/")[0], body)
        else:
            self._lease = await self._api.replace(self._path, body)
        self._renewed, self._leads = before, True

    def _body(self, lease: JSON | None) -> JSON:
        """The lease as it should be, with the version of the one it replaces."""
        now = self._wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old = (lease or {}).get("spec") or {}
        ours = old.get("holderIdentity") == self.holder
        spec = {
            **old,
            "holderIdentity": self.holder,
            "leaseDurationSeconds": math.ceil(self._terms.lease_seconds),
            "acquireTime": old.get("acquireTime", now) if ours else now,
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (0 if ours or lease is None else 1),
        }
        meta = (lease or {}).get("metadata") or {"name": self._name, "namespace": self._namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}

    async def _give_back(self) -> None:
        """Free the lease if it is ours, so that a successor need not wait; failing that, it runs out by itself.

        It looks first: a write of ours may have been cut off on its way.
        """
        if not self._wrote:
            return
        if self._kept:
            _log.warning(
                "lease %s/%s is not given back, because work may be under way still; it runs out in %.0f s",
                self._namespace,
                self._name,
                self._terms.lease_seconds,
            )
            return
        try:
            async with asyncio.timeout(self._terms.retry_seconds):
                lease = await self._api.get(self._path)
                if (lease.get("spec") or {}).get("holderIdentity") != self.holder:
                    return
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._api.replace(self._path, {**lease, "spec": spec})
        except (TimeoutError, errors.KubeError) as error:
            _log.warning(
                "lease %s/%s could not be given back: %s", self._namespace, self._name, str(error) or "no answer"
            )
        else:
            _log.info("%s has given lease %s/%s back", self.holder, self._namespace, self._name)
