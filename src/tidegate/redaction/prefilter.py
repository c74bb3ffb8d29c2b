"""Where in a text could a value be, and which detectors must be asked about that place?

Lives here: one regex over the anchors of all detectors, built so that `re` finds the next place
at the speed of C, and the table from what it found to who is asked. Does not live here: the
detectors, the walk over the text (stream).
"""

import re
from collections.abc import Callable, Iterable, Sequence

from tidegate.redaction.barriers import LOOSE, TYPOGRAPHIC
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Anchors, AnyDetector, Searching

Search = Callable[[str, int, int], re.Match[str] | None]

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
        pairs: dict[str, dict[str, int]] = {always: {"": 0}} if always else {}
        self._everywhere = 0
        searching = []
        for place, detector in enumerate(detectors):
            if isinstance(detector, Searching):
                self._everywhere |= 1 << place
                searching.append(detector)
                continue
            for chars, after in detector.anchors or _ANY:
                known = pairs.setdefault(chars, {})
                known[after] = known.get(after, 0) | 1 << place
        plain = _compiled(pairs)
        self.search: Search = _with(plain.search, searching)
        """The first place in `text[start:end]` without which nothing there can be a value."""
        self._next = plain.search
        self._masks = _masks(pairs)

    def asked(self, text: str, start: int, end: int) -> int:
        """The mask of the detectors that have an anchor in `text[start:end]`."""
        mask = self._everywhere
        found = self._next(text, start, end)
        while found is not None:
            mask |= self._masks[found.lastindex or 0]
            found = self._next(text, found.start() + 1, end)
        return mask


def _compiled(pairs: dict[str, dict[str, int]]) -> re.Pattern[str]:
    """Alternatives that each begin with one character and end in an empty group.

    The first characters become one bit map to search with, and an alternative is left at its
    first character. A set beyond ASCII cannot be spelled out, so it costs more.
    """
    if not pairs:
        return re.compile(r"(?!)")
    if any(_WIDE(chars) for chars in pairs):
        parts = [
            f"(?<=[{chars}])(?:{after})()" for chars, known in pairs.items() for after in known
        ]
        return re.compile(f"[{''.join(pairs)}](?:{'|'.join(parts)})", re.DOTALL)
    parts = [
        f"{re.escape(char)}(?:{'|'.join(afters)})()"
        for char, (afters, _) in _by_char(pairs).items()
    ]
    return re.compile("|".join(parts), re.DOTALL)


def _masks(pairs: dict[str, dict[str, int]]) -> list[int]:
    """By number of the group that `_compiled` gives it, who is asked."""
    if any(_WIDE(chars) for chars in pairs):
        # Sets may overlap, and only the first one that fits is seen.
        everybody = 0
        for known in pairs.values():
            for mask in known.values():
                everybody |= mask
        return [everybody] * (1 + sum(map(len, pairs.values())))
    return [0, *(mask for _, mask in _by_char(pairs).values())]


def _by_char(pairs: dict[str, dict[str, int]]) -> dict[str, tuple[list[str], int]]:
    """What may follow each first character, and who asked for it."""
    found: dict[str, tuple[list[str], int]] = {}
    for chars, known in pairs.items():
        those = re.compile(f"[{chars}]")
        for char in filter(those.match, _ASCII):
            afters, mask = found.get(char, ([], 0))
            for after, more in known.items():
                mask |= more
                afters = [*afters, after] if after not in afters else afters
            found[char] = afters, mask
    return found


def _with(plain: Search, searching: Iterable[Searching]) -> Search:
    """`plain`, and what detectors find that look for themselves."""
    several = tuple(dict.fromkeys(searching))
    if not several:
        return plain

    def search(text: str, start: int, end: int) -> re.Match[str] | None:
        found = plain(text, start, end)
        for each in several:
            found = each.search(text, start, found.start() if found else end) or found
        return found

    return search


def plain_words(
    detectors: Iterable[AnyDetector], *, always: str, less_than: int
) -> Callable[[str, int], re.Match[str] | None]:
    """Matches text, from a place to its end, that holds no anchor and no long word.

    Group 1 ends behind the last character after which text may be cut. Words may be shorter than
    `less_than`; the characters of `always` stand in none.
    """
    sets = [always]
    for detector in detectors:
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
    return re.compile(f"((?:{part}[{cut}]++)*+){part}\\Z").match
