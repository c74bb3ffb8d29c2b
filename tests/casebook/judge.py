"""Does what was seen agree with everything the case expects?

Each key of `expect` and each sentence of `expect.assert` gets a verdict: held, another thing was
seen, covered by the case's own test, or neither (which is a fault of the case's coverage and
counts as failed). Lives here: that. Does not live here: rules, the tests (cover).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.casebook.cases import Case
from tests.casebook.rules.grammar import Parser, View
from tests.casebook.rules.keys import KEYS
from tests.casebook.rules.library import parser
from tests.casebook.seen import Mismatch, Seen, short

Cover = Callable[[], None]
SHOWN = 3


@dataclass
class Verdict:
    """About one case. `faults` is empty if it passed; `cited` is the test that covered it."""

    case: Case
    faults: list[str] = field(default_factory=list)
    cited: str = ""
    checked: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything holds."""
        return not self.faults

    @property
    def line(self) -> str:
        """One line: what was seen instead."""
        more = len(self.faults) - SHOWN
        shown = "; ".join(self.faults[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        return f"{self.case.id}: {shown}"


def judge(case: Case, seen: Seen | BaseException | None, cover: Cover | None, name: str) -> Verdict:
    """The verdict about a case.

    `seen` is None for a case that no driver plays, and an exception if it could not be played.
    `cover` is the case's own test, called `name` in reports.
    """
    verdict = Verdict(case, cited=name if cover is not None else "")
    uncovered = cover is None
    if isinstance(seen, BaseException):
        verdict.faults.append(f"could not be played: {type(seen).__name__} {short(str(seen))}")
    elif seen is not None:
        _expectations(verdict, seen, uncovered=uncovered)
    elif uncovered:
        verdict.faults.append(f"no driver and no test named {case.test_name}")
    unknown = case.unknown_keys()
    if unknown and uncovered:
        verdict.faults.append(f"keys that nothing reads: {', '.join(unknown)}")
    if cover is not None:
        verdict.faults += _run(cover)
    return verdict


def _expectations(verdict: Verdict, seen: Seen, *, uncovered: bool) -> None:
    for key, wanted in verdict.case.expect.items():
        if key == "assert":
            continue
        rule = KEYS.get(key)
        if rule is None:
            if uncovered:
                verdict.faults.append(f"no rule for the key {key}")
            continue
        found = _faults(partial(rule, seen, wanted))
        verdict.faults += [f"{key}: {fault}" for fault in found]
        verdict.checked.append(key)
    sentences = parser(seen.case.kind)
    for sentence in verdict.case.sentences:
        verdict.faults += _sentence(verdict, sentences, sentence, seen, uncovered=uncovered)
    nothing = not verdict.case.sentences and len(verdict.case.expect) <= 1
    if nothing and uncovered:
        verdict.faults.append("the case expects nothing")


def _sentence(
    verdict: Verdict, sentences: Parser, sentence: str, seen: Seen, *, uncovered: bool
) -> list[str]:
    node = sentences.parse(sentence)
    if node is None:
        return [f"no rule for the sentence {short(sentence)!r}"] if uncovered else []
    verdict.checked.append(", ".join(rule.name for rule in node.rules()))
    found = _faults(lambda: node.judge(View.of(seen)))
    return [f"{short(sentence)!r}: {fault}" for fault in found]


def _faults(check: Callable[[], None]) -> list[str]:
    try:
        check()
    except Mismatch as fault:
        return [str(fault)]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # What was seen has not even the shape that the rule looks into.
        return [f"not as expected ({type(error).__name__} {short(str(error))})"]
    return []


def _run(cover: Cover) -> Iterator[str]:
    try:
        cover()
    except (AssertionError, RuntimeError, OSError, ValueError, TimeoutError, LookupError) as error:
        text = short(str(error)) or type(error).__name__
        yield text if isinstance(error, Mismatch) else f"{type(error).__name__}: {text}"
