"""What can go wrong between us and the API server; nothing of a library below comes out of `kube.client`.

KubeError
├── NotConfigured       no usable kubeconfig, no service account
├── Unreachable         no answer: connection, TLS, time-out, undecodable; `sent` says whether it may have taken effect
├── BadRequest          400, 405, 406, 413, 415 and any other 4xx
├── Unauthorized        401, after the credentials were read again
├── Forbidden           403
├── NotFound            404
├── Conflict            409: somebody wrote in between
│   └── AlreadyExists   409 on a create
├── Gone                410: the resourceVersion or the continuation is too old
├── Invalid             422: schema, CEL or admission
├── TooManyRequests     429: not executed
└── Unavailable         5xx: may have taken effect
"""

# errors are named for the state they report, not for being errors

from __future__ import annotations

import json
from typing import Any

FOREIGN_TEXT = 256
"""How many characters of somebody else's text a message may have."""


class KubeError(Exception):
    """A request to the API server that did not do what it should.

    `status` is the HTTP status or None, `reason` the one word of the answer, for example `Conflict`; `causes` are the
    words of its details, for example `NamespaceTerminating`.
    """

    status: int | None = None

    def __init__(
        self, message: str, *, status: int | None = None, reason: str = "", causes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status if status is not None else type(self).status
        self.reason = reason
        self.causes = causes

    @property
    def executed(self) -> bool | None:
        """Whether the request took effect: False if certainly not, None if nobody knows."""
        return False


class NotConfigured(KubeError):
    """There is no usable kubeconfig and no service account."""


class Unreachable(KubeError):
    """There is no answer. `sent` is False only if no connection was ever open, so that nothing can have happened."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    @property
    def executed(self) -> bool | None:
        return None if self.sent else False


class BadRequest(KubeError):
    """The API server does not understand the request: a bug of ours, or a version that is too old or too new."""


class Unauthorized(KubeError):
    """The API server does not know who we are."""

    status = 401


class Forbidden(KubeError):
    """RBAC, or an admission rule, does not let us."""

    status = 403

    @property
    def namespace_terminating(self) -> bool:
        """Whether the only reason is that the namespace is being deleted."""
        return "NamespaceTerminating" in self.causes


class NotFound(KubeError):
    """There is no such object, or no such kind."""

    status = 404


class Conflict(KubeError):
    """Somebody wrote since the resourceVersion that the request carried."""

    status = 409


class AlreadyExists(Conflict):
    """An object of that name is there already."""


class Gone(KubeError):
    """The resourceVersion, or the continuation of a list, is older than what the API server remembers."""

    status = 410


class Invalid(KubeError):
    """The object breaks its schema or a rule."""

    status = 422


class TooManyRequests(KubeError):
    """The API server is busy and did not execute the request."""

    status = 429

    def __init__(self, message: str, *, retry_after_seconds: float = 1.0, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(KubeError):
    """The API server failed; whether the request took effect is unknown."""

    status = 500

    @property
    def executed(self) -> bool | None:
        return None


_BY_STATUS: dict[int, type[KubeError]] = {
    401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 422: Invalid,
}  # fmt: skip


def refusal(what: str, status: int, body: bytes, retry_after: str | None = None) -> KubeError:
    """The error that an answer stands for. `what` is the method and the path.

    The text of a 400 or 422 about a Secret is withheld, because it may quote the Secret.
    """
    return from_status(what, status, _decoded(body), retry_after)


def from_status(what: str, status: int, answer: dict[str, Any], retry_after: str | None = None) -> KubeError:
    """The error that a Status object stands for, be it the answer or an event of a watch."""
    details = answer.get("details") or {}
    causes = details.get("causes") or []
    reason = str(answer.get("reason") or "")
    if "/secrets" in what and status in (400, 422):
        text = "the answer may quote the Secret and is left out; fields: " + ", ".join(_words(causes, "field"))
    else:
        text = str(answer.get("message") or "no explanation")
    message = f"{f'{what}: {status} {reason}'.rstrip()}: {text[:FOREIGN_TEXT]}"
    if status == 429:
        seconds = _seconds(retry_after or details.get("retryAfterSeconds"))
        return TooManyRequests(message, retry_after_seconds=seconds, status=status, reason=reason)
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_STATUS.get(status)
    kind = kind or (Unavailable if status >= 500 else BadRequest)
    return kind(message, status=status, reason=reason, causes=tuple(_words(causes, "reason")))


def _decoded(body: bytes) -> dict[str, Any]:
    """The Status that an answer holds; whatever else it is becomes a message."""
    try:
        answer = json.loads(body)
    except ValueError:
        return {"message": body[: 4 * FOREIGN_TEXT].decode(errors="replace").strip()}
    return answer if isinstance(answer, dict) else {"message": str(answer)[:FOREIGN_TEXT]}


def _words(causes: list[dict[str, Any]], key: str) -> list[str]:
    return [str(cause[key])[:FOREIGN_TEXT] for cause in causes if cause.get(key)]


def _seconds(text: Any) -> float:
    """What Retry-After asks for, at least 0; one second where it says nothing that can be read."""
    try:
        return max(0.0, float(text))
    except (TypeError, ValueError):
        return 1.0
