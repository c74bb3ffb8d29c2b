"""Which shelves must keep the contract, and what does an ideal one answer?"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.redis_server import shared_server
from tidegate.mcp.shelf import Kind, Shelf
from tidegate.mcp.shelf_redis import RedisShelf
from tidegate.mcp.shelf_sqlite import SQLiteShelf
from tidegate.testing.clock import ManualClock

KINDS = ("sqlite", "redis")
WAIT_S = 30.0
SMALL = Kind("small", 100.0, 5, 3)
"""Few documents, so that a short history fills it."""


def make(kind: str, folder: Path, clock: ManualClock) -> Shelf:
    """A shelf that is not started; several of one folder share what lies there."""
    if kind == "sqlite":
        return SQLiteShelf(folder / "store.db", clock, WAIT_S)
    prefix = f"{folder.parent.name}-{folder.name}"
    return RedisShelf(shared_server().url, deadline_s=WAIT_S, prefix=prefix)


def play(kind: str, folder: Path, body: Callable[[Shelf, ManualClock], Awaitable[None]]) -> None:
    """Run `body` with a shelf of its own."""

    async def run() -> None:
        clock = ManualClock()
        shelf = make(kind, folder, clock)
        shelf.start()
        try:
            async with asyncio.timeout(6 * WAIT_S):
                await body(shelf, clock)
        finally:
            await shelf.close()

    asyncio.run(run())


@dataclass
class Document:
    value: bytes
    group: str
    until_s: float


@dataclass
class Model:
    """What a shelf promises, in the plainest words: `documents` in the order of their last use."""

    kind: Kind
    now_s: float = 0.0
    documents: dict[str, Document] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)

    def living(self) -> dict[str, Document]:
        self.documents = {k: d for k, d in self.documents.items() if d.until_s > self.now_s}
        return self.documents

    def get(self, key: str) -> bytes | None:
        found = self.living().get(key)
        return None if found is None else found.value

    def put(self, key: str, value: bytes, group: str) -> None:
        living = self.living()
        if key in living:
            self._lose(key)
        else:
            theirs = [one for one, document in living.items() if document.group == group]
            if len(theirs) >= self.kind.most_of_group:
                self._lose(theirs[0])
            elif len(living) >= self.kind.most:
                self._lose(next(iter(living)))
        self.documents[key] = Document(value, group, self.now_s + self.kind.live_s)

    def touch(self, key: str) -> bool:
        found = self.living().pop(key, None)
        if found is None:
            return False
        found.until_s = self.now_s + self.kind.live_s
        self.documents[key] = found
        return True

    def drop(self, key: str) -> bool:
        if key not in self.living():
            return False
        self._lose(key)
        return True

    def group(self, group: str) -> dict[str, bytes]:
        return {k: d.value for k, d in self.living().items() if d.group == group}

    def _lose(self, key: str) -> None:
        del self.documents[key]
        self.changes.append(key)
