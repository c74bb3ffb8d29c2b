"""Is this the record as it was written, whole and in order?

Lives here: the entry as it stands in the file, its hash over itself and its predecessor, and
the walk that finds the first entry that does not follow. Does not live here: what an entry says
(entries), the file (database).
"""

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from tidegate.records.entries import canonical

GENESIS = "0" * 64
"""The predecessor of the first entry of a chain."""


class Head(Struct, frozen=True):
    """The last entry of a chain, or the last one that was pruned from its start."""

    seq: int = 0
    hash: str = GENESIS


class Entry(Struct, frozen=True):
    """One row of the record. `boot` names the process, and so the chain; `seq` counts from 1.

    `at_ms` is wall time in milliseconds since the epoch. `body` is canonical JSON.
    """

    node: str
    boot: str
    seq: int
    kind: str
    request_id: str
    at_ms: int
    body: str
    prev_hash: str

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over the canonical JSON of the entry with its predecessor's hash."""
        # Written out in the order of the keys: `body` is canonical already.
        text = (
            f'{{"at_ms":{self.at_ms},"body":{self.body},"boot":{_quoted(self.boot)},'
            f'"kind":{_quoted(self.kind)},"node":{_quoted(self.node)},'
            f'"prev_hash":{_quoted(self.prev_hash)},'
            f'"request_id":{_quoted(self.request_id)},"seq":{self.seq}}}'
        )
        return hashlib.sha256(text.encode()).hexdigest()


def _quoted(text: str) -> str:
    """`canonical`, cheaper for ids."""
    return f'"{text}"' if text.isascii() and text.isalnum() else canonical(text)


def first_break(start: Head, entries: Iterable[tuple[Entry, str]]) -> int | None:
    """The `seq` of the first entry of one chain that does not follow, or None.

    `entries` are in the order of the file, each with the hash stored beside it; `start` is the
    head of what was pruned. A chain cut off at its end still follows: only somebody who kept a
    later head can tell.
    """
    head = start
    for entry, stored in entries:
        follows = entry.seq == head.seq + 1 and entry.prev_hash == head.hash
        if not follows or entry.digest != stored:
            return entry.seq
        head = Head(entry.seq, stored)
    return None


__all__ = ["GENESIS", "Entry", "Head", "first_break"]
