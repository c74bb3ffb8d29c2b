"""Where do small documents lie that every process of a gateway must see?

Lives here: what any such place promises, and the limits of what lies there. Does not live here:
the place in an SQLite file (shelf_sqlite), the one on Redis (shelf_redis), what the documents
mean (session_papers).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

MAX_NEWS: Final = 4096
"""So many changes of a kind are remembered. Who missed more hears that anything may be changed."""

MAX_VALUE_BYTES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of documents and what bounds it.

    A document lives for `live_s` after it was put or touched. There are at most `most`, and
    `most_of_group` of one group: beyond that the one untouched for longest gives way to a new
    one, of its group if that is full, else of all.
    """

    name: str
    live_s: float
    most: int
    most_of_group: int


class Mark(NamedTuple):
    """A moment in the history of a kind; `book` is another one when its history was lost."""

    book: int
    number: int


class News(NamedTuple):
    """What of a kind was replaced, dropped or had to give way; None: anything may have been.

    What ended because its time was over is not among it.
    """

    mark: Mark
    changed: frozenset[str] | None


class Shelf(Protocol):
    """Documents by kind and key. Every call may raise StoreUnavailable, in a bounded time.

    Keys and groups are short texts without a line feed, values at most MAX_VALUE_BYTES.
    """

    @property
    def degraded(self) -> bool:
        """Whether the last attempt failed; it is tried again without anybody who asks."""

    def start(self) -> None:
        """For the running loop; idempotent. Whether the place serves shows with the first call."""

    async def close(self) -> None:
        """Do what was accepted and let go, within a bounded time. Idempotent."""

    async def get(self, kind: Kind, key: str) -> bytes | None:
        """The document, if there is one."""

    async def put(self, kind: Kind, key: str, value: bytes, group: str) -> None:
        """Lay it there, in place of one with the same key. May have happened also if it raises."""

    async def touch(self, kind: Kind, key: str) -> bool:
        """Have it live on; whether it was there."""

    async def drop(self, kind: Kind, key: str) -> bool:
        """Take it away; whether it was there, which of several who ask only one hears.

        If it raises, it happens as soon as the place serves again.
        """

    async def group(self, kind: Kind, group: str) -> Mapping[str, bytes]:
        """All documents of a group, by key."""

    async def news(self, kind: Kind, mark: Mark | None) -> News:
        """What has changed since `mark`."""


__all__ = ["MAX_NEWS", "MAX_VALUE_BYTES", "Kind", "Mark", "News", "Shelf"]
