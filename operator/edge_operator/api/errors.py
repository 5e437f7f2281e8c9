"""Everything that a call can end in, other than its answer.

APIError                    a call did not give its answer
├── NotSent                 no connection: the service cannot have seen the request
├── OutcomeUnknown          sent, and no complete, readable answer: it may have been carried out
│   └── Unreadable          a success that is not what the API document says: not JSON, no id, a list without items
├── StatusError             an answer that is no success
│   ├── Redirected          3xx: redirects are not followed, the key would travel with them
│   ├── InvalidRequest      400, 422 and every 4xx not named here
│   ├── AuthenticationFailed  401
│   ├── PermissionDenied    403
│   ├── NotFound            404
│   ├── OperationUnsupported  405, 501
│   ├── Conflict            409
│   ├── RateLimited         429
│   └── ServerFault         5xx, and 408 and 425: trying again is what they ask for
├── ForeignAddress          a paging link leads to another origin
└── PagingLoop              a list leads back to a page that was read, or does not end
Misuse                      a call that cannot be right, found before anything is sent; no APIError

The original exception of the HTTP library is chained, never raised. Messages hold no key and no secret that was sent.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

Created = Literal["no", "maybe"]

_NOT_CREATED_EXCEPT: Final = frozenset({408, 409, 425})


class Misuse(ValueError):
    """The call itself is wrong: an operation that the collection has not, a malformed id, an unusable base URL."""


class APIError(Exception):
    """A call did not give its answer. `method` and `path` say which; the path has no query."""

    def __init__(self, message: str, *, method: str = "", path: str = "") -> None:
        super().__init__(f"{method} {path}: {message}" if method else message)
        self.method = method
        self.path = path

    @property
    def created(self) -> Created:
        """What this says of a POST: "no" where it surely made nothing, else "maybe"."""
        return "maybe"


class NotSent(APIError):
    """The connection never opened: refused, unreachable, no such name, TLS not agreed, no free connection in time."""

    @property
    def created(self) -> Created:
        return "no"


class OutcomeUnknown(APIError):
    """The request may have arrived: time-out or cut after sending, or a success that cannot be read."""


class Unreadable(OutcomeUnknown):
    """A success came, and it cannot be read, or lacks what everything else relies on."""


class ForeignAddress(APIError):
    """A paging link would take the key to another origin."""


class PagingLoop(APIError):
    """A list does not come to its end."""


class StatusError(APIError):
    """An answer with an error status, in the one shape that every error of the service has.

    `code`, `message` and `operation_id` are as the service wrote them, cleaned and cut; None or "" where it wrote none.
    `parsed` is whether the body was a JSON object, so that the answer is the service's own.
    `retry_after_seconds` is what a Retry-After header asked for.

    Assumed: `{"error_code": "ERR_…", "status_code": 400, "msg": "…", "details": {"operation_id": "op_…"}}`.
    """

    default_message: ClassVar[str] = "the request failed"

    def __init__(
        self,
        status: int,
        *,
        message: str = "",
        code: str | None = None,
        operation_id: str | None = None,
        parsed: bool = True,
        retry_after_seconds: float | None = None,
        method: str = "",
        path: str = "",
    ) -> None:
        named = f"{status} {code}" if code else f"{status}"
        super().__init__(f"{named}: {message or self.default_message}", method=method, path=path)
        self.status = status
        self.message = message
        self.code = code
        self.operation_id = operation_id
        self.parsed = parsed
        self.retry_after_seconds = retry_after_seconds

    @property
    def created(self) -> Created:
        if self.status == 429:  # A limiter in front of the service may answer in plain text; it passes nothing on.
            return "no"
        refused = 400 <= self.status < 500 and self.status not in _NOT_CREATED_EXCEPT
        return "no" if refused and self.parsed else "maybe"


class Redirected(StatusError):
    """3xx. The message names where to, so that the base URL can be set to it."""

    default_message = "redirected"


class InvalidRequest(StatusError):
    """The service refuses what was asked; asking again changes nothing."""

    default_message = "the service refused the request"


class AuthenticationFailed(StatusError):
    """The key is missing, wrong or revoked."""

    default_message = "the API key was not accepted"


class PermissionDenied(StatusError):
    """The key is known and may not do this."""

    default_message = "the API key may not do this"


class NotFound(StatusError):
    """No resource has this id, or the service has no such path."""

    default_message = "not found"


class OperationUnsupported(StatusError):
    """The service does not have this operation."""

    default_message = "the service does not have this operation"


class Conflict(StatusError):
    """A conflicting state: a hostport that is taken, a resource in use."""

    default_message = "conflicts with the present state"


class RateLimited(StatusError):
    """Too many requests; `retry_after_seconds` is the pause that was asked for, None where none was."""

    default_message = "too many requests"


class ServerFault(StatusError):
    """The service could not answer."""

    default_message = "the service failed"


_BY_STATUS: Final[dict[int, type[StatusError]]] = {
    401: AuthenticationFailed,
    403: PermissionDenied,
    404: NotFound,
    405: OperationUnsupported,
    408: ServerFault,
    409: Conflict,
    425: ServerFault,
    429: RateLimited,
    501: OperationUnsupported,
}


def for_status(status: int) -> type[StatusError]:
    """The class of error that a status stands for."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return Redirected
    return InvalidRequest if 400 <= status < 500 else ServerFault
