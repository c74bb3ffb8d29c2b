"""Which rows of an SQLite file hold the books?

Lives here: the tables and the statements behind books.Rows. Does not live here: decisions
(books, window), transactions, threads and locks (group_commit).

Everything a transaction touches is read once, changed in memory and written once at its end: a
group commit of sixty requests of one tenant writes that tenant's total and newest bucket once,
and its sixty leases with one statement.
"""

import sqlite3
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec

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


_BUCKETS = "SELECT end_us, amount, reserved, overrun FROM limit_buckets WHERE key = ?"


class UnknownSchema(sqlite3.DatabaseError):
    """The file was written by a release whose tables this one does not know."""


_TOGETHER = 500  # variables of one statement
_BY_END = attrgetter("end_us")
_decode_lines = msgspec.json.Decoder(tuple[Line, ...]).decode
_encode_lines = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Counter:
    """What this transaction knows of one counter.

    Its oldest bucket in the file ends at `oldest_us`. `buckets` holds those that were looked at,
    None for one that is not there; `in_order` all of them by their ends, once that was needed.
    """

    exists: bool = False
    total: int = 0
    oldest_us: int = 0
    until_us: int = 0
    is_dirty: bool = False
    buckets: dict[int, Bucket | None] = field(default_factory=dict)
    dirty_ends: set[int] = field(default_factory=set)
    in_order: list[Bucket] | None = None
    refused: bool = False


class SQLiteRows:
    """books.Rows over one connection, between `begin` and `finish` of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._counters: dict[str, _Counter] = {}
        self._slots: dict[str, int] = {}
        self._moved: set[str] = set()
        self._leases: dict[str, Reservation | None] = {}
        self._changed: set[str] = set()  # ids of leases whose row in the file is an old one
        self._none_due_us = self._none_idle_us = -1  # up to this time there is nothing
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

    def begin(self, ids: Sequence[str] = ()) -> int:
        """Forget what the last transaction knew; returns the newest store time in the file.

        `ids` are reservations that will be asked for: they are read together.
        """
        for known in (self._counters, self._slots, self._moved, self._leases, self._changed):
            known.clear()
        self._none_due_us = self._none_idle_us = -1
        self._changes = self._db.total_changes
        self._leases.update(dict.fromkeys(ids))
        for some in (ids[i : i + _TOGETHER] for i in range(0, len(ids), _TOGETHER)):
            marks = ",".join("?" * len(some))
            for row in self._db.execute(f"{_RESERVATION} WHERE id IN ({marks})", some):
                self._leases[row[0]] = _reservation(row)
        return self._meta("last_seen_us")

    def finish(self, now_us: int, *, proof: bool = False) -> None:
        """Write what changed, and the time if anything was written at all.

        `proof`: write the time in any case. That the file can be read does not show that it
        serves: a full disk lets every transaction pass that writes nothing.
        """
        self._write_leases()
        self._write_counters()
        if proof or self._db.total_changes != self._changes:
            self._db.execute(
                "INSERT OR REPLACE INTO limit_meta VALUES ('last_seen_us', ?)", (now_us,)
            )

    def anchor_us(self, boot: int) -> int | None:
        """Where the processes of this run of the machine count from, if one was here before."""
        return self._meta("anchor_us") if boot and self._meta("boot") == boot else None

    def keep_anchor(self, boot: int, anchor_us: int) -> None:
        """Two rows, once a process unless it is pulled forward."""
        rows = [("boot", boot), ("anchor_us", anchor_us)]
        self._db.executemany("INSERT OR REPLACE INTO limit_meta VALUES (?, ?)", rows)

    def find(self, reservation_id: str) -> Reservation | None:
        """From what `begin` read; else one lookup by primary key."""
        if reservation_id not in self._leases:
            row = self._db.execute(f"{_RESERVATION} WHERE id = ?", (reservation_id,)).fetchone()
            self._leases[reservation_id] = None if row is None else _reservation(row)
        return self._leases[reservation_id]

    def keep(self, reservation: Reservation) -> None:
        """One row; its lines are one JSON text, because they are only ever read together."""
        self._leases[reservation.reservation_id] = reservation
        self._changed.add(reservation.reservation_id)
        if reservation.due_us <= self._none_due_us:
            self._none_due_us = -1

    def drop(self, reservation_id: str) -> None:
        """One row less."""
        self._leases[reservation_id] = None
        self._changed.add(reservation_id)

    def due(self, now_us: int, at_most: int) -> Sequence[Reservation]:
        """By the index on due_us; once a transaction unless there are more."""
        if now_us <= self._none_due_us:
            return ()
        self._write_leases()
        rows = self._db.execute(
            f"{_RESERVATION} WHERE due_us <= ? ORDER BY due_us, id LIMIT ?", (now_us, at_most)
        ).fetchall()
        if len(rows) < at_most:
            self._none_due_us = now_us
        found = [_reservation(row) for row in rows]
        self._leases.update((one.reservation_id, one) for one in found)
        return found

    def used(self, key: str, horizon: int) -> int:
        """The total, less the at most 241 buckets that have left the window since."""
        counter = self._counter(key)
        if not counter.exists or counter.oldest_us > horizon:
            return counter.total
        return counter.total - self._sum_until(key, counter, horizon)

    def live(self, key: str, horizon: int) -> Iterable[Bucket]:
        """Row by row, since the walk for a retry time usually stops early; then from memory."""
        counter = self._counter(key)
        if not counter.refused and counter.in_order is None:
            counter.refused = True
            self._write_buckets(((key, counter),))
            rows = self._db.execute(f"{_BUCKETS} AND end_us > ? ORDER BY end_us", (key, horizon))
            return (Bucket(*row) for row in rows)
        return (one for one in self._all(key, counter) if one.end_us > horizon)

    def newest_end_us(self, key: str, horizon: int) -> int:
        """One step in the primary key, from its far end."""
        counter = self._counter(key)
        if counter.in_order is not None:
            newest = counter.in_order[-1].end_us if counter.in_order else 0
            return newest if newest > horizon else 0
        self._write_buckets(((key, counter),))
        row = self._db.execute(
            "SELECT end_us FROM limit_buckets WHERE key = ? AND end_us > ?"
            " ORDER BY end_us DESC LIMIT 1",
            (key, horizon),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def keys(self) -> Iterator[str]:
        """A walk over the counters."""
        self._write_counters()
        rows = self._db.execute("SELECT key FROM limit_counters UNION SELECT key FROM limit_slots")
        return (str(key) for (key,) in rows)

    def add(self, line: Line, *, horizon: int, until_us: int) -> None:
        """Eviction deletes at most 241 rows, and no bucket is ever deleted twice."""
        counter = self._counter(line.key)
        if not counter.exists:
            counter.exists, counter.oldest_us, counter.in_order = True, line.end_us, []
        elif counter.oldest_us <= horizon:
            self._evict(line, counter, horizon)
        bucket = self._bucket(line, counter)
        if bucket is None:
            bucket = counter.buckets[line.end_us] = Bucket(line.end_us)
            if counter.in_order is not None:
                insort(counter.in_order, bucket, key=_BY_END)
        bucket.amount += line.amount
        bucket.reserved += line.amount
        counter.dirty_ends.add(line.end_us)
        counter.total += line.amount
        counter.oldest_us = min(counter.oldest_us, line.end_us)
        counter.until_us = max(counter.until_us, until_us)
        counter.is_dirty = True

    def correct(self, line: Line, *, amount: int, reserved: int, overrun: int) -> None:
        """Touches the total only if the bucket is still there: evicting took it out already."""
        counter = self._counter(line.key)
        bucket = self._bucket(line, counter) if counter.exists else None
        if bucket is None:
            return
        bucket.amount += amount
        bucket.reserved += reserved
        bucket.overrun += overrun
        counter.dirty_ends.add(line.end_us)
        counter.total += amount
        counter.is_dirty = True

    def slots(self, key: str) -> int:
        """One lookup by primary key."""
        if key not in self._slots:
            row = self._db.execute("SELECT taken FROM limit_slots WHERE key = ?", (key,)).fetchone()
            self._slots[key] = 0 if row is None else int(row[0])
        return self._slots[key]

    def move_slots(self, key: str, by: int) -> None:
        """A counter without slots has no row."""
        self._slots[key] = max(0, self.slots(key) + by)
        self._moved.add(key)

    def forget(self, now_us: int, at_most: int) -> None:
        """By the index on until_us; once a transaction unless there are more."""
        if now_us <= self._none_idle_us:
            return
        keys = self._db.execute(
            "SELECT key FROM limit_counters WHERE until_us <= ? LIMIT ?", (now_us, at_most)
        ).fetchall()
        if len(keys) < at_most:
            self._none_idle_us = now_us
        for (key,) in keys:
            if self._counter(key).until_us > now_us:
                continue
            self._db.execute("DELETE FROM limit_buckets WHERE key = ?", (key,))
            self._db.execute("DELETE FROM limit_counters WHERE key = ?", (key,))
            self._counters[key] = _Counter()

    def _counter(self, key: str) -> _Counter:
        counter = self._counters.get(key)
        if counter is None:
            row = self._db.execute(
                "SELECT total, oldest_us, until_us FROM limit_counters WHERE key = ?", (key,)
            ).fetchone()
            counter = self._counters[key] = _Counter() if row is None else _Counter(True, *row)
        return counter

    def _bucket(self, line: Line, counter: _Counter) -> Bucket | None:
        end_us = line.end_us
        if end_us not in counter.buckets and counter.in_order is None:
            row = self._db.execute(f"{_BUCKETS} AND end_us = ?", (line.key, end_us)).fetchone()
            counter.buckets[end_us] = None if row is None else Bucket(*row)
        return counter.buckets.get(end_us)

    def _all(self, key: str, counter: _Counter) -> list[Bucket]:
        if counter.in_order is None:
            self._write_buckets(((key, counter),))
            for row in self._db.execute(f"{_BUCKETS} ORDER BY end_us", (key,)):
                if counter.buckets.get(row[0]) is None:
                    counter.buckets[row[0]] = Bucket(*row)
            known = (one for one in counter.buckets.values() if one is not None)
            counter.in_order = sorted(known, key=_BY_END)
        return counter.in_order

    def _sum_until(self, key: str, counter: _Counter, horizon: int) -> int:
        if counter.in_order is not None:
            return sum(one.amount for one in counter.in_order if one.end_us <= horizon)
        self._write_buckets(((key, counter),))
        row = self._db.execute(
            "SELECT COALESCE(SUM(amount), 0) FROM limit_buckets WHERE key = ? AND end_us <= ?",
            (key, horizon),
        ).fetchone()
        return int(row[0])

    def _evict(self, line: Line, counter: _Counter, horizon: int) -> None:
        counter.total -= self._sum_until(line.key, counter, horizon)
        self._write_buckets(((line.key, counter),))
        self._db.execute(
            "DELETE FROM limit_buckets WHERE key = ? AND end_us <= ?", (line.key, horizon)
        )
        for end_us in counter.buckets:
            if end_us <= horizon:
                counter.buckets[end_us] = None
        if counter.in_order is not None:
            counter.in_order = [one for one in counter.in_order if one.end_us > horizon]
        oldest = self._db.execute(
            "SELECT MIN(end_us) FROM limit_buckets WHERE key = ?", (line.key,)
        ).fetchone()[0]
        counter.oldest_us = line.end_us if oldest is None else oldest

    def _write_leases(self) -> None:
        ended = [(one_id,) for one_id in self._changed if self._leases[one_id] is None]
        kept = [_row(lease) for one_id in self._changed if (lease := self._leases[one_id])]
        self._changed.clear()
        self._db.executemany("DELETE FROM limit_reservations WHERE id = ?", ended)
        self._db.executemany(
            "INSERT OR REPLACE INTO limit_reservations VALUES (?, ?, ?, ?, ?, ?)", kept
        )

    def _write_buckets(self, counters: Iterable[tuple[str, _Counter]]) -> None:
        rows = []
        for key, counter in counters:
            for end_us in counter.dirty_ends:
                if (one := counter.buckets[end_us]) is not None:
                    rows.append((key, end_us, one.amount, one.reserved, one.overrun))
            counter.dirty_ends.clear()
        if rows:
            self._db.executemany(
                "INSERT OR REPLACE INTO limit_buckets VALUES (?, ?, ?, ?, ?)", rows
            )

    def _write_counters(self) -> None:
        """Buckets, totals and slots."""
        self._write_buckets(self._counters.items())
        dirty = [(key, one) for key, one in self._counters.items() if one.is_dirty]
        self._db.executemany(
            "INSERT OR REPLACE INTO limit_counters VALUES (?, ?, ?, ?)",
            [(key, one.total, one.oldest_us, one.until_us) for key, one in dirty],
        )
        for _, one in dirty:
            one.is_dirty = False
        taken = [(key, self._slots[key]) for key in self._moved if self._slots[key]]
        free = [(key,) for key in self._moved if not self._slots[key]]
        self._moved.clear()
        self._db.executemany("INSERT OR REPLACE INTO limit_slots VALUES (?, ?)", taken)
        self._db.executemany("DELETE FROM limit_slots WHERE key = ?", free)

    def _meta(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM limit_meta WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])


def _reservation(row: tuple[str, str, int, int, int, str]) -> Reservation:
    reservation_id, owner, is_open, due_us, counts_until_us, lines = row
    return Reservation(
        reservation_id, owner, bool(is_open), due_us, counts_until_us, _decode_lines(lines)
    )


def _row(lease: Reservation) -> tuple[str, str, bool, int, int, str]:
    lines = _encode_lines(lease.lines).decode()
    return (lease.reservation_id, lease.owner, lease.is_open, *lease[3:5], lines)


__all__ = ["SCHEMA_VERSION", "SQLiteRows", "UnknownSchema"]
