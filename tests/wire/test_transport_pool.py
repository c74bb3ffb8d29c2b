"""Kept-alive sockets: when they are reused, replaced, and never trusted."""

import asyncio

import pytest

from tests.wire.attempts import Log, post, told, world
from tests.wire.conftest import Run
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import (
    UpstreamExchange,
    answer_bytes,
    cut_after,
    steps,
)
from tidegate.transport import Failure, UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport


def test_abort_after_the_end_leaves_the_socket_to_its_next_user(run: Run) -> None:
    async def body() -> None:
        hold = asyncio.Event()
        async with world(steps(answer_bytes(body=b"1")), steps(hold, answer_bytes(body=b"2"))) as (
            transport,
            upstream,
        ):
            first, second = Log(), Log()
            attempt = transport.start(post(upstream), first, connect_s=WAIT_S)
            await first.until(lambda _: first.over)
            transport.start(post(upstream), second, connect_s=WAIT_S)
            await upstream.until(lambda: len(upstream.requests) == 2)
            attempt.abort()
            attempt.pause()
            hold.set()
            await second.until(lambda _: second.over)
            assert second.told == [(200, {}), b"2", "end"]
            assert upstream.connections == 1

    run(body())


def test_a_dead_kept_alive_socket_is_replaced_once_if_that_does_no_harm(run: Run) -> None:
    async def body() -> None:
        async def vanish(exchange: UpstreamExchange) -> None:
            exchange.reset()

        good = steps(answer_bytes(body=b"1"))
        async with world(good, vanish, good) as (transport, upstream):
            await told(transport, upstream)
            answer = await told(transport, upstream, replayable=True)
            assert answer == [(200, {}), b"1", "end"]
            assert [request.connection for request in upstream.requests] == [1, 1, 2]

    run(body())


def test_what_replaces_a_dead_socket_is_not_another_one_that_was_kept(run: Run) -> None:
    """An upstream that was restarted leaves a pool of dead sockets behind, not one."""

    async def body() -> None:
        hold = asyncio.Event()
        good = steps(answer_bytes(body=b"1"))

        async def restarted(exchange: UpstreamExchange) -> None:
            await (good(exchange) if exchange.request.connection == 3 else _reset(exchange))

        async with world(steps(hold, answer_bytes()), steps(answer_bytes()), restarted) as (
            transport,
            upstream,
        ):
            first, second = Log(), Log()
            for sink in (first, second):
                transport.start(post(upstream), sink, connect_s=WAIT_S)
            await upstream.until(lambda: len(upstream.requests) == 2)
            hold.set()
            await first.until(lambda _: first.over)
            await second.until(lambda _: second.over)
            assert transport.idle_connections == 2
            answer = await told(transport, upstream, replayable=True)
            assert answer == [(200, {}), b"1", "end"]
            assert len(upstream.requests) == 4
            assert transport.open_connections == 1

    run(body())


def test_a_socket_that_was_kept_for_too_long_is_closed_and_not_asked(run: Run) -> None:
    async def body() -> None:
        async with world() as (_, upstream):
            transport = AiohttpTransport(keepalive_s=0.0)
            await transport.open()
            for _ in range(3):
                await told(transport, upstream)
            assert upstream.connections == 3
            await upstream.until(lambda: upstream.open_connections == 1)
            assert transport.open_connections == 1
            await transport.close()

    run(body())


async def _reset(exchange: UpstreamExchange) -> None:
    exchange.reset()


@pytest.mark.parametrize("case", ["not_replayable", "fresh", "byte_seen", "twice", "late"])
def test_a_request_is_not_sent_again_when_that_might_do_harm(run: Run, case: str) -> None:
    async def body() -> None:
        good = steps(answer_bytes(body=b"1"))
        vanish = cut_after(b"HTTP/1.1 2" if case == "byte_seen" else b"")
        scripts = [vanish] if case == "fresh" else [good, vanish, vanish]
        # Who has had the request for a while may have worked on it.
        at_once_s = -1.0 if case == "late" else WAIT_S
        async with world(*scripts, at_once_s=at_once_s) as (transport, upstream):
            if case != "fresh":
                await told(transport, upstream)
            replayable = case != "not_replayable"
            assert await told(transport, upstream, replayable=replayable) == [Failure.RESET]
            expected = {"fresh": 1, "twice": 3}.get(case, 2)
            assert len(upstream.requests) == expected

    run(body())


def test_aiohttp_itself_never_sends_a_request_again(run: Run) -> None:
    async def body() -> None:
        async with world(cut_after(b"")) as (transport, upstream):
            sink = Log()
            transport.start(UpstreamRequest("GET", upstream.url), sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.RESET]
            assert len(upstream.requests) == 1

    run(body())


@pytest.mark.parametrize("when", ["with_the_answer", "with_its_end", "later"])
def test_an_answer_nobody_asked_for_is_never_given_to_the_next_request(run: Run, when: str) -> None:
    stray = answer_bytes(body=b"stray")

    async def body() -> None:
        go = asyncio.Event()
        head = answer_bytes(headers=[("Content-Length", "1")])
        scripts = {
            "with_the_answer": steps(head + b"1" + stray),
            "with_its_end": steps(head, go, b"1" + stray),
            "later": steps(head + b"1", go, stray),
        }
        async with world(scripts[when], steps(answer_bytes(body=b"2"))) as (transport, upstream):
            sink = Log()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            await sink.until(lambda told: len(told) == 1 or sink.over)
            if when == "later":
                await sink.until(lambda _: sink.over)
            go.set()
            await sink.until(lambda _: sink.over)
            assert sink.told == [(200, {}), b"1", "end"]
            if when == "later":
                await upstream.until(lambda: upstream.open_connections == 0)
            assert await told(transport, upstream) == [(200, {}), b"2", "end"]
            assert upstream.connections == 2

    run(body())
