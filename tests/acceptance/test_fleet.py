"""Several gateways on one Redis: one set of limits, whatever happens to any of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import WAIT_S, Running, serving, tidegate
from tests.acceptance.worlds import (
    CHAT,
    Upstream,
    begin,
    chat,
    chat_body,
    code,
    configuration,
    headers,
    scripted,
    write,
)
from tests.redis_server import RedisServer, redis_server
from tidegate.clock import SystemClock
from tidegate.limits import Limit, Usage
from tidegate.limits.redis import RedisLedger
from tidegate.testing.sockets import Answer

SCOPE = "tenant:acme"
DEADLINE_S = 0.5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@asynccontextmanager
async def fleet(
    folder: Path, server: RedisServer, count: int, *, deadline_s: float = 30.0, **parts: Any
) -> AsyncIterator[tuple[Upstream, list[Running]]]:
    """`count` gateways on one server, and what they call.

    On a busy machine a sound server may be late: by default there is time enough.
    """
    upstream = Upstream()
    async with scripted(upstream) as model, AsyncExitStack() as stack:
        store = {"url": server.url, "deadline_s": deadline_s}
        tree = configuration(model.url, store=store, **parts)
        gateways = []
        for number in range(count):
            own = folder / f"gateway{number}"
            own.mkdir()
            write(own, tree)
            gateways.append(await stack.enter_async_context(serving(own)))
        yield upstream, gateways


async def usage(server: RedisServer, limit: Limit) -> Usage:
    ledger = RedisLedger(server.url, SystemClock(), deadline_s=30.0, joins=False)
    await ledger.open()
    try:
        return await ledger.usage(limit, SCOPE)
    finally:
        await ledger.close()


@pytest.mark.full
def test_two_gateways_admit_exactly_the_cap(tmp_path: Path, server: RedisServer) -> None:
    """Eight times the cap asked of two gateways at once, while the model takes its time."""
    cap = 10

    async def body() -> None:
        limits = [{"name": "requests", "requests": cap, "window_s": 3_600.0}]
        async with fleet(tmp_path, server, 2, limits=limits) as (upstream, gateways):
            asked = [
                asyncio.ensure_future(chat(gateways[turn % 2], "held", max_tokens=5))
                for turn in range(8 * cap)
            ]
            done, waiting = set[asyncio.Task[Answer]](), set(asked)
            while len(done) < 7 * cap:
                more, waiting = await asyncio.wait(
                    waiting, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED
                )
                assert more
                done |= more
            assert {task.result().status for task in done} == {429}
            assert {code(task.result()) for task in done} == {"gateway.rate_limited"}
            async with asyncio.timeout(WAIT_S):
                while upstream.begun["held"] < cap:
                    await asyncio.wait(waiting, timeout=0.01)
            upstream.release.set()
            assert {(await task).status for task in waiting} == {200}
            assert upstream.begun["held"] == cap

    asyncio.run(body())


@pytest.mark.full
def test_what_a_killed_gateway_held_comes_back_when_its_leases_end(
    tmp_path: Path, server: RedisServer
) -> None:
    """kill -9 with open reservations: slots free again, tokens charged at their estimate."""
    streams = Limit("streams", "concurrent", 5)
    tokens = Limit("tokens", "tokens", 100_000, 3_600.0)
    limits = [
        {"name": "streams", "concurrent": 5},
        {"name": "tokens", "tokens": 100_000, "window_s": 3_600.0},
    ]

    async def body() -> None:
        async with fleet(tmp_path, server, 2, limits=limits) as (_, (one, other)):
            for _ in range(5):
                await begin(one, "stuck", max_tokens=100)
            assert (await chat(other, max_tokens=5)).status == 429
            held = await usage(server, tokens)
            await one.kill()
            assert await usage(server, streams) == Usage(0, 5, 0, None)
            # Their time is not waited for here: the keys say when it is over, and it is moved.
            client = server.client()
            leases = [name for name in client.zrange("tidegate:due", 0, -1) if name]
            assert len(leases) == 5
            client.zadd("tidegate:due", dict.fromkeys(leases, 1))
            for _ in range(5):
                kept = client.hget("tidegate:leases", "")
                assert isinstance(kept, bytes)
                # The third number of the clock: when the next lease is due. A sign of life of a
                # gateway may write it between our two calls: then once more.
                client.hset("tidegate:leases", "", kept[:16] + bytes(8) + kept[24:])
                if (await chat(other, max_tokens=5)).status == 200:
                    break
            else:
                raise AssertionError("what was held did not come back")
            client.close()
            # The end of what was just asked reaches the books a moment after its answer.
            await free_until(server, streams)
            after = await free_until(server, tokens)
            assert (after.reserved, after.used - 43) == (0, held.reserved)

    asyncio.run(body())


async def free_until(server: RedisServer, limit: Limit) -> Usage:
    """Where a limit stands once nothing of it is reserved any more."""
    for _ in range(200):
        found = await usage(server, limit)
        if not found.reserved:
            break
    assert found.reserved == 0
    return found


def is_away(gateway: Running) -> bool:
    """Whether it last said that its store failed."""
    failed, serves = "ledger_store_failed", "ledger_store_serves_again"
    return len(gateway.events(failed)) > len(gateway.events(serves))


async def asked_until(gateway: Running, done: asyncio.Event, answers: list[Answer]) -> None:
    """One request after the other on one connection."""
    async with await gateway.client() as client:
        while not done.is_set():
            answers.append(
                await client.ask("POST", CHAT, headers=headers(), body=chat_body(max_tokens=5))
            )


async def more_of_each(lanes: list[list[Answer]], more: int) -> None:
    """Wait until each lane has got so many more answers."""
    wanted = [len(lane) + more for lane in lanes]
    async with asyncio.timeout(WAIT_S):
        while any(len(lane) < least for lane, least in zip(lanes, wanted, strict=True)):
            await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)


@pytest.mark.full
def test_a_stopped_server_stops_no_gateway(tmp_path: Path, server: RedisServer) -> None:
    """SIGSTOP under load: all are served by their share meanwhile, marked, and told afterwards."""
    requests = Limit("requests", "requests", 100_000, 3_600.0)
    limits = [{"name": "requests", "requests": 100_000, "window_s": 3_600.0}]

    async def body() -> None:
        started = fleet(tmp_path, server, 2, deadline_s=DEADLINE_S, limits=limits)
        async with started as (upstream, gateways):
            done, lanes = asyncio.Event(), [list[Answer]() for _ in range(6)]
            load = [
                asyncio.ensure_future(asked_until(gateways[number % 2], done, lane))
                for number, lane in enumerate(lanes)
            ]
            await more_of_each(lanes, 5)
            server.pause()
            for gateway in gateways:
                await gateway.until(lambda gateway=gateway: is_away(gateway))
            # The server stands still until all this has happened: nobody waits for it.
            await more_of_each(lanes, 20)
            for gateway in gateways:
                ready = await gateway.admin("/readyz")
                report = json.loads(ready.body)
                assert (ready.status, report["reasons"]) == (200, ["store_degraded"])
                metrics = (await gateway.admin("/metrics")).body.decode()
                assert "tidegate_store_degraded 1.0" in metrics
            server.resume()
            for gateway in gateways:
                await gateway.until(lambda gateway=gateway: not is_away(gateway))
            done.set()
            await asyncio.gather(*load)
            for gateway in gateways:
                await gateway.until(lambda gateway=gateway: not is_away(gateway))
                told = len(gateway.events("ledger_store_serves_again"))
                await gateway.event("local_admissions_told", times=told)
            answers = [answer for lane in lanes for answer in lane]
            assert {answer.status for answer in answers} == {200}
            marked = [a for a in answers if a.header("x-tidegate-limiter") == "degraded"]
            assert len(marked) >= 6 * 20
            assert upstream.begun["quick"] == len(answers)
            counted = await counted_until(server, requests, len(answers))
            assert counted.used + counted.reserved == len(answers)

    asyncio.run(body())


async def counted_until(server: RedisServer, limit: Limit, wanted: int) -> Usage:
    """What the server has counted, when it is as much as wanted or no more comes."""
    for _ in range(200):
        counted = await usage(server, limit)
        if counted.used + counted.reserved == wanted:
            break
    return counted


@pytest.mark.full
def test_the_command_beside_the_gateways_sees_the_same_books(
    tmp_path: Path, server: RedisServer
) -> None:
    limits = [{"name": "tokens", "tokens": 5_000}]

    async def body() -> None:
        async with fleet(tmp_path, server, 1, limits=limits) as (_, (gateway,)):
            assert (await chat(gateway, max_tokens=5)).status == 200
            await free_until(server, Limit("tokens", "tokens", 5_000, 60.0))
            told = await asyncio.to_thread(
                tidegate, tmp_path / "gateway0", "limits", "acme", "--json"
            )
            assert told.returncode == 0
            assert '"used": 43' in told.stdout
            client = server.client()
            assert client.zcard("tidegate:members") == 1
            client.close()

    asyncio.run(body())


@pytest.mark.full
def test_money_stays_closed_while_its_store_is_away(tmp_path: Path, server: RedisServer) -> None:
    parts: dict[str, Any] = {
        "limits": [{"name": "money", "money_micros": 10**9}],
        "prices": {"only": {"*": {"input": 1_000_000, "output": 1_000_000}}},
    }

    async def body() -> None:
        async with fleet(tmp_path, server, 1, **parts) as (upstream, (gateway,)):
            assert (await chat(gateway, max_tokens=5)).status == 200
            server.kill()
            for _ in range(3):
                refused = await chat(gateway, max_tokens=5)
                assert (refused.status, code(refused)) == (503, "gateway.store_unavailable")
                assert refused.header("retry-after") == "1"
            assert (await gateway.admin("/readyz")).status == 503
            server.start()
            await gateway.event("ledger_store_serves_again")
            assert (await chat(gateway, max_tokens=5)).status == 200
            assert (await gateway.admin("/readyz")).status == 200
            assert upstream.begun["quick"] == 2

    asyncio.run(body())
