"""Which text has arrived but not yet left, and how does the folded view map to it?

Lives here: the folded buffer (some context that already left, then the held text), the original
held text where it differs, and the translation of indices. Does not live here: any decision.
"""

from tidegate.redaction.folding import is_plain, may_escape, open_end, resized
from tidegate.redaction.hits import CONTEXT
from tidegate.redaction.places import Places, Unit

TRIM_ABOVE = 320
"""What left before is forgotten beyond this; short strings are cheaper to add to."""


class HeldText:
    """Held text from `at` on in `text` (folded).

    `at` may be moved on by whoever knows that `same` is true: nothing else depends on it then.

    The beginning of an escape is not part of `text` until it is known what the escape stands for.
    Invisible characters belong to what follows them, except inside a value, which takes them
    along. Indices are positions in the folded `text`.
    """

    __slots__ = ("_ahead", "_places", "_raw", "_raw_at", "_tail", "_trimmed", "at", "text")

    def __init__(self, lead: str = "", taken: int = 0) -> None:
        self.text = lead
        self.at = len(lead)
        self._ahead = taken - self.at
        self._trimmed = 0  # characters that once stood before `text`
        self._raw: str | None = None
        self._raw_at = 0
        self._places: Places | None = None
        self._tail = ""  # the beginning of an escape

    @property
    def taken(self) -> int:
        """How many original characters have left so far."""
        return self.at + self._ahead

    @property
    def same(self) -> bool:
        """The held text is its own folded view."""
        return self._raw is None and not self._tail

    @property
    def size(self) -> int:
        """Original characters held in `text`."""
        if self._raw is None:
            return len(self.text) - self.at
        return len(self._raw) - self._raw_at

    @property
    def pending(self) -> int:
        """Original characters held, also those whose folded view is open."""
        return self.size + len(self._tail)

    def append(self, text: str, *, final: bool = False) -> None:
        """Add what arrived; `final` says that nothing follows."""
        if self._raw is None and not self._tail and is_plain(text):
            self.text += text
            return
        if self._tail or may_escape(text):
            text = self._tail + text
            cut = len(text) if final else open_end(text)
            text, self._tail = text[:cut], text[cut:]
        folded, units = resized(text)
        if self._raw is None:
            if folded == text and not units:
                self.text += text
                return
            self._raw, self._raw_at = self.text[self.at :], 0
        if self._places is None and units:
            self._places = Places(self.at + self._trimmed, self.taken)
        if self._places is not None:
            at, raw = len(self.text) + self._trimmed, self.taken + len(self._raw) - self._raw_at
            for unit in units:
                self._places.add(Unit(at + unit.at, raw + unit.raw, unit.size, unit.raw_size))
        self._raw += text
        self.text += folded

    def span(self, end: int) -> int:
        """How many original characters lie between `at` and the end of the one before `end`."""
        return self._raw_end(end) - self._raw_at if self._raw is not None else end - self.at

    def index_after(self, chars: int) -> int:
        """The index of the first character beyond the first `chars` original ones."""
        if self._places is None:
            return min(self.at + chars, len(self.text))
        index = self._places.after(self.taken + chars) - self._trimmed
        return min(max(index, self.at), len(self.text))

    def take(self, end: int) -> str:
        """Remove and return the original text before index `end`."""
        return self._cut(end, self._raw_end(end))

    def take_before(self, start: int) -> str:
        """Like `take`, with the invisible characters in front of the one at `start`."""
        return self._cut(start, self._raw_start(start))

    def take_chars(self, chars: int) -> str:
        """Remove and return the first `chars` original characters."""
        return self._cut(self.index_after(chars), self._raw_at + chars)

    def settle(self) -> int:
        """Drop what no detector can need any more; returns by how much indices moved left."""
        if self._raw is not None:
            self._forget_raw()
        if self.at <= TRIM_ABOVE:
            return 0
        shift = self.at - CONTEXT
        self.text = self.text[shift:]
        self.at = CONTEXT
        self._ahead += shift
        self._trimmed += shift
        return shift

    def _cut(self, end: int, raw_end: int) -> str:
        if self._raw is None:
            piece = self.text[self.at : end]
        else:
            piece = self._raw[self._raw_at : raw_end]
            self._raw_at = raw_end
        self._ahead += len(piece) - (end - self.at)
        self.at = end
        return piece

    def _raw_start(self, index: int) -> int:
        if self._places is None:
            return self._raw_at + index - self.at
        if index == len(self.text):
            return len(self._raw or "")
        # One character may fold to several, the first of which has left.
        start = self._places.start(index + self._trimmed) - self.taken
        return self._raw_at + max(0, start)

    def _raw_end(self, index: int) -> int:
        if self._places is None:
            return self._raw_at + index - self.at
        if index == self.at:
            return self._raw_at
        return self._raw_at + max(0, self._places.end(index + self._trimmed) - self.taken)

    def _forget_raw(self) -> None:
        rest = (self._raw or "")[self._raw_at :]
        if rest == self.text[self.at :]:
            self._raw = self._places = None
            self._raw_at = 0
            return
        if self._places is not None:
            self._places.forget(self.at + self._trimmed)
        self._raw, self._raw_at = rest, 0
