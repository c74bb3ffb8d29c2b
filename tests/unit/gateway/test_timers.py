"""Deadlines that move, and bytes that do not: with a loop but without a socket."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from tidegate.gateway.timers import BODY_BYTES_PER_S, BodyTime, Deadline, WriteWatch


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


def test_a_body_has_its_first_pause_and_then_what_its_bytes_earn() -> None:
    time = BodyTime(30.0, now_s=100.0)
    assert time.due_s == 130.0
    time.arrived(4 * BODY_BYTES_PER_S, now_s=110.0)
    assert time.due_s == 134.0
    # One byte a second earns next to nothing.
    for second in range(111, 134):
        time.arrived(1, now_s=float(second))
    assert 134.0 < time.due_s < 134.01


def test_many_bytes_at_once_earn_no_longer_pause_than_any_others() -> None:
    time = BodyTime(30.0, now_s=100.0)
    time.arrived(1000 * BODY_BYTES_PER_S, now_s=110.0)
    assert time.due_s == 140.0


def test_a_steady_body_at_the_least_rate_may_take_as_long_as_it_needs() -> None:
    time = BodyTime(30.0, now_s=0.0)
    for second in range(1, 8193):
        time.arrived(BODY_BYTES_PER_S, now_s=float(second))
        assert time.due_s == second + 30.0


def test_time_in_which_we_do_not_read_is_not_the_clients() -> None:
    time = BodyTime(30.0, now_s=100.0)
    time.pause(now_s=120.0)
    time.pause(now_s=121.0)
    # The rest of what was read at once still counts, but not beyond one pause.
    time.arrived(1000 * BODY_BYTES_PER_S, now_s=121.0)
    assert time.due_s == 150.0
    time.resume(now_s=500.0)
    assert time.due_s == 530.0
    time.resume(now_s=600.0)
    assert time.due_s == 530.0
