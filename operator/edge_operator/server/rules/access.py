"""API keys and tunnel credentials. Source: API document, APIKey, Credential, Authentication."""

from __future__ import annotations

import re
from typing import Final

from edge_operator.server.problems import OWNER_NOT_PERMITTED, Problem, shown
from edge_operator.server.rules import addresses
from edge_operator.server.rules.rule import Context, Doc, Place, Rules, reference

_LABEL: Final = r"[0-9A-Za-z_](?:[0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?"
_NAME: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_TAG: Final = re.compile(r"(?:\*|[^\s*=]+)=(?:\*|[^\s*=]+)")
_ANYTHING: Final = "*"
_BIND: Final = "bind:"


def _owner(context: Context, owner_id: str, place: Place) -> str:
    """Source: API document, Authentication, 4: only admins may assign another owner."""
    if owner_id == context.caller.owner_id:
        return owner_id
    reference(context, owner_id, place, "usr_")
    if not context.caller.admin:
        raise Problem(OWNER_NOT_PERMITTED, f"{place}: only admins may set an owner other than themselves")
    return owner_id


def _acl(_context: Context, rules: list[str], place: Place) -> list[str]:
    """Source: API document, Credential, ACL rules."""
    if rules == [_ANYTHING]:
        return rules
    for index, rule in enumerate(rules):
        at = place / index
        if rule == _ANYTHING:
            raise at.problem("'*' permits everything and must be the only rule")
        if not rule.startswith(_BIND):
            raise at.problem(f"{shown(rule)} is not a rule; expected is 'bind:<target>', or '*' alone")
        target = rule.removeprefix(_BIND)
        if not _is_target(target):
            raise at.problem(
                f"{shown(target)} is not a target; expected is a domain (perhaps with a leading '*.'), an address "
                "<host>:<port>, or a label <key>=<value> whose key or value may be '*'"
            )
    return rules


def _is_target(text: str) -> bool:
    """A label, a domain, or an address."""
    if "=" in text:
        return _TAG.fullmatch(text) is not None
    return _NAME.fullmatch(text) is not None or addresses.canonical(text) is not None


def _complete(context: Context, doc: Doc) -> None:
    doc.setdefault("owner_id", context.caller.owner_id)


API_KEYS: Final = Rules(fields={"owner_id": _owner}, complete=_complete, token=True)
CREDENTIALS: Final = Rules(
    fields={"owner_id": _owner, "acl": _acl}, defaults={"acl": []}, complete=_complete, token=True
)
