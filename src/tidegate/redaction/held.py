"""Which text has arrived but not yet left, and how does the folded view map to it?

Lives here: the folded buffer (some context that already left, then the held text), the original
held text where it differs, and the translation of indices. Does not live here: any decision.
"""

from bisect import bisect_left

from tidegate.redaction.folding import (
    Places,
    fold_with_places,
    has_escapes,
    is_plain,
    open_end,
)
from tidegate.redaction.hits import CONTEXT

_TRIM_ABOVE = 512


class HeldText:
    """Held text from `at` on in `text` (folded).

    `at` may be moved on by whoever knows that `same` is true: nothing else depends on it then.

    The beginning of an escape is not part of `text` until it is known what the escape stands for.
    Invisible characters belong to what follows them, except inside a value, which takes them
    along. Indices are positions in the folded `text`.
    """

    __slots__ = ("_ahead", "_origin", "_places", "_raw", "_raw_at", "_tail", "at", "text")

    def __init__(self, lead: str = "", taken: int = 0) -> None:
        self.text = lead
        self.at = len(lead)
        self._ahead = taken - self.at
        self._raw: str | None = None
        self._raw_at = 0
        self._places: Places | None = None
        self._origin = 0
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
        if self._tail or has_escapes(text) is not None:
            text = self._tail + text
            cut = len(text) if final else open_end(text)
            text, self._tail = text[:cut], text[cut:]
        if self._raw is None and is_plain(text):
            self.text += text
            return
        folded, places = fold_with_places(text)
        if self._raw is None and folded == text and places is None:
            self.text += text
            return
        if self._raw is None:
            self._raw, self._raw_at = self.text[self.at :], 0
        base = len(self._raw)
        if self._places is None and places is not None:
            self._origin = self.at
            self._places = list(range(self._raw_at, base)), list(range(self._raw_at + 1, base + 1))
        if self._places is not None:
            for known, new in zip(self._places, places or _in_place(len(text)), strict=True):
                known.extend([base + place for place in new])
        self._raw += text
        self.text += folded

    def span(self, end: int) -> int:
        """How many original characters lie between `at` and the end of the one before `end`."""
        return self._raw_end(end) - self._raw_at if self._raw is not None else end - self.at

    def index_after(self, chars: int) -> int:
        """The index of the first character beyond the first `chars` original ones."""
        if self._places is None:
            return min(self.at + chars, len(self.text))
        lowest = self.at - self._origin
        return self._origin + bisect_left(self._places[0], self._raw_at + chars, lowest)

    def take(self, end: int) -> str:
        """Remove and return the original text before index `end`."""
        return self._cut(end, self._raw_end(end))

    def peek(self, end: int) -> tuple[str, str]:
        """The text before index `end`, which stays: as it came, and its folded view.

        Invisible characters in front of it do not count.
        """
        folded = self.text[self.at : end]
        if self._raw is None:
            return folded, folded
        return self._raw[self._raw_start(self.at) : self._raw_end(end)], folded

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
        if self.at <= _TRIM_ABOVE:
            return 0
        shift = self.at - CONTEXT
        self.text = self.text[shift:]
        self.at = CONTEXT
        self._ahead += shift
        self._origin -= shift
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
        return max(self._raw_at, self._places[0][index - self._origin])

    def _raw_end(self, index: int) -> int:
        if self._places is None:
            return self._raw_at + index - self.at
        if index == self.at:
            return self._raw_at
        return max(self._raw_at, self._places[1][index - 1 - self._origin])

    def _forget_raw(self) -> None:
        rest = (self._raw or "")[self._raw_at :]
        if rest == self.text[self.at :]:
            self._raw = self._places = None
            self._raw_at = 0
            return
        if self._places is not None:
            lowest = self.at - self._origin
            starts, ends = self._places
            shift = self._raw_at
            self._places = (
                [place - shift for place in starts[lowest:]],
                [place - shift for place in ends[lowest:]],
            )
            self._origin = self.at
        self._raw, self._raw_at = rest, 0


def _in_place(size: int) -> Places:
    return list(range(size)), list(range(1, size + 1))
