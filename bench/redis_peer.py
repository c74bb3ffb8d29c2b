"""How many decisions a second does one process make on one Redis, by this design?

Run by bench_redis.py as `python redis_peer.py DESIGN PORT CALLERS WEIGHT`, ours with the project's
Python, the others with that of bench/.venv. Says "ready"; for each line on stdin it works for as
many seconds and prints the rate. `raw` is a client that does nothing but write whole pipelines
of our own script to a socket and read as many answers: nobody can be faster with that script.
"""

# ruff: noqa: PLC0415 - each design imports what it is made of, and has only that

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from time import perf_counter

TENANTS = 10
PLENTY = 10**9
Ask = Callable[[int], Awaitable[object]]


async def ours(port: int, weight: int) -> Ask:
    """RedisLedger.reserve."""
    from tidegate.clock import SystemClock
    from tidegate.limits import Charge, Granted, Limit
    from tidegate.limits.redis import RedisLedger

    ledger = RedisLedger(f"redis://127.0.0.1:{port}/1", SystemClock(), deadline_s=5.0)
    await ledger.open()
    charges = [
        (Charge(Limit("tokens", "tokens", PLENTY), f"tenant:t{one}", weight),)
        for one in range(TENANTS)
    ]

    async def ask(number: int) -> object:
        verdict = await ledger.reserve(f"r{number}", "me", charges[number % TENANTS], lease_s=60.0)
        if not isinstance(verdict, Granted):
            raise TypeError(verdict)
        return verdict

    return ask


async def limits(port: int, weight: int) -> Ask:
    """The moving window of `limits`."""
    from limits import RateLimitItemPerMinute
    from limits.aio.storage import RedisStorage
    from limits.aio.strategies import MovingWindowRateLimiter

    storage = RedisStorage(f"async+redis://127.0.0.1:{port}/2", implementation="redispy")
    limiter, item = MovingWindowRateLimiter(storage), RateLimitItemPerMinute(PLENTY)

    async def ask(number: int) -> object:
        return await limiter.hit(item, f"t{number % TENANTS}", cost=weight)

    return ask


async def throttled(port: int, weight: int) -> Ask:
    """The sliding window of `throttled-py`."""
    from throttled.asyncio import RateLimiterType, Throttled, rate_limiter, store

    throttle = Throttled(
        using=RateLimiterType.SLIDING_WINDOW.value,
        quota=rate_limiter.per_min(PLENTY),
        store=store.RedisStore(server=f"redis://127.0.0.1:{port}/3"),
    )

    async def ask(number: int) -> object:
        return await throttle.limit(f"t{number % TENANTS}", cost=weight)

    return ask


def raw(port: int, callers: int, weight: int) -> None:
    """Whole pipelines of `callers` commands, blocking."""
    from tidegate.limits import Charge, Limit
    from tidegate.limits.redis_script import Moment, Speech, command

    speech = Speech("raw")
    charges = [
        (Charge(Limit("tokens", "tokens", PLENTY), f"tenant:t{one}", weight),)
        for one in range(TENANTS)
    ]
    numbers = count()
    with socket.create_connection(("127.0.0.1", port)) as line, line.makefile("rb") as answers:
        line.sendall(b"".join([command("SELECT", 4), *speech.load()]))
        for _ in range(1 + 2 * len(speech.load())):
            answers.readline()
        say("ready")
        for seconds in sys.stdin:
            begin, done = perf_counter(), 0
            while perf_counter() - begin < float(seconds):
                batch = [
                    speech.reserve((f"r{n}", "me"), charges[n % TENANTS], 60_000_000, Moment())
                    for n in (next(numbers) for _ in range(callers))
                ]
                line.sendall(b"".join(batch))
                for _ in batch:
                    answers.read(int(answers.readline()[1:]) + 2)
                done += callers
            say(json.dumps(done / (perf_counter() - begin)))


async def driven(ask: Ask, callers: int) -> None:
    """Work on demand, `callers` at a time."""
    loop, numbers = asyncio.get_running_loop(), count()

    async def caller(ends_s: float) -> int:
        done = 0
        while perf_counter() < ends_s:
            await ask(next(numbers))
            done += 1
        return done

    await asyncio.gather(*(caller(perf_counter() + 0.1) for _ in range(callers)))
    say("ready")
    while seconds := await loop.run_in_executor(None, sys.stdin.readline):
        begin = perf_counter()
        done = await asyncio.gather(*(caller(begin + float(seconds)) for _ in range(callers)))
        say(json.dumps(sum(done) / (perf_counter() - begin)))


def say(words: str) -> None:
    """One line for bench_redis."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(design: str, port: int, callers: int, weight: int) -> None:
    """Be one of the designs."""
    if design == "raw":
        raw(port, callers, weight)
        return

    async def work() -> None:
        made = {"ours": ours, "limits": limits, "throttled": throttled}[design]
        await driven(await made(port, weight), callers)

    import uvloop

    with suppress(KeyboardInterrupt):
        uvloop.run(work())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
