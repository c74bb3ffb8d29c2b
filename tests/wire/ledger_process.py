"""What does another process do to the ledger's file?

Run as `python -m tests.wire.ledger_process ROLE PLACE [NUMBERS]` by the tests beside it: `race`
takes all it can get, `write` reserves and settles until it is killed, `write_owned` does so as two
workers with the owner of their ledger, `lock` and `hog` hold the file. Each says a word on stdout
when it is ready and goes on at a line on stdin.
"""

import asyncio
import fcntl
import json
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from tidegate.clock import SystemClock
from tidegate.limits import Charge, Granted, Ledger, Limit, Need, Refused, SQLiteLedger
from tidegate.limits.owned import OwnedLedger
from tidegate.limits.owner import Owner
from tidegate.limits.redis import RedisLedger

SCOPE = "tenant:acme"
OWNER = "a process of the test"
AMOUNT = 10
USED = Need(2, 1)


def limit(cap: int) -> Limit:
    return Limit("tokens", "tokens", cap, 3_600.0)


def ledger_at(place: str) -> Ledger:
    """The ledger on a file, or on the server of an address."""
    if place.startswith("redis://"):
        return RedisLedger(place, SystemClock(), deadline_s=5.0)
    return SQLiteLedger(place, SystemClock())


async def race(place: str, cap: int, tries: int, name: str) -> None:
    """Sixteen callers of this process want `AMOUNT` each, `tries` times in all."""
    ledger = ledger_at(place)
    await ledger.open()
    say("ready")
    sys.stdin.readline()
    counts = {"granted": 0, "refused": 0}
    charges = (Charge(limit(cap), SCOPE, AMOUNT),)

    async def caller(turns: Iterator[int]) -> None:
        for turn in turns:
            verdict = await ledger.reserve(f"{name}-{turn}", OWNER, charges, lease_s=600.0)
            counts["granted"] += isinstance(verdict, Granted)
            counts["refused"] += isinstance(verdict, Refused)

    turns = iter(range(tries))
    await asyncio.gather(*(caller(turns) for _ in range(16)))
    await ledger.close()
    say(json.dumps(counts))


async def write(ledgers: Sequence[Ledger], lease_s: float) -> None:
    """Reserve for ever, settle every other one; say each as soon as it is acknowledged."""
    for ledger in ledgers:
        await ledger.open()
    charges = (Charge(limit(10**9), SCOPE, AMOUNT), Charge(parallel(), SCOPE, 1))

    async def caller(lane: int) -> None:
        ledger = ledgers[lane % len(ledgers)]
        for turn in range(10**9):
            name = f"{lane}-{turn}"
            await ledger.reserve(name, OWNER, charges, lease_s=lease_s)
            say(f"reserved {name}")
            if turn % 2:
                await ledger.settle(name, OWNER, USED)
                say(f"settled {name}")

    await asyncio.gather(*(caller(lane) for lane in range(8)))


def owned(path: Path) -> Sequence[Ledger]:
    """Two workers of an owner in this process, which die with it."""
    owner = Owner(path, SystemClock())
    owner.start()
    return [OwnedLedger(owner.connect(), SQLiteLedger(path, SystemClock())) for _ in range(2)]


def parallel() -> Limit:
    return Limit("parallel", "concurrent", 10**9)


def lock(path: Path) -> None:
    """Hold the lock between processes, as a stopped gateway would."""
    with path.with_name(path.name + ".lock").open("w") as beside:
        fcntl.flock(beside, fcntl.LOCK_EX)
        say("held")
        sys.stdin.readline()


def hog(path: Path) -> None:
    """Hold SQLite's own write lock, as a tool that knows nothing of ours would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        say("held")
        sys.stdin.readline()
        db.execute("ROLLBACK")


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(role: str, path: str, *numbers: str) -> None:
    match role:
        case "race":
            asyncio.run(race(path, int(numbers[0]), int(numbers[1]), numbers[2]))
        case "write":
            asyncio.run(write([SQLiteLedger(path, SystemClock())], float(numbers[0])))
        case "write_owned":
            asyncio.run(write(owned(Path(path)), float(numbers[0])))
        case "lock":
            lock(Path(path))
        case "hog":
            hog(Path(path))
        case _:
            raise SystemExit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
