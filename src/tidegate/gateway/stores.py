"""Which ledger does `store.url` name?

Lives here: its construction from the configuration, for the gateway and for commands that look
into the same store. Does not live here: what a ledger does (limits).
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from tidegate.clock import Clock, SystemClock, boot_number
from tidegate.config import Config, on_redis, store_file
from tidegate.limits import MemoryLedger, SQLiteLedger
from tidegate.limits.degraded import DegradingLedger
from tidegate.limits.ledger import Ledger, Limit, Usage
from tidegate.limits.redis import RedisLedger
from tidegate.limits.sqlite_reader import SQLiteReader


class Reader(Protocol):
    """What one who only looks may ask. Both may raise StoreUnavailable and change nothing."""

    async def usages(self, counters: Sequence[tuple[Limit, str]]) -> list[Usage]:
        """Ledger.usage of each."""

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""


def ledger_for(config: Config, clock: Clock) -> Ledger:
    """The ledger of a gateway, not yet open. While its store is away, `on_store_down` holds."""
    store = config.store
    if (file := store_file(store.url)) is not None:
        # Only the system's own clock counts from the start of the machine.
        boot = boot_number() if isinstance(clock, SystemClock) else 0
        kept = SQLiteLedger(Path(file), clock, wait_s=store.wait_s, boot=boot)
        return DegradingLedger(kept, clock, sharers=lambda: config.server.workers)
    if on_redis(store.url):
        shared = RedisLedger(store.url, clock, deadline_s=store.deadline_s)
        return DegradingLedger(shared, clock, sharers=lambda: shared.sharers)
    return MemoryLedger(clock)


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


__all__ = ["Reader", "ledger_for", "reader_for"]
