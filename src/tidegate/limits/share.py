"""What may one process admit by itself while the store is away?

Lives here: the books of that time, and what of them the store has to hear afterwards. Does not
live here: when the store is away, and telling it (degraded).

Each of N processes that share a store has 1/N of each cap, less 1/N of what it last saw used.
Used by all, seen by all at the end: together not more than the cap. Used but never seen here:
what was used before, and at most one cap more. Memory: one lease for each running request and
at most 241 buckets for each counter in use.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits.books import counter_key
from tidegate.limits.ledger import (
    MAX_AMOUNT,
    Charge,
    Granted,
    Limit,
    Need,
    NeverFits,
    Refused,
    measure,
)
from tidegate.limits.memory import MemoryLedger
from tidegate.limits.window import Window, bucket_end_us, horizon_us

MAX_SEEN = 10_000
"""Counters whose last known state is kept; of others nothing is known."""

_OURS = "here"
_WHOLE_SHARE = "more than the share of one process"


class Seen:
    """What the store last said of each counter; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, float]] = {}

    def note(self, charge: Charge, used: int, now_s: float) -> None:
        """The counter of `charge` held `used`; about 1 us."""
        key = counter_key(charge.limit, charge.scope_key)
        self._used.pop(key, None)
        self._used[key] = used, now_s
        if len(self._used) > MAX_SEEN:
            del self._used[next(iter(self._used))]

    def used(self, key: str) -> tuple[int, float]:
        """How much, and when that was."""
        return self._used.get(key, (0, 0.0))


@dataclass(slots=True)
class Lent:
    """A reservation made here. `charges` are its real ones; it may run until `due_s`."""

    owner: str
    charges: tuple[Charge, ...]
    due_s: float
    began_us: int


class Share:
    """The books of this process while the store is away; of `sharers` processes in all."""

    def __init__(self, clock: Clock, seen: Seen, sharers: int) -> None:
        self._clock = _Turned(clock)
        self._seen = seen
        self._sharers = max(1, sharers)
        self._books = MemoryLedger(self._clock)
        self._seeded: set[str] = set()
        self._spent: dict[str, tuple[Limit, str, Window]] = {}
        self.lent: dict[str, Lent] = {}

    async def hold(self, reservation_id: str, slots: Sequence[Charge], lease_s: float) -> None:
        """A call that runs on a reservation in the store occupies these slots here, too."""
        forced = [forced_charge(charge) for charge in slots]
        await self._books.reserve(_held(reservation_id), _OURS, forced, lease_s=lease_s)

    async def let_go(self, reservation_id: str) -> None:
        """That call is over; harmless if it held nothing."""
        await self._books.release(_held(reservation_id), _OURS)

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], lease_s: float
    ) -> Granted | Refused | NeverFits:
        """Take `charges` from this share; none of their limits is `closed`.

        Raises StoreUnavailable for more than the whole share, which would fit the real limit.
        """
        for charge in charges:
            if charge.amount > charge.limit.cap:
                return NeverFits(charge.limit, charge.amount)
        ours = [self._part(charge) for charge in charges]
        for charge in ours:
            if charge.amount > charge.limit.cap:
                raise StoreUnavailable(_WHOLE_SHARE)
        for charge in ours:
            await self._seed(charge)
        verdict = await self._books.reserve(reservation_id, owner, ours, lease_s=lease_s)
        match verdict:
            case Granted() | Refused():
                standings = tuple(
                    standing
                    for standing in verdict.standings
                    if standing.limit.on_store_down != "open"
                )
                verdict = replace(verdict, degraded=True, standings=standings)
            case NeverFits():
                raise StoreUnavailable(_WHOLE_SHARE)
        if isinstance(verdict, Granted) and reservation_id not in self.lent:
            due_s = self._clock.monotonic_s() + lease_s
            self.lent[reservation_id] = Lent(owner, tuple(charges), due_s, self._now_us())
        return verdict

    async def end(
        self, reservation_id: str, owner: str, need: Need | None, *, is_release: bool
    ) -> bool:
        """End a reservation made here; as Ledger.settle and Ledger.release."""
        lent = self.lent.get(reservation_id)
        if lent is None or lent.owner != owner:
            return False
        if is_release:
            await self._books.release(reservation_id, owner)
        else:
            await self._books.settle(reservation_id, owner, need)
            self._note_spent(lent, need)
        del self.lent[reservation_id]
        return True

    def take_lent(self, reservation_id: str) -> Lent:
        """Give up a reservation that the store holds from now on."""
        return self.lent.pop(reservation_id)

    def take_spent(self) -> Iterator[Charge]:
        """What counts still, of all that ended here; each is handed out once."""
        spent, self._spent = self._spent, {}
        now_us = self._now_us()
        for limit, scope_key, window in spent.values():
            if (amount := window.used(horizon_us(now_us, limit.window_us))) > 0:
                yield Charge(limit, scope_key, amount)

    @property
    def owes(self) -> int:
        """How many reservations and counters there are of which the store has not heard."""
        return len(self.lent) + len(self._spent)

    def _note_spent(self, lent: Lent, need: Need | None) -> None:
        for charge in lent.charges:
            limit = charge.limit
            amount = charge.amount if need is None else measure(limit.unit, need)
            if limit.unit == "concurrent" or not amount:
                continue
            key = counter_key(limit, charge.scope_key)
            _, _, window = self._spent.setdefault(key, (limit, charge.scope_key, Window()))
            window.evict(horizon_us(self._now_us(), limit.window_us))
            window.add(bucket_end_us(lent.began_us, limit.window_us), amount)

    def _part(self, charge: Charge) -> Charge:
        if charge.limit.on_store_down == "open":
            return forced_charge(charge)
        part = replace(charge.limit, cap=charge.limit.cap // self._sharers)
        return Charge(part, charge.scope_key, charge.amount)

    async def _seed(self, charge: Charge) -> None:
        """Put our part of what was used before into the window, at the time it was seen."""
        key = counter_key(charge.limit, charge.scope_key)
        if key in self._seeded:
            return
        self._seeded.add(key)
        used, at_s = self._seen.used(key)
        # Slots are no matter of time: those of our own calls are held, see `hold`.
        if not used or charge.limit.unit == "concurrent":
            return
        part = Charge(forced(charge.limit), charge.scope_key, -(-used // self._sharers))
        with self._clock.turned(at_s):
            await self._books.reserve(f"seen {key}", _OURS, [part], lease_s=0.0)

    def _now_us(self) -> int:
        return round(self._clock.monotonic_s() * 1_000_000)


class _Turned:
    """A clock whose monotonic side can be turned back for a moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at_s: float | None = None

    def now_s(self) -> float:
        return self._clock.now_s()

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() if self._at_s is None else self._at_s

    @contextmanager
    def turned(self, at_s: float) -> Iterator[None]:
        """Inside it is `at_s`."""
        self._at_s = at_s
        try:
            yield
        finally:
            self._at_s = None


def forced(limit: Limit) -> Limit:
    """The same counter with room for everything."""
    return replace(limit, cap=MAX_AMOUNT)


def forced_charge(charge: Charge) -> Charge:
    """What is charged whether or not there is room: it has been taken already."""
    return Charge(forced(charge.limit), charge.scope_key, charge.amount)


def _held(reservation_id: str) -> str:
    return f"held {reservation_id}"


__all__ = ["MAX_SEEN", "Lent", "Seen", "Share", "forced_charge"]
