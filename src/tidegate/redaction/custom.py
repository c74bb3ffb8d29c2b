"""How does an operator describe a kind of value that no built-in detector knows?

Lives here: detectors made of data: a prefix and a class of characters, or a regular expression of
finite width. Does not live here: reading patterns (patterns, shapes), configuration files.

What counts as a value:

- it begins and ends at an edge: never between two letters or digits (ASCII);
- with `body`, the run of its characters is as long as `min` and `max` say: a longer one is no
  value. Without `max` there is no longest; such a value needs a prefix, has no check, and is
  replaced before its end is in sight if it has more than HOLD characters;
- with `regex`, it is what a backtracking search finds, the leftmost first. A candidate that is
  undecided after HOLD characters counts as one, with all that follows of the same characters;
- white space at the end of a value stays;
- `validate` sees its letters and digits in upper case, without the prefix.

The text is folded first, so `[0-9]` finds the digits of any script.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NoReturn

from tidegate.redaction.barriers import VALUE_CHARS
from tidegate.redaction.charsets import CharSet
from tidegate.redaction.checksums import CHECKS
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Anchors, CharRun, Hit, Run, Verdict
from tidegate.redaction.patterns import (
    MOST_CHARS,
    Chain,
    Node,
    One,
    Repeat,
    UnsafePattern,
    read_class,
    read_pattern,
)
from tidegate.redaction.shapes import (
    EDGE,
    MOST_STEPS,
    alphabet,
    anchors,
    first,
    prefix_regex,
    regex,
    sample,
    steps,
    widths,
)
from tidegate.redaction.spans import Kind

RANK = 24
"""Behind keys that are certain by their form, before everything else: the operator knows best."""
MOST_PREFIX = 64
_KIND = re.compile(r"[A-Z][A-Z0-9]{0,15}(?:_[A-Z][A-Z0-9]{0,15}){0,3}")
# A value of one segment that is no wider is seen whole, wherever in a long segment it begins.
_WIDEST_INSIDE = 300

Check = Callable[[str], bool]


class UnusableDetector(ValueError):
    """A description that makes no detector: `key` is what is wrong about it, `right` a remedy.

    For `regex` and `body`, `at` is the index at which reading stopped.
    """

    def __init__(self, key: str, wrong: str, right: str, at: int | None = None) -> None:
        super().__init__(f"{key}: {wrong}: {right}")
        self.key, self.wrong, self.right, self.at = key, wrong, right, at


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a description comes to. `longest` is None if there is no end to the values."""

    tree: Node
    shortest: int
    longest: int | None
    before: str = ""
    after: str = ""
    checked_from: int = 0


class CustomDetector:
    """Values that lie inside one segment; see `detector`."""

    rank = RANK

    def __init__(self, kind: str, shape: _Shape, check: Check | None) -> None:
        self.family = kind.lower()
        self.kind = Kind(kind, self.family)
        self.shortest = shape.shortest
        self.longest = shape.longest
        self.anchors: Anchors = anchors(shape.tree, until=_barriers())
        self._tree = shape.tree
        self._check = check
        self._checked_from = shape.checked_from
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

    def _passes(self, found: re.Match[str]) -> bool:
        if self._check is None:
            return True
        value = found[0][self._checked_from :]
        return self._check("".join(char for char in value if char.isalnum()).upper())

    def _hit(self, start: int, end: int, run: Run | None = None) -> Hit:
        return Hit(start, end, self.family, self.family, self.kind, run)


class SpanningCustomDetector(CustomDetector):
    """Values that may contain a barrier, or that are wider than one look at a long segment."""

    def __init__(self, kind: str, shape: _Shape, check: Check | None) -> None:
        super().__init__(kind, shape, check)
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


def detector(
    kind: str,
    *,
    prefix: str | None = None,
    body: str | None = None,
    min: int | None = None,  # noqa: A002 - the words of the configuration
    max: int | None = None,  # noqa: A002
    regex: str | None = None,
    validate: str | Check | None = None,
) -> CustomDetector:
    """A detector of the operator's own, for `RedactionPolicy.with_detectors`.

    `kind` is the word of the placeholder: EMPLOYEE_ID gives `[REDACTED_EMPLOYEE_ID]`, and the
    family and count label `employee_id`. Either `body`, one class of characters such as `[0-9]`,
    with `min` (1) to `max` of them behind the literal `prefix`; or `regex`. `validate` is a name
    of `checksums.CHECKS` or a pure function from text to bool.

    Raises UnusableDetector, a ValueError. Costs about a millisecond.
    """
    if not _KIND.fullmatch(kind):
        raise UnusableDetector(
            "kind",
            "not a word for placeholders",
            "use up to four words of capitals and digits joined by '_', such as EMPLOYEE_ID",
        )
    check = CHECKS.get(validate) if isinstance(validate, str) else validate
    if validate is not None and check is None:
        raise UnusableDetector("validate", "not a check", f"there are {', '.join(sorted(CHECKS))}")
    if regex is None:
        shape = _of_body(prefix, body, min, max, checked=check is not None)
    else:
        _alone(prefix=prefix, body=body, min=min, max=max)
        shape = _of_regex(regex)
    wide = shape.longest is not None and shape.longest > _WIDEST_INSIDE
    if check is not None and wide:
        key = "regex" if regex is not None else "max"
        raise UnusableDetector(
            key, "too wide for a check", f"a value with `validate` has at most {_WIDEST_INSIDE}"
        )
    spans = wide or alphabet(shape.tree).meets(_barriers())
    return (SpanningCustomDetector if spans else CustomDetector)(kind, shape, check)


def _alone(**others: object) -> None:
    for key, value in others.items():
        if value is not None:
            raise UnusableDetector(
                key,
                f"`regex` and `{key}` exclude each other",
                "keep `regex`, or prefix, body, min and max",
            )


def _of_body(
    prefix: str | None, body: str | None, least: int | None, most: int | None, *, checked: bool
) -> _Shape:
    if body is None:
        raise UnusableDetector(
            "", "neither a pattern nor a regex", 'add `body: "[0-9]"` and `max: 8`, or `regex`'
        )
    if prefix is None and most is None:
        raise UnusableDetector(
            "", "neither a prefix nor an upper bound", "add `max: 8`, or a `prefix`"
        )
    if checked and most is None:
        raise UnusableDetector(
            "validate", "a check needs the whole value", "add `max`, the longest body"
        )
    least = 1 if least is None else least
    longest = least if most is None else most
    if not 1 <= least <= MOST_CHARS:
        raise UnusableDetector("min", "out of range", f"use 1 to {MOST_CHARS}")
    if longest < least:
        raise UnusableDetector("max", f"smaller than `min: {least}`", "swap the two")
    lead = _literal(prefix or "")
    if len(lead) + longest > MOST_CHARS:
        raise UnusableDetector(
            "max" if most is not None else "min",
            f"with its prefix wider than {MOST_CHARS}",
            f"use at most {MOST_CHARS - len(lead)}",
        )
    chars = _class(body)
    one = chars.regex()
    return _Shape(
        tree=Chain(
            (*(One(CharSet.chars(char)) for char in lead), Repeat(One(chars), least, longest))
        ),
        shortest=len(lead) + least,
        longest=None if most is None else len(lead) + most,
        before="" if lead else f"(?<!{one})",
        after="" if most is None else f"(?!{one})",
        checked_from=len(lead),
    )


def _literal(prefix: str) -> str:
    if len(prefix) > MOST_PREFIX:
        raise UnusableDetector("prefix", "too long", f"use at most {MOST_PREFIX} characters")
    if not all(map(fold, prefix)):
        raise UnusableDetector(
            "prefix", "holds an invisible character, which no detector sees", "remove it"
        )
    return fold(prefix)


def _class(body: str) -> CharSet:
    try:
        return read_class(body)
    except UnsafePattern as unsafe:
        raise UnusableDetector("body", unsafe.wrong, unsafe.right, unsafe.at) from None


def _of_regex(pattern: str) -> _Shape:
    try:
        tree = read_pattern(pattern)
    except UnsafePattern as unsafe:
        raise UnusableDetector("regex", unsafe.wrong, unsafe.right, unsafe.at) from None
    least, most = widths(tree)
    if least == 0:
        _refuse_regex("the empty text would be a value", "make some part of it necessary")
    if most > MOST_CHARS:
        _refuse_regex(f"wider than {MOST_CHARS} characters", "lower the bounds of its repeats")
    if steps(tree) > MOST_STEPS:
        _refuse_regex(
            "a search could take too long: neighboring parts can match the same characters",
            "put a character between them that neither can match, or lower the bounds",
        )
    return _Shape(tree, least, most)


def _refuse_regex(wrong: str, right: str) -> NoReturn:
    raise UnusableDetector("regex", wrong, right)


def _body(shape: _Shape) -> str:
    """The values as a regular expression, without what surrounds them."""
    if shape.longest is not None:
        return regex(shape.tree)
    # One more part behind the fewest: possessive, for nothing that follows could want it back.
    last = shape.tree.parts[-1] if isinstance(shape.tree, Chain) else shape.tree
    return f"{regex(shape.tree)}{alphabet(last).regex()}*+"


@cache
def _barriers() -> CharSet:
    """What no value of one segment contains."""
    basic = "".join(map(chr, range(0x10000)))
    return ~CharSet.chars("".join(re.findall(f"[{VALUE_CHARS}]", basic)))


__all__ = ["CustomDetector", "SpanningCustomDetector", "UnusableDetector", "detector"]
