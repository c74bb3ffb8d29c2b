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
# What stands between the opening line and the key: line ends (also written out or as tags),
# quotes, indents, signs of a comment, line numbers, and the headers of an armor.
_TAG = r"</?[A-Za-z]{1,8} ?/?>"
_OPEN_TAG = re.compile(r"<(?:/?[A-Za-z]{1,8} ?/?|/?)")
_LEAD = re.compile(rf"(?:\\[nrt]|//|{_TAG}|[^A-Za-z/=<]){{0,96}}")
_HEADERS = ("Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "MessageID:")
_KEY = re.compile(r"[A-Za-z0-9+/=]*")
_KEY_SIZE = 16
# A key in short lines; words that stand below each other are none.
_BREAK = re.compile(rf"[ \t]*\r?\n[ \t]*|{_TAG}")
_LINES = re.compile(rf"[A-Za-z0-9+/=]+(?:(?:{_BREAK.pattern})+[A-Za-z0-9+/=]+)*")
_LINE_END = re.compile(r"\n|\\n|<")
_NO_WORD = re.compile(r"[A-Za-z][A-Z0-9+/]")
# A short key counts if the closing line follows at once.
_BEFORE_END = re.compile(rf"(?:[\s\"'.]|\\[nrt]|{_TAG})*")
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
    """Something like a key stands at `start`; the first _UNCLEAR characters decide."""
    edge = min(end, start + _UNCLEAR)
    ended = ended or edge < end
    unclear = Verdict.TEXT if ended else Verdict.WAIT
    place = _after(_LEAD, text, start, edge)
    if text.startswith(_HEADERS, place, edge):
        return True
    stop = _after(_LINES, text, place, edge)
    if _after(_KEY, text, place, edge) - place >= _KEY_SIZE or _in_lines(text[place:stop]):
        return True
    if stop == edge:
        # A key that is cut short by the end of the text is still hidden.
        return True if ended and stop > place else unclear
    seen = text[place : min(edge, place + 16)]
    if any(header.startswith(seen) for header in _HEADERS):
        return unclear
    tail = _after(_BEFORE_END, text, stop, edge)
    closing = text[tail : min(edge, tail + len(_END))]
    if closing == _END:
        lines = _LINE_END.search(text, start, tail) is not None
        return True if lines and stop > place else Verdict.TEXT
    undecided = _END.startswith(closing) or _OPEN_TAG.fullmatch(text, tail, edge)
    return unclear if undecided else Verdict.TEXT


def _in_lines(run: str) -> bool:
    """Short lines are a key together, and no words that stand below each other."""
    key = _BREAK.sub("", run)
    return len(key) >= _KEY_SIZE and _NO_WORD.search(run) is not None


def _after(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    found = pattern.match(text, start, end)
    return found.end() if found else start
