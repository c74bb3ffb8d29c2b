"""Which stretches of a text are values, and what must a detector say to find them?

Lives here: the hit, the runs that a hit may go on into, the two kinds of detector and the ranks.
Does not live here: how a hit is recognized (detectors), which hit wins (program, stream), what
replaces it (outlet).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from tidegate.redaction.spans import Kind

HOLD = 500
"""Characters that may wait; every value shows what it is within this many."""
LONGEST = 352
"""Characters from the start of a value on that a detector must see to find it, or so much of it
that the rest is a run: the longest address and what may touch it."""
CONTEXT = 128
"""Characters before a value that a detector may look back at."""

RANKS: Mapping[str, int] = MappingProxyType(
    {
        "private_key": 10,
        "jwt": 20,
        "key": 30,
        "authorization": 32,
        "url_credentials": 34,
        "keyword": 36,
        "email": 40,
        "card": 50,
        "iban": 60,
        "ssn": 70,
    }
)
"""Where two values start together, the lower number wins. Other detectors choose between these."""


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

    `family` is the name that a configuration uses, `rule` the exact rule inside it. Where two
    hits overlap the one that starts first wins, then the one of the lower rank, then the longer;
    a loser that reaches beyond the winner lengthens it, so nothing of either is shown. A `sealed`
    hit is not lengthened: its end is a delimiter, and nothing that begins inside it counts.
    """

    start: int
    end: int
    family: str
    rule: str
    kind: Kind
    run: Run | None = None
    sealed: bool = False


class Verdict(Enum):
    """What a spanning detector says when it has no hit."""

    WAIT = "the text so far decides nothing"
    TEXT = "this is ordinary text"


Anchors = tuple[tuple[str, str], ...]


@runtime_checkable
class Detector(Protocol):
    """Finds the values of one family that lie inside one segment (no barrier inside).

    Texts are folded views (see folding); offsets are offsets in that view.
    """

    @property
    def family(self) -> str:
        """The name in the configuration."""

    @property
    def rank(self) -> int:
        """See `RANKS`."""

    @property
    def shortest(self) -> int:
        """No value has fewer characters. From 20 on, short pieces of text need no look."""

    @property
    def anchors(self) -> Anchors:
        """Pairs (set of characters, regex that follows): each value contains a match of one.

        The set is what stands between the brackets of a character class. The prefilter looks for
        nothing else, so a value without an anchor is never found. Empty: asked about every
        segment, which costs every piece of text several microseconds.
        """

    def find(self, text: str, start: int, end: int) -> Iterable[Hit]:
        """Values in `text[start:end]`.

        A detector may say in an attribute `reach` how many characters from the start of a value on
        it must see; LONGEST if it does not. The fewer, the faster is text without barriers.

        May look back at most CONTEXT characters and never at `end` or beyond. The end is
        a cut, the end of the text, or so far away that no value starting early enough to count
        reaches it without a `run`.
        """


@runtime_checkable
class SpanningDetector(Protocol):
    """Finds the values of one family that may contain barriers, or that follow an opening.

    A class may be both this and a `Detector`; then it is asked both.
    """

    @property
    def family(self) -> str:
        """The name in the configuration."""

    @property
    def rank(self) -> int:
        """See `RANKS`."""

    @property
    def anchors(self) -> Anchors:
        """As `Detector.anchors`; a match lies inside the segment that `opens` answers for."""

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """The first index at which a value may begin that needs text from `stop` on to be judged.

        `text[start:stop]` is a closed segment or the rest of one. The answer may be `stop`: the
        segment was an opening such as `password:`. It may be too generous, never too narrow. May
        look back at most CONTEXT characters and never at `stop` or beyond.
        """

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """Judge `text[start:end]`, which begins at an index that `opens` gave.

        `end` is at most HOLD original characters beyond `start`. Never WAIT if `ended`, which
        means that no more will be visible. Final: more text never changes an answer. A hit starts
        at `start` or later and may end anywhere up to `end`; with a `run` it goes on beyond.
        """


@runtime_checkable
class Searching(Protocol):
    """A detector whose `anchors` are empty because it looks for itself, cheaply."""

    def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """The first place in `text[start:end]` without which nothing there can be a value of mine.

        Asked about every segment and every piece of text.
        """


AnyDetector = Detector | SpanningDetector
Find = Callable[[str, int, int], list[Hit]]
