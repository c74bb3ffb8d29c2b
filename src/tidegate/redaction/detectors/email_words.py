"""Is this an e-mail address that is spelled in words?

Lives here: `jane dot doe at example dot com`, `jane [at] example [dot] com` and their mixtures.
Does not live here: addresses with an `@` (email, email_forms).
"""

import re
from enum import Enum

from tidegate.redaction.hits import Anchors, Hit, Verdict
from tidegate.redaction.spans import EMAIL


class _Token(Enum):
    AT = "the sign in a word"
    BRACKETED_AT = "the sign in brackets"
    DOT = "a full stop in a word"
    NONE = "no part of an address"


_SPACES = re.compile(r"[ \t]{0,2}")
_PART = re.compile(r"[A-Za-z0-9._%+'\-]{1,64}")
_LAST_PART = re.compile(r"(?<![A-Za-z0-9._%+'\-])[._%+'\-]*+(?P<name>[A-Za-z0-9._%+'\-]+)(?=.\Z)")
_NOT_LAST = "._%+'-"
_BRACKET = re.compile(r"[\[({<] ?([A-Za-z.@]{1,5}) ?[\])}>]")
_OPEN_BRACKET = re.compile(r"[\[({<] ?[A-Za-z.@]{0,5} ?")
_WORD = re.compile(r"[A-Za-z]{1,7}|@")
_SIGNS = {
    **dict.fromkeys(("at", "arroba"), _Token.AT),
    "@": _Token.BRACKETED_AT,
    **dict.fromkeys(("dot", ".", "punkt", "punto"), _Token.DOT),
}
_TOP = re.compile(
    r"(?:com|org|net|edu|gov|mil|int|info|biz|name|pro|app|dev|tech|cloud|online|shop|site|mail"
    r"|email|eu|[a-z]{2})",
    re.IGNORECASE,
)
# "meet us at example dot com" names a place in the web, not a person.
_NO_PERSON = frozenset(
    {
        "and",
        "are",
        "arrive",
        "arrived",
        "available",
        "be",
        "begin",
        "blog",
        "contact",
        "details",
        "find",
        "found",
        "her",
        "here",
        "him",
        "hosted",
        "info",
        "is",
        "it",
        "join",
        "live",
        "located",
        "look",
        "looking",
        "me",
        "meet",
        "more",
        "now",
        "online",
        "or",
        "page",
        "reach",
        "shop",
        "site",
        "start",
        "store",
        "them",
        "there",
        "today",
        "us",
        "visit",
        "was",
        "website",
    }
)
_LONGEST = 320


class EmailInWords:
    """A name, `at`, and a domain whose last word is a top level."""

    family = "email_obfuscated"
    rank = 43
    anchors: Anchors = (("A-Za-z0-9", r"[ \[({<]"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`: the last word of the segment."""
        if text[stop - 1] not in " [({<":
            return None
        found = _LAST_PART.search(text, max(start, stop - 65), stop)
        return found.start("name") if found else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        full = end >= start + _LONGEST
        reader = _Reader(text, min(end, start + _LONGEST), ended=ended or full)
        try:
            stop = reader.address(start)
        except _Unclear:
            return Verdict.WAIT
        if stop is None:
            return Verdict.TEXT
        return Hit(start, stop, self.family, "email_words", EMAIL)


class _Unclear(Exception):
    """The text ends before it is clear what stands there."""


class _Reader:
    """Reads one address from `text` before `edge`; raises _Unclear where more text may decide."""

    def __init__(self, text: str, edge: int, *, ended: bool) -> None:
        self._text, self._edge, self._ended = text, edge, ended

    def address(self, start: int) -> int | None:
        """Where the address that begins at `start` ends, or None."""
        sign, place, stop, dots = _Token.DOT, start, start, -1
        while sign is _Token.DOT and dots < 5:
            part = self._part(place)
            if part is None:
                return None
            stop, dots = part, dots + 1
            sign, place = self._sign(stop)
        if sign not in (_Token.AT, _Token.BRACKETED_AT):
            return None
        local = self._text[start:stop].lower()
        if sign is _Token.AT and dots == 0 and local in _NO_PERSON:
            return None
        return self._domain(place, spelled=sign is _Token.AT)

    def _domain(self, place: int, *, spelled: bool) -> int | None:
        """Where the domain from `place` on ends; `spelled` wants a full stop in a word."""
        best, dotted = None, False
        stop = self._part(place)
        while stop is not None:
            part = self._text[place:stop]
            bare = part.rstrip(_NOT_LAST)
            labels = bare.split(".")
            if (dotted or (not spelled and len(labels) > 1)) and _TOP.fullmatch(labels[-1]):
                best = place + len(bare)
            if bare != part:
                break
            sign, place = self._sign(stop)
            if sign is not _Token.DOT:
                break
            dotted = True
            stop = self._part(place)
        return best

    def _skipped(self, place: int) -> int:
        found = _SPACES.match(self._text, place, self._edge)
        return found.end() if found else place

    def _part(self, place: int) -> int | None:
        """The end of the word behind the spaces at `place`."""
        place = self._skipped(place)
        found = _PART.match(self._text, place, self._edge)
        self._ask(found.end() if found else place)
        return found.end() if found else None

    def _ask(self, place: int) -> None:
        if place == self._edge and not self._ended:
            raise _Unclear

    def _sign(self, stop: int) -> tuple[_Token, int]:
        """What joins the word that ends at `stop` to the next one, and where that begins."""
        text, place = self._text, self._skipped(stop)
        self._ask(place)
        bracket = _BRACKET.match(text, place, self._edge)
        if bracket:
            return _bracketed(bracket[1].lower()), self._skipped(bracket.end())
        opened = _OPEN_BRACKET.match(text, place, self._edge)
        if opened:
            self._ask(opened.end())
        if place == stop:
            return _Token.NONE, place
        word = _WORD.match(text, place, self._edge)
        end = word.end() if word else place
        if word and any(each.startswith(word[0].lower()) for each in _SIGNS):
            self._ask(end)
        if word is None or not text[end : end + 1].isspace():
            return _Token.NONE, place
        return _SIGNS.get(word[0].lower(), _Token.NONE), self._skipped(end)


def _bracketed(word: str) -> _Token:
    sign = _SIGNS.get(word, _Token.NONE)
    return _Token.BRACKETED_AT if sign is _Token.AT or word == "@" else sign
