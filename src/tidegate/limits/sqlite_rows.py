"""Which rows of an SQLite file hold the books?

Lives here: the tables, and how long what was read of them is true. Does not live here: the
statements behind books.Rows (sqlite_leases, sqlite_counters), decisions (books, window),
transactions, threads and locks (group_commit).

What one transaction has learned holds in the next one, too, while no other connection has
written the file: SQLite counts that, and reading its count costs less than reading any row.
"""

import sqlite3
from collections.abc import Sequence

from tidegate.limits.sqlite_counters import Counters
from tidegate.limits.sqlite_leases import Leases

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


class UnknownSchema(sqlite3.DatabaseError):
    """The file was written by a release whose tables this one does not know."""

    meaning = "it was written by another release"


class SQLiteRows:
    """books.Rows over one connection, between `begin` and `finish` of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._leases = leases = Leases(connection)
        self._counters = counters = Counters(connection)
        # See books.Rows; not one more call on the way to what a decision asks some ten times.
        self.find, self.keep, self.drop, self.due = (
            leases.find,
            leases.keep,
            leases.drop,
            leases.due,
        )
        self.overdue = leases.overdue
        self.used, self.live, self.keys = counters.used, counters.live, counters.keys
        self.newest_end_us, self.forget = counters.newest_end_us, counters.forget
        self.add, self.correct = counters.add, counters.correct
        self.slots, self.move_slots = counters.slots, counters.move_slots
        self._version = self._seen_version = -1  # of the file as we know it; -1: we do not
        self._last_seen_us = 0
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
        """Inside a transaction; returns the newest store time in the file.

        `ids` are reservations that will be asked for: they are read together. What was known is
        forgotten if another connection wrote since, or if the last transaction never came to
        its `finish`. One whose commit fails leaves rows behind that must not be used again.
        """
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._leases.forget()
            self._counters.forget_all()
            self._last_seen_us = self._meta("last_seen_us")
        self._version = -1
        self._seen_version = version
        self._changes = self._db.total_changes
        self._counters.begin()
        self._leases.begin(ids)
        return self._last_seen_us

    def finish(self, now_us: int, *, proof: bool = False) -> None:
        """Write what changed, and the time if anything was written at all.

        `proof`: write the time in any case. That the file can be read does not show that it
        serves: a full disk lets every transaction pass that writes nothing.
        """
        self._leases.write()
        self._counters.write()
        if proof or self._db.total_changes != self._changes:
            self._db.execute(
                "INSERT OR REPLACE INTO limit_meta VALUES ('last_seen_us', ?)", (now_us,)
            )
            self._last_seen_us = now_us
        self._version = self._seen_version

    def anchor_us(self, boot: int) -> int | None:
        """Where the processes of this run of the machine count from, if one was here before."""
        return self._meta("anchor_us") if boot and self._meta("boot") == boot else None

    def keep_anchor(self, boot: int, anchor_us: int) -> None:
        """Two rows, once a process unless it is pulled forward."""
        rows = [("boot", boot), ("anchor_us", anchor_us)]
        self._db.executemany("INSERT OR REPLACE INTO limit_meta VALUES (?, ?)", rows)

    def _meta(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM limit_meta WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])


__all__ = ["SCHEMA_VERSION", "SQLiteRows", "UnknownSchema"]
