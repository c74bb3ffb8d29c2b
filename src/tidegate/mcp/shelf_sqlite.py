"""How do processes of one machine share small documents, and how do these survive a restart?

Lives here: the shelf on an SQLite file: its tables, and their use from an event loop. Does not
live here: the thread that writes and the lock between processes (limits.group_commit), what a
shelf promises (shelf).

The file may be the one of the limits: the tables are others, and all processes take turns by
the same lock.
"""

import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tidegate.clock import Clock
from tidegate.limits.file_calls import FileCalls
from tidegate.limits.sqlite_rows import UnknownSchema
from tidegate.mcp.shelf import MAX_NEWS, MAX_VALUE_BYTES, Kind, Mark, News

SCHEMA_VERSION: Final = 1

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS shelf_meta (
    name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shelf_kinds (
    kind TEXT PRIMARY KEY, book INTEGER NOT NULL, turn INTEGER NOT NULL,
    told INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shelf_documents (
    kind TEXT NOT NULL, key TEXT NOT NULL, grp TEXT NOT NULL, value BLOB NOT NULL,
    turn INTEGER NOT NULL, until_us INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shelf_documents_turn ON shelf_documents (kind, turn);
CREATE INDEX IF NOT EXISTS shelf_documents_group ON shelf_documents (kind, grp, turn);
CREATE INDEX IF NOT EXISTS shelf_documents_until ON shelf_documents (kind, until_us);
CREATE TABLE IF NOT EXISTS shelf_news (
    kind TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shelf_news_number ON shelf_news (kind, number);
"""

_NO_HISTORY: Final = Mark(0, 0)
_ALIVE: Final = "kind = ? AND key = ? AND until_us > ?"


class ShelfRows:
    """The documents over one connection, inside transactions of limits.group_commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._last_seen_us = 0
        self._changes = 0

    # See group_commit.Tables.

    def create(self) -> None:
        """Make the tables; raises UnknownSchema. Inside a transaction of the caller."""
        for statement in _SCHEMA.split(";"):
            self._db.execute(statement)
        self._db.execute("INSERT OR IGNORE INTO shelf_meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
        if self._meta("schema") != SCHEMA_VERSION:
            raise UnknownSchema("unknown schema version")

    def begin(self, ids: Sequence[str] = ()) -> int:
        """Inside a transaction; returns the newest store time in the file."""
        del ids
        self._changes = self._db.total_changes
        self._last_seen_us = self._meta("last_seen_us")
        return self._last_seen_us

    def finish(self, now_us: int, *, proof: bool = False) -> None:
        """Write the time if anything was written, or for `proof` that the file can be written."""
        if proof or self._db.total_changes != self._changes:
            self._db.execute(
                "INSERT OR REPLACE INTO shelf_meta VALUES ('last_seen_us', ?)", (now_us,)
            )

    def anchor_us(self, boot: int) -> int | None:
        """Of no use here: a wall clock that was set ends a session early or late, and no more."""
        del boot
        return None

    def keep_anchor(self, boot: int, anchor_us: int) -> None:
        """See anchor_us."""

    # See Shelf.

    def get(self, kind: Kind, key: str, now_us: int) -> bytes | None:
        """The document, if it lives."""
        row = self._db.execute(
            f"SELECT value FROM shelf_documents WHERE {_ALIVE}",  # noqa: S608 - a constant
            (kind.name, key, now_us),
        ).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, kind: Kind, key: str, value: bytes, group: str, now_us: int) -> None:
        """Lay it there; what has no room any more gives way."""
        if len(value) > MAX_VALUE_BYTES:
            raise ValueError("too large a document")
        self._db.execute(
            "DELETE FROM shelf_documents WHERE kind = ? AND until_us <= ?", (kind.name, now_us)
        )
        if self._db.execute(
            "SELECT 1 FROM shelf_documents WHERE kind = ? AND key = ?", (kind.name, key)
        ).fetchone():
            self._tell(kind, key)
        else:
            self._make_room(kind, group)
        turn, until_us = self._next(kind, "turn"), now_us + round(kind.live_s * 1_000_000)
        self._db.execute(
            "INSERT OR REPLACE INTO shelf_documents VALUES (?, ?, ?, ?, ?, ?)",
            (kind.name, key, group, value, turn, until_us),
        )

    def touch(self, kind: Kind, key: str, now_us: int) -> bool:
        """Have it live on; whether it lives."""
        turn, until_us = self._next(kind, "turn"), now_us + round(kind.live_s * 1_000_000)
        touched = self._db.execute(
            f"UPDATE shelf_documents SET turn = ?, until_us = ? WHERE {_ALIVE}",  # noqa: S608
            (turn, until_us, kind.name, key, now_us),
        )
        return touched.rowcount > 0

    def drop(self, kind: Kind, key: str, now_us: int) -> bool:
        """Take it away; whether it lived."""
        dropped = self._db.execute(
            f"DELETE FROM shelf_documents WHERE {_ALIVE}",  # noqa: S608 - a constant
            (kind.name, key, now_us),
        )
        if dropped.rowcount > 0:
            self._tell(kind, key)
        return dropped.rowcount > 0

    def group(self, kind: Kind, group: str, now_us: int) -> dict[str, bytes]:
        """What lives of a group."""
        rows = self._db.execute(
            "SELECT key, value FROM shelf_documents WHERE kind = ? AND grp = ? AND until_us > ?",
            (kind.name, group, now_us),
        )
        return {key: bytes(value) for key, value in rows}

    def news(self, kind: Kind, mark: Mark | None) -> News:
        """What has changed since `mark`."""
        if mark is None or mark == _NO_HISTORY:
            self._begin_kind(kind)
        row = self._db.execute(
            "SELECT book, told FROM shelf_kinds WHERE kind = ?", (kind.name,)
        ).fetchone()
        if row is None:
            return News(_NO_HISTORY, None)
        book, told = row
        now = Mark(book, told)
        if mark is None or mark.book != book or not told - MAX_NEWS <= mark.number <= told:
            return News(now, None)
        if mark == now:
            return News(now, frozenset())
        rows = self._db.execute(
            "SELECT key FROM shelf_news WHERE kind = ? AND number > ?", (kind.name, mark.number)
        )
        return News(now, frozenset(key for (key,) in rows))

    def _make_room(self, kind: Kind, group: str) -> None:
        """For one more; see Kind."""
        of_group = "kind = ? AND grp = ?"
        if not self._give_way(kind, of_group, (kind.name, group), kind.most_of_group):
            self._give_way(kind, "kind = ?", (kind.name,), kind.most)

    def _give_way(self, kind: Kind, which: str, values: Sequence[str], most: int) -> bool:
        counted = f"SELECT COUNT(*) FROM shelf_documents WHERE {which}"  # noqa: S608 - constants
        if self._db.execute(counted, values).fetchone()[0] < most:
            return False
        oldest = f"SELECT key FROM shelf_documents WHERE {which} ORDER BY turn LIMIT 1"  # noqa: S608
        (key,) = self._db.execute(oldest, values).fetchone()
        self._db.execute("DELETE FROM shelf_documents WHERE kind = ? AND key = ?", (kind.name, key))
        self._tell(kind, key)
        return True

    def _tell(self, kind: Kind, key: str) -> None:
        number = self._next(kind, "told")
        self._db.execute(
            "INSERT OR REPLACE INTO shelf_news VALUES (?, ?, ?)", (kind.name, key, number)
        )
        self._db.execute(
            "DELETE FROM shelf_news WHERE kind = ? AND number <= ?",
            (kind.name, number - MAX_NEWS),
        )

    def _next(self, kind: Kind, counter: str) -> int:
        self._begin_kind(kind)
        name = (kind.name,)
        self._db.execute(f"UPDATE shelf_kinds SET {counter} = {counter} + 1 WHERE kind = ?", name)  # noqa: S608
        read = f"SELECT {counter} FROM shelf_kinds WHERE kind = ?"  # noqa: S608 - constants
        return int(self._db.execute(read, name).fetchone()[0])

    def _begin_kind(self, kind: Kind) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO shelf_kinds VALUES (?, ?, 0, 0)",
            (kind.name, 1 + secrets.randbits(48)),
        )

    def _meta(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM shelf_meta WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])


class SQLiteShelf:
    """A Shelf on the file `path`, shared by any number of processes of one machine.

    Durable against the death of the process; a loss of power may take the last moments. No call
    waits longer than `wait_s`.
    """

    def __init__(self, path: str | Path, clock: Clock, wait_s: float = 5.0) -> None:
        self._file = FileCalls(Path(path), clock, wait_s, tables=ShelfRows, name="session")

    @property
    def degraded(self) -> bool:
        """See Shelf.degraded."""
        return self._file.degraded

    def start(self) -> None:
        """See Shelf.start."""
        self._file.start()

    async def close(self) -> None:
        """See Shelf.close."""
        await self._file.close()

    async def get(self, kind: Kind, key: str) -> bytes | None:
        """See Shelf.get."""
        job = self._file.submit(lambda rows, now_us: rows.get(kind, key, now_us), only_reads=True)
        return await self._file.answer(job)

    async def put(self, kind: Kind, key: str, value: bytes, group: str) -> None:
        """See Shelf.put."""
        job = self._file.submit(lambda rows, now_us: rows.put(kind, key, value, group, now_us))
        await self._file.answer(job)

    async def touch(self, kind: Kind, key: str) -> bool:
        """See Shelf.touch."""
        job = self._file.submit(lambda rows, now_us: rows.touch(kind, key, now_us))
        return await self._file.answer(job)

    async def drop(self, kind: Kind, key: str) -> bool:
        """See Shelf.drop."""
        job = self._file.submit(lambda rows, now_us: rows.drop(kind, key, now_us), must_happen=True)
        return await self._file.answer(job)

    async def group(self, kind: Kind, group: str) -> dict[str, bytes]:
        """See Shelf.group."""
        job = self._file.submit(
            lambda rows, now_us: rows.group(kind, group, now_us), only_reads=True
        )
        return await self._file.answer(job)

    async def news(self, kind: Kind, mark: Mark | None) -> News:
        """See Shelf.news."""
        # A first look may have to begin the history.
        is_later = mark is not None and mark != _NO_HISTORY
        job = self._file.submit(lambda rows, _: rows.news(kind, mark), only_reads=is_later)
        return await self._file.answer(job)


__all__ = ["SCHEMA_VERSION", "SQLiteShelf", "ShelfRows"]
