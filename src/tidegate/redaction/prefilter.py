"""Where in a text could a value be, and which detectors must be asked about that place?

Lives here: one regex over the anchors of all detectors, built so that `re` finds the next place
at the speed of C, and the table from what it found to who is asked. Does not live here: the
detectors, the walk over the text (stream).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from tidegate.redaction.barriers import LOOSE, TYPOGRAPHIC
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Anchors, AnyDetector, Searching

Search = Callable[[str, int, int], re.Match[str] | None]
Plain = Callable[[str, int], re.Match[str] | None]

_ANCHORS_MAX = 12  # text with more of them is odd enough to ask about characters alone
_ASCII = tuple(map(chr, range(128)))
_LETTERS = tuple(filter(str.isalpha, map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))))
_ANY: Anchors = (("\\x00-\\U0010ffff", ""),)
# A set that may reach beyond ASCII: negated, with escapes of letters, or with such letters.
_WIDE = re.compile(r"\^|\\[A-Za-z0-9]|[^\x00-\x7f]").search


class Prefilter:
    """The anchors of `detectors`, each of which is bit `1 << its place` in a mask.

    `always` are characters that count as anchors of nobody.
    """

    def __init__(self, detectors: Sequence[AnyDetector], *, always: str = "") -> None:
        anchors: list[tuple[str, str, int]] = [(always, "", 0)] if always else []
        self._searching = []
        self._everywhere = 0
        for place, detector in enumerate(detectors):
            if isinstance(detector, Searching):
                self._everywhere |= 1 << place
                self._searching.append(detector)
            else:
                anchors += [(*pair, 1 << place) for pair in detector.anchors or _ANY]
        self._ascii = _Part(_by_char(anchors))
        self._wide = _Part(
            {f"[^\\x00-\\x7f](?<=[{chars}])": ([after], mask) for chars, after, mask in anchors}
            if any(_WIDE(chars) for chars, _, _ in anchors)
            else {}
        )
        # Most policies need no more than one regex.
        self.search: Search = self._search if self._wide or self._searching else self._ascii.next
        """The first place in `text[start:end]` without which nothing there can be a value."""

    def _search(self, text: str, start: int, end: int) -> re.Match[str] | None:
        found = self._ascii.next(text, start, end)
        if not text.isascii():
            found = self._wide.next(text, start, found.start() if found else end) or found
        for each in self._searching:
            found = each.search(text, start, found.start() if found else end) or found
        return found

    def asked(self, text: str, start: int, end: int) -> int:
        """The mask of the detectors that have an anchor in `text[start:end]`, or perhaps one."""
        mask = self._everywhere | self._ascii.asked(text, start, end)
        return mask if text.isascii() else mask | self._wide.asked(text, start, end)


class _Part:
    """One regex of alternatives that each begin with one character and end in an empty group.

    `starts` maps what an alternative begins with to what may follow and to who asked for it. The
    first characters become one bit map to search with, and an alternative is left at its first
    character.
    """

    def __init__(self, starts: dict[str, tuple[list[str], int]]) -> None:
        pattern = "|".join(
            f"{start}(?:{'|'.join(afters)})()" for start, (afters, _) in starts.items()
        )
        self._masks = [mask for _, mask in starts.values()]
        self._chars = [(each[-1], mask) for each, (_, mask) in starts.items() if _is_char(each)]
        self.next: Search = re.compile(pattern or r"(?!)", re.DOTALL).search

    def __bool__(self) -> bool:
        return bool(self._masks)

    def asked(self, text: str, start: int, end: int) -> int:
        """See `Prefilter.asked`."""
        mask = 0
        found = self.next(text, start, end)
        for _ in range(_ANCHORS_MAX):
            if found is None or found.lastindex is None:
                return mask
            mask |= self._masks[found.lastindex - 1]
            found = self.next(text, found.start() + 1, end)
        if not self._chars:
            return reduce(or_, self._masks)
        for char, more in self._chars:
            if more & ~mask and text.find(char, start, end) >= 0:
                mask |= more
        return mask


def _is_char(start: str) -> bool:
    return start in {start[-1], f"\\{start[-1]}"}


def _by_char(anchors: list[tuple[str, str, int]]) -> dict[str, tuple[list[str], int]]:
    """By first character in ASCII, escaped: what may follow it, and who asked for it."""
    found: dict[str, tuple[list[str], int]] = {}
    for chars, after, more in anchors:
        for char in filter(re.compile(f"[{chars}]").match, _ASCII):
            afters, mask = found.get(re.escape(char), ([], 0))
            afters = afters if after in afters else [*afters, after]
            found[re.escape(char)] = afters, mask | more
    return found


def plain_words(detectors: Iterable[AnyDetector], *, always: str, less_than: int) -> Plain:
    """Matches text, from a place to its end, that holds no anchor and no long word.

    Group 1 ends behind the last character after which text may be cut. Words may be shorter than
    `less_than`; the characters of `always` stand in none.
    """
    sets, searching = [always], []
    for detector in detectors:
        if isinstance(detector, Searching):
            searching.append(detector)
        else:
            sets += [chars for chars, _ in detector.anchors] or ["\\x00-\\U0010ffff"]
    anchors = [re.compile(f"[{chars}]").match for chars in sets]
    free = [
        char
        for char in (*_ASCII, *_LETTERS, *TYPOGRAPHIC)
        if (char >= " " or char in LOOSE) and not any(match(char) for match in anchors)
    ]
    cuts = LOOSE | TYPOGRAPHIC
    cut = "".join(re.escape(char) for char in free if char in cuts)
    word = "".join(re.escape(char) for char in free if char not in cuts and fold(char) == char)
    if not cut or not word:
        return re.compile(r"(?!)").match
    part = f"[{word}]{{0,{less_than - 1}}}+"
    plain = re.compile(f"((?:{part}[{cut}]++)*+){part}\\Z").match
    return _unless_found(plain, searching) if searching else plain


def _unless_found(plain: Plain, searching: Sequence[Searching]) -> Plain:
    """`plain`, unless a detector that looks for itself finds something in what could leave."""

    searches = [each.search for each in searching]

    def match(text: str, start: int) -> re.Match[str] | None:
        found = plain(text, start)
        if found is not None and (end := found.end(1)) > start:
            for search in searches:
                if search(text, start, end) is not None:
                    return None
        return found

    return match
