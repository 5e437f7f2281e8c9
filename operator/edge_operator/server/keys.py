"""Who may call: API keys, of which only a keyed hash is stored. Source: API document, Authentication."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from edge_operator.server.ids import Ids
from edge_operator.server.rules.rule import Caller
from edge_operator.server.store import Stored, Transaction
from edge_operator.server.world import World, timestamp

KIND: Final = "api_keys"
_SALT: Final = "token_salt"
_ADMIN: Final = "admin"
_SALT_BYTES: Final = 32


def prepare(tx: Transaction, world: World, ids: Ids) -> None:
    """Gives a new account its admin and the salt of its token hashes."""
    if tx.fact(_SALT) is None:
        tx.set_fact(_SALT, world.random_bytes(_SALT_BYTES).hex())
        tx.set_fact(_ADMIN, ids.new("usr_"))


class Keyring:
    """Hashes tokens and finds the caller that a token stands for."""

    def __init__(self, tx: Transaction) -> None:
        self._salt = bytes.fromhex(tx.fact(_SALT))
        self.admin_id: str = tx.fact(_ADMIN)

    def add(self, tx: Transaction, token: str, owner: str) -> None:
        """From now on `token` stands for the resource `owner`."""
        tx.add_token(self._digest(token), owner)

    def holder(self, tx: Transaction, token: str) -> str | None:
        """The id of the key or credential whose token this is."""
        digest = self._digest(token)
        found = tx.token(digest)
        return found[1] if found and hmac.compare_digest(found[0], digest) else None

    def caller(self, tx: Transaction, token: str) -> Caller | None:
        """The caller that the token stands for; None when it is unknown, revoked, or no API key's."""
        holder = self.holder(tx, token)
        key = tx.get(KIND, holder) if holder else None
        if key is None:
            return None
        owner: str = key.doc["owner_id"]
        return Caller(key.id, owner, owner == self.admin_id)

    def seed(self, tx: Transaction, token: str, world: World, ids: Ids) -> None:
        """Makes the admin's key with this token, unless a key has it already."""
        if self.holder(tx, token) is not None:
            return
        doc = {
            "id": ids.new("ak_"),
            "created_at": timestamp(world.now()),
            "description": "seeded when the server started",
            "metadata": "",
            "owner_id": self.admin_id,
        }
        tx.insert(Stored(doc["id"], KIND, doc))
        self.add(tx, token, doc["id"])

    def _digest(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode(errors="surrogatepass"), key=self._salt, digest_size=32).digest()
