"""Where are pins kept, and what must every such place promise?

Lives here: the contract of the stores, the one in memory, and a book as bytes. Does not live
here: what a book means (pins), the stores on a file (pin_store_sqlite) and on Redis
(pin_store_redis), which of them a configuration names (gateway.stores).
"""

import secrets
from typing import Final, NamedTuple, Protocol

import msgspec

from tidegate.errors import StoreUnavailable
from tidegate.mcp.pins import Book

FORM: Final = 1
"""Of what is written; a release that writes something else counts on."""

UNREADABLE: Final = "the pins were written by another release or damaged"


class Kept(NamedTuple):
    """A book and the mark it is kept under: another mark, another book."""

    mark: int
    book: Book


class PinStore(Protocol):
    """The books of all servers. Every call may raise StoreUnavailable.

    Opens itself with the first call, and again after a failure.
    """

    async def marks(self) -> dict[str, int]:
        """The mark of the book of each server that has one; cheap, so asked often."""

    async def read(self, server: str) -> Kept | None:
        """The book of a server; None if it has none."""

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        """Keep `book` in place of the one marked `was` (0: of none); returns its mark.

        None, and nothing is changed, if another one is there. After StoreUnavailable it may
        have been kept or not.
        """

    async def close(self) -> None:
        """Let go of what is open. Idempotent."""


class MemoryPins:
    """A PinStore that lives and dies with this process. Never raises StoreUnavailable."""

    def __init__(self) -> None:
        self._books: dict[str, Kept] = {}

    async def marks(self) -> dict[str, int]:
        """See PinStore.marks."""
        return {server: kept.mark for server, kept in self._books.items()}

    async def read(self, server: str) -> Kept | None:
        """See PinStore.read."""
        return self._books.get(server)

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        """See PinStore.write."""
        kept = self._books.get(server)
        if (kept.mark if kept is not None else 0) != was:
            return None
        self._books[server] = Kept(fresh_mark(), book)
        return self._books[server].mark

    async def close(self) -> None:
        """Nothing to do."""


class _Document(msgspec.Struct, frozen=True):
    form: int
    book: Book


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(_Document)


def encode(book: Book) -> bytes:
    """The book as it is kept."""
    return _ENCODER.encode(_Document(FORM, book))


def decode(document: object) -> Book:
    """The book in what was kept; raises StoreUnavailable."""
    if not isinstance(document, bytes):
        raise StoreUnavailable(UNREADABLE)
    try:
        kept = _DECODER.decode(document)
    except (msgspec.DecodeError, RecursionError):
        raise StoreUnavailable(UNREADABLE) from None
    if kept.form != FORM or not all(pin.pinned or pin.seen for pin in kept.book.pins.values()):
        raise StoreUnavailable(UNREADABLE)
    return kept.book


def fresh_mark() -> int:
    """A mark that no book had before."""
    return secrets.randbelow(2**52) + 1


__all__ = ["FORM", "UNREADABLE", "Kept", "MemoryPins", "PinStore", "decode", "encode", "fresh_mark"]
