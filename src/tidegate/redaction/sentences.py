"""Where does one sentence end, so that a classifier can read it as a whole?

Lives here: the cutting of one text that arrives in pieces into stretches of at most MAX_CHARS
characters. Does not live here: what is asked about them (holes), who answers (gateway.classifier).

A sentence ends behind `.`, `!`, `?` or `…`, with what closes a quotation, and one white space;
behind a newline; behind the full stops of Chinese and Japanese; else before the word after its
MAX_WORDS-th, or at the last white space within MAX_CHARS. Initials and titles (`Dr. Jane Doe`)
end none: a name would be torn. Every cut is a function of the text from the sentence's start on
and is decided when its last character is there, so it falls in the same place however the text
arrives.
"""

import re

MAX_CHARS = 240
MAX_WORDS = 40
"""Stands for 40 tokens: what a token is depends on the model, a word does not."""

_TITLES = (
    "Dr",
    "Mr",
    "Ms",
    "Mx",
    "St",
    "Mt",
    "Jr",
    "Sr",
    "Fr",
    "Mrs",
    "Rev",
    "Hon",
    "Prof",
    "Frau",
)
_NO_TITLE = "".join(rf"(?<!\b{title})" for title in (*_TITLES, "[A-Z]"))
_END = re.compile(
    rf"\n|(?:{_NO_TITLE}\.|[!?\u2026])[\"'\)\]}}\u00bb\u201d\u2019*_]{{0,3}}\s|[\u3002\uff01\uff1f]"
)
_WORDS = re.compile(rf"\s*+(?:\S++\s++){{{MAX_WORDS - 1}}}\S++\s")
_END_MAX = 5
_WORDS_MIN = 2 * MAX_WORDS
_LAST_SPACE = re.compile(r"(?s:.*)\s")


class Sentences:
    """Cuts one text: `feed` pieces, then `flush`. Holds fewer than MAX_CHARS characters."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    @property
    def pending(self) -> int:
        """Characters held."""
        return len(self._held)

    def feed(self, text: str) -> list[str]:
        """The sentences that are complete; joined, they are what was fed."""
        # What was held holds no end, so none begins far before what is new.
        seen = max(0, len(self._held) - _END_MAX)
        held = self._held + text
        found: list[str] = []
        place = 0
        # A slice, not a position: a look behind must not see what stood before the sentence.
        while size := _end(held[place : place + MAX_CHARS], seen):
            found.append(held[place : place + size])
            place += size
            seen = 0
        self._held = held[place:]
        return found

    def flush(self) -> list[str]:
        """The last sentence, if one is held. A later `feed` begins a new text."""
        held, self._held = self._held, ""
        return [held] if held else []


def _end(text: str, seen: int) -> int:
    """The length of the sentence that begins `text`; 0 if its end is not there yet.

    No mark that ends it stands before `seen`.
    """
    words = _WORDS.match(text) if len(text) >= _WORDS_MIN else None
    ends = [found.end() for found in (_END.search(text, seen), words) if found]
    if ends:
        return min(ends)
    if len(text) < MAX_CHARS:
        return 0
    space = _LAST_SPACE.match(text)
    return space.end() if space else len(text)


__all__ = ["MAX_CHARS", "MAX_WORDS", "Sentences"]
