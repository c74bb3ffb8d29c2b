"""What may a careless reader take this text for?

Lives here: the folding that deny rules apply to names and values, and how much of it is done for
one text. Does not live here: what is compared once it is folded (patterns, predicates, rules).

Whoever sends a text chooses its signs, and some grow to eighteen in NFKC. So what is folded for
one request has bounds, which `is_short` and `folded_names` keep; what is beyond them is judged
as a text of which nothing is known: it opens no allow and meets every deny.
"""

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from typing import Final

MAX_FOLDED_CHARS: Final = 2048
_MOST_ODD_NAME_CHARS: Final = 4096
_MOST_GROWTH: Final = 18
"""Of U+FDFA; no sign has more in NFKC (UAX #15)."""
_REMEMBERED_CHARS: Final = 1024
_MOST_REMEMBERED: Final = 64
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
# Letters and marks that are drawn as nothing: Hangul fillers, the combining grapheme joiner,
# Khmer inherent vowels, the Braille blank, variation selectors.
_BLANK: Final = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800") | frozenset(
    map(chr, range(0xFE00, 0xFE10))
)
_MOST_MARKS: Final = 30
_UNSEEN: Final = bytes((*range(0x21), 0x7F))
"""What of ASCII nobody sees: blanks and control characters."""


def fold(text: str) -> str:
    """`text` as a careless reader may take it: NFKC, case folded, without invisible characters.

    Cost: linear, half a microsecond for each character that it has in NFKC. Short ones are
    remembered, since each rule asks about the same.
    """
    if text.isascii():
        return text.lower().encode("ascii").translate(None, _UNSEEN).decode("ascii")
    return _remembered_fold(text) if len(text) <= _REMEMBERED_CHARS else _folded(text)


def _folded(text: str) -> str:
    # Three rounds, since each step can give the others more to do; then nothing changes any more.
    for _round in range(3):
        before, text = text, _seen(compatible(compatible(text).casefold()))
        if text == before:
            break
    return text


_remembered_fold = lru_cache(_MOST_REMEMBERED)(_folded)


def _seen(text: str) -> str:
    unseen = [ord(character) for character in set(text) if is_invisible(character)]
    return text.translate(dict.fromkeys(unseen)) if unseen else text


def fold_words(text: str) -> str:
    """`fold`, but with one blank between any two words."""
    return " ".join(filter(None, map(fold, compatible(text).split())))


def is_short(text: str, most_chars: int = MAX_FOLDED_CHARS) -> bool:
    """Whether it has no more characters than that, also in NFKC. Cost: of that one round."""
    if len(text) > most_chars or text.isascii():
        return len(text) <= most_chars
    return len(text) * _MOST_GROWTH <= most_chars or len(compatible(text)) <= most_chars


def folded_names(names: Collection[str]) -> list[str] | None:
    """Each of the names, folded; None if too much of them is outside of ASCII.

    Such names may have 4,096 characters together, as they are and in NFKC. Cost: some
    milliseconds at the most, and a part of a microsecond for each name in ASCII.
    """
    left = _MOST_ODD_NAME_CHARS
    for name in names:
        if name.isascii():
            continue
        left -= len(name)
        if left >= 0:
            left -= len(compatible(name))
        if left < 0:
            return None
    return list(map(fold, names))


def compatible(text: str) -> str:
    """`text` in NFKC, in linear time; of a run of combining marks only the first thirty stay.

    Normalizing sorts each run by insertion, and a text may be one run. No language stacks more
    than thirty (the stream-safe text of UAX #15, section 13).
    """
    if len(text) <= _MOST_MARKS or text.isascii():
        return unicodedata.normalize("NFKC", text)
    return _remembered_spelling(text) if len(text) <= _REMEMBERED_CHARS else _normalized(text)


def _normalized(text: str) -> str:
    marks = {character for character in set(text) if _is_mark(character)}
    if not marks:
        return unicodedata.normalize("NFKC", text)
    kept, run = [], 0
    for character in text:
        run = run + 1 if character in marks else 0
        if run <= _MOST_MARKS:
            kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept))


_remembered_spelling = lru_cache(_MOST_REMEMBERED)(_normalized)


def _is_mark(character: str) -> bool:
    # Some characters are no marks themselves and become marks in NFKC.
    if character.isascii():
        return False
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


def is_invisible(character: str) -> bool:
    """Whether it is drawn as nothing or as a blank, or is no character at all."""
    return character in _BLANK or unicodedata.category(character) in _INVISIBLE


__all__ = [
    "MAX_FOLDED_CHARS",
    "compatible",
    "fold",
    "fold_words",
    "folded_names",
    "is_invisible",
    "is_short",
]
