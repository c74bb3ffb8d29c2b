"""The budget of retries at one target, against a list of everything that happened."""

import random

from tidegate.routing.retries import RetryBudget


def test_three_in_ten_seconds_are_free() -> None:
    budget = RetryBudget()
    for now_s in (0.0, 1.0, 2.0):
        assert budget.has(now_s)
        budget.spend(now_s)
    assert not budget.has(9.99)
    assert budget.has(10.0)
    budget.spend(10.0)
    assert not budget.has(10.5)
    assert budget.has(11.0)


def test_ten_successes_pay_for_one_more() -> None:
    budget = RetryBudget()
    for _ in range(3):
        budget.spend(0.0)
    for _ in range(9):
        budget.earn()
        assert not budget.has(0.0)
    budget.earn()
    assert budget.has(0.0)
    budget.spend(0.0)
    assert not budget.has(0.0)


def test_no_more_than_ten_are_saved() -> None:
    budget = RetryBudget()
    for _ in range(10_000):
        budget.earn()
    spent = 0
    while budget.has(0.0):
        budget.spend(0.0)
        spent += 1
    assert spent == 13


def test_random_histories_never_exceed_what_successes_and_the_floor_allow() -> None:
    rng = random.Random(5)  # noqa: S311
    for _ in range(30):
        budget, now_s, saved, floor = RetryBudget(), 0.0, 0, []
        for _ in range(300):
            now_s += rng.choice((0.0, 0.1, 3.0))
            if rng.random() < 0.6:
                budget.earn()
                saved = min(100, saved + 1)
                continue
            recent = [at_s for at_s in floor if now_s - at_s < 10.0]
            assert budget.has(now_s) == (saved >= 10 or len(recent) < 3)
            if budget.has(now_s):
                budget.spend(now_s)
                if saved >= 10:
                    saved -= 10
                else:
                    floor = [*recent, now_s]
