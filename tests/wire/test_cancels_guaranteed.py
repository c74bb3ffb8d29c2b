"""What a cancellation and a deadline are promised, promise by promise (router.md 2.4)."""

import ast
import asyncio
import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tidegate
from tests.app.chat_upstreams import (
    BANG,
    DONE,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    answers,
    completion,
    fails,
    silent,
    streams,
)
from tests.app.chat_world import MASKED, ChatWorld, request, run
from tests.app.stepping import _Stepped
from tests.app.test_chat_leaving import turn
from tests.app.virtual import run_virtual
from tests.wire.attempts import post, turns, world
from tests.wire.conftest import Run
from tidegate.clock import SystemClock
from tidegate.gateway.timers import Deadline
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.clock import ManualClock
from tidegate.testing.scripted import STREAM_HEAD, UpstreamExchange, chunk_bytes
from tidegate.transport import AttemptFailed, Failure, Inbox

pytestmark = pytest.mark.full

KINDS: dict[str, tuple[bool, dict[str, Script | list[Script]]]] = {
    "plain": (False, {"primary": answers(completion("hello"))}),
    "stream": (True, {"primary": streams(ROLE, HEL, LO, STOP, USAGE, DONE)}),
    "failover of a stream": (
        True,
        {
            "primary": streams(ROLE, then=Failure.RESET),
            "backup": streams(ROLE, HEL, LO, STOP, USAGE, DONE),
        },
    ),
    "failover of an answer": (
        False,
        {"primary": answers(ERROR_OBJECT, 500), "backup": answers(completion("hello"))},
    ),
    "cut": (True, {"primary": streams(ROLE, BANG, LO, then=Failure.RESET)}),
    "retry": (False, {"primary": [fails(Failure.RESET), answers(completion("hello"))]}),
}


class Moment:
    """The `at`-th await of a request, and how many attempts had begun when it came."""

    def __init__(self, world: ChatWorld, at: int) -> None:
        self._world, self._at = world, at
        self.asked: int | None = None

    def __contains__(self, suspension: int) -> bool:
        if suspension != self._at:
            return False
        self.asked = len(self._world.providers.asked)
        return True


async def left_at(moment: Moment, world: ChatWorld, *, stream: bool) -> bool:
    """Whether one request, cancelled at that moment, ended as cancelled."""
    parts = [request(stream=stream)]

    async def send(_: Any) -> None:
        await turn()

    async def receive() -> Any:
        await turn()
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def body() -> None:
        scope = world.exchange(stream=stream)._scope
        await _Stepped(world.front(scope, receive, send), moment)  # type: ignore[arg-type]

    task = asyncio.ensure_future(body())
    await asyncio.wait([task])
    return task.cancelled() or bool(task.result())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancellation_at_any_await_is_passed_on_and_asks_nobody_else(kind: str) -> None:
    async def body() -> None:
        stream, scripts = KINDS[kind]
        targets = ("primary", "backup") if "backup" in scripts else ("primary",)
        most, seen = len(ChatWorld(targets=targets, **scripts).route.targets), set()
        for at in itertools.count(1):
            world = ChatWorld(masking=MASKED, targets=targets, **scripts)
            moment = Moment(world, at)
            cancelled = await left_at(moment, world, stream=stream)
            await world.assert_clean(ends=1)
            if moment.asked is None:
                break
            assert cancelled
            assert len(world.providers.asked) == moment.asked
            seen.add(moment.asked)
        # Before the first attempt, during each, and between them.
        most = 2 if kind == "retry" else len(targets)
        assert seen == set(range(most + 1))

    run(body())


@pytest.mark.parametrize("later", [False, True])
def test_a_cancellation_in_the_moment_of_our_own_deadline_is_a_cancellation(*, later: bool) -> None:
    """The client does not read, so the time of its answer passes; just then it leaves."""

    async def body() -> None:
        world = ChatWorld(clock=clock, primary=streams(ROLE, BANG, BANG, hangs=True), backup=silent)
        loop, stuck = asyncio.get_running_loop(), asyncio.Event()
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)
            await stuck.wait()

        async def receive() -> Any:
            return {"type": "http.request", "body": request(stream=True), "more_body": False}

        scope = world.exchange(stream=True)._scope
        task = asyncio.ensure_future(world.front(scope, receive, send))
        await world.providers.until(1)
        due_s = deadline_of(loop)
        # Timers of the same time are called in the order in which they were set, if at all.
        loop.call_at(due_s if later else due_s - 1e-9, task.cancel)
        await asyncio.wait([task])
        assert task.cancelled()
        assert world.records.outcomes == ["cancelled"]
        assert world.providers.order == ["primary"]
        assert len(sent) == 1
        await world.assert_clean(ends=1)

    clock = ManualClock()
    run_virtual(clock, body())


def deadline_of(loop: Any) -> float:
    """The last of the timers that are set: that of the whole answer."""
    return max(handle.when() for handle in loop._scheduled if not handle.cancelled())


@pytest.mark.parametrize("stream", [False, True])
def test_a_deadline_in_any_turn_of_an_attempt_is_a_timeout_and_closes_its_socket(
    run: Run, *, stream: bool
) -> None:
    """Nothing on the way takes it for an error of its own, as a broad `except` would."""
    early = 20

    async def slow(exchange: UpstreamExchange) -> None:
        with suppress(ConnectionError):
            await exchange.send(STREAM_HEAD if stream else b"")
            await exchange.send(chunk_bytes(b": ping\n\n") if stream else b"")
        await exchange.gone.wait()

    async def body() -> None:
        async with world(slow) as (transport, upstream):
            clock = SystemClock()
            for count in range(2 * early):
                with Inbox(clock) as inbox:
                    inbox.start(transport, post(upstream), connect_s=WAIT_S)
                    reader = asyncio.ensure_future(read_all(inbox))
                    if count >= early:
                        asked = len(upstream.requests)
                        await upstream.until(lambda n=asked: len(upstream.requests) > n)  # type: ignore[misc]
                    await turns(count % early)
                    inbox.arm(clock.monotonic_s())
                    async with asyncio.timeout(WAIT_S):
                        assert await reader is Failure.TIMEOUT
                await upstream.until(lambda: upstream.open_connections == 0)
                assert transport.open_connections == 0
            assert early <= len(upstream.requests) < 2 * early

    run(body())


def test_a_deadline_that_is_due_at_once_can_be_replaced(run: Run) -> None:
    """uvloop gives a handle without a time for it, which broke the request that asked for it."""

    async def body() -> None:
        clock, loop = SystemClock(), asyncio.get_running_loop()
        with Inbox(clock) as inbox:
            for delay_s in (0.0, 0.0001, WAIT_S, 0.0):
                inbox.arm(clock.monotonic_s() + delay_s)
            assert await asyncio.ensure_future(read_all(inbox)) is Failure.TIMEOUT
        passed = asyncio.Event()
        deadline = Deadline(loop, passed.set)
        for delay_s in (0.0, 0.0001, WAIT_S, 0.0):
            deadline.within(delay_s)
        async with asyncio.timeout(WAIT_S):
            await passed.wait()

    run(body())


async def read_all(inbox: Inbox) -> Failure | None:
    """Why the reading ended."""
    try:
        await inbox.head()
        while await inbox.read():
            pass
    except AttemptFailed as failed:
        return failed.failure
    return None


def test_nothing_in_the_source_waits_with_wait_for() -> None:
    """In 3.11 it can lose the result when both come at once: a reservation that nobody ends."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in Path(tidegate.__file__).parent.rglob("*.py")
        if "wait_for" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "wait_for"
            and isinstance(node.value, ast.Name)
            and node.value.id == "asyncio"
        )
        or (
            isinstance(node, ast.ImportFrom) and any(name.name == "wait_for" for name in node.names)
        )
    ]
    assert found == []
