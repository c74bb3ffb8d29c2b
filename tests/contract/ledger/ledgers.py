"""Which ledgers must keep the contract, and what do their tests share?"""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from struct import unpack
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.redis_server import shared_server
from tidegate.limits import Charge, Granted, Ledger, Limit, MemoryLedger, SQLiteLedger
from tidegate.limits.owned import OwnedLedger
from tidegate.limits.owner import Owner
from tidegate.limits.redis import RedisLedger
from tidegate.testing.clock import ManualClock

if TYPE_CHECKING:
    import redis

KINDS = ("memory", "sqlite", "owned", "redis")
EACH_KIND = [
    pytest.param(kind, marks=pytest.mark.full) if kind == "owned" else kind for kind in KINDS
]
"""The fast tier has one on a file, one in the process and one on a server."""
ON_FILE = ("sqlite", "owned")
SCOPE = "tenant:acme"
LEASE_S = 30.0
WAIT_S = 30.0
"""On a busy machine a sound store may be late."""

Body = Callable[[Ledger, ManualClock], Awaitable[None]]


def make(kind: str, folder: Path, clock: ManualClock) -> Ledger:
    """A ledger that is not open yet."""
    if kind == "memory":
        return MemoryLedger(clock)
    if kind == "sqlite":
        return SQLiteLedger(folder / "ledger.db", clock, WAIT_S)
    if kind == "owned":
        return owned(file_of(kind, folder), clock)
    # A server has a clock of its own: steps of the wall clock here do not reach it.
    began_us = _us(clock.now_s()) - _us(clock.monotonic_s())
    return RedisLedger(
        shared_server().url,
        clock,
        deadline_s=WAIT_S,
        prefix=prefix(folder),
        given_us=lambda: began_us + _us(clock.monotonic_s()),
    )


def file_of(kind: str, folder: Path) -> Path:
    """Each kind has its own: two of them may play the same history side by side."""
    return folder / ("owned.db" if kind == "owned" else "ledger.db")


class _Owned(OwnedLedger):
    """A worker's ledger together with its owner, which a parent process would keep."""

    def __init__(self, owner: Owner, alone: Ledger, wait_s: float) -> None:
        super().__init__(owner.connect(), alone, wait_s)
        self._owner = owner

    async def open(self) -> None:
        self._owner.start()
        await super().open()

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._owner.stop)


def owned(path: Path, clock: ManualClock, wait_s: float = WAIT_S) -> OwnedLedger:
    return _Owned(Owner(path, clock, wait_s), SQLiteLedger(path, clock, wait_s), wait_s)


def prefix(folder: Path) -> str:
    """With what the keys of the test in `folder` begin."""
    return f"{folder.parent.name}-{folder.name}"


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


@asynccontextmanager
async def opened(ledger: Ledger) -> AsyncIterator[Ledger]:
    """The ledger, closed whatever happens."""
    await ledger.open()
    try:
        yield ledger
    finally:
        await ledger.close()


def let_writers_end() -> None:
    """Wait for writers of closed ledgers: they may have been left with a file that was held."""
    for thread in threading.enumerate():
        if thread.name == "tidegate-ledger":
            thread.join(WAIT_S)
            assert not thread.is_alive()


def run(kind: str, folder: Path, body: Body) -> None:
    """Run `body` against one kind of ledger with a clock that it moves itself."""

    async def main() -> None:
        clock = ManualClock()
        async with opened(make(kind, folder, clock)) as ledger:
            await body(ledger, clock)
        check(kind, folder)

    asyncio.run(main())


def check(kind: str, folder: Path) -> None:
    """The books are consistent."""
    if kind in ON_FILE:
        check_sums(folder, kind)
    elif kind == "redis":
        check_keys(folder)


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


def dump(kind: str, folder: Path) -> Sequence[object]:
    """The whole content of the store, for comparison."""
    if kind in ON_FILE:
        with closing(sqlite3.connect(file_of(kind, folder))) as db:
            return list(db.iterdump())
    if kind == "redis":
        with keys_of(folder) as (client, keys):
            return [(key, _content(client, key)) for key in keys]
    return ()


def _content(client: "redis.Redis", key: bytes) -> object:
    """All of it; not DUMP, which shows in what order a hash lies in memory."""
    match client.type(key):
        case b"hash":
            return client.hgetall(key)
        case b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        case _:
            return client.dump(key)


def rows(kind: str, folder: Path) -> tuple[int, int, int]:
    """How many counters, buckets and reservations are stored."""
    if kind in ON_FILE:
        with closing(sqlite3.connect(file_of(kind, folder))) as db:
            counters, buckets, reservations = (
                db.execute(f"SELECT COUNT(*) FROM limit_{table}").fetchone()[0]  # noqa: S608
                for table in ("counters", "buckets", "reservations")
            )
        return counters, buckets, reservations
    with keys_of(folder) as (client, keys):
        counters = [key for key in keys if b":{" in key and client.type(key) == b"hash"]
        # Beside its buckets a counter has a head.
        buckets = sum(client.hlen(key) - 1 for key in counters)
        leases = [key for key in keys if key.endswith(b":leases")]
        return len(counters), buckets, sum(len(_leases(client, key)) for key in leases)


def _leases(client: "redis.Redis", key: bytes) -> dict[bytes, bytes]:
    """By their ids; the clock lies among them."""
    return {name: value for name, value in client.hgetall(key).items() if name}


@contextmanager
def keys_of(folder: Path) -> Iterator[tuple["redis.Redis", list[bytes]]]:
    """A client, and the keys of the test in `folder`; but who shares the store is no content."""
    with closing(shared_server().client()) as client:
        found = client.scan_iter(match=f"{prefix(folder)}:*", count=1_000)
        yield client, sorted(key for key in found if not key.endswith(b":members"))


def check_keys(folder: Path) -> None:
    """The same as check_sums for the keys in Redis; and each of them has a time limit."""
    total, buckets, reserved, leased, slots, taken = 0, 0, 0, 0, 0, 0
    with keys_of(folder) as (client, keys):
        for key in keys:
            assert client.pttl(key) > 0, key
            kind = client.type(key)
            if key.endswith(b":leases"):
                for value in _leases(client, key).values():
                    owner, is_open, _, _, lines = msgspec.msgpack.decode(value)
                    assert owner
                    for unit, counter, end_us, amount in lines if is_open else ():
                        if unit == "concurrent":
                            slots += 1
                        elif client.hexists(counter, str(end_us)):
                            leased += amount
            elif kind == b"hash":
                fields = client.hgetall(key)
                head = unpack("<4q", fields.pop(b"h"))
                ends = sorted(map(int, fields))
                numbers = [unpack("<4q", fields[b"%d" % end]) for end in ends]
                assert head[1:3] == (ends[0], ends[-1])
                assert [one[3] for one in numbers] == [*ends[1:], 0]
                total += head[0]
                buckets += sum(one[0] for one in numbers)
                reserved += sum(one[1] for one in numbers)
                assert client.zscore(f"{prefix(folder)}:counters", key) == head[3]
            elif kind == b"zset" and b"}:concurrent/" in key:
                taken += client.zcard(key)
    assert (total, reserved, taken) == (buckets, leased, slots)


def check_sums(folder: Path, kind: str = "sqlite") -> None:
    """Totals are the sums of the buckets, leases the sums of the open reservations."""
    with closing(sqlite3.connect(file_of(kind, folder))) as db:
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
