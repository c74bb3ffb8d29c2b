"""How many exact decisions a second do processes on one file make, and against what?

As the workers of `serve --workers 4` do: the ledger is kept by the process that started them,
here the benchmark itself. "shared file" is the same by gateways that know nothing of each other.
"""

import asyncio
import multiprocessing
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from socket import socket
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores
from tidegate.clock import SystemClock
from tidegate.gateway.process import loop_factory
from tidegate.gateway.request_ids import RequestIds
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, Refused, SQLiteLedger
from tidegate.limits.owned import OwnedLedger
from tidegate.limits.owner import Owner

PROCESSES, CALLERS, TENANTS, ROUNDS, SECONDS = 4, 16, 10, 3, 1.5
LIMIT = Limit("tokens", "tokens", 10**9)
SMALL = Limit("small", "tokens", 100)
LIVE = 100_000
Call = Callable[[str, str], Awaitable[object]]
RAW, OURS, THEIRS = "raw commit, one connection", "decisions", "per-call to_thread and SUM"
WAIT_S = 30.0


@dataclass(frozen=True)
class Rate:
    """Calls a second over all processes, and the 99th percentile of one of them in ms."""

    per_s: float
    p99_ms: float


@dataclass(frozen=True)
class Seat:
    """Where one process sits: the file, its number, its end of the line to the owner."""

    path: Path
    number: int
    line: socket | None

    def ledger(self) -> Ledger:
        """As a worker has it."""
        alone = SQLiteLedger(self.path, SystemClock(), wait_s=WAIT_S)
        return alone if self.line is None else OwnedLedger(self.line, alone, wait_s=WAIT_S)


Work = Callable[[Seat, Barrier, "multiprocessing.Queue[list[float]]"], None]


def main() -> None:
    """Print the rates of one run and their ratios."""
    print(f"{PROCESSES} processes x {CALLERS} callers, {TENANTS} tenants, {cores()}")  # noqa: T201
    designs = {
        RAW: raw,
        OURS: decide,
        "decisions, shared file": decide_alone,
        "reserve and settle": pair,
        "refusals": refuse,
        THEIRS: summed,
    }
    rates: dict[str, list[Rate]] = {name: [] for name in designs}
    for _ in range(ROUNDS):
        for name, work in designs.items():
            with tempfile.TemporaryDirectory() as folder:
                rates[name].append(together(work, Path(folder)))
    base = median(rate.per_s for rate in rates[RAW])
    for name, runs in rates.items():
        rate, p99_ms = median(run.per_s for run in runs), median(run.p99_ms for run in runs)
        spread = f"{min(run.per_s for run in runs):,.0f}-{max(run.per_s for run in runs):,.0f}"
        line = (
            f"{name:28} {rate:9,.0f}/s ({spread})  {rate / base:5.2f} x raw  p99 {p99_ms:6.1f} ms"
        )
        print(line)  # noqa: T201
    ours, theirs = (median(run.per_s for run in rates[name]) for name in (OURS, THEIRS))
    print(f"decisions against per-call to_thread and SUM: {ours / theirs:.1f} x")  # noqa: T201
    print(asyncio.run(with_and_without_live()))  # noqa: T201


def together(work: Work, folder: Path) -> Rate:
    """Run `work` in fresh processes at the same time; the ledger is kept by this one."""
    path, count = folder / "ledger.db", 1 if work is raw else PROCESSES
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    owner = Owner(path, SystemClock(), WAIT_S) if work in OWNED else None
    lines = [None if owner is None else owner.connect() for _ in range(count)]
    processes = [
        context.Process(target=work, args=(Seat(path, number, line), barrier, results))
        for number, line in enumerate(lines)
    ]
    for process in processes:
        process.start()
    for line in lines:
        if line is not None:
            line.close()
    if owner is not None:
        owner.start()
    times = [one for _ in processes for one in results.get(timeout=60)]
    for process in processes:
        process.join()
    if owner is not None:
        owner.stop()
    times.sort()
    return Rate(len(times) / SECONDS, times[len(times) * 99 // 100] * 1e3)


def raw(seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]") -> None:
    """What SQLite itself does with one row a transaction, nobody else there."""
    with closing(sqlite3.connect(seat.path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("CREATE TABLE taken (id TEXT PRIMARY KEY, tenant TEXT, at REAL, amount INTEGER)")
        barrier.wait()
        clock, times = SystemClock(), list[float]()
        end = perf_counter() + SECONDS
        while (began := perf_counter()) < end:
            db.execute("BEGIN IMMEDIATE")
            row = (f"{seat.number}-{len(times)}", f"t{len(times) % TENANTS}", clock.now_s(), 100)
            db.execute("INSERT INTO taken VALUES (?, ?, ?, ?)", row)
            db.execute("COMMIT")
            times.append(perf_counter() - began)
    results.put(times)


def summed(seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]") -> None:
    """One row a request and a sum over the window, each call in a thread of its own."""

    def reserve(one_id: str, tenant: str) -> bool:
        with closing(sqlite3.connect(seat.path, isolation_level=None, timeout=30)) as db:
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

    with closing(sqlite3.connect(seat.path, isolation_level=None, timeout=30)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS taken"
            " (id TEXT PRIMARY KEY, tenant TEXT, at REAL, amount INTEGER)"
        )
        db.execute("CREATE INDEX IF NOT EXISTS by_tenant ON taken (tenant, at)")

    async def run() -> list[float]:
        return await drive(barrier, lambda one, who: asyncio.to_thread(reserve, one, who))

    results.put(on_our_loop(run()))


def decide(seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]") -> None:
    """One limit, everything is granted."""

    async def run() -> list[float]:
        ledger = seat.ledger()
        await ledger.open()

        async def reserve(one_id: str, tenant: str) -> None:
            charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
            verdict = await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert isinstance(verdict, Granted)  # noqa: S101

        times = await drive(barrier, reserve)
        await ledger.close()
        return times

    results.put(on_our_loop(run()))


def decide_alone(
    seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]"
) -> None:
    """The same, where each process has the file open."""
    decide(seat, barrier, results)


def pair(seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]") -> None:
    """The whole life of a reservation, counted once."""

    async def run() -> list[float]:
        ledger = seat.ledger()
        await ledger.open()

        async def both(one_id: str, tenant: str) -> None:
            charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
            await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert await ledger.settle(one_id, "bench", Need(10, 20))  # noqa: S101

        times = await drive(barrier, both)
        await ledger.close()
        return times

    results.put(on_our_loop(run()))


def refuse(seat: Seat, barrier: Barrier, results: "multiprocessing.Queue[list[float]]") -> None:
    """Every limit is full."""

    async def run() -> list[float]:
        ledger = seat.ledger()
        await ledger.open()
        for tenant in range(TENANTS):
            charges = (Charge(SMALL, f"tenant:t{tenant}", 100),)
            await ledger.reserve(f"{seat.number}-full-{tenant}", "bench", charges, lease_s=60.0)

        async def reserve(one_id: str, tenant: str) -> None:
            charges = (Charge(SMALL, f"tenant:{tenant}", 1),)
            verdict = await ledger.reserve(one_id, "bench", charges, lease_s=60.0)
            assert isinstance(verdict, Refused)  # noqa: S101

        times = await drive(barrier, reserve)
        await ledger.close()
        return times

    results.put(on_our_loop(run()))


OWNED = (decide, pair, refuse)


def on_our_loop(work: Coroutine[object, object, list[float]]) -> list[float]:
    """On the event loop that a worker has."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)


async def drive(barrier: Barrier | None, call: Call) -> list[float]:
    """Seconds of each call, by callers that each wait for their answer."""
    if barrier is not None:
        await asyncio.to_thread(barrier.wait)
    times: list[float] = []
    ids = RequestIds(SystemClock())
    end = perf_counter() + SECONDS

    async def caller(place: int) -> None:
        turn = 0
        while (began := perf_counter()) < end:
            await call(ids.mint(), f"t{(place + turn) % TENANTS}")
            times.append(perf_counter() - began)
            turn += 1

    await asyncio.gather(*(caller(place) for place in range(CALLERS)))
    return times


async def with_and_without_live() -> str:
    """The cost of a reservation and its settlement beside a hundred thousand others."""
    costs: dict[int, list[float]] = {0: [], LIVE: []}
    ids = RequestIds(SystemClock())
    with tempfile.TemporaryDirectory() as folder:
        ledgers = {}
        for live in costs:
            ledger = ledgers[live] = SQLiteLedger(Path(folder) / f"{live}.db", SystemClock(), 30.0)
            await ledger.open()
            for first in range(0, live, 500):
                await asyncio.gather(
                    *(_hold(ledger, ids.mint(), first + place) for place in range(500))
                )
        for _ in range(ROUNDS):
            for live, ledger in ledgers.items():

                async def both(one_id: str, tenant: str, ledger: SQLiteLedger = ledger) -> None:
                    charges = (Charge(LIMIT, f"tenant:{tenant}", 100),)
                    await ledger.reserve(one_id, "bench", charges, lease_s=600.0)
                    await ledger.settle(one_id, "bench", Need(10, 20))

                costs[live].append(1 / len(await drive(None, both)))
        for ledger in ledgers.values():
            await ledger.close()
    ratio = median(costs[LIVE]) / median(costs[0])
    return f"cost of a reservation beside {LIVE:,} live ones: {ratio:.2f} x that beside none"


async def _hold(ledger: SQLiteLedger, one_id: str, place: int) -> None:
    charges = (Charge(LIMIT, f"tenant:t{place % TENANTS}", 1),)
    await ledger.reserve(one_id, "bench", charges, lease_s=600.0)


if __name__ == "__main__":
    main()
