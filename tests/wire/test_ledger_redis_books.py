"""Books that are emptied or exchanged admit nothing twice, and late commands move no time."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import opened
from tests.logged import lines, logged
from tests.redis_server import RedisServer, redis_server
from tests.wire.ledger_process import SCOPE, limit
from tests.wire.test_ledger_redis import LEASE_S, ledger_on, until
from tidegate.clock import SystemClock
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Need, Refused
from tidegate.limits.redis import BEAT_S, RedisLedger
from tidegate.limits.redis_line import dial
from tidegate.limits.redis_pipe import ask
from tidegate.limits.redis_script import Moment, Speech, answer, moved_of
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

BOOKS = "tidegate.limits.redis"
TOKENS = limit(100)
ALL = (Charge(TOKENS, SCOPE, 100),)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    return [(line.getMessage(), getattr(line, "error", None)) for line in lines(caplog, BOOKS)]


def emptied(server: RedisServer) -> None:
    client = server.client()
    client.flushall()
    client.close()


def without_its_file(server: RedisServer) -> None:
    server.kill()
    # A file, or from Redis 7 on a folder of files.
    shutil.rmtree(server.folder)
    server.folder.mkdir()
    server.start()


@pytest.mark.parametrize("how", [emptied, without_its_file])
def test_books_that_were_emptied_give_no_quota_again(
    server: RedisServer, caplog: pytest.LogCaptureFixture, how: Callable[[RedisServer], None]
) -> None:
    async def body() -> None:
        async with opened(ledger_on(server)) as one, opened(ledger_on(server)) as other:
            assert isinstance(await one.reserve("a", "me", ALL, lease_s=LEASE_S), Granted)
            how(server)
            for turn, ledger in enumerate((one, other, one, other)):
                with pytest.raises(StoreUnavailable):
                    await ledger.reserve(f"b{turn}", "me", ALL, lease_s=LEASE_S)
                assert ledger.degraded
            await until(lambda: told(caplog).count(("ledger_store_refused", "Forgotten")) == 2)
            with pytest.raises(StoreUnavailable):
                await one.settle("a", "me", Need(100, 0))

    caplog.set_level(logging.INFO)
    asyncio.run(body())
    said = told(caplog)
    assert said.count(("ledger_store_refused", "Forgotten")) == 2
    assert ("ledger_store_serves_again", None) not in said


@pytest.mark.full
def test_nobody_has_to_ask_for_emptied_books_to_be_noticed(server: RedisServer) -> None:
    """With no traffic it is the next sign of life that meets the other books."""

    async def body() -> None:
        ledger = ledger_on(server)
        async with opened(ledger):
            emptied(server)
            async with asyncio.timeout(10 * BEAT_S):
                while not ledger.degraded:
                    await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.05)

    asyncio.run(body())


def test_emptied_books_are_taken_up_once_nothing_of_before_counts(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()

    async def body() -> None:
        ledger = RedisLedger(server.url, clock, deadline_s=30.0)
        async with opened(ledger):
            assert isinstance(await ledger.reserve("a", "me", ALL, lease_s=LEASE_S), Granted)
            emptied(server)
            with pytest.raises(StoreUnavailable):
                await ledger.reserve("b", "me", ALL, lease_s=LEASE_S)
            await until(lambda: ("ledger_store_refused", "Forgotten") in told(caplog))
            assert ledger.degraded
            clock.advance(TOKENS.window_us / 1_000_000 + 1.0)
            await until(lambda: not ledger.degraded)
            assert isinstance(await ledger.reserve("c", "me", ALL, lease_s=LEASE_S), Granted)
            assert isinstance(await ledger.reserve("d", "me", ALL, lease_s=LEASE_S), Refused)

    asyncio.run(body())


def test_a_server_that_comes_back_without_its_file_kept_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What a start refuses is refused after a lost connection, too."""

    async def body(server: RedisServer) -> None:
        async with opened(ledger_on(server)) as ledger:
            assert isinstance(await ledger.reserve("a", "me", ALL, lease_s=LEASE_S), Granted)
            server.kill()
            with redis_server(tmp_path, {"appendonly": "no"}, server.port):
                await until(lambda: ("ledger_store_refused", "AppendOnlyOff") in told(caplog))
                with pytest.raises(StoreUnavailable):
                    await ledger.reserve("b", "me", ALL, lease_s=LEASE_S)
            server.start()
            await until(lambda: not ledger.degraded)
            assert isinstance(await ledger.reserve("c", "me", ALL, lease_s=LEASE_S), Refused)

    with redis_server(tmp_path, {"appendfsync": "always"}) as server:
        asyncio.run(body(server))
    assert told(caplog).count(("ledger_store_refused", "AppendOnlyOff")) == 1


def test_a_command_that_was_late_moves_no_time(server: RedisServer) -> None:
    """The server stood still for a while with commands of before in its buffer."""
    start_us, speech = 1_700_000_000_000_000, Speech("late")

    def said_at(us: int) -> Moment:
        # The server gets to it when 7 s have passed everywhere.
        return Moment(start_us + us, start_us + us + 7_000_000, None)

    async def heard(commands: Sequence[bytes]) -> list[object]:
        line = await dial(server.url, 30.0)
        try:
            return await ask(line, [*speech.load(), *commands], 30.0)
        finally:
            line.abort()

    async def body() -> None:
        sound = Moment(start_us, start_us)
        late = said_at(0)
        after = Moment(start_us + 7_000_000, start_us + 7_000_000)
        *_, first, reserved, greeted, undone, second = await heard(
            [
                speech.reserve(("a", "me"), ALL, 600_000_000, sound),
                speech.reserve(("b", "me"), ALL, 600_000_000, late),
                speech.greet("m", 15_000_000, late, 1),
                speech.finish(("c", "me"), "undo", moment=late),
                speech.greet("m", 15_000_000, after, 1),
            ]
        )
        assert answer(first).letter == b"G"
        assert [moved_of(answer(one)) for one in (reserved, greeted)] == [0, 0]
        assert undone == 0
        assert (answer(second).now_us, answer(second).moved_us) == (start_us + 7_000_000, 0)

    asyncio.run(body())


def test_a_late_answer_is_asked_for_again_and_no_clock_is_said_to_have_stepped(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """7 s pass on all clocks between the asking and the deciding."""
    clock, is_stalled = ManualClock(SystemClock().now_s()), [False]

    def server_us() -> int:
        if is_stalled[0]:
            is_stalled[0] = False
            clock_us = round(clock.now_s() * 1_000_000) + 7_000_000
            clock.advance(7.0)
            return clock_us
        return round(clock.now_s() * 1_000_000)

    async def body() -> None:
        ledger = RedisLedger(server.url, clock, deadline_s=30.0, given_us=server_us)
        async with opened(ledger):
            half = (Charge(TOKENS, SCOPE, 50),)
            assert isinstance(await ledger.reserve("a", "me", half, lease_s=LEASE_S), Granted)
            is_stalled[0] = True
            assert isinstance(await ledger.reserve("b", "me", half, lease_s=LEASE_S), Granted)
            assert isinstance(await ledger.reserve("c", "me", half, lease_s=LEASE_S), Refused)
            assert ledger.clock_ahead_s == 0.0

    asyncio.run(body())
    assert logged(caplog, BOOKS) == []


def test_who_is_back_first_after_a_loss_does_not_take_itself_for_the_only_one(
    server: RedisServer,
) -> None:
    """While a server is away all signs of life run out; each process is back at its own time."""

    async def body() -> None:
        client = server.client()
        async with opened(ledger_on(server)):
            others = {each["id"] for each in client.client_list()}
            async with opened(ledger_on(server)) as ledger:
                assert isinstance(ledger, RedisLedger)
                assert ledger.sharers == 2
                client.delete("tidegate:members")
                (ours,) = {each["id"] for each in client.client_list()} - others
                client.client_kill_filter(_id=ours)
                await until(lambda: client.zcard("tidegate:members") == 1)
                await ledger.usage(TOKENS, SCOPE)
                assert ledger.sharers == 2
        client.close()

    asyncio.run(body())
