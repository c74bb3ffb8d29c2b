"""Which ledger, which store of pins and which shelf does `store.url` name?

Lives here: their construction from the configuration, for the gateway and for commands that look
into the same store. Does not live here: what a ledger (limits), a pin or a shelf (mcp) is.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Protocol

from tidegate.clock import Clock, SystemClock, boot_number
from tidegate.config import Config, on_redis, store_file
from tidegate.limits import MemoryLedger, SQLiteLedger
from tidegate.limits.degraded import DegradingLedger
from tidegate.limits.ledger import Ledger, Limit, Usage
from tidegate.limits.owned import OwnedLedger
from tidegate.limits.owner import Owner
from tidegate.limits.redis import RedisLedger
from tidegate.limits.sqlite_reader import SQLiteReader
from tidegate.mcp.pin_store import MemoryPins, PinStore
from tidegate.mcp.pin_store_redis import RedisPins
from tidegate.mcp.pin_store_sqlite import SQLitePins
from tidegate.mcp.shelf import Shelf
from tidegate.mcp.shelf_redis import RedisShelf
from tidegate.mcp.shelf_sqlite import SQLiteShelf

logger = logging.getLogger(__name__)


class Reader(Protocol):
    """What one who only looks may ask. Both may raise StoreUnavailable and change nothing."""

    async def usages(self, counters: Sequence[tuple[Limit, str]]) -> list[Usage]:
        """Ledger.usage of each."""

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""


def ledger_for(config: Config, clock: Clock, owner: socket | None = None) -> Ledger:
    """The ledger of a gateway, not yet open. While its store is away, `on_store_down` holds.

    `owner` leads to the process that keeps the file, if that is another one.
    """
    store = config.store
    if (file := store_file(store.url)) is not None:
        kept: Ledger = SQLiteLedger(Path(file), clock, wait_s=store.wait_s, boot=_boot(clock))
        if owner is not None:
            kept = OwnedLedger(owner, kept, wait_s=store.wait_s)
        return DegradingLedger(kept, clock, sharers=lambda: config.server.workers)
    if on_redis(store.url):
        shared = RedisLedger(store.url, clock, deadline_s=store.deadline_s)
        return DegradingLedger(shared, clock, sharers=lambda: shared.sharers)
    return MemoryLedger(clock)


def shelf_for(config: Config, clock: Clock) -> Shelf | None:
    """Where the processes of a gateway share what outlives a request; None: there is one process.

    Each process opens a file by itself, also beside an owner of the ledger: it is written seldom.
    """
    store = config.store
    if (file := store_file(store.url)) is not None:
        return SQLiteShelf(Path(file), clock, wait_s=store.wait_s)
    if on_redis(store.url):
        return RedisShelf(store.url, deadline_s=store.deadline_s)
    return None


@asynccontextmanager
async def owner_for(config: Config, clock: Clock) -> AsyncIterator[Owner | None]:
    """The keeper of the ledger for the workers of this process; None: they need none."""
    if (file := store_file(config.store.url)) is None:
        yield None
        return
    owner = Owner(Path(file), clock, config.store.wait_s, boot=_boot(clock))
    owner.start()
    try:
        yield owner
    finally:
        if not await asyncio.to_thread(owner.stop):
            logger.warning("ledger_close_late")


def pin_store_for(config: Config, *, creates: bool = True) -> PinStore:
    """Where the pins of tools are kept. Without `creates` a file that is missing stays so."""
    store = config.store
    if (file := store_file(store.url)) is not None:
        return SQLitePins(file, store.wait_s, creates=creates)
    if on_redis(store.url):
        return RedisPins(store.url, deadline_s=store.deadline_s)
    return MemoryPins()


def _boot(clock: Clock) -> int:
    """Only the system's own clock counts from the start of the machine."""
    return boot_number() if isinstance(clock, SystemClock) else 0


@asynccontextmanager
async def reader_for(config: Config, clock: Clock) -> AsyncIterator[Reader]:
    """A look into the store that running gateways use; raises StoreUnavailable.

    A store in memory holds nothing for another process to see.
    """
    store = config.store
    if (file := store_file(store.url)) is not None:
        yield SQLiteReader(Path(file), clock)
    elif on_redis(store.url):
        ledger = RedisLedger(store.url, clock, deadline_s=store.wait_s, joins=False)
        await ledger.open()
        try:
            yield ledger
        finally:
            await ledger.close()
    else:
        yield MemoryLedger(clock)


__all__ = ["Reader", "ledger_for", "owner_for", "pin_store_for", "reader_for", "shelf_for"]
