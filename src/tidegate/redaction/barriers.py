"""Where may text be cut without any value lying across the cut?

Lives here: the characters a value can be made of and the search for cuts. Does not live here:
what happens to the pieces (stream). A cut is decided by its neighboring characters alone, so it
falls in the same place however the text arrives:

- after every character that no value contains (punctuation, letters of other scripts);
- after white space, unless a digit stands on both sides of it (groups of a card number).

All functions work on folded text.
"""

import re

LATIN = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
"""Letters of the Latin script beyond ASCII, and marks that stand above or below one."""
VALUE_CHARS = rf"A-Za-z0-9._%+'@~\-{LATIN}"
_SPACE = r"[ \t\n\r]"
_HARD = rf"[^{VALUE_CHARS} \t\n\r]"
_CUT = rf"(?:{_HARD}|(?<![0-9]){_SPACE}|{_SPACE}(?=[^0-9]))"

# `.*` runs to the end and walks back, so the cost is the distance from the end to the cut.
_LAST = re.compile(rf"(?s:.*){_CUT}")
_LAST_BEFORE = re.compile(rf"(?s:.*){_CUT}(?=(?s:.))")
_NEXT = re.compile(_CUT)

LOOSE = frozenset(' \t\n\r!"#$&()*,/:;<=>?[\\]^`{|}')
"""The printable ASCII characters after which text without digits may always be cut."""

TYPOGRAPHIC = frozenset("\u2014\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb\u20ac\u00a3")
"""Signs beyond ASCII that stand in ordinary prose; no value contains one."""


def last_cut(text: str, start: int) -> int:
    """The last cut behind `start` that no further text can undo, or 0."""
    found = _LAST.match(text, start)
    return found.end() if found else 0


def cut_before(text: str, start: int, spot: int) -> int:
    """The last cut in `text[start:spot]` or at `spot`, or `start`."""
    found = _LAST_BEFORE.match(text, start, spot + 1)
    return found.end() if found else start


def cut_after(text: str, spot: int, end: int) -> int:
    """The first cut after the character at `spot`, or `end`."""
    found = _NEXT.search(text, spot, end)
    return found.end() if found else end
