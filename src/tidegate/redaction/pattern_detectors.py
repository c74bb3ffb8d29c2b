"""Where in a text are the values of one pattern?

Lives here: the two detectors that a pattern makes, for values of one segment and for values that
may hold barriers. Does not live here: who describes a pattern (custom, cues), what may be one
(patterns, shapes).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from tidegate.redaction.barriers import VALUE_CHARS
from tidegate.redaction.charsets import CharSet
from tidegate.redaction.hits import Anchors, CharRun, Hit, Run, Verdict
from tidegate.redaction.patterns import Chain, Node
from tidegate.redaction.shapes import (
    EDGE,
    alphabet,
    anchors,
    first,
    prefix_regex,
    regex,
    sample,
)
from tidegate.redaction.spans import Kind

WIDEST_INSIDE = 300
"""A value of one segment that is no wider is seen whole, wherever in a long one it begins."""

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a description comes to. `longest` is None if there is no end to the values."""

    tree: Node
    shortest: int
    longest: int | None
    before: str = ""
    after: str = ""
    checked_from: int = 0
    check: Check | None = None
    loose: str = ""
    """What looks like a value at first sight, as a regex; without it, a value without edges."""

    @property
    def spans(self) -> bool:
        """Its values may hold a barrier, or be wider than what is always seen."""
        wide = self.longest is not None and self.longest > WIDEST_INSIDE
        return wide or alphabet(self.tree).meets(barriers())


class CustomDetector:
    """Values that lie inside one segment."""

    def __init__(
        self, kind: Kind, shape: Shape, *, rank: int, family: str = "", rule: str = ""
    ) -> None:
        self.family = family or kind.label
        self.rule = rule or self.family
        self.rank = rank
        self.kind = kind
        self.shortest = shape.shortest
        self.longest = shape.longest
        self.anchors: Anchors = anchors(shape.tree, until=barriers())
        self._tree = shape.tree
        self._check = shape.check
        self._checked_from = shape.checked_from
        self._loose = shape.loose or _body(shape)
        chars = alphabet(shape.tree)
        ends = "" if shape.longest is None else EDGE
        self._value = re.compile(
            f"{EDGE}{shape.before}{_body(shape)}{shape.after}{ends}", re.DOTALL
        )
        rest = shape.tree.parts[-1] if isinstance(shape.tree, Chain) else shape.tree
        run = alphabet(rest) if shape.longest is None else chars
        self._run: Run = CharRun(re.compile(f"{run.regex()}*+", re.DOTALL))

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        while (found := self._value.search(text, start, end)) is not None:
            if self._passes(found):
                run = self._run if self.longest is None else None
                yield self._hit(found.start(), _trimmed(found), run)
                start = found.end()
            else:
                start = found.start() + 1

    def samples(self, count: int) -> Iterator[str]:
        """Up to `count` values that this detector must find, of different lengths and branches."""
        for turn in range(400 * count):
            text = sample(self._tree, turn)
            found = self._value.fullmatch(text)
            if found is not None and self._passes(found):
                yield text
                count -= 1
            if count == 0:
                return

    def near(self, text: str) -> Iterator[tuple[int, int, str]]:
        """What looks like a value in `text` and is none: start, end, and why not.

        `text` is folded. Without a prefix only what is as long or nearly so. For explanations, so
        its cost does not matter: up to quadratic.
        """
        for found in re.finditer(self._loose, text, re.DOTALL):
            if not self._checked_from and not self._nearly(len(found[0])):
                continue
            if self._value.search(text, found.start(), found.end() + 1) is None:
                yield found.start(), found.end(), self._why_not(text, found)
            elif not self._passes(found):
                yield found.start(), found.end(), "its check fails"

    def _nearly(self, size: int) -> bool:
        return size + 2 >= self.shortest and (self.longest is None or size <= self.longest + 2)

    def _why_not(self, text: str, found: re.Match[str]) -> str:
        lead = self._checked_from
        size = found.end() - found.start() - lead
        counted = f"{size} characters{' behind the prefix' if lead else ''}, a value has"
        if size < self.shortest - lead:
            return f"{counted} {self.shortest - lead} or more"
        if self.longest is not None and size > self.longest - lead:
            return f"{counted} {self.longest - lead} at most"
        left = text[max(0, found.start() - 1) : found.start() + 1]
        side = "in front of" if len(left) == 2 and left.isascii() and left.isalnum() else "behind"
        return f"a letter or digit stands {side} it"

    def _passes(self, found: re.Match[str]) -> bool:
        if self._check is None:
            return True
        value = found[0][self._checked_from :]
        return self._check("".join(char for char in value if char.isalnum()).upper())

    def _hit(self, start: int, end: int, run: Run | None = None) -> Hit:
        return Hit(start, end, self.family, self.rule, self.kind, run)


class SpanningCustomDetector(CustomDetector):
    """Values that may contain a barrier, or that are wider than one look at a long segment."""

    def __init__(
        self, kind: Kind, shape: Shape, *, rank: int, family: str = "", rule: str = ""
    ) -> None:
        super().__init__(kind, shape, rank=rank, family=family, rule=rule)
        begins = prefix_regex(shape.tree)
        if shape.longest is None:
            begins = f"(?:{begins}|{_body(shape)})"
        self._begins = re.compile(begins, re.DOTALL)
        self._first = re.compile(f"{EDGE}{shape.before}{first(shape.tree)[0].regex()}", re.DOTALL)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`; leaves to `opens` what the text from `end` on can still change."""
        for hit in super().find(text, start, end):
            if self._begins.fullmatch(text, hit.start, end) is None:
                yield replace(hit, run=None)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        reach = start if self.longest is None else max(start, stop - self.longest)
        for found in self._first.finditer(text, reach, stop):
            if self._begins.fullmatch(text, found.start(), stop) is not None:
                return found.start()
        return None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        undecided = self._begins.fullmatch(text, start, end) is not None
        if undecided and not ended:
            return Verdict.WAIT
        found = self._value.match(text, start, end)
        if undecided and end < len(text):
            return self._hit(start, end, self._run)
        if found is None or not self._passes(found):
            return Verdict.TEXT
        return self._hit(start, _trimmed(found))


def _trimmed(found: re.Match[str]) -> int:
    """The end of a value without white space behind it, which a class such as `[0-9 ]` takes."""
    return found.end() - len(found[0]) + len(found[0].rstrip())


def _body(shape: Shape) -> str:
    """The values as a regular expression, without what surrounds them."""
    if shape.longest is not None:
        return regex(shape.tree)
    # One more part behind the fewest: possessive, for nothing that follows could want it back.
    last = shape.tree.parts[-1] if isinstance(shape.tree, Chain) else shape.tree
    return f"{regex(shape.tree)}{alphabet(last).regex()}*+"


@cache
def barriers() -> CharSet:
    """What no value of one segment contains."""
    basic = "".join(map(chr, range(0x10000)))
    return ~CharSet.chars("".join(re.findall(f"[{VALUE_CHARS}]", basic)))


__all__ = [
    "WIDEST_INSIDE",
    "Check",
    "CustomDetector",
    "Shape",
    "SpanningCustomDetector",
    "barriers",
]
