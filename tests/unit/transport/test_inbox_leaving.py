"""A reader that has what it wants leaves, and the message may still end by itself for a while."""

import asyncio

import pytest

from tests.unit.transport.test_inbox import REQUEST, FakeTransport
from tidegate.clock import SystemClock
from tidegate.transport import Failure, Inbox

SOON_S = 0.02


def leave(inbox: Inbox, transport: FakeTransport, within_s: float) -> None:
    """Read nothing, take the answer as whole, and go."""
    with inbox:
        inbox.start(transport, REQUEST, connect_s=1)
        transport.sink = inbox
        inbox.on_head(200, {})
        inbox.on_body(b"all that was wanted")
        inbox.let_end(within_s)


async def timers_passed(within_s: float) -> None:
    passed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(within_s, passed.set_result, None)
    await passed


@pytest.mark.parametrize("end", ["end", "failure"])
def test_a_message_that_ends_in_time_is_not_aborted(end: str) -> None:
    async def body() -> None:
        inbox, transport = Inbox(SystemClock()), FakeTransport()
        leave(inbox, transport, SOON_S)
        assert transport.told == []
        inbox.on_body(b"framing")
        assert inbox.buffered_bytes == 0
        if end == "end":
            inbox.on_end()
        else:
            inbox.on_failure(Failure.RESET)
        await timers_passed(2 * SOON_S)
        assert transport.told == []

    asyncio.run(body())


def test_a_message_that_does_not_end_is_aborted_when_the_time_is_over() -> None:
    async def body() -> None:
        inbox, transport = Inbox(SystemClock()), FakeTransport()
        leave(inbox, transport, SOON_S)
        inbox.on_body(b"and more")
        await timers_passed(2 * SOON_S)
        assert transport.told == ["abort"]

    asyncio.run(body())


def test_a_paused_attempt_is_resumed_so_that_it_can_end() -> None:
    async def body() -> None:
        transport = FakeTransport()
        inbox = Inbox(SystemClock(), high_water_bytes=4)
        leave(inbox, transport, SOON_S)
        assert transport.told == ["pause", "resume"]
        inbox.on_body(b"more than the mark")
        assert transport.told == ["pause", "resume"]
        inbox.on_end()

    asyncio.run(body())


def test_an_earlier_deadline_is_replaced() -> None:
    async def body() -> None:
        clock = SystemClock()
        inbox, transport = Inbox(clock), FakeTransport()
        with inbox:
            inbox.start(transport, REQUEST, connect_s=1)
            inbox.arm(clock.monotonic_s() + SOON_S / 2)
            inbox.let_end(10.0)
        await timers_passed(SOON_S)
        assert transport.told == []
        inbox.fail(Failure.RESET)
        assert transport.told == ["abort"]

    asyncio.run(body())


def test_after_the_end_there_is_nothing_to_wait_for() -> None:
    async def body() -> None:
        inbox, transport = Inbox(SystemClock()), FakeTransport()
        with inbox:
            inbox.start(transport, REQUEST, connect_s=1)
            inbox.on_end()
            inbox.let_end(SOON_S)
        await timers_passed(2 * SOON_S)
        assert transport.told == []

    asyncio.run(body())
