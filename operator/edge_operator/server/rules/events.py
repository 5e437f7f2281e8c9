"""Event destinations. Source: API document, EventDestination, Errors 3."""

from __future__ import annotations

from typing import Final

from edge_operator.server.rules.rule import Context, Doc, Place, Rules, Sent

_ARNS: Final = {
    "batch_stream": "delivery_stream_arn",
    "data_stream": "stream_arn",
    "log_group": "log_group_arn",
}
_TARGETS: Final = (*_ARNS, "monitoring")


def _one_of(sent: Sent, names: tuple[str, ...], place: Place) -> str:
    """The name of the one member that is given."""
    if len(sent) != 1:
        expected = ", ".join(_name(place / name) for name in names)
        found = " and ".join(_name(place / name) for name in sent) or "none"
        raise place.problem(f"exactly one of {expected} is expected; found is {found}")
    return next(iter(sent))


def _name(place: Place) -> str:
    return str(place.spell(place.path)[-1])


def _text(sent: Sent, name: str, place: Place) -> str:
    value: str = sent[name]
    if not value:
        raise (place / name).problem("is empty")
    return value


def _target(_context: Context, sent: Sent, place: Place) -> Doc:
    name = _one_of(sent, _TARGETS, place)
    inner, at = sent[name], place / name
    stored: Doc
    if name == "monitoring":
        stored = {"api_key": _text(inner, "api_key", at)}
        stored |= {member: inner.get(member, "") for member in ("tags", "service", "site")}
    else:
        stored = {"auth": _auth(inner["auth"], at / "auth"), _ARNS[name]: _text(inner, _ARNS[name], at)}
    return {target: stored if target == name else None for target in _TARGETS}


def _auth(sent: Sent, place: Place) -> Doc:
    name = _one_of(sent, ("role", "creds"), place)
    inner, at = sent[name], place / name
    if name == "role":
        return {"role": {"role_arn": _text(inner, "role_arn", at)}, "creds": None}
    keys = ("cloud_access_key_id", "cloud_secret_access_key")
    return {"role": None, "creds": {key: _text(inner, key, at) for key in keys}}


EVENT_DESTINATIONS: Final = Rules(fields={"target": _target}, defaults={"format": "json"})
