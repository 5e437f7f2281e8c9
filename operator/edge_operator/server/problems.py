"""Every refusal of the reference API: code, status and meaning, and the one shape that all errors have.

Source: API document, Errors (success statuses and rules; codes and body are not shown there).
Assumed: the body `{"error_code", "status_code", "msg", "details": {"operation_id"}}`, `error_code` absent on a 404,
and the names of the codes. A message says where, what was found and what is expected, and never repeats a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

FOREIGN_TEXT: Final = 256
"""At most so many characters of a caller's own text stand in a message."""


@dataclass(frozen=True)
class Code:
    """One way to be refused. `name` is None where the error body has no code."""

    name: str | None
    status: int
    meaning: str


INVALID_BODY = Code("INVALID_BODY", 400, "The body is not the JSON object that is expected.")
INVALID_FIELD = Code("INVALID_FIELD", 400, "A member of the body is unknown, of the wrong type, or breaks a rule.")
INVALID_PARAMETER = Code("INVALID_PARAMETER", 400, "A query parameter is unknown, malformed or out of range.")
INVALID_HEADER = Code("INVALID_HEADER", 400, "A header is missing or has a value that cannot be used.")
UNSUPPORTED_VERSION = Code("UNSUPPORTED_VERSION", 400, "The version header is missing or names another version.")
UNAUTHENTICATED = Code("UNAUTHENTICATED", 401, "No API key, or one that is unknown or revoked.")
NOT_AUTHORIZED = Code("NOT_AUTHORIZED", 403, "As UNAUTHENTICATED, where the server is set to answer 403.")
OWNER_NOT_PERMITTED = Code("OWNER_NOT_PERMITTED", 403, "Only admins may set another owner.")
NOT_FOUND = Code(None, 404, "No such resource, module or address.")
METHOD_NOT_ALLOWED = Code("METHOD_NOT_ALLOWED", 405, "The address exists and does not take this method.")
IN_USE = Code("IN_USE", 409, "The resource cannot be deleted while another one uses it.")
TAKEN = Code("TAKEN", 409, "Another resource has this hostport, match or domain.")
RATE_LIMITED = Code("RATE_LIMITED", 429, "More requests in a minute than the account may make.")
INTERNAL = Code("INTERNAL", 500, "A fault of the server.")
STORE_BUSY = Code("STORE_BUSY", 503, "The database is held by another process.")
INJECTED = Code("INJECTED", 500, "A fault that a test asked for; the status is the test's.")

UPDATE_UNAVAILABLE = Code("UPDATE_UNAVAILABLE", 400, "The agent runs the latest version of its major version.")
UPDATE_DISABLED = Code("UPDATE_DISABLED", 400, "The agent's configuration disables update checks.")
UPDATE_IN_PROGRESS = Code("UPDATE_IN_PROGRESS", 400, "The agent is updating at this moment.")
UPDATE_PENDING_RESTART = Code("UPDATE_PENDING_RESTART", 400, "The agent has updated and was not restarted since.")
RESTART_UNSUPPORTED = Code("RESTART_UNSUPPORTED", 400, "The agent's operating system is not a Unix.")

CODES: Final = tuple(value for value in list(globals().values()) if isinstance(value, Code))


class Problem(Exception):
    """A refusal, on its way to the caller."""

    def __init__(
        self, code: Code, msg: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg
        self.status = status or code.status
        self.headers = headers or {}

    def body(self, operation_id: str, prefix: str) -> dict[str, Any]:
        """The error as JSON; `prefix` stands before each code, for example `ERR_`."""
        coded = {} if self.code.name is None else {"error_code": prefix + self.code.name}
        return {**coded, "status_code": self.status, "msg": self.msg, "details": {"operation_id": operation_id}}


def shown(text: str, limit: int = 64) -> str:
    """A caller's text in quotes, cut, with unprintable characters escaped."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def not_found(what: str) -> Problem:
    return Problem(NOT_FOUND, what)
