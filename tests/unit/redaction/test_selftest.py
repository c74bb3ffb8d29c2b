"""Does the self-test find what is wrong with a detector, and nothing wrong with a good one?"""

import re
from collections.abc import Iterable

import pytest

from tests.unit.redaction.samples import MASKED
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.custom import detector
from tidegate.redaction.denylist import DenyList, Literals
from tidegate.redaction.hits import AnyDetector, Hit, Verdict
from tidegate.redaction.selftest import Report, examine
from tidegate.redaction.spans import Kind

pytestmark = pytest.mark.full

TICKET = Kind("TICKET", "ticket")


def of(made: AnyDetector, *samples: str) -> Report:
    return examine(RedactionPolicy({}).with_detectors(made), samples)


def laws(report: Report) -> set[str]:
    return {broken.law for broken in report.broken}


class Ticket:
    """Finds `T-1234` as it should; the bad ones change one thing."""

    family, rank, shortest = "ticket", 200, 6
    anchors = ((r"\-", "(?<=T-)[0-9]"),)
    pattern = re.compile(r"T-[0-9]{4}(?![0-9])")

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        for found in self.pattern.finditer(text, start, end):
            yield Hit(found.start(), found.end(), self.family, "ticket", TICKET)


class BeyondEnd(Ticket):
    """Looks at text that has not arrived in every case."""

    pattern = re.compile(r"T-[0-9]{4}(?! paid)")

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        for found in self.pattern.finditer(text, start):
            if found.end() <= end:
                yield Hit(found.start(), found.end(), self.family, "ticket", TICKET)


class WholeBuffer(Ticket):
    """Asks whether a word stands anywhere in what happens to be in the buffer."""

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        return super().find(text, start, end) if "Ordinary" not in text else ()


class Stateful(Ticket):
    """Finds every other value."""

    def __init__(self) -> None:
        self.turn = 0

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        self.turn += 1
        return super().find(text, start, end) if self.turn % 2 else ()


class Raising(Ticket):
    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        raise KeyError(text)


class NoAnchor(Ticket):
    """The prefilter looks for something that values do not contain."""

    anchors = ((r"\!", ""),)


class OverBarriers(Ticket):
    """Its values hold a barrier, but it only looks inside segments."""

    anchors = ((r"\#", ""),)
    pattern = re.compile("#[0-9]{4}")


class Hasty(Ticket):
    """Decides about a value with a space before the rest of it is there."""

    anchors = ((r"\-", "(?<=T-)"),)

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        return ()

    def opens(self, text: str, start: int, stop: int) -> int | None:
        place = text.find("T-ab", start, stop)
        return place if place >= 0 else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        if text.startswith("T-ab cd", start):
            return Hit(start, start + 7, self.family, "ticket", TICKET)
        return Verdict.TEXT


@pytest.mark.parametrize(
    ("made", "sample", "law"),
    [
        (BeyondEnd(), "T-1234 paid", "it depends on how the text is cut"),
        (WholeBuffer(), "T-1234", "it depends on text far before it"),
        (Stateful(), "T-1234", "it is not the same each time"),
        (Raising(), "T-1234", "it raises KeyError"),
        (NoAnchor(), "T-1234", "a sample is not found"),
        (OverBarriers(), "#1234", "a sample is not found"),
        (Ticket(), "T-12345", "a sample is not found"),
        (Hasty(), "T-ab cd", "it depends on how the text is cut"),
    ],
)
def test_a_bad_detector_is_caught(made: AnyDetector, sample: str, law: str) -> None:
    assert law in laws(of(made, sample))


def test_a_good_detector_breaks_no_law() -> None:
    report = of(Ticket(), "T-1234", "T-0000")
    assert report.broken == []
    assert (report.texts, report.splits > 500) == (44, True)


@pytest.mark.parametrize(
    "description",
    [
        {"prefix": "EMP-", "body": "[0-9]", "min": 6, "max": 8},
        {"prefix": "EMP-", "body": "[0-9]", "min": 6},
        {"prefix": "No ", "body": "[0-9 ]", "min": 4, "max": 8, "validate": "luhn"},
        {"regex": r"\(\d{3}\) \d{3}-\d{4}"},
        {"regex": "[\u4e00-\u9fff]{3}\u53f7"},
        {"regex": "x[ab ]{1,400}y"},
    ],
)
def test_detectors_made_of_data_break_no_law(description: dict[str, str | int]) -> None:
    made = detector("BADGE", **description)  # type: ignore[arg-type]
    assert of(made, *made.samples(1)).broken == []


def test_deny_lists_break_no_law() -> None:
    literals = ["Jos\u00e9 G", "\u7530\u592a", "+44 2"]
    assert of(DenyList(Literals(literals)), *literals).broken == []


@pytest.mark.full
@pytest.mark.parametrize("preset", ["default", "strict"])
def test_no_built_in_detector_breaks_a_law(preset: str) -> None:
    texts = [text for _, text, _ in MASKED]
    assert examine(RedactionPolicy.preset(preset), (), texts=texts).broken == []


def test_what_is_reported_of_each_law_is_its_shortest_text() -> None:
    report = of(BeyondEnd(), "T-1234 paid for, long ago and in full", "T-1234 paid")
    (broken,) = [each for each in report.broken if "cut" in each.law]
    assert "full" not in broken.text
    assert (broken.cut is not None, broken.whole != broken.other) == (True, True)
