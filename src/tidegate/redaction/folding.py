r"""Which plain characters does a detector see in place of unusual ones?

Lives here: the folding of characters (full-width forms, digits of other scripts, ligatures, odd
spaces and hyphens, invisible characters) and of escapes (`%40`, `&#64;`, `\u0040`) for detection
only. Does not live here: replacement, which always works on the original text.

Each character or escape folds by itself, to one or more characters or to nothing. So folding the
pieces of a text and folding the text give the same result, as long as no piece ends inside an
escape; `open_end` says where to cut.
"""

import re
import unicodedata
from functools import cache
from html.entities import html5
from typing import TYPE_CHECKING

from tidegate.redaction.places import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_HYPHENS = (0x2010, 0x2011, 0x2012, 0x2013, 0x2043, 0x2212, 0xFE58, 0xFE63)
# Also control characters, fillers, and the marks that stand above, below or around another
# character: they hide it from a filter and from nobody else. Not the controls that part one field
# from the next (NUL, SOH, BEL, FS to US): a value would touch what stands in the next field.
_INVISIBLE = (
    *range(0x02, 0x07),
    0x08,
    *range(0x0E, 0x1C),
    *range(0x7F, 0x85),
    *range(0x86, 0xA0),
    0x00AD,
    *range(0x0300, 0x0370),
    *range(0x0483, 0x048A),
    *range(0x0591, 0x05BE),
    *range(0x0610, 0x061B),
    0x061C,
    *range(0x064B, 0x0660),
    0x0670,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    *range(0x180B, 0x1810),
    *range(0x1AB0, 0x1B00),
    *range(0x1DC0, 0x1E00),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0x20D0, 0x2100),
    0x2800,
    0x3164,
    *range(0xFE00, 0xFE10),
    *range(0xFE20, 0xFE30),
    0xFEFF,
    0xFFA0,
    *range(0xFFF9, 0xFFFD),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
)
_LAST_DIGIT = 0x1FBFA
# Letters and digits in other clothes: circled, in brackets, with a full stop, ligatures,
# mathematical. Superscripts are not among them: a footnote mark behind a number is not part of it.
_DRESSED = (
    *range(0x2100, 0x2120),
    *range(0x2124, 0x2140),
    *range(0x2160, 0x2180),
    *range(0x2460, 0x24EB),
    *range(0xFB00, 0xFB07),
    *range(0x1D400, 0x1D6A4),
    *range(0x1F100, 0x1F16A),
)
_NAME_MAX = 12
# Control characters that `\n` and the like stand for.
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
# In a string literal these stand for themselves because the plain character would end it.
_QUOTING = frozenset(map(ord, "\"'\\`"))
CONTROLS = r"\x02-\x06\x08\x0e-\x1b\x7f"
"""What stands in a character class of the control characters of ASCII that vanish."""
# What a terminal takes for a color or a movement (ECMA-48: `ESC [`, parameters, a letter) or for a
# choice of characters; colors also spelled out, as in source code and JSON.
_SEQUENCE = r"\[[0-?]{0,36}"
_COLOR = r"\[[0-9;:]{0,28}"
_UNSEEN = ("m", "K")  # color, and erasing the rest of a line; others move what follows elsewhere
# Letters and digits need no escape. Before a digit `%` is a wildcard (`LIKE '%536-90-4399%'`).
_PERCENT_WORD = "3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]"
_PERCENT_SIGN = "2[0-9A-Fa-f]|3[A-Fa-f]|[46]0|[57][B-Fb-f]"
_OPEN = re.compile(
    rf"%(?:25){{0,4}}(?:[2-7]|{_PERCENT_WORD})?"
    r"|&(?:amp;){0,4}(?:#(?:[0-9]{0,15}|[xX][0-9A-Fa-f]{0,14})|(?P<name>[A-Za-z][A-Za-z0-9]{0,11}|))"
    r"|\\{1,4}(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?|03?)?"
    rf"|\\{{1,4}}(?:u001[bB]|x1[bB]|033|e)(?:{_COLOR})?"
    rf"|\x1b(?:{_SEQUENCE}|[()])?"
)
OPEN_MAX = 40
"""An escape that has not ended has fewer characters."""

_ASTRAL = 0x10000
odd = re.compile(rf"[%&\\{CONTROLS}]").search
"""The first character of a text that vanishes or begins an escape; of ASCII none else folds."""
# Not `[...]+`: a pattern that begins with a set is searched at the speed of its bit map.
_CONTROL_RUN = re.compile(rf"[{CONTROLS}][{CONTROLS}]*")


@cache
def fold_table() -> dict[int, str | None]:
    """What each character folds to, None for nothing; built once, about 15 ms."""
    table: dict[int, str | None] = dict.fromkeys(_SPACES, " ")
    table.update(dict.fromkeys(_HYPHENS, "-"))
    for code in range(0x80, _LAST_DIGIT):
        digit = unicodedata.decimal(chr(code), None)
        if digit is not None:
            table[code] = str(digit)
    for code in range(0xFF01, 0xFF5F):
        table[code] = chr(code - 0xFEE0)
    table |= {0xFE6B: "@", 0xFE52: ".", 0x2024: ".", 0x3002: ".", 0xFF61: "."}
    for code in _DRESSED:
        plain = unicodedata.normalize("NFKC", chr(code))
        if plain.isascii():
            table[code] = plain
    table.update(dict.fromkeys(_INVISIBLE))
    return table


@cache
def _named() -> dict[str, str]:
    """The characters with names in HTML that matter to a detector: of ASCII, or Latin letters."""
    named = {}
    for name, char in html5.items():
        if name.endswith(";") and len(name) <= _NAME_MAX and len(char) == 1:
            plain = char.translate(fold_table())
            if plain in {"", "\t", "\n"} or " " <= plain <= "~" or "\u00c0" <= plain < "\u0250":
                named[name[:-1]] = char
    return named


@cache
def _name_starts() -> frozenset[str]:
    return frozenset(name[:size] for name in _named() for size in range(1, len(name) + 1))


@cache
def _escape() -> re.Pattern[str]:
    names = "|".join(_named())
    return re.compile(
        r"[%&\\\x1b](?:"
        rf"(?<=%)(?:25){{0,4}}(?P<percent>{_PERCENT_SIGN}|(?:{_PERCENT_WORD})(?![0-9]))"
        r"|(?<=&)(?:amp;){0,4}(?:#(?:0{0,8}(?P<decimal>[1-9][0-9]{0,6})"
        rf"|[xX]0{{0,8}}(?P<hex>[1-9A-Fa-f][0-9A-Fa-f]{{0,5}}))|(?P<name>{names}));"
        rf"|(?<=\x1b)(?:(?P<choice>[()][0-9A-Z])|(?P<sequence>{_SEQUENCE}[@-~]))"
        rf"|(?P<color>(?<=\\)\\{{0,3}}(?:u001[bB]|x1[bB]|033|e){_COLOR}[mK])"
        r"|(?<=\\)\\{0,3}(?:u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})"
        r"|(?P<control>[nrt])|(?P<sign>[_\-.@+~:/=])))"
    )


@cache
def _folding() -> re.Pattern[str]:
    """What may fold: one bit map for the basic plane, and everything beyond it."""
    basic = _ranges(code for code in fold_table() if code < _ASTRAL)
    return re.compile(f"[{basic}\U00010000-\U0010ffff]")


@cache
def _sizing() -> re.Pattern[str]:
    """What folds to more than one character, or to nothing."""
    table = fold_table().items()
    gone = _ranges(code for code, plain in table if not plain)
    several = _ranges(code for code, plain in table if len(plain or "") > 1)
    return re.compile(f"[{gone}{several}](?:(?<=[{gone}])[{gone}]*)?")


def _ranges(codes: "Iterable[int]") -> str:
    """What stands in a character class; beyond the basic plane each part of it costs time."""
    parts: list[str] = []
    start = last = -2
    for code in (*sorted(codes), -2):
        if code == last + 1:
            last = code
            continue
        if start >= 0:
            parts.append(f"{re.escape(chr(start))}-{re.escape(chr(last))}")
        start = last = code
    return "".join(parts)


def _plain_char(found: re.Match[str]) -> str:
    return fold_table().get(ord(found[0]), found[0]) or ""


def _fold_chars(text: str) -> str:
    # Most characters do not fold: `str.translate` would ask about each of them.
    return text if text.isascii() else _folding().sub(_plain_char, text)


def may_escape(text: str) -> bool:
    """There is a character that an escape begins with."""
    return "%" in text or "&" in text or "\\" in text or "\x1b" in text


def is_plain(text: str) -> bool:
    """Nothing in `text` folds, and no escape begins in it that more text may complete.

    False only means "perhaps not".
    """
    if odd(text) is not None and (
        open_end(text) < len(text) or _escape().search(text) or _CONTROL_RUN.search(text)
    ):
        return False
    return text.isascii() or _folding().search(text) is None


def fold(text: str) -> str:
    """The detector's view of `text`; the same object when nothing in it folds."""
    if odd(text) is None:
        return _fold_chars(text) if not text.isascii() else text
    return _folding().sub(_plain_char, _escape().sub(_decoded, text))


def resized(text: str) -> tuple[str, list[Unit]]:
    """`fold(text)`, and the stretches of it that are longer or shorter than their originals."""
    if odd(text) is None and text.isascii():
        return text, []
    out: list[str] = []
    units: list[Unit] = []
    place = at = 0
    for start, end, plain in _changes(text):
        between = _fold_chars(text[place:start])
        at += len(between)
        out += [between, plain]
        units.append(Unit(at, start, len(plain), end - start))
        at, place = at + len(plain), end
    out.append(_fold_chars(text[place:]))
    return "".join(out), units


def _changes(text: str) -> "Iterator[tuple[int, int, str]]":
    """Start and end of what folds to another size, and what it folds to."""
    place = 0
    for found in _escape().finditer(text):
        decoded = _decoded(found)
        if decoded != found[0]:
            yield from _sized(text, place, found.start())
            yield *found.span(), _fold_chars(decoded)
            place = found.end()
    yield from _sized(text, place, len(text))


def _sized(text: str, start: int, end: int) -> "Iterator[tuple[int, int, str]]":
    # In ASCII only control characters vanish, and a small set is searched faster.
    pattern = _CONTROL_RUN if text.isascii() else _sizing()
    for found in pattern.finditer(text, start, end):
        plain = "" if len(found[0]) > 1 else _plain_char(found)
        yield *found.span(), plain


def _decoded(found: re.Match[str]) -> str:
    """The character that an escape stands for, or the escape itself if it is none."""
    kind = found.lastgroup
    if kind is None:
        return found[0]
    value = found[kind]
    if kind in {"choice", "color", "sequence"}:
        return "\f" if kind == "sequence" and value[-1] not in _UNSEEN else ""
    if kind == "sign":
        return value
    if kind == "name":
        return _named()[value]
    if kind == "control":
        return _CONTROL[value]
    code = int(value, 10 if kind == "decimal" else 16)
    if kind in {"unit", "byte"} and code in _QUOTING:
        return found[0]
    # A control character or half of a surrogate pair says nothing to a detector.
    if code in {9, 10, 13} or 0x20 <= code < 0x7F or 0xA0 <= code < 0xD800:
        return chr(code)
    return chr(code) if 0xE000 <= code <= 0x10FFFF else found[0]


def open_end(text: str) -> int:
    """Where an escape begins that more text may complete or lengthen, or the end of `text`."""
    low = max(0, len(text) - OPEN_MAX)
    place = max(text.rfind(char, low) for char in "%&\\\x1b")
    if place < 0:
        return len(text)
    if text[place] == "\\":
        last = place
        while place > max(low, last - 3) and text[place - 1] == "\\":
            place -= 1
    found = _OPEN.fullmatch(text, place)
    if found is None or (found["name"] and found["name"] not in _name_starts()):
        return len(text)
    return place
