"""What a limit means while its store is away, and that the books are one again afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.logged import lines
from tests.unit.limits.away import AwayLedger, Store
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Limit, Need, NeverFits, Refused, Standing, Usage
from tidegate.limits.degraded import DegradingLedger
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

SCOPE = "tenant:acme"
TOKENS = Limit("tokens", "tokens", 100, 60.0, on_store_down="local_share")
SLOTS = Limit("slots", "concurrent", 4, on_store_down="local_share")
OPEN = Limit("open", "tokens", 100, 60.0, on_store_down="open")
MONEY = Limit("money", "money_micros", 100, 60.0, on_store_down="closed")
LEASE_S = 30.0


class World:
    """`count` processes that share one store."""

    def __init__(self, count: int) -> None:
        self.clock = ManualClock()
        self.store = Store(self.clock)
        self.inner = [AwayLedger(self.store) for _ in range(count)]
        self.ledgers = [
            DegradingLedger(one, self.clock, sharers=lambda: count) for one in self.inner
        ]
        self.count = 0

    async def take(self, process: int, *charges: Charge) -> Granted | Refused | NeverFits:
        self.count += 1
        return await self.ledgers[process].reserve(f"r{self.count}", "me", charges, lease_s=LEASE_S)

    async def fill(self, process: int, limit: Limit, amount: int = 1) -> int:
        """How many times `amount` is granted until the first refusal."""
        granted = 0
        while isinstance(await self.take(process, Charge(limit, SCOPE, amount)), Granted):
            granted += 1
        return granted

    async def back(self) -> None:
        """The store serves again, and has heard everything."""
        self.store.is_away = False
        async with asyncio.timeout(5.0):
            while any(one.degraded for one in self.ledgers):
                await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)

    async def used(self, limit: Limit = TOKENS) -> Usage:
        return await self.store.books.usage(limit, SCOPE)


def play(count: int, body: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World(count)
        try:
            await body(world)
        finally:
            for ledger in world.ledgers:
                await ledger.close()

    asyncio.run(main())


def test_money_is_closed_and_the_store_is_asked_each_time() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await world.take(0, Charge(TOKENS, SCOPE, 1), Charge(MONEY, SCOPE, 1))
        assert world.store.asked == 3
        assert world.ledgers[0].degraded
        world.store.is_away = False
        assert isinstance(await world.take(0, Charge(MONEY, SCOPE, 1)), Granted)

    play(1, body)


def test_a_share_is_a_part_of_the_cap_and_says_so() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        granted = await world.take(0, Charge(TOKENS, SCOPE, 20))
        assert granted == Granted("r1", degraded=True)
        part = replace(TOKENS, cap=25)
        assert granted.standings == (Standing(part, 20, 5, 60.25),)
        refused = await world.take(0, Charge(TOKENS, SCOPE, 6))
        assert refused == Refused(part, 20, 6, 60.25, degraded=True)
        world.clock.advance(60.25)
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 25)), Granted)

    play(4, body)


def test_four_processes_together_admit_the_cap() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        assert [await world.fill(process, TOKENS, 5) for process in range(4)] == [5] * 4

    play(4, body)


def test_what_every_process_saw_used_is_taken_from_the_shares() -> None:
    """The fleet as a whole stays within the cap in a window that spans the loss of the store."""

    async def body(world: World) -> None:
        for process in range(4):
            assert isinstance(await world.take(process, Charge(TOKENS, SCOPE, 15)), Granted)
        for process in range(4):
            # Each asks again, in vain, and so sees all that is used: 60.
            assert isinstance(await world.take(process, Charge(TOKENS, SCOPE, 50)), Refused)
        world.store.is_away = True
        assert [await world.fill(process, TOKENS, 10) for process in range(4)] == [1] * 4
        world.clock.advance(60.25)
        assert [await world.fill(process, TOKENS, 5) for process in range(4)] == [5] * 4

    play(4, body)


def test_what_was_seen_leaves_the_window_when_it_really_does() -> None:
    async def body(world: World) -> None:
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 100)), Granted)
        world.clock.advance(40.0)
        world.store.is_away = True
        refused = await world.take(0, Charge(TOKENS, SCOPE, 1))
        assert isinstance(refused, Refused)
        assert refused.retry_after_s == 20.25
        world.clock.advance(20.25)
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 100)), Granted)

    play(1, body)


def test_slots_of_running_calls_count_in_the_share_and_come_free() -> None:
    async def body(world: World) -> None:
        running = [await world.take(0, Charge(SLOTS, SCOPE, 1)) for _ in range(2)]
        assert all(isinstance(one, Granted) for one in running)
        world.store.is_away = True
        assert await world.fill(0, SLOTS) == 0
        assert await world.ledgers[0].release("r1", "me")
        assert await world.fill(0, SLOTS) == 1
        assert await world.fill(1, SLOTS) == 2

    play(2, body)


def test_more_than_the_share_is_not_said_never_to_fit() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        with pytest.raises(StoreUnavailable):
            await world.take(0, Charge(TOKENS, SCOPE, 26))
        assert await world.take(0, Charge(TOKENS, SCOPE, 101)) == NeverFits(TOKENS, 101)

    play(4, body)


def test_open_admits_everything_and_it_is_charged_afterwards() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        for _ in range(3):
            granted = await world.take(0, Charge(OPEN, SCOPE, 90))
            assert granted == Granted(f"r{world.count}", degraded=True)
            assert granted.standings == ()
            assert await world.ledgers[0].settle(f"r{world.count}", "me", Need(90, 0))
        await world.back()
        assert (await world.used(OPEN)).used == 270

    play(4, body)


def test_after_the_first_vain_question_nobody_waits_for_the_store() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        world.inner[0].noticed = False
        for _ in range(50):
            await world.take(0, Charge(TOKENS, SCOPE, 1))
        assert world.store.asked == 1

    play(1, body)


def test_what_was_admitted_is_told_once_and_running_requests_are_settled_there() -> None:
    async def body(world: World) -> None:
        ledger = world.ledgers[0]
        world.store.is_away = True
        for amount in (10, 20, 30):
            both = Charge(TOKENS, SCOPE, amount), Charge(SLOTS, SCOPE, 1)
            assert isinstance(await world.take(0, *both), Granted)
        assert await ledger.settle("r1", "me", Need(3, 4))
        # Ended here already: whether the store knows it is not known, and nothing is charged twice.
        await ledger.settle("r1", "me", Need(3, 4))
        assert not await ledger.settle("r2", "somebody else", Need(3, 4))
        await world.back()
        assert await world.used() == Usage(7, 50, 43, 60.25)
        assert (await world.used(SLOTS)).reserved == 2
        assert await ledger.settle("r2", "me", Need(1, 1))
        assert await ledger.release("r3", "me")
        assert not await ledger.release("r3", "me")
        assert await world.used() == Usage(9, 0, 91, 60.25)
        assert await world.used(SLOTS) == Usage(0, 0, 4, None)

    play(1, body)


def test_telling_is_repeated_until_the_store_has_heard_all_of_it() -> None:
    async def body(world: World) -> None:
        inner = world.inner[0]
        world.store.is_away = True
        for turn in range(6):
            await world.take(0, Charge(TOKENS, f"tenant:{turn}", 10))
            if turn % 2:
                await world.ledgers[0].settle(f"r{world.count}", "me", Need(4, 0))
        failing = iter([False, True, True, False, True])
        plain = inner.reserve

        async def sometimes(
            reservation_id: str, owner: str, charges: list[Charge], *, lease_s: float
        ) -> Granted | Refused | NeverFits:
            if next(failing, False):
                raise StoreUnavailable
            return await plain(reservation_id, owner, charges, lease_s=lease_s)

        inner.reserve = sometimes  # type: ignore[method-assign, assignment]
        await world.back()
        books = world.store.books
        found = [await books.usage(TOKENS, f"tenant:{turn}") for turn in range(6)]
        assert [(one.used, one.reserved) for one in found] == [(0, 10), (4, 0)] * 3

    play(1, body)


def test_an_end_given_during_the_absence_is_accepted_and_applied() -> None:
    async def body(world: World) -> None:
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 60)), Granted)
        world.store.is_away = True
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 5)), Granted)
        assert await world.ledgers[0].settle("r1", "me", Need(6, 1))
        await world.back()
        assert isinstance(await world.take(0, Charge(TOKENS, SCOPE, 1)), Granted)
        assert await world.used() == Usage(7, 6, 87, 60.25)

    play(1, body)


def test_only_what_still_counts_is_told() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        await world.take(0, Charge(TOKENS, SCOPE, 60))
        await world.ledgers[0].settle("r1", "me", None)
        world.clock.advance(61.0)
        await world.take(0, Charge(TOKENS, SCOPE, 5))
        await world.ledgers[0].settle("r2", "me", None)
        await world.back()
        assert (await world.used()).used == 5

    play(1, body)


def test_at_the_end_what_was_admitted_is_told_if_the_store_serves() -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        await world.take(0, Charge(TOKENS, SCOPE, 60))
        world.store.is_away = False
        await world.ledgers[0].close()
        assert (await world.used()).reserved == 60

    play(1, body)


def test_what_could_not_be_told_before_the_end_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        world.store.is_away = True
        for turn in range(3):
            await world.take(0, Charge(TOKENS, f"tenant:{turn}", 10))
        await world.ledgers[0].settle("r1", "me", None)

    play(1, body)
    (line,) = lines(caplog, "tidegate.limits.degraded")
    assert (line.message, vars(line)["count"]) == ("local_admissions_untold", 3)


def test_the_books_of_a_long_absence_do_not_grow_with_its_requests() -> None:
    """BerriAI/litellm#38193: what failed to be written must not pile up."""

    async def body(world: World) -> None:
        world.store.is_away = True
        wide = replace(TOKENS, cap=10**9)
        for turn in range(3_000):
            await world.take(0, Charge(wide, SCOPE, 1))
            await world.ledgers[0].settle(f"r{world.count}", "me", None)
            if turn % 10 == 0:
                world.clock.advance(0.25)
        world.store.is_away = False
        asked = world.store.asked
        await world.back()
        assert (await world.used(wide)).used == 2_409
        assert world.store.asked - asked <= 2

    play(1, body)


spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 40), st.sampled_from([0.0, 0.3, 5.0, 61.0])),
    max_size=40,
)


@settings(deadline=None, max_examples=15, database=None)
@given(spans, spans, spans)
def test_no_window_holds_more_than_twice_the_cap_and_all_of_it_is_told(
    before: list[tuple[int, int, float]],
    during: list[tuple[int, int, float]],
    after: list[tuple[int, int, float]],
) -> None:
    """Three processes, the store lost and found: one cap from the store, one from the shares."""

    async def body(world: World) -> None:
        grants: list[tuple[float, int]] = []

        async def ask(span: list[tuple[int, int, float]]) -> None:
            for process, amount, wait_s in span:
                world.clock.advance(wait_s)
                try:
                    verdict = await world.take(process, Charge(TOKENS, SCOPE, amount))
                except StoreUnavailable:
                    continue
                if isinstance(verdict, Granted):
                    grants.append((world.clock.monotonic_s(), amount))
                    assert inside(grants) <= 2 * TOKENS.cap

        def inside(grants: list[tuple[float, int]]) -> int:
            now_s = world.clock.monotonic_s()
            return sum(amount for at_s, amount in grants if now_s - at_s < TOKENS.window_s)

        await ask(before)
        world.store.is_away = True
        away_from = len(grants)
        await ask(during)
        assert inside(grants[away_from:]) <= TOKENS.cap
        await world.back()
        held = await world.used()
        assert held.used + held.reserved >= inside(grants)
        await ask(after)

    play(3, body)
