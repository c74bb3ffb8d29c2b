"""Which ledgers must keep the contract, and what do their tests share?"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tidegate.limits import Charge, Granted, Ledger, Limit, MemoryLedger, SQLiteLedger
from tidegate.testing.clock import ManualClock

KINDS = ("memory", "sqlite")
SCOPE = "tenant:acme"
LEASE_S = 30.0

Body = Callable[[Ledger, ManualClock], Awaitable[None]]


def make(kind: str, folder: Path, clock: ManualClock) -> Ledger:
    """A ledger that is not open yet."""
    if kind == "memory":
        return MemoryLedger(clock)
    return SQLiteLedger(folder / "ledger.db", clock)


@asynccontextmanager
async def opened(ledger: Ledger) -> AsyncIterator[Ledger]:
    """The ledger, closed whatever happens."""
    await ledger.open()
    try:
        yield ledger
    finally:
        await ledger.close()


def run(kind: str, folder: Path, body: Body) -> None:
    """Run `body` against one kind of ledger with a clock that it moves itself."""

    async def main() -> None:
        clock = ManualClock()
        async with opened(make(kind, folder, clock)) as ledger:
            await body(ledger, clock)
        if kind == "sqlite":
            check_sums(folder)

    asyncio.run(main())


def tokens(cap: int, *, window_s: float = 60.0, name: str = "tokens") -> Limit:
    return Limit(name, "tokens", cap, window_s)


def one(limit: Limit, amount: int, scope: str = SCOPE) -> Sequence[Charge]:
    return (Charge(limit, scope, amount),)


async def take(
    ledger: Ledger, reservation_id: str, *charges: Charge, lease_s: float = LEASE_S
) -> bool:
    """Whether the reservation was granted to the owner "me"."""
    verdict = await ledger.reserve(reservation_id, "me", charges, lease_s=lease_s)
    return isinstance(verdict, Granted)


def dump(folder: Path) -> list[str]:
    """The whole content of the SQLite file as statements."""
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        return list(db.iterdump())


def check_sums(folder: Path) -> None:
    """Totals are the sums of the buckets, leases the sums of the open reservations."""
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        wrong = db.execute(
            "SELECT key, total, (SELECT COALESCE(SUM(amount), 0) FROM limit_buckets b"
            " WHERE b.key = c.key) AS held FROM limit_counters c WHERE total != held"
        ).fetchall()
        assert wrong == []
        wrong = db.execute(
            "SELECT key, oldest_us, (SELECT MIN(end_us) FROM limit_buckets b"
            " WHERE b.key = c.key) AS oldest FROM limit_counters c WHERE oldest_us != oldest"
        ).fetchall()
        assert wrong == []
        orphans = db.execute(
            "SELECT key FROM limit_buckets WHERE key NOT IN (SELECT key FROM limit_counters)"
        ).fetchall()
        assert orphans == []
        leased = db.execute(
            "SELECT COALESCE(SUM(json_extract(line.value, '$[3]')), 0)"
            " FROM limit_reservations r, json_each(r.lines) line"
            " JOIN limit_buckets b ON b.key = json_extract(line.value, '$[0]')"
            " AND b.end_us = json_extract(line.value, '$[2]') WHERE r.is_open"
        ).fetchone()
        reserved = db.execute("SELECT COALESCE(SUM(reserved), 0) FROM limit_buckets").fetchone()
        assert leased == reserved
        taken = db.execute("SELECT COALESCE(SUM(taken), 0) FROM limit_slots").fetchone()
        slots = db.execute(
            "SELECT COUNT(*) FROM limit_reservations r, json_each(r.lines) line"
            " WHERE r.is_open AND json_extract(line.value, '$[1]') = 'concurrent'"
        ).fetchone()
        assert taken == slots
