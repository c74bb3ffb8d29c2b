"""How many exact decisions a second do processes on one file make, and against what?"""

import asyncio
import multiprocessing
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores
from tidegate.clock import SystemClock
from tidegate.limits import Charge, Granted, Limit, Need, Refused, SQLiteLedger

PROCESSES, CALLERS, TENANTS, ROUNDS, SECONDS = 4, 16, 10, 3, 1.5
LIMIT = Limit("tokens", "tokens", 10**9)
SMALL = Limit("small", "tokens", 100)
LIVE = 100_000
Call = Callable[[str, str], Awaitable[object]]


@dataclass(frozen=True)
class Rate:
    """Calls a second over all processes, and the 99th percentile of one of them in ms."""

    per_s: float
    p99_ms: float


def main() -> None:
    """Print the rates of one run and their ratios."""
    print(f"{PROCESSES} processes x {CALLERS} callers, {TENANTS} tenants, {cores()}")  # noqa: T201
    designs = {
        "raw commit, one connection": raw,
        "decisions": decide,
        "reserve and settle": pair,
        "refusals": refuse,
        "per-call to_thread and SUM": summed,
    }
    rates: dict[str, list[Rate]] = {name: [] for name in designs}
    for _ in range(ROUNDS):
        for name, work in designs.items():
            with tempfile.TemporaryDirectory() as folder:
                count = 1 if work is raw else PROCESSES
                rates[name].append(together(work, Path(folder), count))
    base = median(rate.per_s for rate in rates["raw commit, one connection"])
    for name, runs in rates.items():
        rate, p99_ms = median(run.per_s for run in runs), median(run.p99_ms for run in runs)
        spread = f"{min(run.per_s for run in runs):,.0f}-{max(run.per_s for run in runs):,.0f}"
        line = (
            f"{name:28} {rate:9,.0f}/s ({spread})  {rate / base:5.2f} x raw  p99 {p99_ms:6.1f} ms"
        )
        print(line)  # noqa: T201
    ours, theirs = (median(run.per_s for run in rates[name]) for name in list(rates)[1::3])
    print(f"decisions against per-call to_thread and SUM: {ours / theirs:.1f} x")  # noqa: T201
    print(asyncio.run(with_and_without_live()))  # noqa: T201


def together(
    work: Callable[[Path, int, Barrier, "multiprocessing.Queue[list[float]]"], None],
    folder: Path,
    count: int,
) -> Rate:
    """Run `work` in `count` fresh processes at the same time."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    processes = [
        context.Process(target=work, args=(folder / "ledger.db", number, barrier, results))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    times = [one for _ in processes for one in results.get(timeout=60)]
    for process in processes:
        process.join()
    times.sort()
    return Rate(len(times) / SECONDS, times[len(times) * 99 // 100] * 1e3)


def raw(
    path: Path, number: int, barrier: Barrier, results: "multiprocessing.Queue[object]"
) -> None:
    """What SQLite itself does with one row a transaction, nobody else there."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("CREATE TABLE taken (id TEXT PRIMARY KEY, tenant TEXT, at REAL, amount INTEGER)")
        barrier.wait()
        clock, times = SystemClock(), list[float]()
        end = perf_counter() + SECONDS
        while (began := perf_counter()) < end:
            db.execute("BEGIN IMMEDIATE")
            row = (f"{number}-{len(times)}", f"t{len(times) % TENANTS}", clock.now_s(), 100)
            db.execute("INSERT INTO taken VALUES (?, ?, ?, ?)", row)
            db.execute("COMMIT")
            times.append(perf_counter() - began)
    results.put(times)


def summed(
    path: Path, number: int, barrier: Barrier, results: "multiprocessing.Queue[object]"
) -> None:
    """One row a request and a sum over the window, each call in a thread of its own."""

    def reserve(one_id: str, tenant: str) -> bool:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            now = SystemClock().now_s()
            db.execute("DELETE FROM taken WHERE at < ?", (now - 60,))
            held = "SELECT COALESCE(SUM(amount), 0) FROM taken WHERE tenant = ?"
            fits = db.execute(held, (tenant,)).fetchone()[0] + 100 <= LIMIT.cap
            if fits:
                db.execute("INSERT INTO taken VALUES (?, ?, ?, ?)", (one_id, tenant, now, 100))
            db.execute("COMMIT")
            return bool(fits)

    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS taken"
            " (id TEXT PRIMARY KEY, tenant TEXT, at REAL, amount INTEGER)"
        )
        db.execute("CREATE INDEX IF NOT EXISTS by_tenant ON taken (tenant, at)")

    async def run() -> list[float]:
        return await drive(number, barrier, lambda one, who: asyncio.to_thread(reserve, one, who))

    results.put(asyncio.run(run()))


def decide(
    path: Path, number: int, barrier: Barrier, results: "multiprocessing.Queue[object]"
) -> None:
    """One limit, everything is granted."""

    async def run() -> list[float]:
        ledger = SQLiteLedger(path, SystemClock(), wait_s=30.0)
        await ledger.open()

        async def reserve(one_id: str, tenant: str) -> None:
            charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
            verdict = await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert isinstance(verdict, Granted)  # noqa: S101

        times = await drive(number, barrier, reserve)
        await ledger.close()
        return times

    results.put(asyncio.run(run()))


def pair(
    path: Path, number: int, barrier: Barrier, results: "multiprocessing.Queue[object]"
) -> None:
    """The whole life of a reservation, counted once."""

    async def run() -> list[float]:
        ledger = SQLiteLedger(path, SystemClock(), wait_s=30.0)
        await ledger.open()

        async def both(one_id: str, tenant: str) -> None:
            charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
            await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert await ledger.settle(one_id, "bench", Need(10, 20))  # noqa: S101

        times = await drive(number, barrier, both)
        await ledger.close()
        return times

    results.put(asyncio.run(run()))


def refuse(
    path: Path, number: int, barrier: Barrier, results: "multiprocessing.Queue[object]"
) -> None:
    """Every limit is full."""

    async def run() -> list[float]:
        ledger = SQLiteLedger(path, SystemClock(), wait_s=30.0)
        await ledger.open()
        for tenant in range(TENANTS):
            charges = (Charge(SMALL, f"tenant:t{tenant}", 100),)
            await ledger.reserve(f"{number}-full-{tenant}", "bench", charges, lease_s=60.0)

        async def reserve(one_id: str, tenant: str) -> None:
            charges = (Charge(SMALL, f"tenant:{tenant}", 1),)
            verdict = await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert isinstance(verdict, Refused)  # noqa: S101

        times = await drive(number, barrier, reserve)
        await ledger.close()
        return times

    results.put(asyncio.run(run()))


async def drive(number: int, barrier: Barrier | None, call: Call) -> list[float]:
    """Seconds of each call, by callers that each wait for their answer."""
    if barrier is not None:
        await asyncio.to_thread(barrier.wait)
    times: list[float] = []
    end = perf_counter() + SECONDS

    async def caller(place: int) -> None:
        turn = 0
        while (began := perf_counter()) < end:
            await call(f"{number}-{place}-{turn}", f"t{(place + turn) % TENANTS}")
            times.append(perf_counter() - began)
            turn += 1

    await asyncio.gather(*(caller(place) for place in range(CALLERS)))
    return times


async def with_and_without_live() -> str:
    """The cost of a reservation and its settlement beside a hundred thousand others."""
    costs: dict[int, list[float]] = {0: [], LIVE: []}
    with tempfile.TemporaryDirectory() as folder:
        ledgers = {}
        for live in costs:
            ledger = ledgers[live] = SQLiteLedger(Path(folder) / f"{live}.db", SystemClock(), 30.0)
            await ledger.open()
            for first in range(0, live, 500):
                await asyncio.gather(*(_hold(ledger, first + place) for place in range(500)))
        for turn in range(ROUNDS):
            for live, ledger in ledgers.items():

                async def both(one_id: str, tenant: str, ledger: SQLiteLedger = ledger) -> None:
                    charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
                    await ledger.reserve(one_id, "bench", charges, lease_s=600.0)
                    await ledger.settle(one_id, "bench", Need(10, 20))

                costs[live].append(1 / len(await drive(turn, None, both)))
        for ledger in ledgers.values():
            await ledger.close()
    ratio = median(costs[LIVE]) / median(costs[0])
    return f"cost of a reservation beside {LIVE:,} live ones: {ratio:.2f} x that beside none"


async def _hold(ledger: SQLiteLedger, place: int) -> None:
    charges = (Charge(LIMIT, f"tenant:t{place % TENANTS}", 1),)
    await ledger.reserve(f"live-{place}", "bench", charges, lease_s=600.0)


if __name__ == "__main__":
    main()
