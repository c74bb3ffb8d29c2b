"""What does a text look like without its disguises, by a slow and plain reading of the rules?

Written apart from `tidegate.redaction.folding`: no tables, no compiled alternatives. Escapes are
read by the decoders of the standard library, characters by their Unicode properties.
"""

import html
import json
import re
import unicodedata
import urllib.parse
from typing import NamedTuple

_HYPHENS = "\u2010\u2011\u2012\u2013\u2043\u2212\ufe58\ufe63"
_FILLERS = "\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\ufff9\ufffa\ufffb"
_WIDE = ("<wide>", "<narrow>", "<small>")
_DRESSED = ("<circle>", "<compat>", "<font>", "<square>")
_LONGEST = 36


class Seen(NamedTuple):
    """A character of the view and the stretch of the original that it stands for."""

    char: str
    start: int
    end: int


def view(text: str) -> list[Seen]:
    """The characters that a detector sees."""
    seen = []
    place = 0
    while place < len(text):
        decoded, size = _escape(text, place)
        seen += [Seen(char, place, place + size) for char in _plain(decoded)]
        place += size
    return seen


def _escape(text: str, place: int) -> tuple[str, int]:
    """The character at `place` and how many characters spell it."""
    if text[place] == "\x1b":
        color = re.match(r"\x1b\[[0-9;:?]{0,24}[A-Za-z]", text[place:])
        return ("", len(color[0])) if color else (text[place], 1)
    if text[place] in "%&\\":
        for size in range(min(_LONGEST, len(text) - place), 1, -1):
            decoded = _decoded(text[place : place + size])
            if decoded is not None:
                return decoded, size
    return text[place], 1


def _decoded(word: str) -> str | None:
    if word[0] == "%":
        return _printable(_repeatedly(word, urllib.parse.unquote)) if "%" not in word[1:] else None
    if word[0] == "&":
        if word[-1] != ";" or "&" in word[1:] or re.search("#0*;", word):
            return None
        return _known(_repeatedly(word, html.unescape))
    return _backslashed(word.lstrip("\\")) if 1 <= word.count("\\") <= 4 else None


def _repeatedly(word: str, decode: object) -> str:
    for _ in range(5):
        if callable(decode):
            word = decode(word)
    return word


def _printable(char: str) -> str | None:
    return char if len(char) == 1 and " " <= char <= "~" else None


def _known(char: str) -> str | None:
    plain = len(char) == 1 and char != "\ufffd" and (char >= " " or char in "\t\n\r")
    return char if plain and not "\x7f" <= char < "\xa0" else None


def _backslashed(rest: str) -> str | None:
    if re.fullmatch(r"(?:u001[bB]|x1[bB]|033|e)\[[0-9;:?]{0,24}m", rest):
        return ""
    if rest in {"n", "r", "t"}:
        return str(json.loads(f'"\\{rest}"'))
    if len(rest) == 1 and rest in "_-.@+~:/=":
        return rest
    if re.fullmatch("u[0-9A-Fa-f]{4}", rest) or re.fullmatch("x[0-9A-Fa-f]{2}", rest):
        char = _known(chr(int(rest[1:], 16)))
        return None if char is None or char in "\"'\\`" or "\ud800" <= char < "\ue000" else char
    return None


def _plain(char: str) -> str:
    """What a character is without its dress; nothing if it cannot be seen."""
    if _vanishes(char):
        return ""
    if unicodedata.category(char) == "Zs":
        return " "
    if char in _HYPHENS:
        return "-"
    if char in "\u3002\uff61\u2024\ufe52":
        return "."
    digit = unicodedata.decimal(char, None)
    return _undressed(char) if digit is None else str(digit)


def _vanishes(char: str) -> bool:
    if char in {"", "\t", "\n", "\v", "\f", "\r", "\x85"}:
        return not char
    name = unicodedata.name(char, "")
    return (
        unicodedata.category(char) in {"Cc", "Cf"}
        or char in _FILLERS
        or "COMBINING" in name
        or "VARIATION SELECTOR" in name
    )


def _undressed(char: str) -> str:
    dress = unicodedata.decomposition(char).split(" ")[0]
    plain = unicodedata.normalize("NFKC", char)
    if not plain.isascii():
        return char
    # The dots of an ellipsis are no dots.
    dressed = dress in _DRESSED and any(map(str.isalnum, plain))
    return plain if dressed or dress in _WIDE else char
