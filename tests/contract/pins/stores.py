"""Which stores of pins must keep the contract, and what do their tests share?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.redis_server import shared_server
from tidegate.mcp.pin_forms import survey
from tidegate.mcp.pin_store import MemoryPins, PinStore
from tidegate.mcp.pin_store_redis import RedisPins
from tidegate.mcp.pin_store_sqlite import SQLitePins
from tidegate.mcp.pins import EMPTY, Book, observe

KINDS = ("memory", "sqlite", "redis")
SHARED = ("sqlite", "redis")


def make(kind: str, folder: Path) -> PinStore:
    """A store, as each process of a gateway makes one."""
    if kind == "memory":
        return MemoryPins()
    if kind == "sqlite":
        return SQLitePins(folder / "ledger.db")
    prefix = f"{folder.parent.name}-{folder.name}"
    return RedisPins(shared_server().url, deadline_s=5.0, prefix=prefix)


@asynccontextmanager
async def used(*stores: PinStore) -> AsyncIterator[None]:
    """Closed whatever happens."""
    try:
        yield
    finally:
        for store in stores:
            await store.close()


def book(*names: str, description: str = "what it does", turn: int = 1) -> Book:
    """A book in which these tools are pinned."""
    tools = survey({"name": name, "description": description} for name in names)
    seen = observe(EMPTY, tools, now_s=1.5).book
    return Book(seen.pins, seen.is_settled, turn)
