"""Estimates follow what providers report, within bounds and in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.limits.estimate import SAFETY
from tidegate.limits.learned import LEAST, MOST, LearnedFactors


def test_a_pair_never_seen_is_taken_as_estimated() -> None:
    assert LearnedFactors().factor("acme", "m") == 1.0


@pytest.mark.parametrize("true_ratio", [0.6, 0.9, 1.0, 1.4, 2.5])
def test_the_estimate_comes_to_the_truth_and_keeps_its_margin(true_ratio: float) -> None:
    learned = LearnedFactors()
    for _ in range(40):
        learned.learn("acme", "m", estimated=1000, actual=round(1000 * true_ratio))
    corrected = 1000 * learned.factor("acme", "m")
    assert corrected == pytest.approx(1000 * true_ratio * SAFETY, rel=0.01)


def test_one_odd_prompt_moves_the_factor_by_a_fifth_at_most() -> None:
    learned = LearnedFactors()
    learned.learn("acme", "m", estimated=100, actual=10**9)
    assert learned.factor("acme", "m") == pytest.approx(1 + 0.2 * (MOST - 1))


@given(st.lists(st.tuples(st.integers(-5, 10**12), st.integers(-5, 10**12)), max_size=30))
def test_no_history_takes_a_factor_out_of_its_bounds(history: list[tuple[int, int]]) -> None:
    learned = LearnedFactors()
    for estimated, actual in history:
        learned.learn("acme", "m", estimated=estimated, actual=actual)
        assert LEAST <= learned.factor("acme", "m") <= MOST


@pytest.mark.parametrize(
    ("model", "estimated", "actual"), [("m", 31, 5), ("m", 1000, 0), ("x" * 129, 1000, 10)]
)
def test_what_tells_nothing_teaches_nothing(model: str, estimated: int, actual: int) -> None:
    learned = LearnedFactors()
    learned.learn("acme", model, estimated=estimated, actual=actual)
    assert len(learned) == 0


def test_tenants_and_models_are_learned_apart() -> None:
    learned = LearnedFactors()
    learned.learn("acme", "m", estimated=100, actual=200)
    assert learned.factor("acme", "m") > 1.0
    assert learned.factor("acme", "n") == learned.factor("beta", "m") == 1.0


def test_the_pair_unused_longest_makes_room() -> None:
    learned = LearnedFactors()
    for number in range(5000):
        learned.learn("acme", str(number), estimated=100, actual=200)
        learned.learn("acme", "kept", estimated=100, actual=200)
    assert len(learned) == 4096
    assert learned.factor("acme", "0") == 1.0
    assert learned.factor("acme", "4999") > 1.0
    assert learned.factor("acme", "kept") > 1.0
