"""Which counters does an SQLite file hold?

Lives here: the rows of totals, buckets and slots, and what is known of them without asking the
file. Does not live here: what a bucket means (window), leases (sqlite_leases), when what is
known must be forgotten (sqlite_rows).

Everything a transaction touches is changed in memory and written once at its end: sixty requests
of one tenant write that tenant's total and newest bucket once.
"""

import sqlite3
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from tidegate.limits.books import Line
from tidegate.limits.sqlite_leases import NEVER_US
from tidegate.limits.window import Bucket

KEPT = 40_000
"""At most so many counters and buckets are known, about a hundred bytes each."""

_BUCKETS = "SELECT end_us, amount, reserved, overrun FROM limit_buckets WHERE key = ?"
_BY_END = attrgetter("end_us")


@dataclass(slots=True)
class _Counter:
    """What is known of one counter.

    Its oldest bucket ends at `oldest_us`. `buckets` holds those that were looked at, None for
    one that is not there; `in_order` all of them by their ends, once that was needed.
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


class Counters:
    """The counters of one connection. `quiet_until_us`: up to this time none is idle."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._known: dict[str, _Counter] = {}
        self._dirty: dict[str, _Counter] = {}
        self._slots: dict[str, int] = {}
        self._moved: set[str] = set()
        self._held = 0  # not less than what is known
        self.quiet_until_us = -1

    def forget_all(self) -> None:
        """Another one wrote the file: nothing is known."""
        for known in (self._known, self._dirty, self._slots, self._moved):
            known.clear()
        self._held = 0
        self.quiet_until_us = -1

    def begin(self) -> None:
        """A transaction begins; everything is written."""
        if self._held + len(self._slots) > KEPT:
            self._held = sum(1 + len(one.buckets) for one in self._known.values())
            if self._held + len(self._slots) > KEPT // 2:
                self.forget_all()

    def used(self, key: str, horizon: int) -> int:
        """The total, less the at most 241 buckets that have left the window since."""
        counter = self._counter(key)
        if counter.oldest_us > horizon or not counter.exists:
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
        self.write()
        rows = self._db.execute("SELECT key FROM limit_counters UNION SELECT key FROM limit_slots")
        return (str(key) for (key,) in rows)

    def add(self, line: Line, *, horizon: int, until_us: int) -> None:
        """Eviction deletes at most 241 rows, and no bucket is ever deleted twice."""
        key, end_us, amount = line.key, line.end_us, line.amount
        counter = self._counter(key)
        if not counter.exists:
            counter.exists, counter.oldest_us, counter.in_order = True, end_us, []
        elif counter.oldest_us <= horizon:
            self._evict(key, counter, horizon, end_us)
        bucket = counter.buckets.get(end_us) or self._bucket(key, counter, end_us)
        if bucket is None:
            bucket = counter.buckets[end_us] = Bucket(end_us)
            if counter.in_order is not None:
                insort(counter.in_order, bucket, key=_BY_END)
        bucket.amount += amount
        bucket.reserved += amount
        counter.total += amount
        counter.oldest_us = min(counter.oldest_us, end_us)
        if until_us > counter.until_us:
            counter.until_us = until_us
            if until_us <= self.quiet_until_us:
                self.quiet_until_us = until_us - 1
        self._touch(key, counter, end_us)

    def correct(self, line: Line, *, amount: int, reserved: int, overrun: int) -> None:
        """Touches the total only if the bucket is still there: evicting took it out already."""
        counter = self._counter(line.key)
        bucket = self._bucket(line.key, counter, line.end_us) if counter.exists else None
        if bucket is None:
            return
        bucket.amount += amount
        bucket.reserved += reserved
        bucket.overrun += overrun
        counter.total += amount
        self._touch(line.key, counter, line.end_us)

    def slots(self, key: str) -> int:
        """One lookup by primary key."""
        taken = self._slots.get(key)
        if taken is None:
            row = self._db.execute("SELECT taken FROM limit_slots WHERE key = ?", (key,)).fetchone()
            taken = self._slots[key] = 0 if row is None else int(row[0])
        return taken

    def move_slots(self, key: str, by: int) -> None:
        """A counter without slots has no row."""
        self._slots[key] = max(0, self.slots(key) + by)
        self._moved.add(key)

    def forget(self, now_us: int, at_most: int) -> None:
        """By the index on until_us, and not again before the next one is idle."""
        if now_us <= self.quiet_until_us:
            return
        self.write()
        keys = self._db.execute(
            "SELECT key FROM limit_counters WHERE until_us <= ? LIMIT ?", (now_us, at_most)
        ).fetchall()
        self._db.executemany("DELETE FROM limit_buckets WHERE key = ?", keys)
        self._db.executemany("DELETE FROM limit_counters WHERE key = ?", keys)
        for (key,) in keys:
            self._known.pop(key, None)
        if len(keys) < at_most:
            (following,) = self._db.execute("SELECT MIN(until_us) FROM limit_counters").fetchone()
            self.quiet_until_us = NEVER_US if following is None else following - 1

    def write(self) -> None:
        """Bring the file up to date: buckets, totals and slots."""
        if self._dirty:
            self._write_buckets(self._dirty.items())
            self._db.executemany(
                "INSERT OR REPLACE INTO limit_counters VALUES (?, ?, ?, ?)",
                [(key, c.total, c.oldest_us, c.until_us) for key, c in self._dirty.items()],
            )
            for counter in self._dirty.values():
                counter.is_dirty = False
            self._dirty.clear()
        if self._moved:
            taken = [(key, self._slots[key]) for key in self._moved if self._slots[key]]
            free = [(key,) for key in self._moved if not self._slots[key]]
            self._moved.clear()
            self._db.executemany("INSERT OR REPLACE INTO limit_slots VALUES (?, ?)", taken)
            self._db.executemany("DELETE FROM limit_slots WHERE key = ?", free)

    def _counter(self, key: str) -> _Counter:
        counter = self._known.get(key)
        if counter is None:
            row = self._db.execute(
                "SELECT total, oldest_us, until_us FROM limit_counters WHERE key = ?", (key,)
            ).fetchone()
            counter = self._known[key] = _Counter() if row is None else _Counter(True, *row)
            self._held += 1
        return counter

    def _touch(self, key: str, counter: _Counter, end_us: int) -> None:
        counter.dirty_ends.add(end_us)
        if not counter.is_dirty:
            counter.is_dirty = True
            self._dirty[key] = counter

    def _bucket(self, key: str, counter: _Counter, end_us: int) -> Bucket | None:
        if end_us not in counter.buckets:
            self._held += 1
            if counter.in_order is None:
                row = self._db.execute(f"{_BUCKETS} AND end_us = ?", (key, end_us)).fetchone()
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
            self._held += len(counter.in_order)
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

    def _evict(self, key: str, counter: _Counter, horizon: int, newest_us: int) -> None:
        counter.total -= self._sum_until(key, counter, horizon)
        self._write_buckets(((key, counter),))
        self._db.execute("DELETE FROM limit_buckets WHERE key = ? AND end_us <= ?", (key, horizon))
        for end_us in [end_us for end_us in counter.buckets if end_us <= horizon]:
            del counter.buckets[end_us]
        if counter.in_order is not None:
            counter.in_order = [one for one in counter.in_order if one.end_us > horizon]
        oldest = self._db.execute(
            "SELECT MIN(end_us) FROM limit_buckets WHERE key = ?", (key,)
        ).fetchone()[0]
        counter.oldest_us = newest_us if oldest is None else oldest

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


__all__ = ["KEPT", "Counters"]
