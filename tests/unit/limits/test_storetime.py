"""Store time follows the passing of time, whatever the wall clock does."""

import time as system

import pytest

from tidegate.clock import SystemClock
from tidegate.limits.storetime import StoreTime
from tidegate.testing.clock import ManualClock

S = 1_000_000
HOUR = 3600.0


def started(clock: ManualClock) -> StoreTime:
    return StoreTime(clock.now_s(), clock.monotonic_s())


def test_it_starts_at_the_wall_clock_and_advances_with_time() -> None:
    clock = ManualClock(100.0)
    time = started(clock)
    clock.advance(1.5)
    assert time.now_us(clock.monotonic_s()) == 101_500_000


@pytest.mark.parametrize("step_s", [HOUR, -HOUR, 0.5])
def test_a_stepped_wall_clock_changes_nothing_while_the_process_lives(step_s: float) -> None:
    clock = ManualClock(10_000.0)
    time = started(clock)
    clock.step(step_s)
    clock.advance(2.0)
    assert time.now_us(clock.monotonic_s()) == 10_002 * S
    assert time.wall_is_ahead_s(clock.now_s(), clock.monotonic_s()) == step_s


def test_after_a_restart_with_the_wall_clock_behind_time_goes_on_from_the_store() -> None:
    """No free quota, and no lock-out: it moves at once, not when the wall has caught up."""
    clock = ManualClock(10_000.0)
    time = started(clock)
    assert time.now_us(clock.monotonic_s(), last_seen_us=13_600 * S) == 13_600 * S
    clock.advance(7.0)
    assert time.now_us(clock.monotonic_s(), last_seen_us=13_600 * S) == 13_607 * S


def test_processes_on_one_store_never_make_time_run_faster_than_it_passes() -> None:
    clock = ManualClock(0.0)
    ahead, behind = StoreTime(60.0, 0.0), StoreTime(0.0, 0.0)
    start_s = clock.monotonic_s()
    seen = first = ahead.now_us(start_s)
    for turn in range(1, 50):
        clock.advance(0.1)
        one = (ahead, behind)[turn % 2]
        earlier, seen = seen, one.now_us(clock.monotonic_s(), last_seen_us=seen)
        assert seen >= earlier
    elapsed_us = round((clock.monotonic_s() - start_s) * S)
    # The one that was pulled forward trails by the age of the entry that pulled it.
    assert elapsed_us - 100_000 <= seen - first <= elapsed_us


def test_the_manual_clock_adds_up_exactly_and_never_goes_back_by_itself() -> None:
    clock = ManualClock()
    before_s = clock.now_s(), clock.monotonic_s()
    for _ in range(1_000):
        clock.advance(0.001)
    assert (clock.now_s() - before_s[0], clock.monotonic_s() - before_s[1]) == (1.0, 1.0)
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1.0)


@pytest.mark.skipif(not hasattr(system, "CLOCK_BOOTTIME"), reason="only Linux counts it")
def test_time_passes_while_the_machine_is_suspended() -> None:
    """Else the wall clock would be ahead by that from then on, and the alarm would stay."""
    before_s = system.clock_gettime(system.CLOCK_BOOTTIME)
    now_s = SystemClock().monotonic_s()
    assert before_s <= now_s <= system.clock_gettime(system.CLOCK_BOOTTIME)
