"""What happens to the books when a lease is taken, settled, released or forgotten?

Lives here: the life of a reservation, written once for every store that can offer the few rows
below. Does not live here: the window (window), transactions and files (memory, sqlite), who
asks (gateway.charge).

    reserve ──► open ──► settled | released     the row is gone
                  └────► expired                charged at its estimate, row kept while its
                            └──► settled | released late, once; or forgotten
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tidegate.limits.ledger import (
    Charge,
    Granted,
    Limit,
    Need,
    NeverFits,
    Refused,
    Unit,
    Usage,
    measure,
)
from tidegate.limits.window import Ask, Bucket, admit, bucket_end_us, horizon_us

EXPIRE_AT_MOST = 64
FORGET_AT_MOST = 8
"""Upkeep that one reservation pays for: enough to outrun what it adds, never a long pause."""


class Line(Struct, frozen=True, array_like=True, gc=False):
    """What a reservation took from one counter: `amount` in the bucket that ends at `end_us`."""

    key: str
    unit: Unit
    end_us: int
    amount: int


class Reservation(Struct, frozen=True, gc=False):
    """A lease. `due_us` is when it expires; once it has, when it may be forgotten.

    `counts_until_us` is when the last of its lines leaves its window.
    """

    reservation_id: str
    owner: str
    is_open: bool
    due_us: int
    counts_until_us: int
    lines: tuple[Line, ...]


class Rows(Protocol):
    """What a store must be able to do between the start and the end of one transaction."""

    def find(self, reservation_id: str) -> Reservation | None:
        """The reservation of this id, open or expired."""

    def keep(self, reservation: Reservation) -> None:
        """Insert it, or replace the one of the same id."""

    def drop(self, reservation_id: str) -> None:
        """Forget it."""

    def due(self, now_us: int, at_most: int) -> Sequence[Reservation]:
        """Those whose `due_us` has come, the earliest first."""

    def overdue(self, now_us: int) -> Iterable[Reservation]:
        """All open ones whose `due_us` has come; writes nothing."""

    def used(self, key: str, horizon: int) -> int:
        """The sum of the buckets that end after `horizon`; writes nothing."""

    def live(self, key: str, horizon: int) -> Iterable[Bucket]:
        """The buckets that end after `horizon`, oldest first; writes nothing."""

    def newest_end_us(self, key: str, horizon: int) -> int:
        """The end of the newest bucket that ends after `horizon`, or 0; writes nothing."""

    def keys(self) -> Iterable[str]:
        """The names of all counters; writes nothing."""

    def add(self, line: Line, *, horizon: int, until_us: int) -> None:
        """Reserve the line; drop the counter's buckets up to `horizon` on the way.

        The counter may be forgotten when `until_us` is over.
        """

    def correct(self, line: Line, *, amount: int, reserved: int, overrun: int) -> None:
        """Change the line's bucket by these differences, if it still exists."""

    def slots(self, key: str) -> int:
        """How many calls a concurrency counter holds."""

    def move_slots(self, key: str, by: int) -> None:
        """Take or give back slots."""

    def forget(self, now_us: int, at_most: int) -> None:
        """Drop counters in which nothing counts any more."""


def counter_key(limit: Limit, scope_key: str) -> str:
    """The name of a counter. With the unit: requests must not be added to tokens."""
    return f"{limit.unit}/{scope_key}/{limit.name}"


def scopes(keys: Iterable[str], limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
    """Which of `limits` the counters `keys` belong to, and whose each is; see Ledger.scopes.

    No two readings of a key are possible: a scope holds a `/` only where its kind says so.
    """
    places: dict[tuple[str, str, str], int] = {
        (limit.unit, limit.per, limit.name): at for at, limit in enumerate(limits)
    }
    found: list[tuple[int, str]] = []
    for key in keys:
        unit, kind, scope, name = _parts(key)
        place = places.get((unit, kind, name))
        if place is not None:
            found.append((place, scope))
    return tuple((limits[place], scope) for place, scope in sorted(found))


_SLASHES = {"global": 0, "tenant": 0, "principal": 1, "key": 2}


def _parts(key: str) -> tuple[str, str, str, str]:
    """Of a counter's name: the unit, the kind of its scope, the scope, the name of the limit."""
    unit, _, rest = key.partition("/")
    kind = rest.partition("/")[0].partition(":")[0]
    *scope, name = rest.split("/", _SLASHES.get(kind, 0) + 1)
    return unit, kind, "/".join(scope), name


def reserve(
    rows: Rows,
    reservation: tuple[str, str],
    charges: Sequence[Charge],
    *,
    now_us: int,
    lease_us: int,
) -> Granted | Refused | NeverFits:
    """Take all of `charges` for (id, owner) or nothing; raises ValueError for a bad call.

    A refusal writes nothing. (Leases that are over are expired first: that is time passing.)
    """
    reservation_id, owner = reservation
    held = rows.find(reservation_id)
    if held is not None:
        if held.owner != owner or not held.is_open:
            raise ValueError("this reservation id was used before")
        return Granted(reservation_id)
    if len(charges) > 1 and len({charge.limit.name for charge in charges}) < len(charges):
        raise ValueError("a limit may be charged once")
    expire(rows, now_us=now_us)
    asks = [_ask(rows, charge, now_us) for charge in charges]
    verdict = admit(reservation_id, asks, now_us=now_us)
    if isinstance(verdict, Granted):
        lines, counts_until_us = _take(rows, asks, now_us)
        due_us = now_us + lease_us
        rows.keep(Reservation(reservation_id, owner, True, due_us, counts_until_us, lines))
        rows.forget(now_us, FORGET_AT_MOST)
    return verdict


def settle(rows: Rows, reservation_id: str, owner: str, need: Need | None) -> bool:
    """Replace the estimate by `need` (None: keep it) and end the lease; False if there is none."""
    reservation = rows.find(reservation_id)
    if reservation is None or reservation.owner != owner:
        return False
    for line in reservation.lines:
        actual = line.amount if need is None else measure(line.unit, need)
        _end_line(rows, reservation, line, actual)
    rows.drop(reservation_id)
    return True


def release(rows: Rows, reservation_id: str, owner: str) -> bool:
    """Give everything back and end the lease; False if there is none."""
    reservation = rows.find(reservation_id)
    if reservation is None or reservation.owner != owner:
        return False
    for line in reservation.lines:
        _end_line(rows, reservation, line, 0)
    rows.drop(reservation_id)
    return True


def expire(rows: Rows, *, now_us: int) -> None:
    """End leases whose time is over: slots are free again, the estimates stay charged."""
    for reservation in rows.due(now_us, EXPIRE_AT_MOST):
        if reservation.is_open:
            for line in reservation.lines:
                _end_line(rows, reservation, line, line.amount)
        if reservation.is_open and reservation.counts_until_us > now_us:
            rows.keep(replace(reservation, is_open=False, due_us=reservation.counts_until_us))
        else:
            rows.drop(reservation.reservation_id)


Overdue = Mapping[tuple[str, int], int]
"""What is held by leases that are over: slots or amounts, by counter and end of the bucket."""


def overdue(rows: Rows, *, now_us: int) -> Overdue:
    """What `expire` would end now; writes nothing.

    Until somebody reserves, the rows say of such leases that they run.
    """
    held: dict[tuple[str, int], int] = {}
    for lease in rows.overdue(now_us):
        for line in lease.lines:
            place = line.key, line.end_us
            held[place] = held.get(place, 0) + (1 if line.unit == "concurrent" else line.amount)
    return held


def usage(
    rows: Rows, limit: Limit, scope_key: str, *, now_us: int, over: Overdue | None = None
) -> Usage:
    """The state of one counter; writes nothing. `over`: what `overdue` says, if it was asked."""
    key = counter_key(limit, scope_key)
    if over is None:
        over = overdue(rows, now_us=now_us)
    if limit.unit == "concurrent":
        taken = max(0, rows.slots(key) - over.get((key, 0), 0))
        return Usage(0, taken, max(0, limit.cap - taken), None)
    total = reserved = overrun = 0
    next_free_s: float | None = None
    for bucket in rows.live(key, horizon_us(now_us, limit.window_us)):
        total += bucket.amount
        reserved += bucket.reserved - over.get((key, bucket.end_us), 0)
        overrun += bucket.overrun
        if next_free_s is None and bucket.amount:
            next_free_s = (bucket.end_us + limit.window_us - now_us) / 1_000_000
    free = max(0, limit.cap - total)
    return Usage(total - reserved, reserved, free, next_free_s, overrun)


def _ask(rows: Rows, charge: Charge, now_us: int) -> Ask:
    limit, amount = charge.limit, charge.amount
    key = counter_key(limit, charge.scope_key)
    if limit.unit == "concurrent":
        return Ask(limit, amount, rows.slots(key), 0, key, rows)
    window_us = limit.window_us
    used = rows.used(key, now_us - window_us)
    return Ask(limit, amount, used, bucket_end_us(now_us, window_us), key, rows)


def _take(rows: Rows, asks: Sequence[Ask], now_us: int) -> tuple[tuple[Line, ...], int]:
    """What was granted, as lines, and when the last of them leaves its window."""
    lines, counts_until_us = [], 0
    for ask in asks:
        limit, end_us = ask.limit, ask.end_us
        line = Line(ask.key, limit.unit, end_us, ask.amount)
        lines.append(line)
        if limit.unit == "concurrent":
            rows.move_slots(ask.key, 1)
            continue
        window_us = limit.window_us
        until_us = end_us + window_us
        rows.add(line, horizon=now_us - window_us, until_us=until_us)
        counts_until_us = max(counts_until_us, until_us)
    return tuple(lines), counts_until_us


def _end_line(rows: Rows, reservation: Reservation, line: Line, actual: int) -> None:
    if line.unit == "concurrent":
        # An expired lease gave its slot back: giving it back again would free another's.
        if reservation.is_open:
            rows.move_slots(line.key, -1)
        return
    rows.correct(
        line,
        amount=actual - line.amount,
        reserved=-line.amount if reservation.is_open else 0,
        overrun=max(0, actual - line.amount),
    )


__all__ = [
    "Line",
    "Overdue",
    "Reservation",
    "Rows",
    "counter_key",
    "expire",
    "overdue",
    "release",
    "reserve",
    "scopes",
    "settle",
    "usage",
]
