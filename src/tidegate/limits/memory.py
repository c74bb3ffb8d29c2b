"""How are reservations kept when nothing needs to survive the process?

Lives here: the ledger in dictionaries, for `memory:` stores, library users and as the measure
of the others. Does not live here: any decision (books, window). One process, one event loop.
"""

import heapq
from collections.abc import Iterable, Sequence

from tidegate.clock import Clock
from tidegate.limits import books
from tidegate.limits.ledger import Charge, Granted, Limit, Need, NeverFits, Refused, Usage
from tidegate.limits.storetime import StoreTime
from tidegate.limits.window import Bucket, Window


class _Rows:
    """The rows of the books as dictionaries; see books.Rows for what each method promises."""

    def __init__(self) -> None:
        self._reservations: dict[str, books.Reservation] = {}
        self._due: list[tuple[int, str]] = []
        self._windows: dict[str, Window] = {}
        self._until: dict[str, int] = {}
        self._idle: list[tuple[int, str]] = []
        self._slots: dict[str, int] = {}

    def find(self, reservation_id: str) -> books.Reservation | None:
        return self._reservations.get(reservation_id)

    def keep(self, reservation: books.Reservation) -> None:
        self._reservations[reservation.reservation_id] = reservation
        heapq.heappush(self._due, (reservation.due_us, reservation.reservation_id))

    def drop(self, reservation_id: str) -> None:
        del self._reservations[reservation_id]
        # Ended leases stay in the heap until they would be due; not more of them than live ones.
        if len(self._due) > 2 * len(self._reservations) + 64:
            self._due = [(one.due_us, one_id) for one_id, one in self._reservations.items()]
            heapq.heapify(self._due)

    def due(self, now_us: int, at_most: int) -> Sequence[books.Reservation]:
        found: list[books.Reservation] = []
        while self._due and self._due[0][0] <= now_us and len(found) < at_most:
            due_us, reservation_id = heapq.heappop(self._due)
            reservation = self._reservations.get(reservation_id)
            if reservation is not None and reservation.due_us == due_us:
                found.append(reservation)
        return found

    def overdue(self, now_us: int) -> Iterable[books.Reservation]:
        if not self._due or self._due[0][0] > now_us:
            return ()
        leases = self._reservations.values()
        return [one for one in leases if one.is_open and one.due_us <= now_us]

    def used(self, key: str, horizon: int) -> int:
        window = self._windows.get(key)
        return window.used(horizon) if window else 0

    def live(self, key: str, horizon: int) -> Iterable[Bucket]:
        window = self._windows.get(key)
        return window.live(horizon) if window else ()

    def newest_end_us(self, key: str, horizon: int) -> int:
        window = self._windows.get(key)
        return window.newest_end_us(horizon) if window else 0

    def keys(self) -> Iterable[str]:
        return [*self._windows, *self._slots]

    def add(self, line: books.Line, *, horizon: int, until_us: int) -> None:
        window = self._windows.get(line.key)
        if window is None:
            window = self._windows[line.key] = Window()
        window.evict(horizon)
        if window.add(line.end_us, line.amount):
            self._until[line.key] = max(until_us, self._until.get(line.key, 0))
            heapq.heappush(self._idle, (until_us, line.key))

    def correct(self, line: books.Line, *, amount: int, reserved: int, overrun: int) -> None:
        window = self._windows.get(line.key)
        if window is not None:
            window.correct(line.end_us, amount=amount, reserved=reserved, overrun=overrun)

    def slots(self, key: str) -> int:
        return self._slots.get(key, 0)

    def move_slots(self, key: str, by: int) -> None:
        taken = self._slots.get(key, 0) + by
        if taken > 0:
            self._slots[key] = taken
        else:
            self._slots.pop(key, None)

    def forget(self, now_us: int, at_most: int) -> None:
        for _ in range(at_most):
            if not self._idle or self._idle[0][0] > now_us:
                return
            _, key = heapq.heappop(self._idle)
            if self._until.get(key, now_us + 1) <= now_us:
                del self._until[key], self._windows[key]

    def size(self) -> int:
        """How many things are held, of every kind; proportional to live traffic."""
        buckets = sum(len(window) for window in self._windows.values())
        held = len(self._reservations) + len(self._due) + len(self._slots)
        return held + buckets + len(self._windows) + len(self._idle)


class MemoryLedger:
    """A Ledger that lives and dies with this process. Never raises StoreUnavailable."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._time = StoreTime(clock.now_s(), clock.monotonic_s())
        self._rows = _Rows()

    @property
    def degraded(self) -> bool:
        """Never: there is nothing that could fail."""
        return False

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s; 0.0 means within ALARM_S."""
        return self._time.alarm_s(self._clock.now_s(), self._clock.monotonic_s())

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        return books.reserve(
            self._rows,
            (reservation_id, owner),
            charges,
            now_us=self._now_us(),
            lease_us=round(lease_s * 1_000_000),
        )

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return books.settle(self._rows, reservation_id, owner, need)

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return books.release(self._rows, reservation_id, owner)

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        return books.usage(self._rows, limit, scope_key, now_us=self._now_us())

    async def usages(self, counters: Sequence[tuple[Limit, str]]) -> list[Usage]:
        """`usage` of each."""
        return [await self.usage(limit, scope_key) for limit, scope_key in counters]

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""
        return books.scopes(self._rows.keys(), limits)

    def size(self) -> int:
        """How many things are held: reservations, buckets, counters."""
        return self._rows.size()

    def _now_us(self) -> int:
        return self._time.now_us(self._clock.monotonic_s())


__all__ = ["MemoryLedger"]
