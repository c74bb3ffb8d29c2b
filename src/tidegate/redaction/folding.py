"""Which plain character does a detector see in place of an unusual one?

Lives here: the folding of single characters (full-width forms, digits of other scripts, odd
spaces and hyphens, invisible characters) for detection only. Does not live here: replacement,
which always works on the original text. Folding maps each character by itself to one character
or to nothing, so folding the pieces of a text and folding the text give the same result.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

_SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_HYPHENS = (0x2010, 0x2011, 0x2012, 0x2013, 0x2043, 0x2212, 0xFE58, 0xFE63)
_INVISIBLE = (
    0x00AD,
    0x034F,
    0x061C,
    0x180E,
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    0xFEFF,
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)
_LAST_DIGIT = 0x1FBFA


@cache
def fold_table() -> dict[int, int | None]:
    """The table for `str.translate`; built once, about 10 ms."""
    table: dict[int, int | None] = dict.fromkeys(_SPACES, ord(" "))
    table.update(dict.fromkeys(_HYPHENS, ord("-")))
    for code in range(0x80, _LAST_DIGIT):
        digit = unicodedata.decimal(chr(code), None)
        if digit is not None:
            table[code] = ord("0") + digit
    for code in range(0xFF01, 0xFF5F):
        table[code] = code - 0xFEE0
    table |= {0xFE6B: ord("@"), 0xFE52: ord("."), 0x3002: ord("."), 0xFF61: ord(".")}
    # Mathematical letters are a common way to write an address that filters do not see.
    for code in range(0x1D400, 0x1D6A4):
        plain = unicodedata.normalize("NFKC", chr(code))
        if plain.isascii():
            table[code] = ord(plain)
    table.update(dict.fromkeys(_INVISIBLE))
    return table


@cache
def _foldable() -> Callable[[str], re.Match[str] | None]:
    """The search for characters of the basic plane that fold: one bit map, so it is fast."""
    chars = "".join(re.escape(chr(code)) for code in fold_table() if code < 0x10000)
    return re.compile(f"[{chars}]").search


_ASTRAL = re.compile("[\U00010000-\U0010ffff]").search


def fold(text: str) -> str:
    """The detector's view of `text`; the same object when nothing in it folds."""
    if text.isascii() or (_foldable()(text) is None and _ASTRAL(text) is None):
        return text
    return text.translate(fold_table())


def kept_places(text: str) -> list[int]:
    """The index in `text` of every character that folding keeps."""
    table = fold_table()
    return [i for i, char in enumerate(text) if table.get(ord(char), 0) is not None]
