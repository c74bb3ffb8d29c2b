"""When do the answers to a batch leave, and as what?

As one array, in the order of the batch, when the last of them is there. Lives here: that, for the
one revision that has batches. Does not live here: lines (stdio), what is asked (lines). Pure.
"""

from collections.abc import Sequence
from typing import Final

BATCHING: Final = "2025-03-26"
MOST: Final = 100
"""How many messages a batch may have."""
_Key = int | str


class Batches:
    """The batches that are being answered."""

    def __init__(self) -> None:
        self._batch_of: dict[_Key, dict[_Key, bytes | None]] = {}
        self._waiting: dict[int, int] = {}

    def begin(self, ids: Sequence[_Key]) -> None:
        """These are asked in one batch; none of them may be in flight."""
        batch: dict[_Key, bytes | None] = dict.fromkeys(ids)
        self._batch_of |= dict.fromkeys(ids, batch)
        self._waiting[id(batch)] = len(ids)

    def answered(self, key: _Key | None, data: bytes) -> bytes:
        """What to write for this answer: a line, or nothing while its batch waits for others."""
        if key is None or key not in self._batch_of:
            return data + b"\n"
        return self._settle(key, data)

    def left_out(self, key: _Key) -> bytes:
        """What to write when this one gets no answer, because it was cancelled."""
        return self._settle(key, None) if key in self._batch_of else b""

    def _settle(self, key: _Key, data: bytes | None) -> bytes:
        batch = self._batch_of.pop(key)
        batch[key] = data
        self._waiting[id(batch)] -= 1
        if self._waiting[id(batch)]:
            return b""
        del self._waiting[id(batch)]
        answers = [answer for answer in batch.values() if answer is not None]
        return b"[" + b",".join(answers) + b"]\n" if answers else b""


__all__ = ["BATCHING", "MOST", "Batches"]
