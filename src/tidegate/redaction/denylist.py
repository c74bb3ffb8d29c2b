"""Does one of these known values stand in the text?

Lives here: lists of exact literals (names, addresses, numbers of customers), compiled for
streams: the cost of a text does not grow with the list. Does not live here: files (config).

A literal is found wherever the same words stand in the same order:

- upper and lower case, accents, compatible forms (full-width letters, ligatures) and the
  typographic apostrophe make no difference;
- one space stands for up to 32 characters of white space, line ends included;
- every other character stands for itself, folded as for all detectors (odd hyphens, invisible
  characters);
- words are whole words. In scripts without spaces between words every character is a word.

Of several literals that begin at one place the longest counts.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Anchors, Hit, Verdict
from tidegate.redaction.spans import Kind

DENIED = Kind("DENIED", "deny_list")
FAMILY: Final = "deny_list"
RANK: Final = 26
"""Behind custom detectors, before the built-in ones that recognize a value by its form."""

MOST_CHARS: Final = 256
LEAST_CHARS: Final = 2

# Scripts that write words without spaces between them, and one whose particles touch the word.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff"
    "\u3105-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARKS: Final = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff"
_LETTER: Final = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_STARTS: Final = re.compile(rf"(?<!{_LETTER}){_LETTER}++|[^\s{_MARKS}](?<!{_LETTER})")
_TOKEN: Final = re.compile(rf"{_LETTER}++|\s++|.", re.DOTALL)
# The same for text that is all ASCII.
_PLAIN_STARTS: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++|[^\sA-Za-z0-9]")
_plain_starts: Final = _PLAIN_STARTS.findall
_SAME: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'"})
_MOST_SPACE: Final = 32
_END: Final = ""

Node = dict[str, "Node"]


class UnusableLiteral(ValueError):
    """A literal that cannot be looked for; the words never hold it."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(f"{wrong}: {right}")
        self.wrong, self.right = wrong, right


class Literals:
    """The literals of one list, compiled: about 5 us and 500 bytes each. Raises UnusableLiteral."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.root: Node = {}
        self.size = 0
        for literal in literals:
            node = self.root
            for token in tokens(literal):
                node = node.setdefault(token, {})
            self.size += _END not in node
            node[_END] = {}


def tokens(literal: str) -> list[str]:
    """What has to follow each other in a text. Raises UnusableLiteral.

    White space at either end does not count.
    """
    text = fold(literal.strip())
    if len(text) > MOST_CHARS:
        raise UnusableLiteral(
            f"longer than {MOST_CHARS} characters", "write the part that tells it from others"
        )
    if sum(char.isalnum() for char in text) < LEAST_CHARS:
        raise UnusableLiteral(
            f"fewer than {LEAST_CHARS} letters or digits", "it would be found everywhere: remove it"
        )
    return [_key(found[0]) for found in _TOKEN.finditer(text)]


def _key(token: str) -> str:
    """What two spellings of one token have in common."""
    if token.isascii():
        return " " if token.isspace() else token.lower()
    if token.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", token.translate(_SAME)).casefold()
    plain = unicodedata.normalize("NFKD", plain)
    return "".join(char for char in plain if not unicodedata.combining(char)) or token


@dataclass(frozen=True, slots=True)
class _Walk:
    """How far the literals go along with a text.

    `end` is the end of the longest literal if the text ends where it was cut, or -1. `open`: with
    more text that could change.
    """

    end: int
    open: bool


class DenyList:
    """Finds the literals of some lists, as one family."""

    family = FAMILY
    rank = RANK
    shortest = LEAST_CHARS
    anchors: Anchors = ()

    def __init__(self, *lists: Literals) -> None:
        self._roots: Sequence[Node] = [each.root for each in lists if each.root]
        self._first = frozenset(token for root in self._roots for token in root)
        self._none_of = self._first.isdisjoint

    def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """The first place in a closed `text[start:end]` at which a literal may begin."""
        piece = text[start:end]
        if piece.isascii() and self._none_of(_plain_starts(piece.lower())):
            return None
        for found in _starts(text).finditer(text, start, end):
            # A word that ends here in a letter of another script may go on behind the cut.
            if _key(found[0]) in self._first or (found.end() == end and not found[0].isascii()):
                return found
        return None

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`; leaves to `opens` what the text from `end` on can still change."""
        passed = start
        for found in _starts(text).finditer(text, start, end):
            if found.start() >= passed and _key(found[0]) in self._first:
                walk = self._walk(text, found.start(), end)
                if walk.end >= 0 and not walk.open:
                    yield _hit(found.start(), walk.end)
                    passed = walk.end

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        for found in _starts(text).finditer(text, start, stop):
            may = found.end() == stop or _key(found[0]) in self._first
            if may and self._walk(text, found.start(), stop).open:
                return found.start()
        return None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        walk = self._walk(text, start, end)
        if walk.open and not ended:
            return Verdict.WAIT
        return _hit(start, walk.end) if walk.end >= 0 else Verdict.TEXT

    def _walk(self, text: str, start: int, end: int) -> _Walk:
        walks = [_follow(root, text, start, end) for root in self._roots]
        return _Walk(
            max((walk.end for walk in walks), default=-1), any(walk.open for walk in walks)
        )


def _starts(text: str) -> re.Pattern[str]:
    return _PLAIN_STARTS if text.isascii() else _STARTS


def _follow(node: Node, text: str, start: int, end: int) -> _Walk:
    longest, place = -1, start
    while len(node) > (_END in node):
        found = _TOKEN.match(text, place, end)
        if found is None:
            return _Walk(longest, open=True)
        token, place = found[0], found.end()
        space = token.isspace()
        following = node.get(_key(token)) if not space or len(token) <= _MOST_SPACE else None
        grows = place == end and (space or token[-1].isalnum() or len(token) > 1)
        if following is not None and _END in following:
            longest = place
        if grows:
            return _Walk(longest, open=True)
        if following is None:
            break
        node = following
    return _Walk(longest, open=False)


def _hit(start: int, end: int) -> Hit:
    return Hit(start, end, FAMILY, FAMILY, DENIED)


__all__ = [
    "DENIED",
    "MOST_CHARS",
    "DenyList",
    "Literals",
    "UnusableLiteral",
    "tokens",
]
