"""Which reservations does an SQLite file hold?

Lives here: the rows of leases, and what is known of them without asking the file. Does not live
here: what a lease means (books), when what is known must be forgotten (sqlite_rows).

What is known stays true from one transaction to the next as long as nobody else writes the
file. The rows lie in the order of the ids: ids that grow with time fill one page after the
other and need no look whether they are there, random ones touch a page each and cost about three
times as much.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from tidegate.limits.books import Line, Reservation

KEPT = 8_192
"""So many leases are known at least, about half a kilobyte each, and at most twice as many."""

NEVER_US = 2**63 - 1
_TOGETHER = 500  # variables of one statement
_COLUMNS = "SELECT id, owner, is_open, due_us, counts_until_us, lines FROM limit_reservations"
_decode_lines = msgspec.json.Decoder(tuple[Line, ...]).decode
_encode_lines = msgspec.json.Encoder().encode


class Leases:
    """The leases of one connection. `quiet_until_us`: up to this time none is due."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._known: dict[str, Reservation] = {}
        self._absent: set[str] = set()
        self._kept: dict[str, Reservation] = {}  # written at the end, as all that follows
        self._dropped: set[str] = set()
        self._floor = ""  # of the greater ids, all that are in the file are known
        self.quiet_until_us = -1

    def forget(self) -> None:
        """Another one wrote the file: nothing is known."""
        self._known.clear()
        self._kept.clear()
        self._dropped.clear()
        self.quiet_until_us = -1
        (newest,) = self._db.execute("SELECT MAX(id) FROM limit_reservations").fetchone()
        self._floor = newest or ""

    def begin(self, ids: Iterable[str]) -> None:
        """A transaction begins that will ask for `ids`: what is not known is read together."""
        if len(self._known) > 2 * KEPT:
            excess = len(self._known) - KEPT
            self._floor = max(self._floor, *islice(self._known, excess))
            self._known = dict(islice(self._known.items(), excess, None))
        known, floor = self._known, self._floor
        unread = [one_id for one_id in ids if one_id not in known]
        self._absent = set(unread)
        unknown = [one_id for one_id in unread if one_id <= floor]
        for some in (unknown[i : i + _TOGETHER] for i in range(0, len(unknown), _TOGETHER)):
            marks = ",".join("?" * len(some))
            for row in self._db.execute(f"{_COLUMNS} WHERE id IN ({marks})", some):
                self._learn(row)

    def find(self, reservation_id: str) -> Reservation | None:
        """From what is known; else one lookup by primary key."""
        found = self._known.get(reservation_id)
        if found is None and reservation_id not in self._absent:
            row = self._db.execute(f"{_COLUMNS} WHERE id = ?", (reservation_id,)).fetchone()
            if row is None:
                self._absent.add(reservation_id)
            else:
                found = self._learn(row)
        return found

    def keep(self, lease: Reservation) -> None:
        """One row; its lines are one JSON text, because they are only ever read together."""
        one_id = lease.reservation_id
        self._known[one_id] = self._kept[one_id] = lease
        if lease.due_us <= self.quiet_until_us:
            self.quiet_until_us = lease.due_us - 1

    def drop(self, reservation_id: str) -> None:
        """One row less."""
        self._known.pop(reservation_id, None)
        self._kept.pop(reservation_id, None)
        self._absent.add(reservation_id)
        self._dropped.add(reservation_id)

    def due(self, now_us: int, at_most: int) -> Sequence[Reservation]:
        """By the index on due_us, and not again before the next one is due."""
        if now_us <= self.quiet_until_us:
            return ()
        self.write()
        rows = self._db.execute(
            f"{_COLUMNS} WHERE due_us <= ? ORDER BY due_us, id LIMIT ?", (now_us, at_most)
        ).fetchall()
        if len(rows) < at_most:
            (following,) = self._db.execute(
                "SELECT MIN(due_us) FROM limit_reservations WHERE due_us > ?", (now_us,)
            ).fetchone()
            self.quiet_until_us = NEVER_US if following is None else following - 1
        return [self._learn(row) for row in rows]

    def overdue(self, now_us: int) -> Iterable[Reservation]:
        """By the same index; none of them is remembered, they may be many."""
        if now_us <= self.quiet_until_us:
            return
        self.write()
        rows = self._db.execute(f"{_COLUMNS} WHERE due_us <= ? AND is_open", (now_us,))
        for row in rows:
            yield _lease(row)

    def write(self) -> None:
        """Bring the file up to date."""
        if self._dropped:
            # What was kept again after it was dropped is replaced, not deleted.
            ended = [(one_id,) for one_id in self._dropped if one_id not in self._kept]
            self._db.executemany("DELETE FROM limit_reservations WHERE id = ?", ended)
            self._dropped.clear()
        if self._kept:
            self._db.executemany(
                "INSERT OR REPLACE INTO limit_reservations VALUES (?, ?, ?, ?, ?, ?)",
                [_row(lease) for lease in self._kept.values()],
            )
            self._kept.clear()

    def _learn(self, row: tuple[str, str, int, int, int, str]) -> Reservation:
        found = self._known[row[0]] = _lease(row)
        return found


def _lease(row: tuple[str, str, int, int, int, str]) -> Reservation:
    one_id, owner, is_open, due_us, until_us, lines = row
    return Reservation(one_id, owner, bool(is_open), due_us, until_us, _decode_lines(lines))


def _row(lease: Reservation) -> tuple[str, str, bool, int, int, str]:
    return (
        lease.reservation_id,
        lease.owner,
        lease.is_open,
        lease.due_us,
        lease.counts_until_us,
        _encode_lines(lease.lines).decode(),
    )


__all__ = ["KEPT", "NEVER_US", "Leases"]
