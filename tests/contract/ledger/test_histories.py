"""Random histories: the stores agree with each other and with a log that counts anew."""

import asyncio
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.contract.ledger.histories import (
    LEASES_S,
    LIMITS,
    SCOPES,
    SIZES,
    STEPS_S,
    WAITS_S,
    End,
    Look,
    Operation,
    Players,
    Reserve,
    refused,
)
from tests.contract.ledger.ledgers import KINDS, check, dump, make, opened
from tests.redis_server import need_redis
from tidegate.limits import Need
from tidegate.testing.clock import ManualClock

amounts = st.integers(0, 60)
reserves = st.builds(
    Reserve,
    st.frozensets(st.integers(0, len(LIMITS) - 1), min_size=1),
    amounts,
    st.sampled_from(LEASES_S),
    st.sampled_from(SCOPES),
)
operations: st.SearchStrategy[Operation] = st.one_of(
    reserves,
    reserves,
    st.builds(
        End,
        st.integers(0, 5),
        st.none() | st.builds(Need, amounts, amounts),
        st.booleans(),
        st.sampled_from(["me", "me", "me", "thief"]),
    ),
    st.builds(Look, st.integers(0, len(LIMITS) - 1), st.sampled_from(SCOPES)),
)


@contextmanager
def playing(kinds: Sequence[str]) -> Iterator[tuple[asyncio.Runner, Players, Path]]:
    """Ledgers of these kinds, open, and consistent at the end."""
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        folder, clock, stack = Path(name), ManualClock(), AsyncExitStack()

        async def enter() -> Players:
            return Players(
                [
                    await stack.enter_async_context(opened(make(kind, folder, clock)))
                    for kind in kinds
                ],
                clock,
            )

        try:
            players = loop.run(enter())
            yield loop, players, folder
            loop.run(players.compare())
        finally:
            loop.run(stack.aclose())
        for kind in kinds:
            check(kind, folder)


class Agreement(RuleBasedStateMachine):
    """Every store, one history; see Players for what is compared."""

    played: ClassVar[list[int]] = []

    @initialize()
    def start(self) -> None:
        self._world = playing(KINDS)
        self._loop, self._players, self._folder = self._world.__enter__()

    @rule(batch=st.lists(operations, min_size=1, max_size=30))
    def some_operations_at_one_instant(self, batch: list[Operation]) -> None:
        self._loop.run(self._players.play(batch))

    @rule(wanted=reserves)
    def a_refusal_leaves_no_trace(self, wanted: Reserve) -> None:
        if not refused(self._loop.run(self._players.play([wanted]))[0]):
            return
        # The first may have ended leases that were over; the second finds nothing to do.
        before = [dump(kind, self._folder) for kind in KINDS]
        assert refused(self._loop.run(self._players.play([wanted]))[0])
        assert [dump(kind, self._folder) for kind in KINDS] == before

    @rule(seconds=st.sampled_from(WAITS_S))
    def time_passes(self, seconds: float) -> None:
        self._players.clock.advance(seconds)

    @rule(seconds=st.sampled_from(STEPS_S))
    def the_wall_clock_is_set(self, seconds: float) -> None:
        self._players.clock.step(seconds)

    @invariant()
    def the_counters_agree(self) -> None:
        if hasattr(self, "_players"):
            self._loop.run(self._players.play([Look(0, SCOPES[0]), Look(3, SCOPES[0])]))

    def teardown(self) -> None:
        if hasattr(self, "_world"):
            self.played.append(self._players.operations)
            self._world.__exit__(None, None, None)


QUICK = settings(
    deadline=None,
    max_examples=5,
    stateful_step_count=20,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("operations", [1_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_all_stores_agree_and_never_exceed_a_cap(operations: int) -> None:
    need_redis()
    Agreement.played.clear()
    while sum(Agreement.played) * len(KINDS) < operations:
        run_state_machine_as_test(Agreement, settings=QUICK)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_all_stores_agree_over_a_million_operations(seed: int) -> None:
    """A quarter of them each; also with a window that a reload makes shorter or longer."""
    need_redis()
    chance = random.Random(seed)  # noqa: S311 - the seed is the name of the test
    with playing(KINDS) as (loop, players, _):
        while players.operations < 250_000:
            if chance.random() < 0.3:
                players.clock.advance(chance.choice(WAITS_S) * chance.random())
            if chance.random() < 0.02:
                players.clock.step(chance.choice(STEPS_S))
            if chance.random() < 0.01:
                players.resize(*chance.choice(SIZES))
            loop.run(players.play([_any(chance) for _ in range(chance.randrange(1, 65))]))


def _any(chance: random.Random) -> Operation:
    need = Need(chance.randrange(61), chance.randrange(61))
    match chance.randrange(8):
        case 0 | 1 | 2 | 3:
            return Reserve(
                frozenset(chance.sample(range(len(LIMITS)), chance.randrange(1, 4))),
                chance.randrange(61),
                chance.choice(LEASES_S),
                chance.choice(SCOPES),
            )
        case 4 | 5 | 6:
            return End(
                chance.randrange(6),
                need if chance.random() < 0.8 else None,
                chance.random() < 0.3,
                chance.choice(("me", "me", "me", "thief")),
            )
        case _:
            return Look(chance.randrange(len(LIMITS)), chance.choice(SCOPES))
