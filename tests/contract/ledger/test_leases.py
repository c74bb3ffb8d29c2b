"""What happens to a reservation whose holder says nothing more."""

from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import EACH_KIND, SCOPE, one, rows, run, take, tokens
from tidegate.limits import Charge, Ledger, Limit, MemoryLedger, Need, Usage
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.parametrize("kind", EACH_KIND)

PARALLEL = Limit("parallel", "concurrent", 1)
WAKE = Limit("wake", "requests", 100)


async def wake(ledger: Ledger, name: str = "wake") -> None:
    """Some other request: upkeep is done on the way of reservations."""
    assert await take(ledger, name, *one(WAKE, 1), lease_s=3_600.0)


def test_an_expired_lease_stays_charged_and_frees_its_slot(kind: str, tmp_path: Path) -> None:
    """A crash charges the estimate, never nothing."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        both = Charge(limit, SCOPE, 70), Charge(PARALLEL, SCOPE, 1)
        assert await take(ledger, "r", *both, lease_s=10.0)
        clock.advance(9.999)
        assert not await take(ledger, "s", *one(PARALLEL, 1))
        clock.advance(0.001)
        assert await take(ledger, "s", *one(PARALLEL, 1))
        assert await ledger.usage(limit, SCOPE) == Usage(70, 0, 30, 50.25)

    run(kind, tmp_path, body)


def test_whoever_reads_sees_what_is_over_before_anybody_has_swept_it(
    kind: str, tmp_path: Path
) -> None:
    """Two leases end, one of them begun in a bucket that has left the window by then."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        short, hour = tokens(100, name="short"), tokens(500, window_s=3_600.0, name="hour")
        parallel = Limit("parallel", "concurrent", 3)
        charges = Charge(short, SCOPE, 20), Charge(hour, SCOPE, 20), Charge(parallel, SCOPE, 1)
        for name, lease_s in (("a", 70.0), ("b", 40.0), ("c", 300.0)):
            assert await take(ledger, name, *charges, lease_s=lease_s)
            clock.advance(30.0)
        assert await ledger.usage(hour, SCOPE) == Usage(40, 20, 440, 3_520.0)
        assert await ledger.usage(short, SCOPE) == Usage(20, 20, 60, 0.25)
        assert await ledger.usage(parallel, SCOPE) == Usage(0, 1, 2, None)
        await wake(ledger)
        assert await ledger.usage(hour, SCOPE) == Usage(40, 20, 440, 3_520.0)
        assert await ledger.usage(parallel, SCOPE) == Usage(0, 1, 2, None)
        assert await ledger.settle("a", "me", Need(1, 0))
        assert (await ledger.usage(hour, SCOPE)).used == 21

    run(kind, tmp_path, body)


@pytest.mark.parametrize("actual", [20, 90])
def test_a_late_settlement_corrects_the_estimate_once(
    kind: str, tmp_path: Path, actual: int
) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 70), lease_s=10.0)
        clock.advance(10.0)
        await wake(ledger)
        assert not await ledger.settle("r", "somebody else", Need(actual, 0))
        assert await ledger.settle("r", "me", Need(actual, 0))
        assert not await ledger.settle("r", "me", Need(actual, 0))
        assert not await ledger.release("r", "me")
        assert (await ledger.usage(limit, SCOPE)).used == actual

    run(kind, tmp_path, body)


def test_a_late_release_gives_back_the_estimate_once(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "r", *one(limit, 70), lease_s=10.0)
        clock.advance(10.0)
        await wake(ledger)
        assert await ledger.release("r", "me")
        assert not await ledger.release("r", "me")
        assert await ledger.usage(limit, SCOPE) == Usage(0, 0, 100, None)

    run(kind, tmp_path, body)


@pytest.mark.parametrize("end", ["settle", "release"])
def test_a_late_end_never_frees_the_slot_of_another(kind: str, tmp_path: Path, end: str) -> None:
    """BerriAI/litellm#36459: lease 10 s, call of 20 s, another call in between."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        counted = Charge(tokens(100), SCOPE, 1)
        assert await take(ledger, "slow", *one(PARALLEL, 1), counted, lease_s=10.0)
        clock.advance(10.0)
        assert await take(ledger, "next", *one(PARALLEL, 1), lease_s=60.0)
        if end == "settle":
            assert await ledger.settle("slow", "me", Need(1, 0))
        else:
            assert await ledger.release("slow", "me")
        assert not await take(ledger, "third", *one(PARALLEL, 1))
        assert await ledger.release("next", "me")
        assert await ledger.usage(PARALLEL, SCOPE) == Usage(0, 0, 1, None)

    run(kind, tmp_path, body)


def test_an_expired_lease_without_a_window_is_forgotten_at_once(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        assert await take(ledger, "r", *one(PARALLEL, 1), lease_s=1.0)
        clock.advance(1.0)
        await wake(ledger)
        assert not await ledger.release("r", "me")

    run(kind, tmp_path, body)


def test_settling_after_the_window_moves_only_the_longer_limit(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        minute, hour = tokens(100), tokens(1_000, window_s=3_600.0, name="hour")
        both = Charge(minute, SCOPE, 50), Charge(hour, SCOPE, 50)
        assert await take(ledger, "r", *both, lease_s=600.0)
        clock.advance(100.0)
        assert await take(ledger, "s", *one(minute, 1), lease_s=600.0)
        assert await ledger.settle("r", "me", Need(400, 0))
        assert (await ledger.usage(minute, SCOPE)) == Usage(0, 1, 99, 60.25)
        assert (await ledger.usage(hour, SCOPE)).used == 400
        assert await take(ledger, "t", *one(minute, 99))

    run(kind, tmp_path, body)


def test_an_expired_reservation_is_forgotten_when_its_window_is_over(
    kind: str, tmp_path: Path
) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        assert await take(ledger, "r", *one(tokens(100), 50), lease_s=10.0)
        clock.advance(10.0)
        await wake(ledger)
        clock.advance(50.25)
        await wake(ledger, "again")
        assert not await ledger.settle("r", "me", Need(400, 0))

    run(kind, tmp_path, body)


def test_a_backlog_of_dead_leases_is_worked_off_in_portions(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        crowd = Limit("crowd", "concurrent", 200)
        for turn in range(200):
            assert await take(ledger, f"r{turn}", *one(crowd, 1), lease_s=10.0)
        clock.advance(10.0)
        for turn in range(4):
            await wake(ledger, f"wake{turn}")
        assert await ledger.usage(crowd, SCOPE) == Usage(0, 0, 200, None)

    run(kind, tmp_path, body)


def test_the_store_stays_proportional_to_live_traffic(kind: str, tmp_path: Path) -> None:
    """Hundreds of tenants came once; only the living are remembered."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        for turn in range(300 if kind == "memory" else 100):
            assert await take(ledger, f"r{turn}", *one(limit, 10, f"tenant:{turn}"))
            if turn % 3:
                assert await ledger.settle(f"r{turn}", "me", Need(1, 0))
        clock.advance(120.0)
        for turn in range(60):
            assert await take(ledger, f"s{turn}", *one(limit, 1))
        if isinstance(ledger, MemoryLedger):
            assert ledger.size() < 200
        else:
            assert rows(kind, tmp_path) == (1, 1, 60)

    run(kind, tmp_path, body)


def test_a_counter_that_never_rests_holds_one_window(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(1_000, window_s=2.4)
        for turn in range(600 if kind == "memory" else 300):
            assert await take(ledger, f"r{turn}", *one(limit, 1))
            assert await ledger.settle(f"r{turn}", "me", Need(1, 0))
            clock.advance(0.01)
        if isinstance(ledger, MemoryLedger):
            # The buckets, and for each of them when to look whether the counter rests.
            assert ledger.size() < 600
        else:
            assert rows(kind, tmp_path) == (1, 241, 0)

    run(kind, tmp_path, body)


@pytest.mark.parametrize("step_s", [3_600.0, -3_600.0])
def test_a_stepped_wall_clock_gives_no_free_quota_and_locks_nobody_out(
    kind: str, tmp_path: Path, step_s: float
) -> None:
    """An hour ahead or back."""

    async def body(ledger: Ledger, clock: ManualClock) -> None:
        limit = tokens(100)
        assert await take(ledger, "a", *one(limit, 100), lease_s=600.0)
        clock.step(step_s)
        clock.advance(1.0)
        assert not await take(ledger, "b", *one(limit, 1))
        clock.advance(59.25)
        assert await take(ledger, "b", *one(limit, 100))

    run(kind, tmp_path, body)


def test_an_id_used_again_does_not_inherit_the_old_lease(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        assert await take(ledger, "r", *one(PARALLEL, 1), lease_s=10.0)
        assert await ledger.release("r", "me")
        assert await take(ledger, "r", *one(PARALLEL, 1), lease_s=100.0)
        clock.advance(50.0)
        assert not await take(ledger, "s", *one(PARALLEL, 1))

    run(kind, tmp_path, body)


def test_ended_leases_are_not_kept_until_they_would_have_expired(kind: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger, clock: ManualClock) -> None:
        for turn in range(1_000 if kind == "memory" else 300):
            assert await take(ledger, f"r{turn}", *one(PARALLEL, 1), lease_s=3_600.0)
            assert await ledger.release(f"r{turn}", "me")
        assert not isinstance(ledger, MemoryLedger) or ledger.size() < 100
        assert kind == "memory" or rows(kind, tmp_path) == (0, 0, 0)

    run(kind, tmp_path, body)
