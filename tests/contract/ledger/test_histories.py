"""Random histories: the stores agree with each other and with a log that counts anew."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.ledger.ledgers import SCOPE, check_sums, make, opened
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, Refused
from tidegate.limits.ledger import measure
from tidegate.limits.window import BUCKETS
from tidegate.testing.clock import ManualClock

LIMITS = (
    Limit("minute", "tokens", 100, 60.0),
    Limit("burst", "requests", 3, 7.0),
    Limit("answers", "output_tokens", 150, 3_600.0),
    Limit("parallel", "concurrent", 2),
)


@dataclass(frozen=True)
class Reserve:
    limits: frozenset[int]
    amount: int
    lease_s: float
    scope: str


@dataclass(frozen=True)
class End:
    which: int
    need: Need | None
    is_release: bool
    owner: str


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Step:
    seconds: float


Operation = Reserve | End | Wait | Step

amounts = st.integers(0, 60)
operations = st.one_of(
    st.builds(
        Reserve,
        st.frozensets(st.integers(0, len(LIMITS) - 1), min_size=1),
        amounts,
        st.sampled_from([0.2, 5.0, 90.0, 5_000.0]),
        st.sampled_from([SCOPE, SCOPE, "tenant:other"]),
    ),
    st.builds(
        End,
        st.integers(0, 5),
        st.none() | st.builds(Need, amounts, amounts),
        st.booleans(),
        st.sampled_from(["me", "me", "me", "thief"]),
    ),
    st.builds(Wait, st.sampled_from([0.0, 0.1, 0.25, 1.0, 7.0, 30.0, 60.25, 4_000.0])),
    st.builds(Step, st.sampled_from([-3_600.0, 3_600.0])),
)


@dataclass
class Log:
    """Every grant with what it is charged now; nothing is ever taken out."""

    grants: dict[str, tuple[float, tuple[Charge, ...]]] = field(default_factory=dict)
    actual: dict[tuple[str, str], int] = field(default_factory=dict)

    def inside(self, limit: Limit, scope: str, now_s: float, length_s: float) -> int:
        return sum(
            self.actual.get((name, limit.name), charge.amount)
            for name, (at_s, charges) in self.grants.items()
            for charge in charges
            if charge.limit == limit
            and charge.scope_key == scope
            and now_s - at_s <= length_s + 1e-6
        )


async def play(ledgers: list[Ledger], clock: ManualClock, history: list[Operation]) -> None:
    log, count = Log(), 0
    for operation in history:
        match operation:
            case Wait(seconds):
                clock.advance(seconds)
            case Step(seconds):
                clock.step(seconds)
            case Reserve():
                count += 1
                await _reserve(ledgers, clock, log, f"r{count}", operation)
            case End(which):
                await _end(ledgers, log, f"r{count - which}", operation)
        for limit in LIMITS:
            first, *others = [await one.usage(limit, SCOPE) for one in ledgers]
            assert all(other == first for other in others)


async def _reserve(
    ledgers: list[Ledger], clock: ManualClock, log: Log, name: str, wanted: Reserve
) -> None:
    charges = tuple(
        Charge(
            LIMITS[i],
            wanted.scope,
            1 if LIMITS[i].unit in ("requests", "concurrent") else wanted.amount,
        )
        for i in sorted(wanted.limits)
    )
    first, *others = [
        await one.reserve(name, "me", charges, lease_s=wanted.lease_s) for one in ledgers
    ]
    assert all(other == first for other in others)
    now_s = clock.monotonic_s()
    windows = [charge for charge in charges if charge.limit.unit != "concurrent"]
    if isinstance(first, Granted):
        log.grants[name] = now_s, charges
        for one in windows:
            held = log.inside(one.limit, one.scope_key, now_s, one.limit.window_s)
            assert held <= one.limit.cap
    elif isinstance(first, Refused) and first.exact:
        limit = first.limit
        padded_s = limit.window_s * (BUCKETS + 1) / BUCKETS
        held = log.inside(limit, wanted.scope, now_s, padded_s)
        assert held + first.requested > limit.cap


async def _end(ledgers: list[Ledger], log: Log, name: str, end: End) -> None:
    if end.is_release:
        answers = [await one.release(name, end.owner) for one in ledgers]
    else:
        answers = [await one.settle(name, end.owner, end.need) for one in ledgers]
    assert len(set(answers)) == 1
    if answers[0]:
        for charge in log.grants[name][1]:
            if end.is_release:
                log.actual[name, charge.limit.name] = 0
            elif end.need is not None:
                log.actual[name, charge.limit.name] = measure(charge.limit.unit, end.need)


def replay(history: list[Operation], kinds: tuple[str, ...]) -> None:
    async def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            clock = ManualClock()
            made = [make(kind, Path(folder), clock) for kind in kinds]
            async with opened(made[0]), opened(made[-1]):
                await play(made, clock, history)
            if "sqlite" in kinds:
                check_sums(Path(folder))

    asyncio.run(body())


# Small figures in `make test`; the long run looks for what only many operations can meet.
QUICK = settings(deadline=None, max_examples=60, database=None)
LONG = settings(
    deadline=None, max_examples=600, database=None, suppress_health_check=list(HealthCheck)
)
histories = st.lists(operations, min_size=1, max_size=60)


@QUICK
@given(histories)
def test_memory_and_sqlite_agree_and_never_exceed_the_cap(history: list[Operation]) -> None:
    replay(history, ("memory", "sqlite"))


@pytest.mark.full
@LONG
@given(st.lists(operations, min_size=20, max_size=200))
def test_memory_and_sqlite_agree_over_long_histories(history: list[Operation]) -> None:
    replay(history, ("memory", "sqlite"))
