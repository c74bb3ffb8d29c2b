"""What do the books in this file say, to somebody who only looks?

Lives here: the reading half of a ledger on an SQLite file, for commands beside a running
gateway. Does not live here: the tables (sqlite_rows), what the numbers mean (books).
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import books
from tidegate.limits.ledger import Limit, Usage
from tidegate.limits.sqlite_rows import SQLiteRows
from tidegate.limits.storetime import StoreTime
from tidegate.sqlite_words import meaning_of

T = TypeVar("T")

_BUSY_S = 5.0


class SQLiteReader:
    """`usage` and `scopes` of a Ledger, on the file `path`, which is never created or written.

    Each call sees one moment of the books. The time is that of the machine, but never before
    the newest entry. Every call may raise StoreUnavailable.
    """

    def __init__(self, path: str | Path, clock: Clock) -> None:
        self._path = Path(path)
        self._clock = clock

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        return self._read(lambda rows, now_us: books.usage(rows, limit, scope_key, now_us=now_us))

    async def usages(self, counters: Sequence[tuple[Limit, str]]) -> list[Usage]:
        """`usage` of each, all of one moment."""

        def run(rows: SQLiteRows, now_us: int) -> list[Usage]:
            over = books.overdue(rows, now_us=now_us)
            return [
                books.usage(rows, limit, scope_key, now_us=now_us, over=over)
                for limit, scope_key in counters
            ]

        return self._read(run)

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""
        return self._read(lambda rows, _: books.scopes(rows.keys(), limits))

    def _read(self, run: Callable[[SQLiteRows, int], T]) -> T:
        address = f"file:{quote(str(self._path.absolute()))}?mode=ro"
        try:
            connected = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_S)
            with closing(connected) as db:
                db.execute("BEGIN")
                rows = SQLiteRows(db)
                rows.check()
                last_seen_us = rows.begin()
                time = StoreTime(self._clock.now_s(), monotonic_s := self._clock.monotonic_s())
                return run(rows, time.now_us(monotonic_s, last_seen_us=last_seen_us))
        except sqlite3.Error as error:
            raise StoreUnavailable(meaning_of(error)) from error


__all__ = ["SQLiteReader"]
