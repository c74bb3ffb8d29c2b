"""What is done to several ledgers at once in a random history, and what must hold?

All of them get the same operations in the same order, several at one instant, so that stores
that work in batches get batches. Their answers are compared with each other, and with a log
that knows nothing of buckets: it adds up what was granted in the true window before each grant.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.contract.ledger.ledgers import SCOPE
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, NeverFits, Refused
from tidegate.limits.ledger import measure
from tidegate.limits.window import BUCKETS
from tidegate.testing.clock import ManualClock

LIMITS = (
    Limit("minute", "tokens", 100, 60.0),
    Limit("burst", "requests", 3, 7.0),
    Limit("answers", "output_tokens", 150, 3_600.0),
    Limit("parallel", "concurrent", 2),
    Limit("all", "input_tokens", 300, 30.0, per="global"),
)
SCOPES = (SCOPE, "tenant:other")
LEASES_S = (0.2, 5.0, 90.0, 5_000.0)
WAITS_S = (0.0, 0.1, 0.25, 1.0, 7.0, 30.0, 60.25, 4_000.0)
STEPS_S = (-3_600.0, 3_600.0)
SIZES = ((100, 60.0), (40, 60.0), (100, 13.0), (100, 240.0))
"""Cap and window that a reload gives the first limit."""


@dataclass(frozen=True)
class Reserve:
    """`limits` are places in LIMITS."""

    limits: frozenset[int]
    amount: int
    lease_s: float
    scope: str


@dataclass(frozen=True)
class End:
    """Of the reservation that was asked for `back` reservations ago."""

    back: int
    need: Need | None
    is_release: bool
    owner: str


@dataclass(frozen=True)
class Look:
    limit: int
    scope: str


Operation = Reserve | End | Look
Answer = object


class Log:
    """What every grant is charged, for the true window and one that is a bucket longer."""

    def __init__(self) -> None:
        self._grants: dict[tuple[str, str], _Grant] = {}
        self._inside: dict[tuple[str, str], tuple[_Sum, _Sum]] = {}

    def granted(self, name: str, charges: Sequence[Charge], now_s: float) -> None:
        """Note the grant, and that no window holds more than its cap."""
        for charge in charges:
            if charge.limit.unit == "concurrent":
                continue
            grant = self._grants[name, charge.limit.name] = _Grant(now_s, charge.amount)
            for one in self._sums(charge):
                one.add(grant)
            held = self._sums(charge)[0].held(now_s, charge.limit.window_s)
            assert held <= charge.limit.cap

    def refused(self, charge: Charge, now_s: float) -> None:
        """There really was no room, give or take the width of a bucket."""
        padded_s = charge.limit.window_s * (BUCKETS + 1) / BUCKETS
        assert self._sums(charge)[1].held(now_s, padded_s) + charge.amount > charge.limit.cap

    def ended(self, name: str, charges: Sequence[Charge], end: End) -> None:
        for charge in charges:
            grant = self._grants.pop((name, charge.limit.name), None)
            if grant is None or (end.need is None and not end.is_release):
                continue
            actual = 0 if end.is_release else measure(charge.limit.unit, end.need or Need())
            for one in self._sums(charge):
                one.change(grant, actual)
            grant.amount = actual

    def forget(self, limit: str) -> None:
        """Begin anew with this limit."""
        self._grants = {key: one for key, one in self._grants.items() if key[1] != limit}
        self._inside = {key: one for key, one in self._inside.items() if key[0] != limit}

    def _sums(self, charge: Charge) -> "tuple[_Sum, _Sum]":
        return self._inside.setdefault((charge.limit.name, charge.scope_key), (_Sum(), _Sum()))


@dataclass
class _Grant:
    at_s: float
    amount: int


class _Sum:
    """A running sum of the grants within a length of time."""

    def __init__(self) -> None:
        self._grants: deque[_Grant] = deque()
        self._left: set[int] = set()
        self._sum = 0

    def add(self, grant: _Grant) -> None:
        self._grants.append(grant)
        self._sum += grant.amount

    def change(self, grant: _Grant, amount: int) -> None:
        if not self._grants or grant.at_s >= self._grants[0].at_s:
            self._sum += amount - grant.amount

    def held(self, now_s: float, length_s: float) -> int:
        while self._grants and now_s - self._grants[0].at_s > length_s + 1e-6:
            self._sum -= self._grants.popleft().amount
        return self._sum


class Players:
    """Several ledgers, one history. The first of `ledgers` answers at once (memory)."""

    def __init__(self, ledgers: Sequence[Ledger], clock: ManualClock) -> None:
        self.ledgers = ledgers
        self.clock = clock
        self.limits = list(LIMITS)
        self._log = Log()
        self._asked: deque[tuple[str, tuple[Charge, ...]]] = deque(maxlen=8)
        self._count = 0
        self._unsure_until_s = 0.0
        self.operations = 0

    def resize(self, cap: int, window_s: float) -> None:
        """A reload changes the first limit.

        What a shorter window has dropped a longer one cannot count, and buckets of another width
        leave later: for a while only the agreement of the ledgers says what is right.
        """
        self.limits[0] = replace(self.limits[0], cap=cap, window_s=window_s)
        self._log.forget(self.limits[0].name)
        self._unsure_until_s = self.clock.monotonic_s() + 500.0

    async def play(self, batch: Sequence[Operation]) -> list[Answer]:
        """Do all of `batch` at one instant, in this order; returns the agreed answers."""
        calls = [call for operation in batch if (call := self._call(operation)) is not None]
        first, *others = [
            await asyncio.gather(*(self._ask(ledger, call) for call in calls))
            for ledger in self.ledgers
        ]
        for other in others:
            assert other == first
            assert [_standings(answer) for answer in other] == [_standings(one) for one in first]
        for call, answer in zip(calls, first, strict=True):
            self._note(call, answer)
        self.operations += len(calls)
        return list(first)

    async def compare(self) -> None:
        """Every counter, in every ledger."""
        await self.play([Look(place, scope) for place in range(len(LIMITS)) for scope in SCOPES])

    def _call(self, operation: Operation) -> "_Call | None":
        match operation:
            case Look(place, scope):
                limit = self.limits[place]
                return _Call(operation, "", (Charge(limit, _scope(limit, scope), 0),))
            case Reserve():
                self._count += 1
                charges = tuple(
                    Charge(limit, _scope(limit, operation.scope), amount)
                    for limit in (self.limits[place] for place in sorted(operation.limits))
                    if (amount := _amount(limit, operation.amount)) is not None
                )
                self._asked.appendleft((f"r{self._count}", charges))
                return _Call(operation, *self._asked[0])
            case End(back):
                if back >= len(self._asked):
                    return None
                return _Call(operation, *self._asked[back])

    async def _ask(self, ledger: Ledger, call: "_Call") -> Answer:
        match call.operation:
            case Look():
                return await ledger.usage(call.charges[0].limit, call.charges[0].scope_key)
            case Reserve(lease_s=lease_s):
                return await ledger.reserve(call.name, "me", call.charges, lease_s=lease_s)
            case End(is_release=True, owner=owner):
                return await ledger.release(call.name, owner)
            case End(need=need, owner=owner):
                return await ledger.settle(call.name, owner, need)

    def _note(self, call: "_Call", answer: Answer) -> None:
        now_s = self.clock.monotonic_s()
        match answer:
            case Granted():
                self._log.granted(call.name, call.charges, now_s)
            case Refused(limit=limit, exact=True):
                if limit.name == self.limits[0].name and now_s < self._unsure_until_s:
                    return
                by_limit = {charge.limit: charge for charge in call.charges}
                self._log.refused(by_limit[limit], now_s)
            case True:
                assert isinstance(call.operation, End)
                self._log.ended(call.name, call.charges, call.operation)


@dataclass(frozen=True)
class _Call:
    operation: Operation
    name: str
    charges: tuple[Charge, ...]


def _scope(limit: Limit, scope: str) -> str:
    return "global" if limit.per == "global" else scope


def _amount(limit: Limit, amount: int) -> int:
    return 1 if limit.unit in ("requests", "concurrent") else amount


def _standings(answer: Answer) -> object:
    return answer.standings if isinstance(answer, Granted | Refused) else None


def refused(answer: Answer) -> bool:
    return isinstance(answer, Refused | NeverFits)
