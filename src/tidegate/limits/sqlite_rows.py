"""Which rows of an SQLite file hold the books?

Lives here: the tables and the statements behind books.Rows. Does not live here: decisions
(books, window), transactions, threads and locks (group_commit).

Totals are kept in memory for the length of one transaction and written once at its end: a
group commit of sixty requests of one tenant writes that tenant's total once.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.limits.books import Line, Reservation
from tidegate.limits.window import Bucket

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS limit_meta (
    name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS limit_counters (
    key TEXT PRIMARY KEY, total INTEGER NOT NULL, oldest_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS limit_counters_until ON limit_counters (until_us);
CREATE TABLE IF NOT EXISTS limit_buckets (
    key TEXT NOT NULL, end_us INTEGER NOT NULL, amount INTEGER NOT NULL,
    reserved INTEGER NOT NULL, overrun INTEGER NOT NULL,
    PRIMARY KEY (key, end_us)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS limit_slots (
    key TEXT PRIMARY KEY, taken INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS limit_reservations (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, is_open INTEGER NOT NULL,
    due_us INTEGER NOT NULL, counts_until_us INTEGER NOT NULL,
    lines TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS limit_reservations_due ON limit_reservations (due_us);
"""

_RESERVATION = "SELECT id, owner, is_open, due_us, counts_until_us, lines FROM limit_reservations"


class UnknownSchema(sqlite3.DatabaseError):
    """The file was written by a release whose tables this one does not know."""


@dataclass(slots=True)
class _Head:
    """A counter's totals. Its oldest bucket in the file ends at `oldest_us`."""

    total: int
    oldest_us: int
    until_us: int
    is_dirty: bool = False


class SQLiteRows:
    """books.Rows over one connection, between `begin` and `finish` of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._heads: dict[str, _Head | None] = {}
        self._changes = 0

    def create(self) -> None:
        """Make the tables; raises UnknownSchema. Inside a transaction of the caller."""
        for statement in _SCHEMA.split(";"):
            self._db.execute(statement)
        self._db.execute("INSERT OR IGNORE INTO limit_meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
        self.check()

    def check(self) -> None:
        """Raises UnknownSchema if these are not the tables of this release."""
        if self._meta("schema") != SCHEMA_VERSION:
            raise UnknownSchema("unknown schema version")

    def begin(self) -> int:
        """Forget what the last transaction knew; returns the newest store time in the file."""
        self._heads.clear()
        self._changes = self._db.total_changes
        return self._meta("last_seen_us")

    def finish(self, now_us: int) -> None:
        """Write the totals, and the time if anything was written at all."""
        for key, head in self._heads.items():
            if head is not None and head.is_dirty:
                self._db.execute(
                    "INSERT INTO limit_counters VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE"
                    " SET total = excluded.total, oldest_us = excluded.oldest_us,"
                    " until_us = excluded.until_us",
                    (key, head.total, head.oldest_us, head.until_us),
                )
        if self._db.total_changes != self._changes:
            self._db.execute(
                "INSERT OR REPLACE INTO limit_meta VALUES ('last_seen_us', ?)", (now_us,)
            )

    def find(self, reservation_id: str) -> Reservation | None:
        """One lookup by primary key."""
        row = self._db.execute(f"{_RESERVATION} WHERE id = ?", (reservation_id,)).fetchone()
        return None if row is None else _reservation(row)

    def keep(self, reservation: Reservation) -> None:
        """One row; its lines are one JSON text, because they are only ever read together."""
        lines = [(one.key, one.unit, one.end_us, one.amount) for one in reservation.lines]
        self._db.execute(
            "INSERT OR REPLACE INTO limit_reservations VALUES (?, ?, ?, ?, ?, ?)",
            (
                reservation.reservation_id,
                reservation.owner,
                reservation.is_open,
                reservation.due_us,
                reservation.counts_until_us,
                json.dumps(lines),
            ),
        )

    def drop(self, reservation_id: str) -> None:
        """One row less."""
        self._db.execute("DELETE FROM limit_reservations WHERE id = ?", (reservation_id,))

    def due(self, now_us: int, at_most: int) -> Sequence[Reservation]:
        """By the index on due_us."""
        rows = self._db.execute(
            f"{_RESERVATION} WHERE due_us <= ? ORDER BY due_us, id LIMIT ?", (now_us, at_most)
        ).fetchall()
        return [_reservation(row) for row in rows]

    def used(self, key: str, horizon: int) -> int:
        """The total, less the at most 241 buckets that have left the window since."""
        head = self._head(key)
        if head is None:
            return 0
        return head.total - (self._sum_until(key, horizon) if head.oldest_us <= horizon else 0)

    def live(self, key: str, horizon: int) -> Iterator[Bucket]:
        """Read row by row: the walk for a retry time usually stops early."""
        rows = self._db.execute(
            "SELECT end_us, amount, reserved, overrun FROM limit_buckets"
            " WHERE key = ? AND end_us > ? ORDER BY end_us",
            (key, horizon),
        )
        return (Bucket(*row) for row in rows)

    def newest_end_us(self, key: str, horizon: int) -> int:
        """One step in the primary key, from its far end."""
        row = self._db.execute(
            "SELECT end_us FROM limit_buckets WHERE key = ? AND end_us > ?"
            " ORDER BY end_us DESC LIMIT 1",
            (key, horizon),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def keys(self) -> Iterator[str]:
        """A walk over the counters."""
        rows = self._db.execute("SELECT key FROM limit_counters UNION SELECT key FROM limit_slots")
        return (str(key) for (key,) in rows)

    def add(self, line: Line, *, horizon: int, until_us: int) -> None:
        """Eviction deletes at most 241 rows, and no bucket is ever deleted twice."""
        head = self._head(line.key)
        if head is None:
            head = self._heads[line.key] = _Head(0, line.end_us, until_us)
        if head.oldest_us <= horizon:
            self._evict(line, head, horizon)
        self._db.execute(
            "INSERT INTO limit_buckets VALUES (?, ?, ?, ?, 0) ON CONFLICT (key, end_us)"
            " DO UPDATE SET amount = amount + excluded.amount,"
            " reserved = reserved + excluded.reserved",
            (line.key, line.end_us, line.amount, line.amount),
        )
        head.total += line.amount
        head.oldest_us = min(head.oldest_us, line.end_us)
        head.until_us = max(head.until_us, until_us)
        head.is_dirty = True

    def correct(self, line: Line, *, amount: int, reserved: int, overrun: int) -> None:
        """Touches the total only if the bucket is still there: evicting took it out already."""
        changed = self._db.execute(
            "UPDATE limit_buckets SET amount = amount + ?, reserved = reserved + ?,"
            " overrun = overrun + ? WHERE key = ? AND end_us = ?",
            (amount, reserved, overrun, line.key, line.end_us),
        ).rowcount
        head = self._head(line.key) if changed and amount else None
        if head is not None:
            head.total += amount
            head.is_dirty = True

    def slots(self, key: str) -> int:
        """One lookup by primary key."""
        row = self._db.execute("SELECT taken FROM limit_slots WHERE key = ?", (key,)).fetchone()
        return 0 if row is None else int(row[0])

    def move_slots(self, key: str, by: int) -> None:
        """A counter without slots has no row."""
        taken = self.slots(key) + by
        if taken > 0:
            self._db.execute("INSERT OR REPLACE INTO limit_slots VALUES (?, ?)", (key, taken))
        else:
            self._db.execute("DELETE FROM limit_slots WHERE key = ?", (key,))

    def forget(self, now_us: int, at_most: int) -> None:
        """By the index on until_us."""
        keys = self._db.execute(
            "SELECT key FROM limit_counters WHERE until_us <= ? LIMIT ?", (now_us, at_most)
        ).fetchall()
        for (key,) in keys:
            head = self._head(key)
            if head is None or head.until_us > now_us:
                continue
            self._db.execute("DELETE FROM limit_buckets WHERE key = ?", (key,))
            self._db.execute("DELETE FROM limit_counters WHERE key = ?", (key,))
            self._heads[key] = None

    def _head(self, key: str) -> _Head | None:
        if key not in self._heads:
            row = self._db.execute(
                "SELECT total, oldest_us, until_us FROM limit_counters WHERE key = ?", (key,)
            ).fetchone()
            self._heads[key] = None if row is None else _Head(*row)
        return self._heads[key]

    def _sum_until(self, key: str, horizon: int) -> int:
        row = self._db.execute(
            "SELECT COALESCE(SUM(amount), 0) FROM limit_buckets WHERE key = ? AND end_us <= ?",
            (key, horizon),
        ).fetchone()
        return int(row[0])

    def _evict(self, line: Line, head: _Head, horizon: int) -> None:
        head.total -= self._sum_until(line.key, horizon)
        self._db.execute(
            "DELETE FROM limit_buckets WHERE key = ? AND end_us <= ?", (line.key, horizon)
        )
        oldest = self._db.execute(
            "SELECT MIN(end_us) FROM limit_buckets WHERE key = ?", (line.key,)
        ).fetchone()[0]
        head.oldest_us = line.end_us if oldest is None else oldest

    def _meta(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM limit_meta WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])


def _reservation(row: tuple[str, str, int, int, int, str]) -> Reservation:
    reservation_id, owner, is_open, due_us, counts_until_us, lines = row
    return Reservation(
        reservation_id,
        owner,
        bool(is_open),
        due_us,
        counts_until_us,
        tuple(Line(*line) for line in json.loads(lines)),
    )


__all__ = ["SCHEMA_VERSION", "SQLiteRows", "UnknownSchema"]
