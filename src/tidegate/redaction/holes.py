"""What goes out in place of text whose check by a classifier is still under way?

Lives here: the marker that stands for such text in a document or an event, the texts that wait
for a verdict, and the exchange of markers for what the verdicts left of the text. Does not live
here: who gives verdicts and what happens when none comes (gateway.classifier), how a text is cut
into sentences (sentences).

The stages of an answer are synchronous and know nothing of a classifier: a text channel returns a
marker, whatever encloses it is written around the marker, and `fill` changes the bytes before they
leave. A marker is plain ASCII with 128 random bits of this request, so it survives every encoding
of a JSON string and nobody can send one. Nothing may leave that `fill` has not seen.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidegate.redaction.arguments import quoted
from tidegate.redaction.spans import Kind

MOST_KNOWN_CHARS = 1 << 20
"""Characters of texts whose verdict is remembered, for texts that come twice in one answer."""


class Found(NamedTuple):
    """`text[start:end]` of one text is a value of this kind."""

    start: int
    end: int
    kind: Kind


Judged = Sequence[tuple[str, Sequence[Found]]]
"""Texts with what was found in each."""


class Holes:
    """The markers of one document or stream.

    `nonce` is 32 random hexadecimal digits that no other request gets.
    """

    def __init__(self, nonce: str) -> None:
        if not re.fullmatch("[0-9a-f]{32}", nonce):
            raise ValueError("a nonce is 32 hexadecimal digits")
        self._nonce = nonce
        self._marker = re.compile(rb"<%b:([0-9]+)>" % nonce.encode())
        self._open: dict[int, tuple[tuple[str, ...], Callable[[Judged], str]]] = {}
        self._ready: dict[int, bytes] = {}
        self._opened = 0
        self._known: dict[str, tuple[Found, ...]] = {}
        self._wanted: dict[str, None] = {}

    def __repr__(self) -> str:
        return f"<Holes, {len(self._open)} open>"

    def open(self, texts: Sequence[str], render: Callable[[Judged], str]) -> str:
        """The marker that stands for `texts` until `render` says what leaves in their place.

        The renderings happen in the order in which the holes were opened.
        """
        number, self._opened = self._opened, self._opened + 1
        self._open[number] = (tuple(texts), render)
        for text in texts:
            if text not in self._known and is_worth_asking(text):
                self._wanted[text] = None
        return f"<{self._nonce}:{number}>"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The texts without a verdict, each once, in order."""
        return tuple(self._wanted)

    def judge(self, text: str, found: Sequence[Found]) -> None:
        """The verdict on one wanted text: its values, by start, without overlaps."""
        del self._wanted[text]
        self._known[text] = tuple(found)

    def fill(self, data: bytes) -> bytes:
        """`data` with its markers exchanged; each stands inside a JSON string.

        Raises ValueError while a text has no verdict, and for what is left of a marker.
        """
        if self._wanted:
            raise ValueError("a text has no verdict")
        self._render()
        used: set[int] = set()

        def put(marker: re.Match[bytes]) -> bytes:
            number = int(marker[1])
            used.add(number)
            return self._ready[number]

        filled = self._marker.sub(put, data)
        if self._nonce.encode() in filled:
            raise ValueError("a marker is not whole")
        for number in used:
            del self._ready[number]
        return filled

    def _render(self) -> None:
        known = self._known
        for number, (texts, render) in self._open.items():
            text = render([(text, known.get(text, ())) for text in texts])
            self._ready[number] = quoted(text)[1:-1].encode()
        self._open.clear()
        if sum(map(len, known)) > MOST_KNOWN_CHARS:
            known.clear()


def is_worth_asking(text: str) -> bool:
    """A text without a letter names nobody."""
    return any(map(str.isalpha, text))


__all__ = ["MOST_KNOWN_CHARS", "Found", "Holes", "Judged", "is_worth_asking"]
