r"""Which value does this placeholder stand for, and is it one that we issued?

Lives here: the reversible placeholders of one request, and the stage that puts the values back
into a text that arrives in pieces. Does not live here: which values are replaced (the detectors),
the order of the stages (treatment: a value of the model's own is masked before this stage, and
what this stage puts back is looked at by none after it).

A placeholder reads `[EMAIL_bcdfghjkmnpqrs]`: the kind, then 14 letters that only this request
knows. Letters without vowels and digits, so that no placeholder is a word, a card number or a
phone number. Models change the spelling of what they copy: case, spaces, `-` for `_`, and the
backslashes, stars and backticks of Markdown are forgiven, because 60 random bits are not met by
chance. A backslash before the first bracket goes with the placeholder only if the last bracket has
one, too: else it is the text's own (`CORP\jane@example.com`). Anything else, and every placeholder
that was never issued, stays as it is.

Values live in the memory of one request and in no representation of these objects.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from hashlib import blake2b

from tidegate.redaction.spans import Kind
from tidegate.redaction.stream import Piece

MAX_ENTRIES = 4096
"""Values that one vault holds; what comes after them is masked for good."""
DRIFT = 8
"""Characters by which a copy of a placeholder may be longer than the longest one issued."""

_LETTERS = "bcdfghjkmnpqrstvwxyz"
_TOKEN = 14
_SALT_BYTES = 16
_START = re.compile(r"\\?\[|\\\Z")
_FORGIVEN = re.compile(r"[^A-Za-z0-9]")
_DRIFT = frozenset("_- *`\\")
_CORE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


class Vault:
    """The placeholders of one request.

    `salt` is at least 16 random bytes that no other request gets; ValueError if it is shorter.
    Holds at most MAX_ENTRIES values; `refused` counts those that came after.
    """

    __slots__ = ("_cores", "_longest", "_placeholders", "_tokens", "_values", "refused")

    def __init__(self, salt: bytes) -> None:
        if len(salt) < _SALT_BYTES:
            raise ValueError(f"a vault needs at least {_SALT_BYTES} random bytes")
        self._tokens = _tokens(salt)
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}  # by core: the placeholder without what may drift
        self._cores: list[str] = []  # sorted
        self._longest = 0
        self.refused = 0

    def __repr__(self) -> str:
        return f"<Vault of {len(self)}>"

    def __len__(self) -> int:
        return len(self._values)

    def placeholder(self, kind: Kind, value: str) -> str:
        """What stands for `value`; the same for the same kind and value.

        The plain placeholder of the kind once the vault is full.
        """
        known = self._placeholders.get((kind.word, value))
        if known is not None:
            return known
        if len(self._values) >= MAX_ENTRIES:
            self.refused += 1
            return kind.placeholder
        word = _FORGIVEN.sub("", kind.word).lower()
        token = next(token for token in self._tokens if word + token not in self._values)
        placeholder = f"[{kind.word}_{token}]"
        self._placeholders[kind.word, value] = placeholder
        self._values[word + token] = value
        insort(self._cores, word + token)
        self._longest = max(self._longest, len(placeholder))
        return placeholder

    def restorer(self) -> "Restorer":
        """A stage for one text."""
        return Restorer(self)

    def restore(self, text: str) -> str:
        """`text` as a whole: the same function as the stream."""
        restorer = self.restorer()
        return restorer.feed(text) + restorer.flush()

    def read(self, text: str, start: int) -> tuple[int, str] | bool:
        r"""What begins at `start`, where `[` or `\[` stands.

        The end and the value of a placeholder; False if none begins here; True while more text
        could make it one. Cost: at most the longest placeholder and DRIFT characters.
        """
        core = ""
        opening = text.index("[", start)
        place = opening + 1
        stop = start + self._longest + DRIFT
        while place < len(text):
            char = text[place]
            place += 1
            if place > stop:
                return False
            if char == "]":
                if opening > start and text[place - 2] != "\\":
                    return False
                value = self._values.get(core)
                return False if value is None else (place, value)
            if char in _CORE:
                core += char.lower()
                if not self._begins(core):
                    return False
            elif char not in _DRIFT:
                return False
        return True

    def _begins(self, core: str) -> bool:
        place = bisect_left(self._cores, core)
        return place < len(self._cores) and self._cores[place].startswith(core)


class Restorer:
    """Puts the values of one vault back into one text: `feed` pieces, then `flush`.

    Every step is a function of the text alone, never of how it was cut. Holds at most the longest
    placeholder and DRIFT characters, and only what may be the beginning of an issued one.
    """

    __slots__ = ("_held", "_vault")

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._held = ""

    @property
    def pending(self) -> int:
        """Characters held."""
        return len(self._held)

    def feed(self, text: str) -> str:
        """What may leave after `text` arrived."""
        if not self._held and "[" not in text and text[-1:] != "\\":
            return text
        return "".join(piece.text for piece in self._walk(text, final=False))

    def flush(self) -> str:
        """The rest: an unfinished placeholder stays as it is."""
        return "".join(piece.text for piece in self._walk("", final=True))

    def feed_pieces(self, pieces: list[Piece]) -> list[Piece]:
        """Like `feed`, for the pieces of a stage before this one.

        What that stage put in place of a value ends a placeholder that has begun.
        """
        out: list[Piece] = []
        for piece in pieces:
            if piece.replaced:
                out += [*self._walk("", final=True), piece]
            else:
                out += self._walk(piece.text, final=False)
        return out

    def flush_pieces(self) -> list[Piece]:
        """Like `flush`, as pieces."""
        return self._walk("", final=True)

    def _walk(self, text: str, *, final: bool) -> list[Piece]:
        text, self._held = self._held + text, ""
        out: list[Piece] = []
        done = place = 0  # left already; looked at already
        while start := _START.search(text, place):
            place = start.start()
            is_open = start[0] == "\\"  # the bracket may follow
            found = True if is_open else self._vault.read(text, place)
            if found is True and not final:
                self._held = text[place:]
                text = text[:place]
                break
            if isinstance(found, tuple):
                end, value = found
                out += [*_verbatim(text[done:place]), Piece(value, end - place, replaced=True)]
                done = place = end
            else:
                place += 1
        return out + _verbatim(text[done:])


def _verbatim(text: str) -> list[Piece]:
    return [Piece(text, len(text), replaced=False)] if text else []


def _tokens(salt: bytes) -> Iterator[str]:
    """Endlessly many, each of 60 bits; nobody without the salt can tell the next."""
    number = 0
    while True:
        digest = blake2b(number.to_bytes(8), key=salt[:64], digest_size=16).digest()
        rest, letters = int.from_bytes(digest), ""
        for _ in range(_TOKEN):
            rest, letter = divmod(rest, len(_LETTERS))
            letters += _LETTERS[letter]
        yield letters
        number += 1


__all__ = ["DRIFT", "MAX_ENTRIES", "Restorer", "Vault"]
