"""How does `write` cut a stream into writes, and how long does it pause between them?

Lives here: the words of `write` (and of `slow`). Does not live here: writing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.casebook.rules.words import NUMBER, number, seconds, size_bytes

SLOW_S = 2.0
"""The pause that `slow` puts after the first event with data."""


class CannotWrite(ValueError):
    """Words that describe no way of writing."""


@dataclass(frozen=True)
class Write:
    """So many bytes, after a pause."""

    data: bytes
    pause_s: float = 0.0


PACE_S = 0.1
"""The pause between events when a sentence asks whether anything leaves before the end."""


def paced(writes: Iterable[Write]) -> list[Write]:
    """The same writes, with a pause before each that begins a new event."""
    found, before = [], b""
    for write in writes:
        begins = re.search(rb"(?:\r\n\r\n?|\n\n|\r\r)$", before) is not None
        found.append(Write(write.data, max(write.pause_s, PACE_S if begins else 0.0)))
        before = (before + write.data)[-4:]
    return found


def plan(words: str, data: bytes, *, slow: bool = False) -> list[Write]:
    """The writes that `words` ask for; raises CannotWrite."""
    pieces, pause_s = _pieces(" ".join(words.split()).lower(), data)
    writes = [Write(piece, pause_s if at else 0.0) for at, piece in enumerate(pieces) if piece]
    if not slow:
        return writes
    split = [w for write in writes for w in _apart(write)]
    first = next((n for n, w in enumerate(split) if b"data: {" in w.data), -1) + 1
    return [
        Write(w.data, SLOW_S if n == first or (first == 0 and n == 1) else w.pause_s)
        for n, w in enumerate(split)
    ]


def _apart(write: Write) -> list[Write]:
    events = [data for data in _events(write.data) if data]
    return [Write(data, write.pause_s if at == 0 else 0.0) for at, data in enumerate(events)]


def _pieces(words: str, data: bytes) -> tuple[list[bytes], float]:
    if words in ("", "whole", "at once", "all at once", "one write", "in one write"):
        return [data], 0.0
    pause = re.search(r"(?:every|per|each) ([0-9.]+ ?m?s)\b", words)
    pause_s = seconds(pause[1]) if pause else 0.0
    sized = re.search(rf"({NUMBER}) bytes?\b", words)
    if sized:
        return _by(data, number(sized[1])), pause_s
    large = re.search(r"([0-9.]+ ?[kmg]i?b)\b", words)
    if large:
        unit = large[1].replace("kib", "kB").replace("kb", "kB").replace("mib", "MB")
        return _by(data, size_bytes(unit.replace("mb", "MB"))), pause_s
    cut = re.search(r"cut (after|before) (?:every|each) (\\r\\n|\\r|\\n|\"[^\"]+\"|\S+)", words)
    if cut:
        return _cut(data, cut[1], _mark(cut[2])), pause_s
    if re.search(r"(one|each|every) (event|line)", words):
        return (_lines(data) if "line" in words else _events(data)), pause_s
    random = re.search(r"random", words)
    if random:
        return _uneven(data), pause_s
    raise CannotWrite(words)


def _mark(text: str) -> bytes:
    return text.strip('"').replace("\\r", "\r").replace("\\n", "\n").encode()


def _by(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _cut(data: bytes, where: str, mark: bytes) -> list[bytes]:
    parts = data.split(mark)
    if where == "after":
        return [*(part + mark for part in parts[:-1]), parts[-1]]
    return [parts[0], *(mark + part for part in parts[1:])]


def _events(data: bytes) -> list[bytes]:
    found = re.findall(rb".*?(?:\r\n\r\n|\n\n|\r\r)", data, re.DOTALL)
    return [*found, data[sum(map(len, found)) :]]


def _lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", data)


def _uneven(data: bytes) -> list[bytes]:
    # Sizes that repeat in no simple pattern, the same in each run.
    pieces, at, step = [], 0, 1
    while at < len(data):
        step = step * 7 % 31 + 1
        pieces.append(data[at : at + step])
        at += step
    return pieces
