"""Nobody waits longer than the route says, however an upstream spends the time."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    HEL,
    LO,
    ROLE,
    STOP,
    Asked,
    Script,
    answers,
    completion,
    delta,
    event,
    payloads,
    silent,
    streams,
    texts,
)
from tests.app.chat_world import ChatWorld, request
from tests.app.test_chat_bodies import world_of
from tests.app.test_front import error_of
from tests.app.virtual import run_timeless as run
from tidegate.gateway.attempts import Bounds
from tidegate.routing.breaker import State
from tidegate.routing.plan import Deadlines
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.clock import ManualClock
from tidegate.testing.scripted import UpstreamExchange, answer_bytes, steps

SHORT_S = 0.08
SHORT = Deadlines(first_token_s=SHORT_S, idle_s=SHORT_S, total_s=WAIT_S, stream_total_s=WAIT_S)
BACKUP = streams(ROLE + HEL + LO + STOP + DONE)


def drips(*pieces: bytes, kind: str = "text/event-stream", every: bytes = b"") -> Script:
    """The pieces at once, then `every` again and again, more often than any deadline."""

    async def run(asked: Asked) -> None:
        asked.head(kind=kind)
        asked.send(*pieces)
        while not asked.gone.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.gone.wait(), SHORT_S / 8)
            if every:
                asked.send(every)

    return run


UNTIL_FIRST: dict[str, tuple[Script, bool]] = {
    "silence, stream": (silent, True),
    "silence, plain": (silent, False),
    "a head and silence, stream": (streams(hangs=True), True),
    "a head and silence, plain": (drips(kind="application/json"), False),
    "spaces": (drips(kind="application/json", every=b" "), False),
    "a document in drips": (drips(b'{"id":"', kind="application/json", every=b"x"), False),
    "comments": (drips(every=b": still thinking\n\n"), True),
    "roles": (drips(every=ROLE), True),
    "empty deltas": (drips(ROLE, every=event(delta(content=""))), True),
    "half an event": (drips(ROLE, b"data: {", every=b" "), True),
}


@pytest.mark.parametrize(("script", "streamed"), UNTIL_FIRST.values(), ids=UNTIL_FIRST)
def test_until_the_first_content_the_deadline_spans_the_whole_attempt(
    script: Script,
    streamed: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        backup = BACKUP if streamed else answers(completion("Hello"))
        world = ChatWorld(primary=script, backup=backup, deadlines=SHORT)
        exchange = await world.post(stream=streamed)
        assert exchange.status == 200
        assert exchange.header("x-tidegate-attempts") == "primary:timeout,backup:ok"
        if streamed:
            assert texts(exchange.body) == {0: "Hello"}
        else:
            assert json.loads(exchange.body) == completion("Hello")
        assert world.providers.asked[0].gone.is_set()
        await world.assert_clean(ends=1)

    run(body())


def test_a_head_that_comes_in_drips_is_cut_with_its_socket() -> None:
    async def body() -> None:
        left = asyncio.Event()

        async def drip(exchange: UpstreamExchange) -> None:
            with suppress(ConnectionError):
                for byte in answer_bytes(body=b"x" * 50):
                    await exchange.send(bytes([byte]))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(exchange.gone.wait(), SHORT_S / 8)
            await exchange.gone.wait()
            left.set()

        good = steps(answer_bytes(body=json.dumps(completion("hello")).encode()))
        async with world_of([drip], [good], deadlines=SHORT) as (world, one, _):
            exchange = await world.post()
            assert exchange.header("x-tidegate-attempts") == "primary:timeout,backup:ok"
            async with asyncio.timeout(WAIT_S):
                await left.wait()
            await one.until(lambda: one.open_connections == 0)

    run(body())


AFTER: dict[str, Script] = {
    "silence": streams(ROLE, HEL, hangs=True),
    "comments": drips(ROLE, HEL, every=b": still thinking\n\n"),
    "empty deltas": drips(ROLE, HEL, every=event(delta(content=""))),
}


@pytest.mark.parametrize("script", AFTER.values(), ids=AFTER)
def test_between_tokens_only_a_token_moves_the_deadline(script: Script) -> None:
    async def body() -> None:
        world = ChatWorld(primary=script, backup=BACKUP, deadlines=SHORT)
        exchange = await world.post(stream=True)
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert texts(exchange.body) == {0: "Hel"}
        assert world.providers.order == ["primary"]
        assert world.providers.asked[0].gone.is_set()
        await world.assert_clean(ends=1)

    run(body())


def test_tokens_that_keep_coming_outlive_the_first_deadline_but_not_the_total() -> None:
    async def body() -> None:
        total_s = SHORT_S * 3
        deadlines = Deadlines(first_token_s=SHORT_S, idle_s=WAIT_S, stream_total_s=total_s)
        world = ChatWorld(primary=drips(ROLE, every=HEL), deadlines=deadlines)
        began_s = world.clock.monotonic_s()
        exchange = await world.post(stream=True)
        assert world.clock.monotonic_s() - began_s >= total_s - 0.01
        assert payloads(exchange.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert texts(exchange.body)[0].startswith("HelHel")
        await world.assert_clean(ends=1)

    run(body())


@pytest.mark.parametrize("streamed", [{"stream": True}, {}], ids=["stream", "plain"])
def test_when_the_total_is_over_the_client_gets_504(streamed: dict[str, Any]) -> None:
    async def body() -> None:
        deadlines = Deadlines(first_token_s=WAIT_S, total_s=0.2, stream_total_s=0.2)
        world = ChatWorld(primary=silent, backup=silent, deadlines=deadlines)
        exchange = await world.post(**streamed)
        assert exchange.status == 504
        assert error_of(exchange)["code"] == "gateway.all_providers_failed"
        # The first of them did not eat the time of the second.
        assert world.providers.order == ["primary", "backup"]
        assert (await world.usage()).used == 0
        await world.assert_clean(ends=1)

    run(body())


def test_one_slow_target_alone_may_use_all_the_time_of_a_plain_answer() -> None:
    async def body() -> None:
        async def slow(asked: Asked) -> None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.gone.wait(), SHORT_S * 2)
            await answers(completion("late"))(asked)

        world = ChatWorld(primary=slow, targets=("primary",), deadlines=SHORT)
        assert json.loads((await world.post()).body) == completion("late")

    run(body())


class SlowReader:
    """A client that takes a message only when told to."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = asyncio.Event()
        self.sent: list[dict[str, Any]] = []

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if message.get("more_body"):
            self.waiting.set()
            await self.open.wait()

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent)


def serve(world: ChatWorld, send: Callable[[Any], Any]) -> "asyncio.Task[None]":
    """A request for a stream whose client is `send`."""
    exchange = world.exchange(request(stream=True))
    scope, receive = exchange._scope, exchange._incoming.get
    return asyncio.ensure_future(world.front(scope, receive, send))  # type: ignore[arg-type]


def test_time_in_which_the_client_does_not_read_is_not_the_upstreams() -> None:
    async def body() -> None:
        clock = ManualClock()
        deadlines = Deadlines(first_token_s=1.0, idle_s=1.0, stream_total_s=300.0)
        go = asyncio.Event()

        async def script(asked: Asked) -> None:
            asked.head()
            asked.send(ROLE + HEL)
            await go.wait()
            asked.send(LO + STOP + DONE)
            asked.end()

        world = ChatWorld(clock=clock, primary=script, deadlines=deadlines)
        reader = SlowReader()
        async with asyncio.timeout(WAIT_S):
            task = serve(world, reader.send)
            await reader.waiting.wait()
            clock.advance(100.0)
            reader.open.set()
            # The gateway asks for more before the upstream goes on.
            await world.post(b"{")
            go.set()
            await task
        assert texts(reader.body) == {0: "Hello"}
        assert world.records.outcomes[-1] == "ok"

    run(body())


def test_the_total_ends_a_stream_whose_client_did_not_read_for_too_long() -> None:
    async def body() -> None:
        clock = ManualClock()
        deadlines = Deadlines(first_token_s=1.0, idle_s=1.0, stream_total_s=20.0)
        world = ChatWorld(clock=clock, primary=streams(ROLE, HEL, hangs=True), deadlines=deadlines)
        reader = SlowReader()
        async with asyncio.timeout(WAIT_S):
            task = serve(world, reader.send)
            await reader.waiting.wait()
            clock.advance(21.0)
            reader.open.set()
            await task
        assert payloads(reader.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert world.providers.asked[0].gone.is_set()

    run(body())


def test_a_client_that_takes_too_long_does_not_hold_a_request_beyond_its_time() -> None:
    async def body() -> None:
        deadlines = Deadlines(first_token_s=1.0, idle_s=1.0, stream_total_s=SHORT_S)
        world = ChatWorld(primary=streams(ROLE, HEL, hangs=True), deadlines=deadlines)
        reader = SlowReader()
        async with asyncio.timeout(WAIT_S):
            await serve(world, reader.send)
        assert payloads(reader.body)[-1]["error"]["code"] == "gateway.upstream_interrupted"
        assert world.providers.asked[0].gone.is_set()
        assert world.state() is State.CLOSED
        await world.assert_clean(ends=1)

    run(body())


def test_an_error_body_that_does_not_come_is_not_waited_for_long() -> None:
    async def body() -> None:
        async def never(asked: Asked) -> None:
            asked.head(429, "application/json", retry_after="7")
            await asked.gone.wait()

        patient = Deadlines(first_token_s=4 * WAIT_S, total_s=8 * WAIT_S)
        bounds = Bounds(1 << 20, 1 << 16, error_body_s=SHORT_S)
        backup = answers(completion("hello"))
        world = ChatWorld(primary=never, backup=backup, deadlines=patient, bounds=bounds)
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:rate_limited,backup:ok"
        assert world.providers.asked[0].gone.is_set()
        again = await world.post()
        assert again.header("x-tidegate-attempts") == "primary:cooling,backup:ok"

    run(body())
