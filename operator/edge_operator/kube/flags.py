"""The connection that the operator's own flags name: its terms, and a key file that may change at any time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

from edge_operator.api import profiles
from edge_operator.api.errors import Misuse
from edge_operator.kube.terms import Terms
from edge_operator.settings import Settings

_log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0


class KeyUnreadable(Exception):
    """The file of the API key is absent, empty, or no text."""


def read_key(file: Path) -> str:
    """The API key in a file, without surrounding white space.

    Raises:
        KeyUnreadable: there is none.
    """
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnreadable(f"{file}: the API key cannot be read ({type(error).__name__})") from None
    if not key:
        raise KeyUnreadable(f"{file}: holds no API key")
    return key


class Flags:
    """What the flags say of the default connection."""

    def __init__(self, terms: Terms, key_file: Path, *, look_seconds: float = LOOK_SECONDS) -> None:
        self.terms, self._file, self._look_seconds = terms, key_file, look_seconds

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The flags of these settings; None where they name no account.

        Raises:
            KeyUnreadable: there is no key in the file.
            ProfileError: there is no such profile.
            OSError: the file of certificates cannot be read.
            Misuse: base URL or key cannot be used.
            SSLError: the certificates cannot be used.
        """
        if settings.api_url is None or settings.api_key_file is None:
            return None
        terms = Terms(
            url=settings.api_url.rstrip("/"),
            api_key=read_key(settings.api_key_file),
            profile=profiles.load(settings.api_profile),
            call_seconds=settings.call_seconds,
            concurrency=settings.concurrency,
            requests_per_minute=settings.api_requests_per_minute,
            ca_bundle=settings.api_ca_file.read_text() if settings.api_ca_file else None,
        )
        terms.client(None, lambda _: None)  # so that what cannot be used is said at the start
        return cls(terms, settings.api_key_file)

    async def follow(self, use: Callable[[Terms], None]) -> None:
        """Have a changed key used at once, for ever. While the file holds none, the old key stays in use."""
        told = ""
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                terms = replace(self.terms, api_key=await asyncio.to_thread(read_key, self._file))
                if terms != self.terms:
                    terms.client(None, lambda _: None)  # so that what cannot be used is said here
            except (KeyUnreadable, Misuse) as why:
                if str(why) != told:
                    _log.warning("%s; the key that was read before stays in use", why)
                told = str(why)
                continue
            told = ""
            if terms != self.terms:
                self.terms = terms
                _log.info("the API key changed; the new one is in use")
                use(self.terms)
