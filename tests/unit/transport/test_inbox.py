"""The awaitable side of an attempt: order, deadlines, pressure, one end; without a socket."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.app.virtual import run_virtual
from tidegate.clock import SystemClock
from tidegate.testing.clock import ManualClock
from tidegate.transport import AttemptFailed, Failure, Inbox, ResponseSink, UpstreamRequest

REQUEST = UpstreamRequest("GET", "http://127.0.0.1:9/")


class FakeTransport:
    """Is transport and attempt in one; writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.sink: ResponseSink | None = None
        self.open_connections = self.idle_connections = 0

    def start(
        self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float
    ) -> "FakeTransport":
        self.sink = sink
        return self

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def abort(self) -> None:
        self.told.append("abort")


Body = Callable[[Inbox, FakeTransport], Awaitable[None]]


def play(body: Body, **options: Any) -> FakeTransport:
    transport = FakeTransport()

    async def run() -> None:
        async with asyncio.timeout(5):
            with Inbox(SystemClock(), **options) as inbox:
                inbox.start(transport, REQUEST, connect_s=1)
                await body(inbox, transport)
            assert inbox.buffered_bytes == 0

    asyncio.run(run())
    return transport


async def started(waiting: Awaitable[Any]) -> "asyncio.Task[Any]":
    """The task, once it waits."""
    task = asyncio.ensure_future(waiting)
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn
    assert isinstance(task, asyncio.Task)
    return task


def test_head_and_body_wait_for_what_comes() -> None:
    async def body(inbox: Inbox, _: FakeTransport) -> None:
        head = await started(inbox.head())
        inbox.on_head(200, {"a": "b"})
        assert await head == (200, {"a": "b"})
        assert await inbox.head() == (200, {"a": "b"})
        read = await started(inbox.read())
        inbox.on_body(b"one")
        assert await read == b"one"
        read = await started(inbox.read())
        inbox.on_end()
        assert await read == b""
        assert await inbox.read() == b""

    assert play(body).told == []


def test_one_read_takes_everything_that_arrived() -> None:
    async def body(inbox: Inbox, _: FakeTransport) -> None:
        inbox.on_head(200, {})
        for part in (b"one", b"two", b"three"):
            inbox.on_body(part)
        assert inbox.buffered_bytes == 11
        assert await inbox.read() == b"onetwothree"
        assert inbox.buffered_bytes == 0

    assert play(body).told == ["abort"]


@pytest.mark.parametrize("failure", list(Failure))
def test_what_arrived_before_a_failure_is_delivered_before_it(failure: Failure) -> None:
    async def body(inbox: Inbox, _: FakeTransport) -> None:
        inbox.on_head(200, {})
        inbox.on_body(b"one")
        inbox.on_failure(failure)
        inbox.on_failure(Failure.RESET)
        assert await inbox.read() == b"one"
        for _ in range(2):
            with pytest.raises(AttemptFailed) as raised:
                await inbox.read()
            assert raised.value.failure is failure
        assert await inbox.head() == (200, {})

    play(body)


def test_a_failure_wakes_who_waits_for_the_head() -> None:
    async def body(inbox: Inbox, _: FakeTransport) -> None:
        head = await started(inbox.head())
        inbox.on_failure(Failure.UNREACHABLE)
        with pytest.raises(AttemptFailed, match="unreachable"):
            await head

    play(body)


def test_above_the_mark_the_attempt_pauses_and_a_read_resumes_it() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        inbox.on_head(200, {})
        inbox.on_body(b"12345")
        assert transport.told == []
        inbox.on_body(b"6")
        inbox.on_body(b"7")
        assert transport.told == ["pause"]
        assert await inbox.read() == b"1234567"
        assert transport.told == ["pause", "resume"]
        inbox.on_body(b"123456")
        assert transport.told == ["pause", "resume", "pause"]

    play(body, high_water_bytes=5)


@pytest.mark.parametrize("first", ["head", "read"])
def test_a_passed_deadline_aborts_and_is_raised(first: str) -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        waiting = await started(inbox.head() if first == "head" else inbox.read())
        inbox.arm(SystemClock().monotonic_s() - 1)
        with pytest.raises(AttemptFailed) as raised:
            await waiting
        assert raised.value.failure is Failure.TIMEOUT
        assert transport.told == ["abort"]

    play(body)


@pytest.mark.parametrize("arrives", [True, False])
def test_who_overslept_a_deadline_first_reads_what_has_arrived(arrives: bool) -> None:  # noqa: FBT001
    clock = ManualClock()
    transport, began_s = FakeTransport(), clock.monotonic_s()

    async def body() -> None:
        with Inbox(clock) as inbox:
            inbox.start(transport, REQUEST, connect_s=1)
            inbox.arm(clock.monotonic_s() + 1.0)
            head = await started(inbox.head())
            clock.advance(5.0)  # the process was stopped
            if arrives:
                # The timers of a loop may come before what its sockets have.
                asyncio.get_running_loop().call_later(0.01, inbox.on_head, 200, {})
                assert await head == (200, {})
                assert transport.told == []
            else:
                with pytest.raises(AttemptFailed, match="timeout"):
                    await head
                assert clock.monotonic_s() - began_s < 5.1

    run_virtual(clock, body())


def test_the_later_of_two_deadlines_counts_when_it_replaced_the_earlier() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        now = SystemClock().monotonic_s()
        inbox.arm(now + 0.005)
        inbox.arm(now + 0.03)
        with pytest.raises(AttemptFailed):
            await inbox.head()
        assert SystemClock().monotonic_s() >= now + 0.028

    play(body)


def test_an_earlier_deadline_replaces_a_later_one() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        now = SystemClock().monotonic_s()
        inbox.arm(now + 3600)
        inbox.arm(now + 0.005)
        with pytest.raises(AttemptFailed):
            await inbox.head()

    play(body)


def test_a_disarmed_deadline_does_nothing_until_armed_again() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        passed = asyncio.Event()
        inbox.arm(SystemClock().monotonic_s() + 0.005)
        inbox.disarm()
        asyncio.get_running_loop().call_later(0.02, passed.set)
        await passed.wait()
        assert transport.told == []
        inbox.arm(SystemClock().monotonic_s() + 0.005)
        with pytest.raises(AttemptFailed):
            await inbox.head()

    play(body)


def test_after_the_end_no_deadline_counts() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        inbox.arm(SystemClock().monotonic_s() + 0.001)
        inbox.on_head(200, {})
        inbox.on_end()
        inbox.arm(SystemClock().monotonic_s() - 1)
        turn = await started(inbox.read())
        assert await turn == b""

    assert play(body).told == []


def test_our_own_verdict_ends_an_attempt_once() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        waiting = await started(inbox.head())
        inbox.fail(Failure.TOO_LARGE)
        inbox.fail(Failure.RESET)
        with pytest.raises(AttemptFailed, match="too_large"):
            await waiting
        assert transport.told == ["abort"]

    play(body)


def test_leaving_aborts_what_runs_and_wakes_who_waits() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        waiting = await started(inbox.read())
        inbox.close()
        inbox.close()
        with pytest.raises(AttemptFailed):
            await waiting
        assert set(transport.told) == {"abort"}

    play(body)


def test_a_cancelled_reader_leaves_the_inbox_usable() -> None:
    async def body(inbox: Inbox, _: FakeTransport) -> None:
        waiting = await started(inbox.read())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        inbox.on_body(b"one")
        assert await inbox.read() == b"one"

    play(body)


@pytest.mark.parametrize("end", ["end", "failure", "left"])
def test_what_has_ended_is_given_up_without_being_looked_for(end: str) -> None:
    """An attempt holds its inbox: a ring would wait for the garbage collector at each request."""

    async def body() -> None:
        inbox, transport = Inbox(SystemClock()), FakeTransport()
        with inbox:
            inbox.start(transport, REQUEST, connect_s=1)
            inbox.arm(SystemClock().monotonic_s() + 60)
            if end == "end":
                inbox.on_end()
            elif end == "failure":
                inbox.on_failure(Failure.RESET)
        held = weakref.ref(transport)
        del inbox, transport
        assert held() is None

    gc.disable()
    try:
        asyncio.run(body())
    finally:
        gc.enable()


def test_misuse_is_refused() -> None:
    async def body(inbox: Inbox, transport: FakeTransport) -> None:
        with pytest.raises(RuntimeError, match="one attempt"):
            inbox.start(transport, REQUEST, connect_s=1)
        waiting = await started(inbox.read())
        with pytest.raises(RuntimeError, match="one reader"):
            await inbox.head()
        waiting.cancel()

    play(body)
