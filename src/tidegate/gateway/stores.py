"""Which ledger does `store.url` name?

Lives here: its construction from the configuration, for the gateway and for commands that look
into the same store. Does not live here: what a ledger does (limits).
"""

from pathlib import Path

from tidegate.clock import Clock
from tidegate.config import Config, on_redis, store_file
from tidegate.limits import MemoryLedger, SQLiteLedger
from tidegate.limits.degraded import DegradingLedger
from tidegate.limits.ledger import Ledger
from tidegate.limits.redis import RedisLedger


def ledger_for(config: Config, clock: Clock) -> Ledger:
    """The ledger of a gateway, not yet open. While its store is away, `on_store_down` holds."""
    store = config.store
    if (file := store_file(store.url)) is not None:
        kept = SQLiteLedger(Path(file), clock, wait_s=store.wait_s)
        return DegradingLedger(kept, clock, sharers=lambda: config.server.workers)
    if on_redis(store.url):
        shared = RedisLedger(store.url, clock, deadline_s=store.deadline_s)
        return DegradingLedger(shared, clock, sharers=lambda: shared.sharers)
    return MemoryLedger(clock)


__all__ = ["ledger_for"]
