"""A server that stops, dies, forgets or drops us: an answer in time, and the books stay true."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import opened
from tests.logged import logged
from tests.redis_server import RedisServer, redis_server
from tests.wire.ledger_process import SCOPE, limit
from tidegate.clock import SystemClock
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Need, Refused, Usage
from tidegate.limits.redis import RedisLedger
from tidegate.limits.redis_line import dial
from tidegate.limits.redis_pipe import MAX_QUEUED, ask
from tidegate.limits.redis_script import Answer, GaveUp, Moment, Speech, answer, verdict
from tidegate.testing.clock import ManualClock

BOOKS = "tidegate.limits.redis"
SHORT_S = 1.5
"""The deadline where a server is stopped: what it takes to answer on a busy machine, and little
to wait for. Everywhere else nothing waits for the deadline."""
TOKENS = limit(100)
ASKED = (Charge(TOKENS, SCOPE, 10),)
LEASE_S = 600.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


def ledger_on(server: RedisServer, deadline_s: float = 30.0) -> RedisLedger:
    return RedisLedger(server.url, SystemClock(), deadline_s=deadline_s)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30.0):
        while not holds():
            await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)


async def turns_of_the_loop(count: int) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


async def seen(server: RedisServer) -> Usage:
    """What another process would see."""
    async with opened(ledger_on(server)) as other:
        return await other.usage(TOKENS, SCOPE)


@pytest.mark.full
def test_a_stopped_server_costs_its_callers_one_deadline_and_then_nothing(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """BerriAI/litellm PR #35273 and PR #40620: no request hangs, one line each way."""

    async def body() -> None:
        async with opened(ledger_on(server, SHORT_S)) as ledger:
            assert isinstance(await ledger.reserve("a", "me", ASKED, lease_s=LEASE_S), Granted)
            server.pause()
            asked = asyncio.gather(
                *(ledger.reserve(f"r{turn}", "me", ASKED, lease_s=LEASE_S) for turn in range(40)),
                return_exceptions=True,
            )
            await turns_of_the_loop(50)
            assert not asked.done()
            assert {type(answer) for answer in await asked} == {StoreUnavailable}
            assert ledger.degraded
            for turn in range(200):
                # Not even one turn of the loop: nobody waits for a store that is away.
                asking = asyncio.ensure_future(
                    ledger.reserve(f"s{turn}", "me", ASKED, lease_s=LEASE_S)
                )
                await turns_of_the_loop(2)
                assert isinstance(asking.exception(), StoreUnavailable)
            server.resume()
            await until(lambda: not ledger.degraded)
            # What was given up is not granted behind the callers' backs.
            usage = await ledger.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (0, 10)
            assert isinstance(await ledger.reserve("new", "me", ASKED, lease_s=LEASE_S), Granted)

    caplog.set_level(logging.INFO)
    asyncio.run(body())
    lines = logged(caplog, BOOKS)
    assert lines == ["ledger_store_failed", "ledger_store_serves_again"]


@pytest.mark.full
def test_three_seconds_without_a_server_slow_no_request_down(server: RedisServer) -> None:
    """SIGSTOP under load: every caller goes on while the server stands still, many times over."""

    async def body() -> None:
        wide, answers = limit(10**9), [0] * 16
        async with opened(ledger_on(server, 0.25)) as ledger:
            over = asyncio.Event()

            async def caller(lane: int) -> None:
                while not over.is_set():
                    charge = (Charge(wide, SCOPE, 1),)
                    name = f"{lane}-{answers[lane]}"
                    with suppress(StoreUnavailable):
                        await ledger.reserve(name, "me", charge, lease_s=LEASE_S)
                    answers[lane] += 1
                    await turns_of_the_loop(20)

            callers = [asyncio.ensure_future(caller(lane)) for lane in range(16)]
            await until(lambda: min(answers) > 10)
            server.pause()
            await until(lambda: ledger.degraded)
            before = min(answers)
            await until(lambda: min(answers) > before + 1_000)
            server.resume()
            await until(lambda: not ledger.degraded)
            over.set()
            await asyncio.gather(*callers)

    asyncio.run(body())


@pytest.mark.full
def test_an_end_given_while_the_server_is_stopped_is_applied_later(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(ledger_on(server, SHORT_S)) as ledger:
            for name in ("a", "b", "c"):
                await ledger.reserve(name, "me", ASKED, lease_s=LEASE_S)
            server.pause()
            cancelled = asyncio.ensure_future(ledger.settle("b", "me", Need(3, 0)))
            await turns_of_the_loop(3)
            cancelled.cancel()
            with pytest.raises(StoreUnavailable):
                await ledger.settle("a", "me", Need(2, 0))
            with pytest.raises(StoreUnavailable):
                await ledger.release("c", "me")
            server.resume()
            await until(lambda: not ledger.degraded)
            usage = await ledger.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (5, 0)

    asyncio.run(body())


@pytest.mark.parametrize("how", ["settle", "release"])
def test_an_end_that_the_server_has_no_memory_for_is_applied_later(
    server: RedisServer, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async def body() -> None:
        async with opened(ledger_on(server)) as ledger:
            for name in ("a", "b"):
                await ledger.reserve(name, "me", ASKED, lease_s=LEASE_S)
            client = server.client()
            client.config_set("maxmemory", "1")
            with pytest.raises(StoreUnavailable):
                await (ledger.release("a", "me") if how == "release" else settled(ledger, "a"))
            assert ledger.degraded
            client.config_set("maxmemory", "0")
            client.close()
            await until(lambda: not ledger.degraded)
            usage = await ledger.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (0 if how == "release" else 30, 10)

    async def settled(ledger: RedisLedger, name: str) -> None:
        await ledger.settle(name, "me", Need(30, 0))

    asyncio.run(body())
    lines = logged(caplog, BOOKS)
    assert lines == ["ledger_store_failed", "ledger_store_serves_again"]


@pytest.mark.full
def test_what_waits_for_a_server_that_is_away_is_bounded(server: RedisServer) -> None:
    """BerriAI/litellm#38193."""

    async def body() -> None:
        async with opened(ledger_on(server, SHORT_S)) as ledger:
            server.pause()
            with pytest.raises(StoreUnavailable):
                await ledger.release("a", "me")
            for turn in range(MAX_QUEUED + 500):
                with pytest.raises(StoreUnavailable):
                    await ledger.settle(f"r{turn}", "me", None)
            server.resume()
            await until(lambda: not ledger.degraded)
            assert isinstance(await ledger.reserve("a", "me", ASKED, lease_s=LEASE_S), Granted)

    asyncio.run(body())


@pytest.mark.parametrize("turns", [*range(8), 20, 60])
def test_a_reservation_cancelled_at_any_moment_leaves_nothing(
    server: RedisServer, turns: int
) -> None:
    async def body() -> None:
        async with opened(ledger_on(server)) as ledger:
            asking = asyncio.ensure_future(ledger.reserve("a", "me", ASKED, lease_s=LEASE_S))
            await turns_of_the_loop(turns)
            asking.cancel()
            await asyncio.wait((asking,))
            usage = await ledger.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (0, 0 if asking.cancelled() else 10)

    asyncio.run(body())


def test_a_killed_server_keeps_what_it_had_acknowledged(tmp_path: Path) -> None:
    """The quota is the same after kill -9 and a restart, and the same ledger goes on.

    With `appendfsync always`: with `everysec` a server holds back what it acknowledged for up to
    two seconds while the disk is busy.
    """

    async def body(server: RedisServer) -> None:
        async with opened(ledger_on(server)) as ledger:
            for turn in range(6):
                await ledger.reserve(f"r{turn}", "me", ASKED, lease_s=LEASE_S)
            assert await ledger.settle("r0", "me", Need(4, 0))
            server.kill()
            with pytest.raises(StoreUnavailable):
                await ledger.reserve("s", "me", ASKED, lease_s=LEASE_S)
            with pytest.raises(StoreUnavailable):
                await ledger.settle("r1", "me", Need(1, 1))
            server.start()
            await until(lambda: not ledger.degraded)
            usage = await ledger.usage(TOKENS, SCOPE)
            assert (usage.used, usage.reserved) == (6, 40)
            granted = [
                await ledger.reserve(f"t{turn}", "me", ASKED, lease_s=LEASE_S) for turn in range(8)
            ]
            assert [isinstance(one, Granted) for one in granted] == [True] * 5 + [False] * 3

    with redis_server(tmp_path, {"appendfsync": "always"}) as server:
        asyncio.run(body(server))


def test_a_reservation_that_comes_after_it_was_given_up_is_not_made(server: RedisServer) -> None:
    """Two connections have no order: what undoes may overtake what it undoes."""

    async def body() -> None:
        line = await dial(server.url, 30.0)
        speech, lease = Speech(), ("r", "me")

        async def said(at_s: int, *, undo: bool = False) -> object:
            moment = Moment(given_us=1_700_000_000_000_000 + at_s * 1_000_000)
            words = (
                speech.finish(lease, "undo", moment=moment)
                if undo
                else speech.reserve(lease, ASKED, 30_000_000, moment)
            )
            (reply,) = await ask(line, [words], 30.0)
            return reply if undo else answer(reply).letter

        await ask(line, speech.load(), 30.0)
        assert await said(0, undo=True) == 0
        assert await said(1) == b"T"
        with pytest.raises(GaveUp):
            verdict(Answer(0, 0, b"T", ()), "r", ASKED)
        # After an hour no connection can bring it any more, and nothing of it is kept.
        other = speech.reserve(("s", "me"), ASKED, 30_000_000, Moment(given_us=2 * 10**15))
        await ask(line, [other], 30.0)
        client = server.client()
        assert sorted(client.hkeys("tidegate:leases")) == [b"", b"s"]
        client.close()
        line.abort()

    asyncio.run(body())


def test_forgotten_scripts_and_a_cut_connection_are_nobodys_error(server: RedisServer) -> None:
    async def body() -> None:
        wide = limit(10**6)
        async with opened(ledger_on(server)) as ledger:
            with_client = server.client()
            for turn in range(12):
                if turn % 3 == 1:
                    with_client.script_flush()
                elif turn % 3 == 2:
                    with_client.client_kill_filter(_type="normal", skipme=True)
                verdicts = await asyncio.gather(
                    *(
                        ledger.reserve(
                            f"r{turn}-{n}", "me", (Charge(wide, SCOPE, 1),), lease_s=LEASE_S
                        )
                        for n in range(50)
                    )
                )
                assert all(isinstance(one, Granted) for one in verdicts)
            with_client.close()
            assert (await ledger.usage(wide, SCOPE)).reserved == 600

    asyncio.run(body())


def test_a_connection_cut_under_load_charges_nothing_twice(server: RedisServer) -> None:
    async def body() -> None:
        wide, granted = limit(10**6), 0
        async with opened(ledger_on(server)) as ledger:
            client = server.client()

            async def caller(lane: int) -> None:
                nonlocal granted
                for turn in range(60):
                    charges = (Charge(wide, SCOPE, 1),)
                    verdict = await ledger.reserve(f"{lane}-{turn}", "me", charges, lease_s=LEASE_S)
                    granted += isinstance(verdict, Granted)
                    if turn % 2:
                        await ledger.settle(f"{lane}-{turn}", "me", Need(1, 0))

            async def cutter() -> None:
                # Longer apart than what counts as a line that does not hold.
                await asyncio.to_thread(client.client_kill_filter, _type="normal", skipme=True)

            await asyncio.gather(cutter(), *(caller(lane) for lane in range(16)))
            client.close()
            usage = await ledger.usage(wide, SCOPE)
            assert (usage.used, usage.reserved) == (480, 480)
            assert granted == 960

    asyncio.run(body())


def test_a_server_clock_that_is_set_gives_no_quota_and_locks_nobody_out(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """An hour back, an hour ahead: time in the books goes on as it passes here."""
    clock, set_us = ManualClock(), [0]

    def server_us() -> int:
        return round(clock.monotonic_s() * 1_000_000) + 1_700_000_000_000_000 + set_us[0]

    async def body() -> None:
        ledger = RedisLedger(server.url, clock, deadline_s=30.0, given_us=server_us)
        async with opened(ledger):
            tokens = limit(100)
            for turn, step_s in enumerate((-3_600, 3_600, 7_200, -7_200)):
                full = (Charge(tokens, f"tenant:{turn}", 100),)
                assert isinstance(
                    await ledger.reserve(f"r{turn}", "me", full, lease_s=9_000.0), Granted
                )
                set_us[0] += step_s * 1_000_000
                refused = await ledger.reserve(f"s{turn}", "me", full, lease_s=9_000.0)
                assert isinstance(refused, Refused)
                assert 3_600.0 <= refused.retry_after_s <= 3_615.0
                clock.advance(refused.retry_after_s)
                assert isinstance(
                    await ledger.reserve(f"t{turn}", "me", full, lease_s=9_000.0), Granted
                )

    asyncio.run(body())
    assert logged(caplog, BOOKS) == ["store_clock_stepped"] * 4


def test_the_clock_of_a_gateway_has_no_effect(server: RedisServer) -> None:
    """One of two processes is 30 s ahead, and then an hour back."""
    ahead = ManualClock(SystemClock().now_s() + 30.0, monotonic_s=500.0)

    async def body() -> None:
        tokens, lent = limit(100), (Charge(limit(100), SCOPE, 60),)
        other = RedisLedger(server.url, ahead, deadline_s=30.0)
        async with opened(ledger_on(server)) as one, opened(other):
            assert isinstance(await one.reserve("a", "me", lent, lease_s=LEASE_S), Granted)
            for step_s in (0.0, -3_600.0, 7_200.0):
                ahead.step(step_s)
                mine, theirs = await one.usage(tokens, SCOPE), await other.usage(tokens, SCOPE)
                assert (mine.reserved, theirs.reserved) == (60, 60)
                assert mine.next_free_s is not None
                assert theirs.next_free_s is not None
                assert abs(mine.next_free_s - theirs.next_free_s) < 20.0
                refused = await other.reserve("b", "me", lent, lease_s=LEASE_S)
                assert isinstance(refused, Refused)
            assert other.clock_ahead_s > 3_600.0

    asyncio.run(body())


def test_those_who_share_the_store_are_counted(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(ledger_on(server)) as first:
            assert isinstance(first, RedisLedger)
            assert first.sharers == 1
            looker = RedisLedger(server.url, SystemClock(), joins=False)
            async with opened(ledger_on(server)) as second, opened(looker):
                assert isinstance(second, RedisLedger)
                assert second.sharers == 2
            async with opened(ledger_on(server)) as third:
                assert isinstance(third, RedisLedger)
                assert third.sharers == 2

    asyncio.run(body())
