"""A slow client, many bytes, many requests: what the gateway holds is bounded."""

import asyncio
import json
import threading
import tracemalloc
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.app.chat_upstreams import (
    DONE,
    HEL,
    ROLE,
    STOP,
    Asked,
    answers,
    completion,
    delta,
    event,
    payloads,
    silent,
    streams,
    texts,
)
from tests.app.chat_world import MASKED, OFF, ChatWorld, request, run
from tests.app.test_chat_deadlines import SlowReader, serve
from tests.app.test_front import error_of
from tidegate.gateway.attempts import Bounds
from tidegate.gateway.filters import PassThrough, WholeAnswer
from tidegate.gateway.masking import CallMasking, Masking
from tidegate.routing.plan import Deadlines
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

WORD = event(delta(content="word " * 200))
WORDS = 2000  # about 2.5 MB


class Firehose:
    """An upstream that sends as fast as it is let, and counts."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, asked: Asked) -> None:
        asked.head()
        asked.send(ROLE)
        with suppress(asyncio.CancelledError):
            for _ in range(WORDS):
                await asked.flowing.wait()
                asked.send(WORD)
                self.sent += len(WORD)
            asked.send(STOP + DONE)
            asked.end()


@pytest.mark.parametrize("masking", [MASKED, OFF], ids=["masked", "off"])
def test_a_client_that_does_not_read_stops_the_upstream_from_being_read(masking: Any) -> None:
    async def body() -> None:
        hose = Firehose()
        world = ChatWorld(primary=hose, masking=masking)
        reader = SlowReader()
        async with asyncio.timeout(WAIT_S):
            task = serve(world, reader.send)
            await reader.waiting.wait()
            asked = world.providers.asked[0]
            while asked.flowing.is_set():
                await world.post(b"{")
            held = hose.sent
            for _ in range(50):
                await world.post(b"{")
            assert hose.sent == held
            assert held < 2 * 262_144 + len(reader.body)
            reader.open.set()
            await task
        assert len(texts(reader.body)[0]) == WORDS * 1000
        assert payloads(reader.body)[-1] == "[DONE]"
        assert world.records.outcomes[-1] == "ok"

    run(body())


def test_a_stream_of_any_length_is_passed_on_in_bounded_memory() -> None:
    async def body() -> None:
        world = ChatWorld(primary=Firehose(), masking=MASKED)
        await world.post()
        seen = 0

        async def send(message: Any) -> None:
            nonlocal seen
            seen += len(message.get("body", b""))
            await asyncio.wait([asyncio.ensure_future(world.post(b"{"))])

        tracemalloc.start()
        try:
            await serve(world, send)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert seen > WORDS * len(WORD) * 0.9
        assert peak < 1_500_000

    run(body())


def test_what_comes_before_the_commit_is_bounded() -> None:
    async def body() -> None:
        async def endless(asked: Asked) -> None:
            asked.head()
            for _ in range(1000):
                asked.send(ROLE)
            await asked.gone.wait()

        bounds = Bounds(event_bytes=1 << 20, before_commit_bytes=4096)
        world = ChatWorld(primary=endless, backup=answers(b"", 500), bounds=bounds)
        exchange = await world.post(stream=True)
        assert exchange.header("x-tidegate-attempts") == "primary:malformed,backup:server_error"
        assert world.providers.asked[0].gone.is_set()

    run(body())


def test_an_answer_beyond_the_cap_is_none() -> None:
    async def body() -> None:
        bounds = Bounds(event_bytes=100_000, before_commit_bytes=4096)
        world = ChatWorld(
            primary=answers(completion("x" * 200_000)),
            backup=answers(completion("x" * 90_000)),
            bounds=bounds,
        )
        exchange = await world.post()
        assert exchange.header("x-tidegate-attempts") == "primary:malformed,backup:ok"

    run(body())


def test_all_bodies_together_are_bounded_and_given_back() -> None:
    async def body() -> None:
        small = request()
        room = 2 * len(small) + 10
        world = ChatWorld(
            primary=[silent, silent, answers(completion("hello"))],
            targets=("primary",),
            bodies_bytes=room,
        )
        async with world.exchange() as one, world.exchange() as two:
            await world.providers.until(2)
            assert world.gate.held_bytes == 2 * len(small)
            refused = await world.post()
            assert refused.status == 503
            assert error_of(refused)["code"] == "gateway.overloaded"
            assert refused.header("retry-after") == "1"
            assert world.gate.held_bytes == 2 * len(small)
            await one.disconnect()
            assert (await world.post()).status == 200
            await two.disconnect()
        await world.assert_clean(ends=4)

    run(body())


@pytest.mark.parametrize(("words", "beside"), [(1_000, False), (100_000, True)])
def test_large_bodies_are_worked_on_beside_the_loop(
    words: int,
    beside: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        threads: list[int] = []

        class TracedAnswer(WholeAnswer):
            def whole(self, body: bytes) -> bytes:
                threads.append(threading.get_ident())
                return super().whole(body)

        class TracedCall(CallMasking):
            def prompt(self, document: Any, raw: bytes) -> Any:
                threads.append(threading.get_ident())
                return super().prompt(document, raw)

            def answer_filter(self) -> WholeAnswer:
                return TracedAnswer(None)

        @dataclass(frozen=True)
        class Traced(Masking):
            def begin(self, tenant: str, draw: Any) -> CallMasking:
                return TracedCall(self, self.policy, draw)

        text = "word " * words
        world = ChatWorld(
            primary=answers(completion(text)), masking=Traced(MASKED.policy), limits=[]
        )
        large = request(messages=[{"role": "user", "content": text}])
        exchange = await world.post(large)
        assert json.loads(exchange.body) == completion(text)
        assert world.providers.asked[0].body == large
        assert [thread != threading.get_ident() for thread in threads] == [beside, beside]

    asyncio.run(body())


def test_a_large_event_is_worked_on_beside_the_loop_and_on_nobodys_time() -> None:
    async def body() -> None:
        threads: list[bool] = []
        loop_thread = threading.get_ident()
        clock = ManualClock()

        class Filter(PassThrough):
            def feed(self, data: bytes) -> list[bytes]:
                threads.append(threading.get_ident() != loop_thread)
                if threads[-1]:
                    clock.advance(100.0)
                return super().feed(data)

        class TracedCall(CallMasking):
            def stream_filter(self) -> Any:
                return Filter()

        @dataclass(frozen=True)
        class Traced(Masking):
            def begin(self, tenant: str, draw: Any) -> CallMasking:
                return TracedCall(self, self.policy, draw)

        large = event(delta(content="x" * 300_000))
        pieces = [large[i : i + 50_000] for i in range(0, len(large), 50_000)]
        script = streams(ROLE, *pieces, HEL, STOP + DONE)
        deadlines = Deadlines(first_token_s=1.0, idle_s=1.0, stream_total_s=10_000.0)
        world = ChatWorld(
            clock=clock, primary=script, masking=Traced(MASKED.policy), deadlines=deadlines
        )
        exchange = await world.post(stream=True)
        assert len(texts(exchange.body)[0]) == 300_003
        assert payloads(exchange.body)[-1] == "[DONE]"
        assert threads[:2] == [False, True]

    asyncio.run(body())


def test_a_stream_with_content_in_every_read_sends_once_a_read() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.head()
            asked.send(ROLE + HEL, HEL + HEL, HEL)
            asked.send(STOP + DONE)
            asked.end()

        world = ChatWorld(primary=script)
        exchange = await world.post(stream=True)
        assert texts(exchange.body) == {0: "HelHelHelHel"}
        reader = SlowReader()
        reader.open.set()
        await serve(world, reader.send)
        # A head, and one message for all that had arrived, which is also the end.
        assert [m["type"].rpartition(".")[2] for m in reader.sent] == ["start", "body"]

    run(body())


def test_a_client_that_leaves_ends_the_work_on_its_prompt() -> None:
    """Else a process that is told to stop would wait for work that nobody wants."""

    async def body() -> None:
        begun, left = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()
        seen: list[int] = []

        class Slow:
            family, rank, shortest, anchors = "slow", 39, 1, (("x", ""),)

            def find(self, text: str, start: int, end: int) -> list[Any]:
                if not seen:
                    loop.call_soon_threadsafe(begun.set)
                    left.wait(WAIT_S)
                seen.append(end - start)
                return []

        policy = MASKED.policy.with_detectors(Slow())
        made = ChatWorld(primary=answers(completion("x")), masking=Masking(policy), limits=[])
        large = request(messages=[{"role": "user", "content": "say x! " * 100_000}])
        async with made.exchange(large) as exchange:
            async with asyncio.timeout(WAIT_S):
                await begun.wait()
            await exchange.disconnect()
        left.set()
        await loop.shutdown_default_executor()
        assert sum(seen) < 200_000
        assert made.providers.asked == []
        await made.assert_clean(ends=1)

    run(body())
