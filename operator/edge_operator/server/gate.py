"""What a request must pass before its operation is looked at: key, version, rate, address.

Source: API document, Authentication, Versioning. Assumed: a missing or another version is refused.
"""

from __future__ import annotations

from typing import Final

from edge_operator.api.profiles import Profile
from edge_operator.server import problems
from edge_operator.server.front import Request
from edge_operator.server.keys import Keyring
from edge_operator.server.limiter import Limiter
from edge_operator.server.operations import Operation, Paths
from edge_operator.server.problems import Problem
from edge_operator.server.rules.rule import Caller
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import Store
from edge_operator.server.world import World

_SCHEME: Final = "bearer"


class Gate:
    """Every method raises Problem for what may not pass."""

    def __init__(
        self, settings: ServerSettings, world: World, profile: Profile, store: Store, keyring: Keyring
    ) -> None:
        self._settings = settings
        self._profile = profile
        self._store = store
        self._keyring = keyring
        self._limiter = Limiter(world, settings.rate_limit)
        self._paths = Paths()
        self._version_header = profile.version_header.lower()

    def caller(self, request: Request) -> Caller:
        """Who calls, looked up anew for each request, so that a revoked key is refused at once."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != _SCHEME or not token:
            raise self._unauthenticated("no API key; expected is the header Authorization: Bearer <API key>")
        with self._store.read() as tx:
            caller = self._keyring.caller(tx, token)
        if caller is None:
            raise self._unauthenticated("the API key is unknown or revoked")
        return caller

    def check_version(self, request: Request) -> None:
        found, name, expected = (
            request.headers.get(self._version_header),
            self._profile.version_header,
            self._profile.version,
        )
        if found != expected:
            what = "is missing" if found is None else f"is {problems.shown(found)}"
            raise Problem(
                problems.UNSUPPORTED_VERSION, f"the header {name} {what}; the supported version is {expected}"
            )

    def check_rate(self) -> None:
        seconds = self._limiter.take()
        if seconds is not None:
            headers = {"retry-after": str(seconds)} if self._settings.retry_after else {}
            text = f"more than {self._settings.rate_limit} requests in 60 seconds"
            raise Problem(problems.RATE_LIMITED, text, headers=headers)

    def operation(self, request: Request) -> tuple[Operation, tuple[str, ...]]:
        """The operation that is asked for and the ids in its path, outermost first."""
        operations, ids = self._paths.find(request.path)
        if not operations:
            raise problems.not_found("nothing is at this address")
        if request.method not in operations:
            allowed = ", ".join(sorted(operations))
            text = f"this address takes {allowed}"
            raise Problem(problems.METHOD_NOT_ALLOWED, text, headers={"allow": allowed})
        return operations[request.method], ids

    def _unauthenticated(self, text: str) -> Problem:
        if self._settings.unauthenticated_status == problems.NOT_AUTHORIZED.status:
            return Problem(problems.NOT_AUTHORIZED, text)
        return Problem(problems.UNAUTHENTICATED, text, headers={"www-authenticate": "Bearer"})
