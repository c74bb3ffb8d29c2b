"""Does a private key in armor begin here, and where does it end?

Lives here: PEM and PGP blocks of private keys. Does not live here: keys of one line (keys).

The line that opens a block is no secret, and people write about it. So a block begins where
something like a key follows the line; from there on everything is hidden to the line that closes
it, or to the end of the text if that line never comes.
"""

import re
from dataclasses import dataclass
from typing import Literal

from tidegate.redaction.hits import RANKS, Hit, Verdict
from tidegate.redaction.spans import SECRET

_PEM_OPENING = "-----BEGIN "
_PEM_LABEL = re.compile(r"-----BEGIN [A-Z0-9 ]{0,48}-{0,5}")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,48}-----")
_PEM_END_MAX = 64
# What stands between the opening line and the key: line ends (also written out), quotes, indents,
# line numbers, and the headers of an armor.
_LEAD = re.compile(r"(?:[\s\"'`>|,:#.+*0-9]|\\[nrt])*")
_HEADERS = ("Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:")
_KEY = re.compile(r"[A-Za-z0-9+/=]*")
_KEY_SIZE = 16
# A short key counts if the closing line follows at once.
_BEFORE_END = re.compile(r"(?:[\s\"'.]|\\[nrt])*")
_END = "-----END "
_UNCLEAR = 128


@dataclass(frozen=True, slots=True)
class PemBody:
    """A private key goes on to its END line, or to the end of the text if that never comes."""

    exact: bool = True

    def eat(self, text: str, start: int, *, final: bool) -> tuple[int, bool]:
        """See `Run`."""
        found = _PEM_END.search(text, start)
        if found:
            return found.end(), True
        return (len(text), True) if final else (max(start, len(text) - _PEM_END_MAX), False)


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """`-----BEGIN ... PRIVATE KEY-----`, whatever follows."""

    family = "private_key"
    rank = RANKS["private_key"]
    anchors = (("G", "(?<=-----BEG)IN[ ]"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        place = stop - len(_PEM_OPENING)
        return place if place >= start and text.startswith(_PEM_OPENING, place) else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        found = _PEM_LABEL.match(text, start, end)
        header = found[0] if found else ""
        stop = start + len(header)
        if not header.endswith("-----") or len(header) <= len(_PEM_OPENING):
            return Verdict.WAIT if stop == end and not ended else Verdict.TEXT
        label = header[len(_PEM_OPENING) : -5]
        if not label.endswith(("PRIVATE KEY", "PRIVATE KEY BLOCK")):
            return Verdict.TEXT
        follows = _key_follows(text, stop, end, ended=ended)
        if isinstance(follows, Verdict):
            return follows
        return Hit(start, stop, self.family, "private_key", SECRET, PemBody())


def _key_follows(text: str, start: int, end: int, *, ended: bool) -> Literal[True] | Verdict:
    """Something like a key stands at `start`."""
    unclear = Verdict.TEXT if ended or end - start > _UNCLEAR else Verdict.WAIT
    place = _after(_LEAD, text, start, end)
    if text.startswith(_HEADERS, place, end):
        return True
    stop = _after(_KEY, text, place, end)
    if stop - place >= _KEY_SIZE:
        return True
    if stop == end:
        # A key that is cut short by the end of the text is still hidden.
        return True if ended and stop > place else unclear
    seen = text[place : min(end, place + 16)]
    if any(header.startswith(seen) for header in _HEADERS):
        return unclear
    tail = _after(_BEFORE_END, text, stop, end)
    closing = text[tail : min(end, tail + len(_END))]
    if closing == _END:
        lines = "\n" in text[start:tail] or "\\n" in text[start:tail]
        return True if lines and stop > place else Verdict.TEXT
    return unclear if _END.startswith(closing) else Verdict.TEXT


def _after(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    found = pattern.match(text, start, end)
    return found.end() if found else start
