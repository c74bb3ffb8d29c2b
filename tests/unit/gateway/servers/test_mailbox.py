"""What has the server said to this one call, and has it said its last word?"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tidegate.gateway.servers.mailbox import Mailbox
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.answers import Incoming


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 5))


def put(mailbox: Mailbox, value: object, *, size: int = 1, last: bool = False) -> None:
    mailbox.put(Incoming(value), size, last=last, lossy=False)


def test_messages_are_taken_in_order_and_then_the_end() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        put(mailbox, 1)
        put(mailbox, 2, last=True)
        put(mailbox, "behind the end")
        assert await mailbox.take() == [Incoming(1), Incoming(2)]
        assert await mailbox.take() is None

    run(body())


def test_a_reader_waits_for_what_comes() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        reader = asyncio.ensure_future(mailbox.take())
        asyncio.get_running_loop().call_soon(put, mailbox, 1)
        assert await reader == [Incoming(1)]

    run(body())


def test_what_arrived_before_a_failure_is_read_before_it_is_raised() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        put(mailbox, 1)
        mailbox.fail("crashed")
        mailbox.fail("too late")
        assert await mailbox.take() == [Incoming(1)]
        with pytest.raises(ServerFailed, match="crashed"):
            await mailbox.take()

    run(body())


def test_an_answer_that_is_there_is_not_taken_back() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        put(mailbox, 1, last=True)
        mailbox.fail("crashed")
        assert await mailbox.take() == [Incoming(1)]
        assert await mailbox.take() is None

    run(body())


@pytest.mark.parametrize("size", [10, 600_000])
def test_a_slow_reader_misses_progress_and_never_the_answer(size: int) -> None:
    async def body() -> None:
        mailbox = Mailbox()
        for number in range(5000):
            mailbox.put(Incoming(number), size, last=False, lossy=True)
        put(mailbox, "answer", size=8_000_000, last=True)
        taken = await mailbox.take()
        assert taken is not None
        assert len(taken) <= 1001
        assert taken[-1] == Incoming("answer")

    run(body())


def test_a_slow_reader_of_what_must_not_be_missed_is_told_so() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        for number in range(1001):
            put(mailbox, number)
        assert len(await mailbox.take() or ()) == 1000
        with pytest.raises(ServerFailed, match="overrun"):
            await mailbox.take()

    run(body())


def test_one_message_of_any_size_has_room() -> None:
    async def body() -> None:
        mailbox = Mailbox()
        put(mailbox, 1, size=8_000_000)
        assert await mailbox.take() == [Incoming(1)]

    run(body())
