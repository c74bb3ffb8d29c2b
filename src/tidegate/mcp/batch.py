"""Which elements of a batch go upstream, and how are the answers merged?

Lives here: what a batch may not hold, and the order of its answers. Does not live here: which
revisions have batches (eras), whether an element is allowed (authorize).
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from tidegate.jsonrpc import Batch, Id, Request, typed

MAX_ELEMENTS: Final = 100

Key = tuple[bool, Id]
T = TypeVar("T")


def flaw_of(batch: Batch, *, max_elements: int = MAX_ELEMENTS) -> str | None:
    """Why the batch as a whole is refused, in constant words; None if it may be split.

    Two requests must not share an id (of the same type): their answers could not be told apart.
    """
    if len(batch.messages) > max_elements:
        return "the batch has too many elements"
    ids: set[Key] = set()
    for message in batch.messages:
        if not isinstance(message, Request):
            continue
        if message.method == "initialize":
            return "initialize must not be part of a batch"
        if typed(message.id) in ids:
            return "two requests of the batch have the same id"
        ids.add(typed(message.id))
    return None


def merge(batch: Batch, answers: Mapping[Key, T]) -> list[T]:
    """One answer for each request, in the order of the requests; empty for notifications only.

    `answers` are keyed by typed id, in whatever form. Raises KeyError if one is missing.
    """
    return [
        answers[typed(message.id)] for message in batch.messages if isinstance(message, Request)
    ]


__all__ = ["MAX_ELEMENTS", "Key", "flaw_of", "merge"]
