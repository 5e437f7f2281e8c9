"""Where requests go: the base URL, paths under it, and which links the key may follow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

import httpx

from edge_operator.api import errors

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PATH = re.compile(r"/(?!/)(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}|/(?!/))*")
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)


def segment(value: str, *, of: str = "id") -> str:
    """A value as one piece of a path. Raises Misuse for what could lead to another path."""
    if not is_segment(value):
        found = repr(value[:64]) if isinstance(value, str) else type(value).__name__
        raise errors.Misuse(f"{of}: {found} should be a non-empty string such as 'bkdwd_2x'")
    return quote(value, safe="")


def is_segment(value: object) -> bool:
    """Whether a value can be one piece of a path, as every id has to be."""
    return isinstance(value, str) and bool(value) and value not in {".", ".."} and value.isprintable()


def expand(template: str, ids: Mapping[str, str]) -> str:
    """`/edges/https/{edge_id}/routes` with its ids; each name in braces has to be given, and no other."""
    named = set(re.findall(r"{(\w+)}", template))
    if named != set(ids):
        wanted = ", ".join(sorted(named)) or "none"
        raise errors.Misuse(f"{template}: expected path ids: {wanted}; given: {', '.join(sorted(ids)) or 'none'}")
    return template.format_map({name: segment(value, of=name) for name, value in ids.items()})


class BaseURL:
    """The address of the API, for example `https://api.example.com` or `https://gateway.example.com/tunnels`.

    Raises:
        Misuse: not a plain http or https URL.
    """

    def __init__(self, text: str) -> None:
        self._base = _parsed(text)
        self._prefix = self._base.raw_path.decode("ascii").rstrip("/")
        self._origin = _origin(self._base)

    def __str__(self) -> str:
        return f"{self.origin}{self._prefix}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: `https://api.example.com`."""
        return str(self._base.copy_with(raw_path=b"/")).rstrip("/")

    def at(self, path: str, query: Mapping[str, str | int] | None = None) -> httpx.URL:
        """The URL of a path of the API, percent-encoded already, such as `/backends/weighted/bkdwd_2x`."""
        if not _PATH.fullmatch(path) or _DOTS.search(path):
            raise errors.Misuse(f"path: {path[:128]!r} should be a percent-encoded path that starts with one slash")
        raw = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        return self._base.copy_with(raw_path=raw.encode("ascii"))

    def follow(self, link: str, page: httpx.URL) -> httpx.URL:
        """The URL of a paging link found on `page`. Only its path and query are taken, and only from our own origin.

        A link without the base URL's path prefix gets it: a gateway that takes the prefix off leaves links without it,
        and a link must not lead out of the API to what else lives at that origin.

        Raises:
            ForeignAddress: the link leads elsewhere, or carries a user name.
        """
        where = {"method": "GET", "path": page.path}
        try:
            target = page.join(link)
        except (httpx.InvalidURL, ValueError) as error:
            raise errors.ForeignAddress("next_page_uri is not a URL", **where) from error
        if target.userinfo:
            raise errors.ForeignAddress("next_page_uri carries a user name, which is not followed", **where)
        if _origin(target) != self._origin:
            scheme, host, port = _origin(target)
            raise errors.ForeignAddress(
                f"next_page_uri leads to {scheme}://{host[:128]}:{port}; the key goes to {self.origin} only", **where
            )
        raw = target.raw_path.decode("ascii")
        path = raw.partition("?")[0]
        if not _PATH.fullmatch(path) or _DOTS.search(path):
            raise errors.ForeignAddress("next_page_uri has an unusable path", **where)
        inside = path == self._prefix or path.startswith(f"{self._prefix}/")
        return self._base.copy_with(raw_path=(raw if inside else self._prefix + raw).encode("ascii"))


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host.lower().rstrip("."), url.port or _DEFAULT_PORTS.get(url.scheme)


def _parsed(text: str) -> httpx.URL:
    if not isinstance(text, str) or not text:
        raise _unusable("is empty")
    if not text.isascii():
        raise _unusable("holds characters outside ASCII; a host name has a form that starts with xn--")
    if not text.isprintable() or " " in text:
        raise _unusable("holds a space or a control character")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise _unusable("is not a URL") from error
    if url.userinfo:
        raise _unusable("holds a user name or password, which belong elsewhere")
    for wrong, why in (
        (url.scheme not in _DEFAULT_PORTS, "has no scheme http or https"),
        (not url.host, "has no host"),
        ("?" in text or "#" in text, "has a query or a fragment"),
        (url.port is not None and not 0 < url.port < 65536, "has no port from 1 to 65535"),
        (not _PATH.fullmatch(url.raw_path.decode("ascii")), "has an unusable path"),
    ):
        if wrong:
            raise _unusable(f"{text[:128]!r} {why}")
    return url


def _unusable(why: str) -> errors.Misuse:
    return errors.Misuse(f"base URL: {why}; expected something like https://api.example.com")
