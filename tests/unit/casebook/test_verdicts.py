"""When does a case pass, what is printed about it, and with which status does the run end?"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.casebook import cover, known
from tests.casebook.cases import Case, each_file
from tests.casebook.judge import Verdict, judge
from tests.casebook.report import Report
from tests.casebook.rules.keys import KEYS
from tests.casebook.rules.library import parser
from tests.casebook.seen import Mismatch, Seen
from tests.unit.casebook.observations import case, web


def fails() -> None:
    raise Mismatch("the upstream got nothing")


def passes() -> None:
    pass


def verdict(made: Case, *, status: int = 200, test: Callable[[], None] | None = None) -> Verdict:
    seen = Seen(made, exchanges=[web({}, status=status)])
    return judge(made, seen, test, "tests/x.py::test_x" if test else "")


def test_a_case_passes_if_every_key_and_sentence_holds() -> None:
    assert verdict(case("http", "200", status=200)).passed


def test_what_was_seen_stands_in_one_line() -> None:
    found = verdict(case("http", "200", status=200), status=500)
    assert not found.passed
    assert "500" in found.line
    assert "\n" not in found.line


def test_a_sentence_without_a_rule_fails_the_case() -> None:
    found = verdict(case("http", "200", "the moon is full"))
    assert found.faults == ["no rule for the sentence 'the moon is full'"]


def test_a_key_without_a_rule_fails_the_case() -> None:
    assert verdict(case("http", "200", moon="full")).faults == ["no rule for the key moon"]


def test_a_key_of_the_input_that_nothing_reads_fails_the_case() -> None:
    found = verdict(case("http", "200", given={"moon": "full"}))
    assert found.faults == ["keys that nothing reads: moon"]


def test_a_case_that_expects_nothing_fails() -> None:
    assert verdict(case("http")).faults == ["the case expects nothing"]


def test_the_test_of_a_case_covers_what_has_no_rule_and_is_cited() -> None:
    found = verdict(case("http", "the moon is full", moon=1), test=passes)
    assert (found.passed, found.cited) == (True, "tests/x.py::test_x")


def test_the_test_of_a_case_does_not_replace_rules_that_exist() -> None:
    assert not verdict(case("http", "200"), status=500, test=passes).passed


def test_a_failing_test_fails_the_case_with_what_it_saw() -> None:
    found = judge(case("steps", "x"), None, fails, "t")
    assert found.faults == ["the upstream got nothing"]


def test_steps_without_a_test_fail() -> None:
    found = judge(case("steps", "x"), None, None, "")
    assert found.faults == ["no driver and no test named test_case_X_1"]


def test_a_case_that_could_not_be_played_fails() -> None:
    found = judge(case("http", "200"), RuntimeError("no gateway"), None, "")
    assert found.faults == ["could not be played: RuntimeError no gateway"]


def lines(*verdicts: Verdict, listed: dict[str, str] | None = None, strict: bool = False) -> Report:
    return Report(listed or {}, strict=strict, verdicts=list(verdicts))


GREEN = verdict(case("http", "200"))
RED = verdict(case("http", "200"), status=500)


def test_the_last_line_counts_and_the_status_follows() -> None:
    assert list(lines(GREEN, GREEN).lines())[-1] == "2 passed, 0 failed"
    assert lines(GREEN).status == 0
    assert list(lines(GREEN, RED).lines())[-1] == "1 passed, 1 failed"
    assert lines(GREEN, RED).status == 1
    assert lines().status == 1


def test_a_known_failure_is_counted_apart_unless_strict() -> None:
    listed = {"X-1": "later"}
    report = lines(RED, listed=listed)
    assert list(report.lines())[-2:] == [
        "1 known, listed in known_failures.txt",
        "0 passed, 0 failed",
    ]
    assert report.status == 0
    assert next(iter(report.lines())).startswith("KNOWN X-1: ")
    strict = lines(RED, listed=listed, strict=True)
    assert list(strict.lines())[-1] == "0 passed, 1 failed"
    assert strict.status == 1


def test_a_listed_case_that_passes_has_to_leave_the_list() -> None:
    report = lines(GREEN, listed={"X-1": "later"})
    assert "PASSES X-1: take it off known_failures.txt" in list(report.lines())
    assert report.status == 1


def test_the_list_has_an_id_and_a_word_a_line(tmp_path: Path) -> None:
    file = tmp_path / "known_failures.txt"
    file.write_text("# why\nA-1 later\n\nA-2 limits  # note\n")
    assert known.read(file) == {"A-1": "later", "A-2": "limits"}
    file.write_text("A-1 later\nA-2@spec limits\n")
    assert known.read(file) == {"A-1": "later"}
    assert known.read(file, profile="spec") == {"A-1": "later", "A-2": "limits"}
    for bad in ("A-1\n", "A-1 two words\n", "A-1 x\nA-1 y\n"):
        file.write_text(bad)
        with pytest.raises(known.BadList):
            known.read(file)


def test_every_listed_case_exists_and_every_test_has_a_case() -> None:
    folder = Path(__file__).parents[2] / "data" / "cases"
    cases = list(each_file(sorted(folder.glob("*.jsonl"))))
    assert len(cases) == 90
    assert set(known.read(profile="spec")) <= {one.id for one in cases}
    assert set(cover.covering()) <= {one.test_name for one in cases}


def test_every_sentence_of_the_open_cases_has_a_rule_or_a_test() -> None:
    folder = Path(__file__).parents[2] / "data" / "cases"
    covered = set(cover.covering())
    bare = []
    for one in each_file(sorted(folder.glob("*.jsonl"))):
        if one.test_name in covered:
            continue
        sentences = parser(one.kind)
        bare += [f"{one.id}: {text}" for text in one.sentences if sentences.parse(text) is None]
        bare += [f"{one.id}: {key}" for key in one.expect if key not in {*KEYS, "assert"}]
        bare += [f"{one.id}: {key}" for key in one.unknown_keys()]
    assert bare == []
