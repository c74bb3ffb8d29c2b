"""When is a place filled again, and when is it called a loop?"""

from tidegate.gateway.workers.restarts import Pace, Restarts

PACE = Pace(short_life_s=10.0, first_delay_s=0.5, most_delay_s=3.0, loop_after=3)


def test_a_long_life_is_followed_at_once_however_many_short_ones_came_before() -> None:
    restarts = Restarts(PACE)
    delays = [restarts.ended(1, lived_s=lived_s, now_s=0.0) for lived_s in (1, 1, 1, 60, 1, 1)]
    assert delays == [0.0, 0.5, 1.0, 0.0, 0.0, 0.5]


def test_the_wait_doubles_up_to_a_bound() -> None:
    restarts = Restarts(PACE)
    delays = [restarts.ended(1, lived_s=0.0, now_s=0.0) for _ in range(200)]
    assert delays[:6] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]
    assert set(delays[6:]) == {3.0}


def test_each_place_has_its_own_count_and_time() -> None:
    restarts = Restarts(PACE)
    for _ in range(3):
        restarts.ended(2, lived_s=0.0, now_s=10.0)
    restarts.ended(1, lived_s=0.0, now_s=10.0)
    assert restarts.looping == [2]
    assert restarts.next_s == 10.0
    assert restarts.taken_due(10.0) == [1]
    assert restarts.next_s == 11.0
    assert restarts.taken_due(10.9) == []
    assert restarts.taken_due(11.0) == [2]
    assert restarts.next_s == float("inf")
    restarts.lasted(2)
    assert restarts.looping == []


def test_nothing_is_due_any_more_once_that_is_said() -> None:
    restarts = Restarts(PACE)
    restarts.ended(1, lived_s=0.0, now_s=0.0)
    restarts.at_once(2, 0.0)
    restarts.none()
    assert restarts.taken_due(100.0) == []
