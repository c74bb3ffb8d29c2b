r"""How are values inside tool-call arguments redacted while the JSON text arrives in pieces?

Lives here: an incremental lexer for JSON text. Escapes are decoded before detection, replacement
happens inside string values only, and what is not replaced leaves in its original spelling
(`\/` stays `\/`). Structure passes, and so do keys; keys and numbers are judged when they are
complete (judgement). Text that turns out not to be JSON is redacted as plain text from the first
character on that JSON does not allow. Does not live here: which delta belongs to which call
(channels).
"""

import json
import re
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidegate.redaction.judgement import judge_key, judge_number

if TYPE_CHECKING:
    from tidegate.redaction.stream import Piece
    from tidegate.redaction.treatment import Text, Treatment

_MAX_DEPTH = 256
_LITERAL_MAX = 64
_KEY_MAX = 512
_RUN = re.compile(r'[^"\\]*')
_KEY = re.compile(r'((?:[^"\\]|\\.)*+)"', re.DOTALL)
_KEY_PART = re.compile(r'(?:[^"\\]|\\.)*+', re.DOTALL)
_SPACES = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]+")
_SPACE_MAX = 64
_SHORT_SPACE = re.compile(r"[ \t\n\r]{0,64}")
_LITERAL = re.compile(r'[^ \t\n\r{}\[\]:,"]+')
_VALID = re.compile(r"true|false|null|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|[^u])", re.DOTALL)
_OPEN_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")
_PAIR = re.compile(r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}")
_HIGH = re.compile(r"\\u[dD][89abAB][0-9A-Fa-f]{2}")
_OPEN_LOW = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9A-Fa-f]{0,2})?)?)?)?")
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _Want(Enum):
    """What may come next outside of strings."""

    VALUE = auto()
    VALUE_OR_END = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    NEXT = auto()  # a comma or the end of what is open


_VALUE_WANTED = frozenset({_Want.VALUE, _Want.VALUE_OR_END})
_KEY_WANTED = frozenset({_Want.KEY, _Want.KEY_OR_END})
_CLOSED_BY = MappingProxyType(
    {
        "{}": frozenset({_Want.KEY_OR_END, _Want.NEXT}),
        "[]": frozenset({_Want.VALUE_OR_END, _Want.NEXT}),
        "{]": frozenset[_Want](),
        "[}": frozenset[_Want](),
    }
)


def quoted(text: str) -> str:
    """`text` as a JSON string; half a surrogate pair leaves as an escape."""
    if text.isascii():
        return json.encoder.encode_basestring_ascii(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.encoder.encode_basestring_ascii(text)
    return json.encoder.encode_basestring(text)


def _decoded(raw: str) -> str:
    """The text of a JSON string that is spelled `raw`; as it is if that is no JSON."""
    if "\\" not in raw:
        return raw
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw


class ArgumentsRedactor:
    """Redacts one JSON text: `feed` fragments, then `flush`.

    Holds what the redactor of the current string holds, one escape, one key, or one number.
    """

    def __init__(self, treatment: "Treatment") -> None:
        self._treatment = treatment
        self._begin()

    def _begin(self) -> None:
        self.complete = False  # a whole object or array has gone through, and nothing after it
        self._stack: list[tuple[str, str]] = []  # what is open, and the key that it stands under
        self._want = _Want.VALUE
        self._in_key = False
        self._in_long_key = False
        self._key = ""  # the key that the next value stands under, or the list that it stands in
        self._value: Text | None = None  # open while inside a string value
        self._flying: list[str] = []  # the spelling of each character that `_value` holds
        self._rest = ""  # an unfinished escape or literal
        self._plain: Text | None = None

    @property
    def pending(self) -> int:
        """Characters that arrived and have not left."""
        inner = self._plain or self._value
        return len(self._rest) + (inner.pending if inner else 0)

    def feed(self, fragment: str) -> str:
        """What may leave after `fragment`. Raises BlockedContent, and ValueError if too deep."""
        text, self._rest = self._rest + fragment, ""
        out: list[str] = []
        place = 0
        while place < len(text):
            if self._plain is not None:
                out.append(self._plain.feed(text[place:]))
                break
            if self._value is not None:
                place = self._string(self._value, text, place, out)
            elif self._in_key:
                place = self._key_part(text, place, out)
            else:
                place = self._structure(text, place, out)
            if self._rest:
                break
        return "".join(out)

    def flush(self) -> str:
        """The rest, judged as text that has ended, whether or not the JSON is complete."""
        out: list[str] = []
        literal = self._rest.rstrip(_SPACES)
        if self._value is not None:
            if self._rest:
                out += self._spelled(self._value.feed_pieces(self._rest), list(self._rest))
            out += self._spelled(self._value.flush_pieces(), [])
        elif self._plain is None and not self._in_key and _VALID.fullmatch(literal):
            out += (self._judged(literal), self._rest[len(literal) :])
        elif self._plain is not None or self._rest:
            plain = self._plain or self._treatment.text()
            out.append(plain.feed(self._rest) + plain.flush())
        self._begin()
        return "".join(out)

    def _structure(self, text: str, place: int, out: list[str]) -> int:
        """Outside of strings."""
        char, want = text[place], self._want
        if char in _SPACES:
            space = _SPACE.match(text, place)
            stop = space.end() if space else place + 1
            out.append(text[place:stop])
            return stop
        if char == '"' and want in _KEY_WANTED:
            self._in_key = True
        elif char == '"' and want in _VALUE_WANTED:
            lead = self._treatment.lead_of(self._key)
            self._value = self._treatment.text(lead=lead, inside_json=True)
        elif char in "{[" and (want in _VALUE_WANTED or not self._stack):
            self._open(char)
        elif char in "}]" and self._stack and want in _CLOSED_BY[self._stack[-1][0] + char]:
            _, self._key = self._stack.pop()
            self._want = _Want.NEXT
            self.complete = not self._stack
        elif char == "," and want is _Want.NEXT and self._stack:
            self._want = _Want.KEY if self._stack[-1][0] == "{" else _Want.VALUE
        elif char == ":" and want is _Want.COLON:
            self._want = _Want.VALUE
        elif want in _VALUE_WANTED:
            return self._literal(text, place, out)
        else:
            return self._no_json(place)
        out.append(char)
        return place + 1

    def _open(self, char: str) -> None:
        if len(self._stack) >= _MAX_DEPTH:
            raise ValueError("tool arguments are nested too deeply")
        self._stack.append((char, self._key))
        self._want = _Want.KEY_OR_END if char == "{" else _Want.VALUE_OR_END
        self.complete = False

    def _literal(self, text: str, place: int, out: list[str]) -> int:
        """A number or a word, which waits for what follows: two in a row are no JSON."""
        found = _LITERAL.match(text, place)
        stop = found.end() if found else place + 1
        space = _SHORT_SPACE.match(text, stop)
        after = space.end() if space else stop
        if stop - place > _LITERAL_MAX:
            return self._no_json(place)
        if after == len(text) and after - stop < _SPACE_MAX:
            self._rest = text[place:]
            return after
        if not _VALID.fullmatch(text, place, stop) or (
            after - stop < _SPACE_MAX and text[after] not in ",}]"
        ):
            return self._no_json(place)
        out += (self._judged(text[place:stop]), text[stop:after])
        self._want = _Want.NEXT
        return after

    def _no_json(self, place: int) -> int:
        """From `place` on this is text like any other."""
        lead = self._treatment.lead_of(self._key) if self._want in _VALUE_WANTED else ""
        self._plain = self._treatment.text(lead=lead)
        return place

    def _judged(self, literal: str) -> str:
        """A complete number or word as it may leave."""
        text = judge_number(literal, self._key, self._treatment, inside_json=True)
        return literal if text is None else quoted(text)

    def _key_part(self, text: str, place: int, out: list[str]) -> int:
        """Inside a key: it waits until it is complete, is judged, and passes as it is."""
        found = None if self._in_long_key else _KEY.match(text, place)
        if found is None and not self._in_long_key and len(text) - place <= _KEY_MAX:
            self._rest = text[place:]
            return len(text)
        if found is None or found.end() - place > _KEY_MAX:
            return self._long_key(text, place, out)
        self._in_key, self._want = False, _Want.COLON
        self._key = _decoded(found[1])
        judge_key(self._key, self._treatment)
        out.append(found[0])
        return found.end()

    def _long_key(self, text: str, place: int, out: list[str]) -> int:
        """Inside a key that nobody keeps in order to judge it: that is counted once."""
        if not self._in_long_key:
            self._in_long_key, self._key = True, ""
            self._treatment.counts.passes("key")
        found = _KEY_PART.match(text, place)
        stop = found.end() if found else place
        out.append(text[place:stop])
        if text[stop:] == "\\":
            self._rest = "\\"
            return len(text)
        if stop < len(text):
            self._in_key = self._in_long_key = False
            self._want = _Want.COLON
            out.append('"')
            stop += 1
        return stop

    def _string(self, value: "Text", text: str, place: int, out: list[str]) -> int:
        """Inside a string value: decode up to its end, or to the end of `text`."""
        decoded: list[str] = []
        spelled: list[str] = []
        closed = False
        while place < len(text):
            run = _RUN.match(text, place)
            stop = run.end() if run else place
            if stop > place:
                decoded.append(text[place:stop])
                spelled.extend(text[place:stop])
                place = stop
            if place == len(text):
                break
            if text[place] == '"':
                closed = True
                place += 1
                break
            escape = self._escape(text, place)
            if escape is None:
                self._rest = text[place:]
                place = len(text)
                break
            decoded.append(escape[0])
            spelled.append(text[place : escape[1]])
            place = escape[1]
        out += self._spelled(value.feed_pieces("".join(decoded)), spelled)
        if closed:
            out += self._spelled(value.flush_pieces(), [])
            out.append('"')
            self._value, self._want = None, _Want.NEXT
        return place

    @staticmethod
    def _escape(text: str, place: int) -> tuple[str, int] | None:
        """The character and the end of the escape at `place`; None if it is not all here."""
        pair = _PAIR.match(text, place)
        if pair:
            high, low = int(pair[0][2:6], 16), int(pair[0][8:12], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00), pair.end()
        if _OPEN_ESCAPE.fullmatch(text, place):
            return None
        if _HIGH.match(text, place) and _OPEN_LOW.fullmatch(text, place + 6):
            return None
        found = _ESCAPE.match(text, place)
        if found is None:
            return "u", place + 2  # not an escape that JSON knows; it keeps its spelling
        body = found[0][1:]
        if body[0] == "u":
            return chr(int(body[1:], 16)), found.end()
        return _SHORT_ESCAPES.get(body, body), found.end()

    def _spelled(self, pieces: "list[Piece]", spelled: list[str]) -> list[str]:
        """What leaves, each kept character in the spelling in which it came."""
        flying = self._flying
        flying += spelled
        out: list[str] = []
        start = 0
        for piece in pieces:
            stop = start + piece.taken
            out += [quoted(piece.text)[1:-1]] if piece.replaced else flying[start:stop]
            start = stop
        del flying[:start]
        return out
