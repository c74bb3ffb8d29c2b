"""Bug reports of other limiters, run against ours; each names where it was seen."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import EACH_KIND, LEASE_S, SCOPE, one, run, take, tokens
from tidegate.limits import Charge, Granted, Ledger, Limit, MemoryLedger, Need, Refused
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

EACH = pytest.mark.parametrize("kind", EACH_KIND)


@EACH
def test_twenty_at_once_share_what_a_deployment_may_take(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm #5783: choosing and counting stand under one lock, so five of 200 fit."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = Limit("deployment", "tokens", 1_000, per="global")
        asked = (take(ledger, f"r{i}", Charge(limit, "global", 200)) for i in range(20))
        assert sum(await asyncio.gather(*asked)) == 5

    run(kind, tmp_path, body)


@EACH
def test_a_budget_of_one_period_is_there_again_right_after_it(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm #29576, #39726, #7129: no cached counter outlives the period of its budget.

    Asking in vain every 100 ms must not put off the time either.
    """

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100, window_s=2.0)
        assert await take(ledger, "spent", *one(limit, 100))
        waited_s, turn = 0.0, 0
        while not await take(ledger, f"again-{turn}", *one(limit, 1)):
            clock.advance(0.1)
            waited_s, turn = waited_s + 0.1, turn + 1
            assert turn < 25
        assert 2.0 <= waited_s < 2.15

    run(kind, tmp_path, body)


@EACH
def test_under_load_the_total_is_what_the_rows_add_up_to(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm #36926: after each second of ten minutes of load nothing is counted twice."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        chance = random.Random(36_926)  # noqa: S311 - a history, not a secret
        limit = tokens(10_000, window_s=60.0)
        settled: list[tuple[float, int]] = []
        for second in range(600 if kind == "memory" else 60):
            names = [f"{second}-{i}" for i in range(4)]
            granted = await asyncio.gather(*(take(ledger, name, *one(limit, 90)) for name in names))
            for name, has_it in zip(names, granted, strict=True):
                if has_it:
                    actual = chance.randrange(90)
                    await ledger.settle(name, "me", Need(actual, 0))
                    settled.append((clock.monotonic_s(), actual))
            now_s = clock.monotonic_s()
            inside = sum(amount for at_s, amount in settled if now_s - at_s < 60.0)
            padded = sum(amount for at_s, amount in settled if now_s - at_s < 60.25)
            seen = await ledger.usage(limit, SCOPE)
            assert inside <= seen.used <= padded
            assert seen.reserved == 0
            clock.advance(1.0)

    run(kind, tmp_path, body)


@EACH
def test_a_denial_that_lasts_always_names_a_time_to_come(kind: str, tmp_path: Path) -> None:
    """andymai/gridfinity-layout-tool PR #3022: two windows of denials, the wait is never <= 0."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(30, window_s=10.0)
        for turn in range(200):
            verdict = await ledger.reserve(f"{turn}", "me", one(limit, 30), lease_s=LEASE_S)
            if isinstance(verdict, Refused):
                assert 0 < verdict.retry_after_s <= 10.05
            clock.advance(0.1)

    run(kind, tmp_path, body)


@pytest.mark.full
def test_the_wait_is_exact_on_a_thousand_random_windows() -> None:
    """R6: obeyed alone the request is admitted, at nine tenths of the wait it is refused."""

    async def window(seed: int) -> None:
        chance, clock = random.Random(seed), ManualClock()  # noqa: S311 - as above
        ledger = MemoryLedger(clock)
        limit = tokens(1_000, window_s=chance.choice([1.0, 10.0, 60.0, 3_600.0]))
        spare_s = limit.window_s / 300
        for place in range(chance.randrange(1, 40)):
            await take(ledger, f"{place}", *one(limit, chance.randrange(1, 400)), lease_s=1e5)
            if chance.random() < 0.3:
                await ledger.settle(f"{place}", "me", Need(chance.randrange(500), 0))
            clock.advance(chance.random() * limit.window_s / 8)
        wanted = one(limit, chance.randrange(1, 1_001))
        verdict = await ledger.reserve("first", "me", wanted, lease_s=LEASE_S)
        if isinstance(verdict, Granted):
            return
        assert isinstance(verdict, Refused)
        # A ninth of the wait may lie inside one bucket; then there is nothing to tell apart.
        if verdict.retry_after_s / 10 > spare_s:
            clock.advance(verdict.retry_after_s * 0.9)
            early = await ledger.reserve("early", "me", wanted, lease_s=LEASE_S)
            assert isinstance(early, Refused)
            assert early.retry_after_s == pytest.approx(verdict.retry_after_s / 10, abs=1e-5)
            clock.advance(early.retry_after_s)
        else:
            clock.advance(verdict.retry_after_s)
        assert await take(ledger, "obeyed", *wanted)

    async def main() -> None:
        for seed in range(1_000):
            await window(seed)

    asyncio.run(main())


def test_tenants_that_were_seen_once_are_forgotten() -> None:
    """R8: what ten thousand tenants leave behind after two windows is nothing."""

    async def main() -> None:
        clock = ManualClock()
        ledger = MemoryLedger(clock)
        await crowd(ledger, clock, tenants=10_000, active=10)

    asyncio.run(main())


@pytest.mark.parametrize(
    "tenants",
    [
        pytest.param(200_000, marks=pytest.mark.full),
        pytest.param(1_000_000, marks=pytest.mark.proof),
    ],
)
def test_of_many_tenants_only_the_active_ones_are_kept(tenants: int) -> None:
    """R8."""

    async def main() -> None:
        clock = ManualClock()
        await crowd(MemoryLedger(clock), clock, tenants=tenants, active=1_000)

    asyncio.run(main())


async def crowd(ledger: MemoryLedger, clock: ManualClock, *, tenants: int, active: int) -> None:
    limit = tokens(100)
    for tenant in range(tenants):
        assert await take(ledger, f"r{tenant}", Charge(limit, f"tenant:{tenant}", 1))
        await ledger.settle(f"r{tenant}", "me", Need(1, 0))
    # Each request forgets up to eight, one of them its own: a few rounds outrun the crowd.
    for turn in range(2 + tenants // (7 * active)):
        clock.advance(61.0)
        for tenant in range(active):
            await take(ledger, f"a{turn}-{tenant}", Charge(limit, f"tenant:{tenant}", 1))
            await ledger.settle(f"a{turn}-{tenant}", "me", Need(1, 0))
    assert ledger.size() <= 6 * active + 64
