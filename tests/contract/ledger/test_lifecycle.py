"""What every ledger promises about one reservation, from its grant to its end."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import EACH_KIND, SCOPE, dump, one, run, take, tokens
from tidegate.limits import (
    Charge,
    Granted,
    Ledger,
    Limit,
    LimitTable,
    Need,
    NeverFits,
    Refused,
    Usage,
)
from tidegate.policy import Principal
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.parametrize("kind", EACH_KIND)

PARALLEL = Limit("parallel", "concurrent", 2)
REQUESTS = Limit("requests", "requests", 5)


def test_fifty_at_once_admit_exactly_ten(kind: str, tmp_path: Path) -> None:
    """P4-01, BerriAI/litellm#18730: 50 concurrent reservations of 1,000 against 10,000."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(10_000)
        granted = await asyncio.gather(
            *(take(ledger, f"r{i}", *one(limit, 1_000)) for i in range(50))
        )
        assert sum(granted) == 10
        assert await ledger.usage(limit, SCOPE) == Usage(0, 10_000, 0, 60.25)

    run(kind, tmp_path, body)


def test_settling_replaces_the_estimate_by_what_was_used(kind: str, tmp_path: Path) -> None:
    """A tenant is not billed for its own generosity in max_tokens."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(5_000)
        assert await take(ledger, "r", *one(limit, 4_010))
        clock.advance(10.0)
        assert await ledger.settle("r", "me", Need(10, 33))
        assert await ledger.usage(limit, SCOPE) == Usage(43, 0, 4_957, 50.25)

    run(kind, tmp_path, body)


def test_releasing_charges_nothing_of_any_unit(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limits = (tokens(5_000), REQUESTS, PARALLEL)
        assert await take(ledger, "r", *(Charge(limit, SCOPE, 1) for limit in limits))
        assert await ledger.release("r", "me")
        for limit in limits:
            assert await ledger.usage(limit, SCOPE) == Usage(0, 0, limit.cap, None)

    run(kind, tmp_path, body)


@pytest.mark.parametrize("second", ["settle", "release"])
@pytest.mark.parametrize("first", ["settle", "release"])
def test_a_reservation_ends_once(kind: str, tmp_path: Path, first: str, second: str) -> None:
    async def end(ledger: Ledger, how: str, owner: str = "me") -> bool:
        if how == "settle":
            return await ledger.settle("r", owner, Need(1, 1))
        return await ledger.release("r", owner)

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 50))
        assert not await end(ledger, first, owner="somebody else")
        assert await end(ledger, first)
        ended = await ledger.usage(limit, SCOPE)
        assert not await end(ledger, second)
        assert await ledger.usage(limit, SCOPE) == ended

    run(kind, tmp_path, body)


def test_ending_what_never_was_changes_nothing(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        assert not await ledger.settle("r", "me", Need(1, 1))
        assert not await ledger.release("r", "me")

    run(kind, tmp_path, body)


def test_an_unknown_usage_settles_at_the_estimate(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 50))
        assert await ledger.settle("r", "me", None)
        assert await ledger.usage(limit, SCOPE) == Usage(50, 0, 50, 60.25)

    run(kind, tmp_path, body)


def test_an_overrun_is_charged_shown_apart_and_blocks(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 60))
        assert await ledger.settle("r", "me", Need(50, 80))
        assert await ledger.usage(limit, SCOPE) == Usage(130, 0, 0, 60.25, overrun=70)
        refused = await ledger.reserve("s", "me", one(limit, 1), lease_s=30.0)
        assert refused == Refused(limit, 130, 1, 60.25)
        clock.advance(60.25)
        assert await take(ledger, "s", *one(limit, 100))

    run(kind, tmp_path, body)


def test_a_hostile_usage_figure_does_not_break_the_store(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 60))
        assert await ledger.settle("r", "me", Need(10**40, -(10**50) + 10**49))
        assert (await ledger.usage(limit, SCOPE)).used == 0
        assert await take(ledger, "s", *one(limit, 60))
        assert await ledger.settle("s", "me", Need(10**40, 10**40))
        assert (await ledger.usage(limit, SCOPE)).used == 10**12

    run(kind, tmp_path, body)


def test_asking_again_for_a_held_lease_charges_nothing(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        for _ in range(3):
            verdict = await ledger.reserve("r", "me", one(limit, 60), lease_s=30.0)
            assert verdict == Granted("r")
        assert (await ledger.usage(limit, SCOPE)).reserved == 60
        with pytest.raises(ValueError, match="used before"):
            await ledger.reserve("r", "somebody else", one(limit, 1), lease_s=30.0)

    run(kind, tmp_path, body)


def test_a_limit_may_not_be_charged_twice_at_once(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        charge = Charge(tokens(100), SCOPE, 60)
        with pytest.raises(ValueError, match="once"):
            await ledger.reserve("r", "me", (charge, charge), lease_s=30.0)

    run(kind, tmp_path, body)


def test_all_limits_admit_or_none_is_charged(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm#39309: what one limit refuses must not eat another."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        rpm, parallel = Limit("rpm", "requests", 2), Limit("parallel", "concurrent", 1)
        both = Charge(rpm, SCOPE, 1), Charge(parallel, SCOPE, 1)
        assert await take(ledger, "a", *both)
        verdict = await ledger.reserve("b", "me", both, lease_s=30.0)
        assert verdict == Refused(parallel, 1, 1, 1.0, exact=False)
        assert await ledger.settle("a", "me", Need())
        assert await take(ledger, "c", *both)
        assert await ledger.usage(rpm, SCOPE) == Usage(1, 1, 0, 60.25)

    run(kind, tmp_path, body)


def test_a_refusal_leaves_no_trace(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm#27001: also when there is something to evict."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit, other = tokens(100), tokens(5, name="other")
        assert await take(ledger, "a", *one(limit, 40), lease_s=999.0)
        clock.advance(59.0)
        assert await take(ledger, "b", *one(limit, 60), lease_s=999.0)
        clock.advance(2.0)
        stored = dump(kind, tmp_path)
        before = await ledger.usage(limit, SCOPE)
        for _ in range(20):
            clock.advance(0.001)
            assert not await take(ledger, "c", *one(limit, 41))
            assert not await take(ledger, "c", *one(limit, 1), *one(other, 6))
        after = await ledger.usage(limit, SCOPE)
        assert (after.used, after.reserved) == (before.used, before.reserved)
        assert stored == dump(kind, tmp_path)

    run(kind, tmp_path, body)


def test_a_request_over_the_whole_limit_never_fits(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(50_000)
        verdict = await ledger.reserve("r", "me", one(limit, 60_000), lease_s=30.0)
        assert verdict == NeverFits(limit, 60_000)

    run(kind, tmp_path, body)


def test_the_wait_walks_the_window_and_obeying_it_is_enough(kind: str, tmp_path: Path) -> None:
    """P4-13: 100 tokens at once and 50 more after ten seconds: 50.25 s, not a flat 60."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "a", *one(limit, 100))
        assert await ledger.settle("a", "me", Need(60, 40))
        clock.advance(10.0)
        verdict = await ledger.reserve("b", "me", one(limit, 50), lease_s=30.0)
        assert verdict == Refused(limit, 100, 50, 50.25)
        clock.advance(50.249)
        assert not await take(ledger, "b", *one(limit, 50))
        clock.advance(0.001)
        assert await take(ledger, "b", *one(limit, 50))

    run(kind, tmp_path, body)


def test_nothing_carries_over_from_one_window_into_the_next(kind: str, tmp_path: Path) -> None:
    """BerriAI/litellm#24677: six requests of 31 fit 186 a minute, for ever."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(186)
        for turn in range(120):
            assert await take(ledger, f"r{turn}", *one(limit, 31))
            assert await ledger.settle(f"r{turn}", "me", None)
            clock.advance(10.05)

    run(kind, tmp_path, body)


def test_requests_at_one_instant_count_one_by_one(kind: str, tmp_path: Path) -> None:
    """cameri/nostream#467."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = Limit("requests", "requests", 50)
        for turn in range(50):
            assert await take(ledger, f"r{turn}", *one(limit, 1))
        assert not await take(ledger, "r50", *one(limit, 1))

    run(kind, tmp_path, body)


def test_a_default_is_reserved_and_gives_way_to_a_small_cap(kind: str, tmp_path: Path) -> None:
    """P4-06, BerriAI/litellm#29191: a cap below the default still admits a first request."""
    acme = Principal("acme", "acme", ("tenant",), "k")
    need = Need(10, 1024, output_is_default=True)

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        table = LimitTable([tokens(5_000)])
        charges = table.charges(acme, route="r", need=need)
        granted = [await take(ledger, f"r{i}", *charges) for i in range(20)]
        assert sum(granted) == 4
        small = LimitTable([tokens(100, name="small")]).charges(acme, route="r", need=need)
        assert await take(ledger, "first", *small)
        assert await ledger.settle("first", "me", Need(10, 20))
        assert (await ledger.usage(small[0].limit, SCOPE)).free == 70

    run(kind, tmp_path, body)


def test_tenants_do_not_share_a_counter(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        for tenant in ("tenant:a", "tenant:b"):
            assert await take(ledger, tenant, *one(limit, 100, tenant))

    run(kind, tmp_path, body)


def test_a_limit_keeps_its_state_when_its_size_changes(kind: str, tmp_path: Path) -> None:
    """A reload: same name, other cap and window; another unit is another counter."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        assert await take(ledger, "a", *one(tokens(100), 80))
        assert not await take(ledger, "b", *one(tokens(90), 20))
        clock.advance(20.0)
        assert not await take(ledger, "b", *one(tokens(90, window_s=30.0), 20))
        clock.advance(10.25)
        assert await take(ledger, "b", *one(tokens(90, window_s=30.0), 20))
        assert await take(ledger, "c", *one(Limit("tokens", "requests", 1), 1))

    run(kind, tmp_path, body)
