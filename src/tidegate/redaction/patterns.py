r"""Which texts does an operator's regular expression mean, and may it run on a stream?

Lives here: reading the subset of regular expressions in which every value has a greatest width,
into a tree. Does not live here: what the tree comes to (shapes), the detector (custom).

The subset: literals, classes, `.`, `\d \w \s` (ASCII) and their complements, groups,
alternatives, `?` and `{m,n}`; `(?i)` at the start, `\b` at either end. Refused, each with words
of its own: `*`, `+` and `{m,}` (no greatest width), a repeat of what repeats in turn, look-around,
back-references, anchors, lazy and possessive repeats.
"""

from dataclasses import dataclass
from typing import Final, NoReturn

from tidegate.redaction.charsets import DIGITS, NO_LINE_END, SPACES, WORD, CharSet
from tidegate.redaction.folding import fold

MOST_CHARS: Final = 1024
"""The longest pattern, and the widest value that one may describe."""
_DEEPEST = 16


class UnsafePattern(ValueError):
    """The pattern is broken or may not run on a stream.

    `wrong` says why and `right` what to write instead, in our own words; `at` is the index in
    the pattern.
    """

    def __init__(self, wrong: str, right: str, at: int = 0) -> None:
        super().__init__(f"{wrong}: {right}")
        self.wrong, self.right, self.at = wrong, right, at


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Chain:
    """All parts one after the other; without parts the empty text."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part` from `least` to `most` times."""

    part: "Node"
    least: int
    most: int


Node = One | Chain | Choice | Repeat


def read_pattern(pattern: str) -> Node:
    """The tree of a regular expression of the subset. Raises UnsafePattern for any other.

    Characters of the pattern are folded like the text that it will see. Cost: linear.
    """
    if len(pattern) > MOST_CHARS:
        raise UnsafePattern(
            f"longer than {MOST_CHARS} characters", "split it into several detectors"
        )
    return _Reader(pattern).read()


def read_class(text: str) -> CharSet:
    """The set that a class such as `[0-9A-F]`, an escape or one character stands for."""
    tree = read_pattern(text)
    if not isinstance(tree, One):
        raise UnsafePattern("not one class of characters", "write one such as [0-9] or [A-Za-z0-9]")
    return tree.chars


_CLASSES: Final = {
    "d": DIGITS,
    "D": ~DIGITS,
    "w": WORD,
    "W": ~WORD,
    "s": SPACES,
    "S": ~SPACES,
}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_GROUPS: Final = {
    "(?=": "look-ahead",
    "(?!": "look-ahead",
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?P=": "a back-reference",
    "(?(": "a condition",
    "(?>": "an atomic group",
    "(?P": "a named group",
    "(?#": "a comment",
}


class _Reader:
    """Reads the subset by recursive descent; nothing is executed."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._any_case = False
        self._end = len(pattern)

    def read(self) -> Node:
        self._any_case = self._take("(?i)")
        self._take("\\b")
        head = self._text.removesuffix("\\b")
        if head != self._text and (len(head) - len(head.rstrip("\\"))) % 2 == 0:
            # The edges of a value are checked anyway, so the mark says nothing more.
            self._end = max(self._at, len(head))
        tree = self._choice()
        if self._at < self._end:
            self._refuse("a closing bracket without an opening one", r"write a literal one as \)")
        return tree

    def _choice(self) -> Node:
        parts = [self._chain()]
        while self._take("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _chain(self) -> Node:
        parts: list[Node] = []
        while self._at < self._end and self._peek() not in "|)":
            part = self._repeated(self._atom())
            parts.extend(part.parts if isinstance(part, Chain) else (part,))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _atom(self) -> Node:
        start = self._at
        char = self._next()
        if char in "?*+":
            self._refuse("a repeat of nothing", f"write a literal {char} as \\{char}", start)
        if char == "{":
            self._refuse("an opening brace", r"write a literal one as \{", start)
        if char in "^$":
            self._refuse(
                "a stream has no begin and no end of a line to look at",
                f"remove {char}; the edges of a value are checked anyway",
                start,
            )
        if char == "(":
            return self._group(start)
        if char == ".":
            return One(NO_LINE_END)
        if char == "[":
            return One(self._class(start))
        chars = self._escape(start) if char == "\\" else self._literal(char, start)
        return One(_in_any_case(chars) if self._any_case else chars)

    def _group(self, start: int) -> Node:
        if self._take("?") and not self._take(":"):
            head = self._text[start : start + 4]
            name = next((_GROUPS[mark] for mark in _GROUPS if head.startswith(mark)), None)
            self._refuse(
                f"{name or 'a flag inside the pattern'} is not allowed",
                "write a plain group (?:...); the edges of a value are checked anyway",
                start,
            )
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse("groups nested too deeply", f"use at most {_DEEPEST} levels", start)
        inside = self._choice()
        self._depth -= 1
        if not self._take(")"):
            self._refuse("an opening bracket without a closing one", "close it", start)
        return inside

    def _class(self, start: int) -> CharSet:
        negated = self._take("^")
        found = self._class_range(start)
        while self._peek() != "]":
            found |= self._class_range(start)
        self._at += 1
        found = _in_any_case(found) if self._any_case else found
        found = ~found if negated else found
        if not found:
            self._refuse("a class without characters", "name at least one character", start)
        return found

    def _class_range(self, start: int) -> CharSet:
        low = self._class_item(start)
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = self._class_item(start)
        if low.size != 1 or high.size != 1 or high.ranges < low.ranges:
            self._refuse("a range from high to low, or of a class", "write it as [a-z]", start)
        return CharSet(((low.ranges[0][0], high.ranges[0][0]),))

    def _class_item(self, start: int) -> CharSet:
        if self._at >= self._end:
            self._refuse("a class that is not closed", "write ] behind it", start)
        char = self._next()
        if char == "\\":
            if self._peek() == "b":
                self._refuse("\\b in a class is a backspace", "remove it", start)
            return self._escape(self._at - 1)
        if char == "[":
            self._refuse("an opening square bracket in a class", r"write it as \[", start)
        return self._literal(char, self._at - 1)

    def _escape(self, start: int) -> CharSet:
        char = self._next()
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS:
            return CharSet.chars(_CONTROLS[char])
        if char in "xuU":
            return self._code({"x": 2, "u": 4, "U": 8}[char], start)
        if char.isdigit():
            self._refuse("a back-reference is not allowed", "write the text out", start)
        if char in "bBAzZ":
            self._refuse(
                f"\\{char} is not allowed here",
                "remove it; the edges of a value are checked anyway",
                start,
            )
        if char in "pP":
            right = "write the characters as a class, for example [A-Za-z]"
            self._refuse(f"the escape \\{char} is not known", right, start)
        if char.isalpha():
            self._refuse(f"the escape \\{char} is not known", f"write {char}", start)
        return self._literal(char, start)

    def _code(self, digits: int, start: int) -> CharSet:
        text = self._text[self._at : self._at + digits]
        try:
            char = chr(int(text, 16)) if len(text) == digits and text.isalnum() else None
        except (ValueError, OverflowError):
            char = None
        if char is None:
            self._refuse("not the number of a character", r"write it as \xhh or \uhhhh", start)
        self._at += digits
        return self._literal(char, start)

    def _literal(self, char: str, start: int) -> CharSet:
        seen = fold(char)
        if not seen:
            self._refuse("an invisible character, which no detector sees", "remove it", start)
        if len(seen) > 1:
            self._refuse(f"detectors see {seen!r} in place of this one", "write that", start)
        return CharSet.chars(seen)

    def _repeated(self, part: Node) -> Node:
        start = self._at
        bounds = self._bounds()
        if bounds is None:
            return part
        least, most = bounds
        if self._peek() in ("?", "+", "*") or self._peek_bounds():
            self._refuse(
                "a second sign behind a repeat", "remove it; the longest value counts", self._at
            )
        if most > 1 and _varies(part):
            self._refuse(
                "a repeat inside a repeat", "write the inner one with a fixed count", start
            )
        return part if most == 1 == least else Repeat(part, least, most)

    def _bounds(self) -> tuple[int, int] | None:
        start = self._at
        if self._take("?"):
            return 0, 1
        if self._peek() in ("*", "+"):
            sign = self._peek()
            least = 0 if sign == "*" else 1
            self._refuse(
                f"{sign} has no greatest width", f"write {{{least},32}}, or what fits", start
            )
        if not self._peek_bounds():
            return None
        self._at += 1
        least_text = self._digits()
        comma = self._take(",")
        most_text = self._digits() if comma else least_text
        if not self._take("}") or not (least_text or most_text):
            self._refuse("an opening brace", r"write a literal one as \{", start)
        if not most_text:
            self._refuse("{m,} has no greatest width", "write an upper bound: {m,n}", start)
        least, most = int(least_text or "0"), int(most_text)
        if most < least:
            self._refuse("the bounds of a repeat are the wrong way round", "swap them", start)
        if most > MOST_CHARS or most == 0:
            self._refuse("a repeat out of range", f"use 1 to {MOST_CHARS}", start)
        return least, most

    def _digits(self) -> str:
        start = self._at
        while self._peek() in _DIGITS and self._at - start < 6:
            self._at += 1
        return self._text[start : self._at]

    def _peek_bounds(self) -> bool:
        return self._peek() == "{"

    def _peek(self) -> str:
        return self._text[self._at : min(self._at + 1, self._end)]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            self._refuse("it ends too early", "complete it", max(0, self._at - 1))
        self._at += 1
        return char

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at, self._end)
        self._at += len(text) if found else 0
        return found

    def _refuse(self, wrong: str, right: str, at: int | None = None) -> NoReturn:
        raise UnsafePattern(wrong, right, self._at if at is None else at)


_DIGITS: Final = frozenset("0123456789")


def _in_any_case(chars: CharSet) -> CharSet:
    """`chars` with the other case of every letter; complements of letters keep what they lack."""
    if chars.size > 4096:
        return chars
    both = {
        form
        for low, high in chars.ranges
        for code in range(low, high + 1)
        for form in (chr(code), chr(code).lower(), chr(code).upper())
        if len(form) == 1
    }
    return CharSet.chars("".join(sorted(both)))


def _varies(node: Node) -> bool:
    """Some repeat in it can be of several lengths; a part that may be left out is no repeat."""
    match node:
        case One():
            return False
        case Repeat(part, least, most):
            return (least != most and most > 1) or _varies(part)
        case Chain(parts) | Choice(parts):
            return any(_varies(part) for part in parts)


__all__ = [
    "MOST_CHARS",
    "Chain",
    "Choice",
    "Node",
    "One",
    "Repeat",
    "UnsafePattern",
    "read_class",
    "read_pattern",
]
