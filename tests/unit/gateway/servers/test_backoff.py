"""When is a server process that ended started again?"""

import pytest

from tidegate.gateway.servers.backoff import Backoff, Pace

PACE = Pace(short_life_s=10.0, first_s=0.5, most_s=30.0)


def test_nothing_waits_before_anything_has_ended() -> None:
    assert Backoff(PACE).wait_s(0.0) == 0.0


def test_the_bound_of_the_pause_doubles_with_each_short_life_up_to_the_most() -> None:
    backoff, bounds = Backoff(PACE), []
    for _ in range(9):
        bounds.append(backoff.ended(lived_s=0.0, now_s=100.0, chance=0.5) * 2)
    assert bounds == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.999])
def test_the_pause_is_any_part_of_its_bound(chance: float) -> None:
    assert Backoff(PACE).ended(lived_s=1.0, now_s=7.0, chance=chance) == chance * 0.5


def test_a_life_that_lasted_sets_everything_back() -> None:
    backoff = Backoff(PACE)
    for _ in range(5):
        backoff.ended(lived_s=9.9, now_s=0.0, chance=0.9)
    assert backoff.ended(lived_s=10.0, now_s=50.0, chance=0.9) == 0.0
    assert (backoff.wait_s(50.0), backoff.short_lives) == (0.0, 0)
    assert backoff.ended(lived_s=0.0, now_s=60.0, chance=1.0) == 0.5


def test_the_wait_counts_down_and_ends() -> None:
    backoff = Backoff(PACE)
    for _ in range(3):
        backoff.ended(lived_s=0.0, now_s=100.0, chance=1.0)
    assert [backoff.wait_s(at) for at in (100.0, 101.5, 102.0, 500.0)] == [2.0, 0.5, 0.0, 0.0]


def test_a_thousand_short_lives_are_no_overflow() -> None:
    backoff = Backoff(PACE)
    assert {backoff.ended(lived_s=0.0, now_s=0.0, chance=1.0) for _ in range(1000)} <= {
        0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0,
    }  # fmt: skip
