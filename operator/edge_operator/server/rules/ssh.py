"""SSH authorities, user and host certificates.

Source: API document, SSHCertificateAuthority, SSHUserCertificate, SSHHostCertificate, Limits.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from edge_operator.server import signing
from edge_operator.server.problems import shown
from edge_operator.server.rules.rule import Context, Doc, FieldRule, Place, Rules, Sent, distinct, reference
from edge_operator.server.world import World, timestamp

_RFC3339: Final = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_USER_VALIDITY: Final = timedelta(hours=24)
_HOST_VALIDITY: Final = timedelta(days=365)
_EXTENSIONS: Final = {"permit-pty": "", "permit-user-rc": ""}
_CRITICAL_OPTIONS: Final = ("force-command", "source-address")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CURVE: Final = "p256"
_KEY_SIZE: Final = 2048


def _new_keys(_world: World, sent: Sent, place: Place) -> tuple[str, signing.Authority]:
    """Assumed: ed25519, p256 and 2048 where not given; a size or curve of another type is refused."""
    kind = sent.get("private_key_type", "ed25519")
    curve, size = sent.get("elliptic_curve", ""), sent.get("key_size", 0)
    if curve and kind != "ecdsa":
        raise (place / "elliptic_curve").problem(f"is for private_key_type ecdsa; private_key_type is {kind}")
    if size and kind != "rsa":
        raise (place / "key_size").problem(f"is for private_key_type rsa; private_key_type is {kind}")
    return kind, signing.new_authority(kind, curve or _CURVE, size or _KEY_SIZE)


def _complete_authority(context: Context, doc: Doc) -> Doc:
    kind, keys = context.prepared
    for name in ("private_key_type", "elliptic_curve", "key_size"):
        doc.pop(name, None)
    doc |= {"public_key": keys.public_key, "key_type": kind}
    return {"private_key_pem": keys.private_pem}


def _authority_id(context: Context, value: str, place: Place) -> str:
    return reference(context, value, place, "sshca_")


def _principals(_context: Context, values: list[str], place: Place) -> list[str]:
    if len(values) > signing.MOST_PRINCIPALS:
        raise place.problem(f"has {len(values)} principals; at most {signing.MOST_PRINCIPALS} are allowed")
    for index, value in enumerate(values):
        if not value or not value.isprintable() or "," in value or value != value.strip():
            raise (place / index).problem(f"{shown(value)} is not a name")
    return distinct(values, place)


def _critical_options(_context: Context, options: dict[str, str], place: Place) -> dict[str, str]:
    for name, value in options.items():
        if name not in _CRITICAL_OPTIONS:
            raise (place / name).problem(f"is not defined; expected is {' or '.join(_CRITICAL_OPTIONS)}")
        if name == "source-address":
            for network in value.split(","):
                if not _is_network(network):
                    raise (place / name).problem(
                        f"{shown(network)} is not an address or a network such as 192.0.2.0/24"
                    )
    return options


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _extensions(_context: Context, extensions: dict[str, str], place: Place) -> dict[str, str]:
    for name in extensions:
        if not name or not name.isprintable() or not name.isascii() or " " in name:
            raise place.problem(f"{shown(name)} is not the name of an extension")
    return extensions


def _time(_context: Context, value: str, place: Place) -> str:
    """The time as given: it is echoed so."""
    _moment(value, place)
    return value


def _moment(value: str, place: Place) -> datetime:
    try:
        moment = datetime.fromisoformat(value.upper()) if _RFC3339.fullmatch(value) else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment < _EARLIEST:
        raise place.problem(f"{shown(value)} is not an RFC 3339 time from 1970 on, such as 2026-01-02T03:04:05Z")
    return moment


def _public_key(_context: Context, value: str, place: Place) -> str:
    try:
        signing.read_public_key(value)
    except signing.KeyUnusable as error:
        raise place.problem(str(error)) from None
    return value


def _sign(context: Context, doc: Doc, *, host: bool) -> None:
    """Fills the document with its validity and its certificate."""
    validity = _HOST_VALIDITY if host else _USER_VALIDITY
    doc.setdefault("valid_after", timestamp(context.now))
    doc.setdefault("valid_until", timestamp(context.now + validity))
    after, until = (_moment(doc[name], context.place / name) for name in ("valid_after", "valid_until"))
    if after.replace(microsecond=0) >= until.replace(microsecond=0):  # a certificate counts in whole seconds
        raise (context.place / "valid_until").problem(
            f"{doc['valid_until']} is not after valid_after {doc['valid_after']}"
        )
    authority_pem = _private_key(context, doc["ssh_certificate_authority_id"])
    key, doc["key_type"] = signing.read_public_key(doc["public_key"])
    terms = signing.Terms(
        key_id=doc["id"],
        host=host,
        principals=doc["principals"],
        valid_after=after,
        valid_until=until,
        critical_options=doc.get("critical_options", {}),
        extensions=doc.get("extensions", {}),
    )
    doc["certificate"] = signing.sign(authority_pem, key, terms)


def _private_key(context: Context, authority_id: str) -> str:
    authority = context.tx.get("ssh_certificate_authorities", authority_id)
    if authority is None or authority.hidden is None:
        raise LookupError("an authority that was found a moment ago has no private key")
    pem: str = authority.hidden["private_key_pem"]
    return pem


def _used(doc: Doc) -> Iterable[str]:
    return [doc["ssh_certificate_authority_id"]]


_FIELDS: Final[Mapping[str, FieldRule]] = {
    "ssh_certificate_authority_id": _authority_id,
    "public_key": _public_key,
    "principals": _principals,
    "valid_after": _time,
    "valid_until": _time,
}

AUTHORITIES: Final = Rules(prepare=_new_keys, complete=_complete_authority)
HOST_CERTIFICATES: Final = Rules(
    fields=_FIELDS,
    defaults={"principals": []},
    complete=functools.partial(_sign, host=True),
    uses=_used,
)
USER_CERTIFICATES: Final = Rules(
    fields={**_FIELDS, "critical_options": _critical_options, "extensions": _extensions},
    defaults={"principals": [], "critical_options": {}, "extensions": _EXTENSIONS},
    complete=functools.partial(_sign, host=False),
    uses=_used,
)
