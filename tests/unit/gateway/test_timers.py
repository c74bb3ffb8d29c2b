"""Deadlines that move, and bytes that do not: with a loop but without a socket."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from tidegate.gateway.timers import Deadline, WriteWatch


class FakeTransport:
    """A write buffer whose size a test sets; counts how often somebody looked."""

    def __init__(self) -> None:
        self.unsent = 100
        self.looks = 0
        self.shrinks = False
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        self.looks += 1
        if self.shrinks:
            self.unsent -= 1
        return self.unsent

    def abort(self) -> None:
        self.aborted.set()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            turned = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turned.set_result, None)
            await turned


def watch(transport: FakeTransport, stall_s: float) -> WriteWatch:
    return WriteWatch(cast("asyncio.Transport", transport), stall_s)


def test_bytes_that_nobody_takes_end_the_connection() -> None:
    async def body() -> None:
        transport = FakeTransport()
        began_s = asyncio.get_running_loop().time()
        watch(transport, 0.02).wrote()
        async with asyncio.timeout(5):
            await transport.aborted.wait()
        assert asyncio.get_running_loop().time() - began_s >= 0.02

    asyncio.run(body())


@pytest.mark.parametrize("movement", ["shrinking_buffer", "new_writes"])
def test_any_movement_keeps_the_connection(movement: str) -> None:
    async def body() -> None:
        transport = FakeTransport()
        transport.shrinks = movement == "shrinking_buffer"
        watched = watch(transport, 0.004)
        watched.wrote()

        def moved() -> bool:
            if movement == "new_writes":
                watched.wrote()
            return transport.looks > 20

        await until(moved)
        assert not transport.aborted.is_set()
        watched.stop()

    asyncio.run(body())


def test_an_empty_buffer_is_looked_at_once_and_left_alone_until_the_next_write() -> None:
    async def body() -> None:
        transport = FakeTransport()
        transport.unsent = 0
        watched = watch(transport, 0.004)
        watched.wrote()
        watched.wrote()
        await until(lambda: transport.looks == 2)
        watched.wrote()
        await until(lambda: transport.looks == 4)
        assert not transport.aborted.is_set()
        watched.stop()
        watched.stop()

    asyncio.run(body())


class Bell:
    def __init__(self) -> None:
        self.at_s: list[float] = []
        self.rang = asyncio.Event()

    def __call__(self) -> None:
        self.at_s.append(asyncio.get_running_loop().time())
        self.rang.set()


@pytest.mark.parametrize("first_s", [0.001, 3600.0])
def test_the_last_deadline_set_is_the_one_that_counts(first_s: float) -> None:
    async def body() -> None:
        loop, bell = asyncio.get_running_loop(), Bell()
        deadline = Deadline(loop, bell)
        began_s = loop.time()
        deadline.within(first_s)
        deadline.within(0.02)
        async with asyncio.timeout(5):
            await bell.rang.wait()
        assert len(bell.at_s) == 1
        assert bell.at_s[0] - began_s >= 0.018

    asyncio.run(body())


@pytest.mark.parametrize("how", ["never", "stop"])
def test_a_deadline_taken_back_does_not_pass(how: str) -> None:
    async def body() -> None:
        loop, bell, other = asyncio.get_running_loop(), Bell(), asyncio.Event()
        deadline = Deadline(loop, bell)
        deadline.within(0.001)
        getattr(deadline, how)()
        loop.call_later(0.01, other.set)
        await other.wait()
        assert bell.at_s == []
        deadline.within(0.001)
        async with asyncio.timeout(5):
            await bell.rang.wait()

    asyncio.run(body())
