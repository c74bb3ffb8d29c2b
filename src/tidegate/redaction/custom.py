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
from dataclasses import replace
from functools import cache
from typing import NoReturn

from tidegate.redaction import spans
from tidegate.redaction.charsets import CharSet
from tidegate.redaction.checksums import CHECKS
from tidegate.redaction.folding import fold
from tidegate.redaction.pattern_detectors import (
    WIDEST_INSIDE,
    Check,
    CustomDetector,
    Shape,
    SpanningCustomDetector,
)
from tidegate.redaction.patterns import (
    MOST_CHARS,
    Chain,
    One,
    Repeat,
    UnsafePattern,
    read_class,
    read_pattern,
)
from tidegate.redaction.policy import FAMILIES
from tidegate.redaction.shapes import MOST_STEPS, steps, widths
from tidegate.redaction.spans import Kind

RANK = 24
"""Behind keys that are certain by their form, before everything else: the operator knows best."""
MOST_PREFIX = 64
_KIND = re.compile(r"[A-Z][A-Z0-9]{0,15}(?:_[A-Z][A-Z0-9]{0,15}){0,3}")


class UnusableDetector(ValueError):
    """A description that makes no detector: `key` is what is wrong about it, `right` a remedy.

    For `regex` and `body`, `at` is the index at which reading stopped.
    """

    def __init__(self, key: str, wrong: str, right: str, at: int | None = None) -> None:
        super().__init__(f"{key}: {wrong}: {right}")
        self.key, self.wrong, self.right, self.at = key, wrong, right, at


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
    _check_kind(kind)
    check = CHECKS.get(validate) if isinstance(validate, str) else validate
    if validate is not None and check is None:
        raise UnusableDetector("validate", "not a check", f"there are {', '.join(sorted(CHECKS))}")
    if regex is None:
        shape = _of_body(prefix, body, min, max, checked=check is not None)
    else:
        _alone(prefix=prefix, body=body, min=min, max=max)
        shape = _of_regex(regex)
    if check is not None and shape.longest is not None and shape.longest > WIDEST_INSIDE:
        key = "regex" if regex is not None else "max"
        raise UnusableDetector(
            key, "too wide for a check", f"a value with `validate` has at most {WIDEST_INSIDE}"
        )
    made = SpanningCustomDetector if shape.spans else CustomDetector
    return made(Kind(kind, kind.lower()), replace(shape, check=check), rank=RANK)


def _check_kind(kind: str) -> None:
    if not _KIND.fullmatch(kind):
        raise UnusableDetector(
            "kind",
            "not a word for placeholders",
            "use up to four words of capitals and digits joined by '_', such as EMPLOYEE_ID",
        )
    if kind in _built_in_kinds() or kind.lower() in FAMILIES:
        raise UnusableDetector("kind", "not free: a built-in detector has it", f"write OWN_{kind}")


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
) -> Shape:
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
    return Shape(
        tree=Chain(
            (*(One(CharSet.chars(char)) for char in lead), Repeat(One(chars), least, longest))
        ),
        shortest=len(lead) + least,
        longest=None if most is None else len(lead) + most,
        before="" if lead else f"(?<!{one})",
        after="" if most is None else f"(?!{one})",
        checked_from=len(lead),
        loose=f"{''.join(CharSet.chars(char).regex() for char in lead)}{one}+",
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
        raise UnusableDetector("body", unsafe.wrong, unsafe.right, unsafe.at or None) from None


def _of_regex(pattern: str) -> Shape:
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
    return Shape(tree, least, most)


def _refuse_regex(wrong: str, right: str) -> NoReturn:
    raise UnusableDetector("regex", wrong, right)


@cache
def _built_in_kinds() -> frozenset[str]:
    """The words of the placeholders of built-in detectors."""
    return frozenset(kind.word for kind in vars(spans).values() if isinstance(kind, Kind))


__all__ = ["CustomDetector", "SpanningCustomDetector", "UnusableDetector", "detector"]
