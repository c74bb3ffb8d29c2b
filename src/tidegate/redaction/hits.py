"""Which stretches of one segment are values, and which of them wins where they overlap?

Lives here: the hit, the runs that a hit may go on into, and the rule for overlaps. Does not live
here: how a hit is recognized (detectors), what replaces it (stream).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from tidegate.redaction.spans import Kind


class Run(Protocol):
    """The rest of a value that is already masked: how far does it go?"""

    @property
    def exact(self) -> bool:
        """The value ends in itself; otherwise invisible characters behind it go with it."""

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """The index up to which text belongs to the value, and whether it ends there.

        While it does not end, what stays beyond the index is looked at again with more text.
        """


@dataclass(frozen=True, slots=True)
class CharRun:
    """A value goes on as long as its characters belong to `chars` (a regex)."""

    chars: re.Pattern[str]
    exact: bool = False

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """See `Run`."""
        found = self.chars.match(text, start)
        end = found.end() if found else start
        return end, final or end < len(text)


@dataclass(frozen=True, slots=True)
class DottedRun:
    """Like `CharRun`, but a single dot inside belongs to the value and one at its end does not."""

    chars: re.Pattern[str]
    exact: bool = False

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """See `Run`."""
        found = self.chars.match(text, start)
        end = found.end() if found else start
        return end, final or not (end == len(text) or text[end:] == ".")


URL_SAFE = CharRun(re.compile(r"[A-Za-z0-9_\-]*"))
DOTTED = DottedRun(re.compile(r"(?:[A-Za-z0-9_\-]|\.(?=[A-Za-z0-9_\-]))*"))


@dataclass(frozen=True, slots=True)
class Hit:
    """`text[start:end]` is a value. `run` says how it goes on if the view ended before it did.

    `family` is the name that a configuration uses, `rule` the exact rule inside it.
    """

    start: int
    end: int
    family: str
    rule: str
    kind: Kind
    run: Run | None = None


class Detector(Protocol):
    """Finds the values of one family inside one segment."""

    @property
    def family(self) -> str:
        """The name in the configuration."""

    @property
    def anchors(self) -> tuple[tuple[str, str], ...]:
        """Pairs (set of first characters, regex that follows): each value contains a match of one.

        The prefilter looks for nothing else, so a value without an anchor is never found.
        """

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """Values in `text[start:end]`, by start.

        May look back at most `held.CONTEXT` characters and never at `end` or beyond. The end is
        a cut, the end of the text, or so far away that no value starting early enough to count
        reaches it without a `run`.
        """


RANK = ("private_key", "jwt", "key", "email", "card", "iban", "ssn")


def winners(hits: Iterable[Hit]) -> list[Hit]:
    """Hits without overlaps: leftmost first, then rank, then length.

    A loser that reaches beyond the winner lengthens it, so nothing of either is shown.
    """
    order = sorted(hits, key=lambda hit: (hit.start, RANK.index(hit.family), -hit.end))
    chosen: list[Hit] = []
    for hit in order:
        if not chosen or hit.start >= chosen[-1].end:
            chosen.append(hit)
        elif hit.end > chosen[-1].end:
            chosen[-1] = replace(chosen[-1], end=hit.end, run=hit.run)
    return chosen
