"""The account that the flags name: its client, its door, and a key file that may change at any time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from edge_operator import __version__
from edge_operator.api.caller import Attempt
from edge_operator.api.client import Client
from edge_operator.api.exchange import Timeouts
from edge_operator.api.profiles import Profile
from edge_operator.api.retry import RetryPolicy
from edge_operator.remote import Connection, ManagementAPI

_log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
RETRY = RetryPolicy(attempts=3, base_seconds=0.2, cap_seconds=1.0, longest_wait_seconds=0.0)
"""Reads, PUT, PATCH and DELETE are repeated twice at once; longer pauses are the queue's, which holds no worker."""


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


class Account:
    """One account of the service: a client that is replaced when the key file changes."""

    def __init__(
        self,
        url: str,
        key_file: Path,
        profile: Profile,
        connection: Connection,
        *,
        observer: Callable[[Attempt], None],
        on_change: Callable[[], None],
    ) -> None:
        self._url, self._file, self._profile = url, key_file, profile
        self._connection, self._observer, self._on_change = connection, observer, on_change
        self._key = read_key(key_file)
        self.remote = ManagementAPI(self._client(), connection)

    def _client(self) -> Client:
        return Client(
            self._url,
            self._key,
            profile=self._profile,
            timeout=Timeouts(total_seconds=self._connection.call_seconds),
            retry=RETRY,
            gate=self._connection.gate,
            observer=self._observer,
            user_agent=f"edge-operator/{__version__}",
        )

    async def follow(self) -> None:
        """Use a changed key at once, for ever. A file that is unreadable for a moment keeps the old key in use."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                key = await asyncio.to_thread(read_key, self._file)
            except KeyUnreadable as why:
                _log.warning("%s; the key that was read before stays in use", why)
                continue
            if key == self._key:
                continue
            self._key, old = key, self.remote.client
            self.remote.client = self._client()
            _log.info("the API key changed; the new one is in use")
            self._connection.probe_now()
            self._on_change()
            await asyncio.sleep(self._connection.call_seconds)  # calls that are under way end with the old key
            await old.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.remote.client.close()
