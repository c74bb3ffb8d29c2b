"""Which characters belong to this set, and how is the set written in a regular expression?

Lives here: sets of characters as sorted ranges, with what a pattern needs to be judged by: union,
complement, overlap. Does not live here: the reading of patterns (patterns).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

LAST = 0x10FFFF


@dataclass(frozen=True, slots=True)
class CharSet:
    """Characters as ranges of code points, both ends included, sorted, none touching another."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Self:
        """The set of all characters in `ranges`, which may come in any order and overlap."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    @classmethod
    def chars(cls, chars: str) -> Self:
        """The set of the characters of a text."""
        return cls.of((ord(char), ord(char)) for char in chars)

    def __contains__(self, char: str) -> bool:
        code = ord(char)
        return any(low <= code <= high for low, high in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: "CharSet") -> "CharSet":
        return CharSet.of(self.ranges + other.ranges)

    def __invert__(self) -> "CharSet":
        gaps, place = [], 0
        for low, high in self.ranges:
            if low > place:
                gaps.append((place, low - 1))
            place = high + 1
        if place <= LAST:
            gaps.append((place, LAST))
        return CharSet(tuple(gaps))

    def __and__(self, other: "CharSet") -> "CharSet":
        return ~(~self | ~other)

    def __sub__(self, other: "CharSet") -> "CharSet":
        return self & ~other

    def meets(self, other: "CharSet") -> bool:
        """Some character belongs to both."""
        return bool(self & other)

    @property
    def size(self) -> int:
        """How many characters there are."""
        return sum(high - low + 1 for low, high in self.ranges)

    def sample(self, turn: int = 0) -> str:
        """A character of a set that is not empty; printable ASCII first, another one each turn."""
        plain = self & _PRINTABLE or self
        turn = turn % plain.size if plain else 0
        for low, high in plain.ranges:
            if turn <= high - low:
                return chr(low + turn)
            turn -= high - low + 1
        raise ValueError("an empty set has no character")

    def inside_class(self) -> str:
        """The set as it stands between the brackets of a class."""
        return "".join(
            _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
            for low, high in self.ranges
        )

    def regex(self) -> str:
        """A pattern for one character of the set."""
        if not self.ranges:
            return "(?!)"
        low, high = self.ranges[0]
        if len(self.ranges) == 1 and low == high:
            return _escaped(low)
        return f"[{self.inside_class()}]"


def _escaped(code: int) -> str:
    char = chr(code)
    if char.isascii():
        if char.isalnum():
            return char
        return f"\\{char}" if char.isprintable() else f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_PRINTABLE = CharSet(((0x21, 0x7E),))
DIGITS = CharSet.chars("0123456789")
LETTERS = CharSet.of([(ord("A"), ord("Z")), (ord("a"), ord("z"))])
WORD = DIGITS | LETTERS | CharSet.chars("_")
SPACES = CharSet.chars(" \t\n\r\f\v")
ANY = CharSet(((0, LAST),))
NO_LINE_END = ~CharSet.chars("\n")
