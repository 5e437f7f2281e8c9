"""JSON documents in SQLite: one transaction for each request, safe against a kill at any moment.

One connection writes, in a thread of its own so that waiting for the disk holds nothing else up; another reads, on the
event loop. In memory there is one connection for both. SQLite's lock keeps a second process on the same file apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from edge_operator.server import problems

T = TypeVar("T")
Doc = dict[str, Any]

_SCHEMA_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE objects (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, doc TEXT NOT NULL, hidden TEXT,
  parent TEXT REFERENCES objects(id) ON DELETE CASCADE
);
CREATE INDEX objects_by_kind ON objects(kind, id);
CREATE INDEX objects_by_parent ON objects(parent, id) WHERE parent IS NOT NULL;
CREATE TABLE tokens (
  digest BLOB PRIMARY KEY, owner TEXT NOT NULL REFERENCES objects(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX tokens_by_owner ON tokens(owner);
CREATE TABLE claims (
  scope TEXT, value TEXT, owner TEXT NOT NULL REFERENCES objects(id) ON DELETE CASCADE, PRIMARY KEY (scope, value)
) WITHOUT ROWID;
CREATE INDEX claims_by_owner ON claims(owner);
CREATE TABLE uses (
  target TEXT, user TEXT REFERENCES objects(id) ON DELETE CASCADE, PRIMARY KEY (target, user)
) WITHOUT ROWID;
CREATE INDEX uses_by_user ON uses(user);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_BUSY_SECONDS: Final = 5.0


class StoreError(Exception):
    """The database cannot be opened; the message says which and why."""


@dataclass(frozen=True)
class Stored:
    """One resource. `doc` is what callers may see, in neutral names; `hidden` is what none may."""

    id: str
    kind: str
    doc: Doc
    hidden: Doc | None = None
    parent: str | None = None


@dataclass(frozen=True)
class Claim:
    """A value that one resource at most may have: a hostport, a match within its edge, a domain."""

    scope: str
    value: str


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Transaction:
    """What a request may do with the database while its transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def get(self, kind: str, identifier: str) -> Stored | None:
        row = self._execute(
            "SELECT id, kind, doc, hidden, parent FROM objects WHERE id = ? AND kind = ?", (identifier, kind)
        ).fetchone()
        return _stored(row) if row else None

    def page(self, kind: str, before: str | None, limit: int) -> list[Stored]:
        """Up to `limit` resources older than the id `before`, newest first."""
        bound, values = ("AND id < ?", (kind, before, limit)) if before else ("", (kind, limit))
        rows = self._execute(
            f"SELECT id, kind, doc, hidden, parent FROM objects WHERE kind = ? {bound} ORDER BY id DESC LIMIT ?",  # noqa: S608
            values,
        )
        return [_stored(row) for row in rows]

    def children(self, parent: str) -> list[Stored]:
        """The resources that belong to `parent`, oldest first."""
        rows = self._execute(
            "SELECT id, kind, doc, hidden, parent FROM objects WHERE parent = ? ORDER BY id", (parent,)
        )
        return [_stored(row) for row in rows]

    def insert(self, item: Stored, claims: Iterable[Claim] = (), uses: Iterable[str] = ()) -> None:
        hidden = None if item.hidden is None else _dumps(item.hidden)
        self._execute(
            "INSERT INTO objects (id, kind, doc, hidden, parent) VALUES (?, ?, ?, ?, ?)",
            (item.id, item.kind, _dumps(item.doc), hidden, item.parent),
        )
        self._relate(item.id, claims, uses)

    def replace(self, item: Stored, claims: Iterable[Claim] = (), uses: Iterable[str] = ()) -> None:
        hidden = None if item.hidden is None else _dumps(item.hidden)
        self._execute("UPDATE objects SET doc = ?, hidden = ? WHERE id = ?", (_dumps(item.doc), hidden, item.id))
        self._execute("DELETE FROM claims WHERE owner = ?", (item.id,))
        self._execute("DELETE FROM uses WHERE user = ?", (item.id,))
        self._relate(item.id, claims, uses)

    def delete(self, identifier: str) -> None:
        """Deletes the resource with its children, tokens, claims and uses."""
        self._execute("DELETE FROM objects WHERE id = ?", (identifier,))

    def claimed_by(self, claim: Claim) -> str | None:
        row = self._execute(
            "SELECT owner FROM claims WHERE scope = ? AND value = ?", (claim.scope, claim.value)
        ).fetchone()
        return row[0] if row else None

    def used_by(self, target: str) -> str | None:
        """The id of a resource that uses `target`, or None."""
        row = self._execute("SELECT user FROM uses WHERE target = ? AND user <> ? LIMIT 1", (target, target)).fetchone()
        return row[0] if row else None

    def add_token(self, digest: bytes, owner: str) -> None:
        self._execute("INSERT INTO tokens (digest, owner) VALUES (?, ?)", (digest, owner))

    def token(self, digest: bytes) -> tuple[bytes, str] | None:
        """The stored digest and the id of the resource that it opens, or None."""
        row = self._execute("SELECT digest, owner FROM tokens WHERE digest = ?", (digest,)).fetchone()
        return (row[0], row[1]) if row else None

    def fact(self, name: str) -> Any:
        """A value about the account as a whole, or None."""
        row = self._execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def set_fact(self, name: str, value: Any) -> None:
        self._execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, _dumps(value)))

    def newest_id(self) -> str | None:
        """The greatest id of all, without its prefix."""
        row = self._execute("SELECT max(substr(id, instr(id, '_') + 1)) FROM objects").fetchone()
        return row[0] if row else None

    def _relate(self, identifier: str, claims: Iterable[Claim], uses: Iterable[str]) -> None:
        for claim in claims:
            self._execute(
                "INSERT INTO claims (scope, value, owner) VALUES (?, ?, ?)", (claim.scope, claim.value, identifier)
            )
        for target in uses:
            self._execute("INSERT INTO uses (target, user) VALUES (?, ?)", (target, identifier))


def _stored(row: tuple[str, str, str, str | None, str | None]) -> Stored:
    identifier, kind, doc, hidden, parent = row
    return Stored(identifier, kind, json.loads(doc), json.loads(hidden) if hidden else None, parent)


class Store:
    """The database, opened."""

    def __init__(self, file: Path | None) -> None:
        """Raises StoreError where the file cannot be used."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store") if file else None
        try:
            self._writer = self._connect(file)
            self._prepare(file)
            self._reader = self._connect(file) if file else self._writer
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StoreError(f"database {file or 'in memory'}: {reason}") from error

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent view. Call it on the event loop, and do not await within."""
        self._reader.execute("BEGIN")
        try:
            yield Transaction(self._reader)
        finally:
            self._reader.execute("ROLLBACK")

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a transaction of its own; whatever it raises undoes all that it did."""
        if self._thread is None:
            return self.write_now(work)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.write_now, work)

    def write_now(self, work: Callable[[Transaction], T]) -> T:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise problems.Problem(problems.STORE_BUSY, "the database is held by another process") from error
        try:
            result = work(Transaction(self._writer))
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        return result

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._reader.close()
        self._writer.close()

    @staticmethod
    def _connect(file: Path | None) -> sqlite3.Connection:
        if file is not None and not file.exists():
            # It holds private keys and secrets, so nobody else may read it.
            file.touch(mode=0o600)
        connection = sqlite3.connect(
            file or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA foreign_keys = ON")
        if file is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self, file: Path | None) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        found = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if found == 0:
            for statement in _SCHEMA.split(";"):
                self._writer.execute(statement)
            self._writer.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        self._writer.execute("COMMIT")
        if found not in (0, _SCHEMA_VERSION):
            raise StoreError(f"database {file}: has schema version {found}, expected {_SCHEMA_VERSION}")
