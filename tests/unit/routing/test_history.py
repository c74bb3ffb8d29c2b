"""What became of the attempts at a target is counted by verdict and kept by outcome."""

import pytest

from tidegate.routing import TAXONOMY, Outcome, Verdict
from tidegate.routing.history import History


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_outcome_counts_as_its_verdict_and_is_remembered(outcome: Outcome) -> None:
    history = History()
    history.saw(outcome)
    verdict = TAXONOMY[outcome].verdict
    counts = {Verdict.SUCCESS: (1, 0), Verdict.FAILURE: (0, 1)}
    assert (history.successes, history.failures) == counts.get(verdict, (0, 0))
    assert history.recent == (outcome,)


def test_only_the_last_ten_outcomes_are_kept_and_all_are_counted() -> None:
    history = History()
    for _ in range(10_000):
        history.saw(Outcome.OK)
    for _ in range(9):
        history.saw(Outcome.TIMEOUT)
    assert (history.successes, history.failures) == (10_000, 9)
    assert history.recent == (Outcome.OK, *[Outcome.TIMEOUT] * 9)
