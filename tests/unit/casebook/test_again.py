"""Are the few cases that fail played once more, openly, and many not?"""

from collections.abc import Sequence

from tests.casebook.again import MOST, tried_again
from tests.casebook.cases import Case
from tests.casebook.judge import Verdict


def verdicts(*passed: bool) -> list[Verdict]:
    cases = [Case(f"X-{n}", "", {"kind": "http"}, {}, f"x:{n}") for n in range(len(passed))]
    return [
        Verdict(case, [] if good else ["seen late"])
        for case, good in zip(cases, passed, strict=True)
    ]


class Playing:
    """Plays cases, all of them well or none; remembers which."""

    def __init__(self, *, well: bool) -> None:
        self.well = well
        self.played: list[str] = []

    def __call__(self, cases: Sequence[Case]) -> list[Verdict]:
        self.played += [case.id for case in cases]
        return [Verdict(case, [] if self.well else ["seen again"]) for case in cases]


def test_a_case_that_fails_once_passes_and_is_named() -> None:
    playing = Playing(well=True)
    found, lines = tried_again(verdicts(True, False, True), {}, playing)
    assert [verdict.passed for verdict in found] == [True] * 3
    assert [verdict.case.id for verdict in found] == ["X-0", "X-1", "X-2"]
    assert playing.played == ["X-1"]
    assert lines == ["SECOND TRY X-1: seen late"]


def test_a_case_that_fails_twice_has_failed() -> None:
    found, _ = tried_again(verdicts(True, False), {}, Playing(well=False))
    assert [verdict.faults for verdict in found] == [[], ["seen again"]]


def test_many_failures_stay_and_so_do_known_ones() -> None:
    playing = Playing(well=True)
    many = verdicts(*[False] * (MOST + 1))
    assert tried_again(many, {}, playing) == (many, [])
    known = verdicts(False)
    assert tried_again(known, {"X-0": "later"}, playing) == (known, [])
    assert playing.played == []
