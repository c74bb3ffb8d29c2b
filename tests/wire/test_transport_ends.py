"""How an attempt ends: malformed, cut, unreachable, aborted; once, and with nothing left behind."""

import asyncio
import gzip
import socket
from typing import cast

import pytest

from tests.wire.attempts import CHUNKED, HEAD, Log, post, told, turns, world
from tests.wire.conftest import Run
from tidegate.clock import SystemClock
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import (
    STREAM_HEAD,
    chunk_bytes,
    cut_after,
    steps,
)
from tidegate.transport import AttemptFailed, Failure, Inbox, UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport

MALFORMED: dict[str, bytes] = {
    "not_http": b"SSH-2.0 hello\r\n\r\n",
    "old_http": b"<html></html>",
    "both_lengths": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two_lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "bad_name": HEAD + b"a b: c\r\n\r\n",
    "bad_chunk": CHUNKED + b"ZZ\r\n",
    "surplus": HEAD + b"Content-Length: 1\r\n\r\nzzzz",
    "upgrade": b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    "fields": HEAD + b"X: y\r\n" * 300 + b"\r\n",
    "unknown_coding": HEAD + b"Content-Encoding: zstd\r\nContent-Length: 1\r\n\r\nz",
    "stacked_codings": HEAD
    + b"Content-Encoding: gzip\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nz",
}


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_a_malformed_answer_is_one_failure_and_never_a_head(name: str) -> None:
    async def body() -> None:
        async with world(steps(MALFORMED[name])) as (transport, upstream):
            assert await told(transport, upstream) == [Failure.MALFORMED]

    asyncio.run(body())


LATE: dict[str, tuple[bytes, bytes, Failure]] = {
    "bad_chunk": (CHUNKED + b"2\r\nhi\r\n", b"ZZ\r\n", Failure.MALFORMED),
    "chunk_without_end": (CHUNKED + b"2\r\nhi", b"XX", Failure.MALFORMED),
    "cut_chunks": (CHUNKED + b"2\r\nhi\r\n", b"", Failure.RESET),
    "cut_length": (HEAD + b"Content-Length: 9\r\n\r\nhi", b"", Failure.RESET),
    "bad_gzip": (
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 50\r\n\r\n" + gzip.compress(b"hi"),
        b"x" * 28,
        Failure.MALFORMED,
    ),
    "cut_gzip": (
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 28\r\n\r\n" + gzip.compress(b"hi")[:18],
        gzip.compress(b"hi")[18:21] + b"\0" * 7,
        Failure.MALFORMED,
    ),
}


@pytest.mark.parametrize("name", sorted(LATE))
def test_what_breaks_later_is_told_after_what_arrived(run: Run, name: str) -> None:
    first, then, failure = LATE[name]

    async def body() -> None:
        go = asyncio.Event()
        async with world(cut_after(first, go, then)) as (transport, upstream):
            sink = Log()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            await sink.until(lambda told: len(told) == 2)
            go.set()
            await sink.until(lambda _: sink.over)
            assert sink.told == [(200, {"content-type": "x"}), b"hi", failure]
            # A frame that ended well leaves a good socket, whatever was wrong inside.
            assert transport.idle_connections == (1 if "gzip" in name else 0)

    run(body())


@pytest.mark.parametrize("line", [b"X: " + b"y" * 20_000, b"X: " + b"y" * 20_000 + b"\r\n\r\n"])
def test_an_endless_head_is_cut(run: Run, line: bytes) -> None:
    async def body() -> None:
        async with world(steps(HEAD + line)) as (transport, upstream):
            assert await told(transport, upstream) == [Failure.TOO_LARGE]
            assert upstream.requests[0].connection == 1

    run(body())


def test_a_head_of_many_long_fields_is_too_large() -> None:
    async def body() -> None:
        head = HEAD + b"X: %b\r\n" % (b"y" * 8_000) * 9 + b"Content-Length: 0\r\n\r\n"
        async with world(steps(head)) as (transport, upstream):
            assert await told(transport, upstream) == [Failure.TOO_LARGE]

    asyncio.run(body())


def test_nobody_listening_is_unreachable_and_says_no_more(run: Run) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            request = post(upstream)
        transport = AiohttpTransport()
        await transport.open()
        sink = Log()
        transport.start(request, sink, connect_s=WAIT_S)
        await sink.until(lambda _: sink.over)
        assert sink.told == [Failure.UNREACHABLE]
        await transport.close()

    run(body())


def test_a_certificate_nobody_vouches_for_is_unreachable(run: Run) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            sink = Log()
            request = UpstreamRequest("GET", upstream.url.replace("http:", "https:"))
            transport.start(request, sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.UNREACHABLE]
            assert upstream.requests == []

    run(body())


def test_a_connection_that_never_stands_ends_with_its_time(run: Run) -> None:
    async def body() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        transport = AiohttpTransport()
        await transport.open()
        sink = Log()
        # The handshake of TLS is part of the connection, and nobody answers it here.
        request = UpstreamRequest("GET", f"https://127.0.0.1:{port}/")
        transport.start(request, sink, connect_s=0.02)
        try:
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.UNREACHABLE]
        finally:
            await transport.close()
            server.close()

    run(body())


@pytest.mark.parametrize("when", ["before_start", "before_head", "in_body"])
def test_abort_closes_the_socket_at_once_and_nothing_follows(run: Run, when: str) -> None:
    async def body() -> None:
        hold = asyncio.Event()
        parts = {"before_head": (), "in_body": (STREAM_HEAD, chunk_bytes(b"one"))}
        async with world(steps(*parts.get(when, ()), hold)) as (transport, upstream):
            sink = Log()
            attempt = transport.start(post(upstream), sink, connect_s=WAIT_S)
            if when == "before_head":
                await upstream.until(lambda: len(upstream.requests) == 1)
            if when == "in_body":
                await sink.until(lambda told: len(told) == 2)
            seen = list(sink.told)
            attempt.abort()
            attempt.abort()
            await upstream.until(lambda: upstream.open_connections == 0)
            assert sink.told == seen
            assert upstream.connections == (0 if when == "before_start" else 1)
            assert (transport.open_connections, transport.idle_connections) == (0, 0)

    run(body())


def test_abort_does_not_wait_for_an_upstream_that_reads_nothing(run: Run) -> None:
    async def body() -> None:
        arrived = asyncio.Event()
        closed = asyncio.Event()

        class Deaf(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast("asyncio.Transport", transport)
                self.transport.pause_reading()
                arrived.set()

            def connection_lost(self, exc: Exception | None) -> None:
                closed.set()

        loop = asyncio.get_running_loop()
        deaf = Deaf()
        server = await loop.create_server(lambda: deaf, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = AiohttpTransport()
        await transport.open()
        request = UpstreamRequest("POST", f"http://127.0.0.1:{port}/", (), b"x" * 16_000_000)
        attempt = transport.start(request, Log(), connect_s=WAIT_S)
        try:
            async with asyncio.timeout(WAIT_S):
                await arrived.wait()
                await turns(50)
                attempt.abort()
                await transport.close()
                assert transport.open_connections == 0
                deaf.transport.resume_reading()
                await closed.wait()
        finally:
            server.close()

    run(body())


def test_the_deadline_of_an_inbox_closes_the_socket(run: Run) -> None:
    async def body() -> None:
        async with world(steps(asyncio.Event())) as (transport, upstream):
            clock = SystemClock()
            with Inbox(clock) as inbox:
                inbox.start(transport, post(upstream), connect_s=WAIT_S)
                await upstream.until(lambda: len(upstream.requests) == 1)
                inbox.arm(clock.monotonic_s() + 0.01)
                with pytest.raises(AttemptFailed) as raised:
                    await inbox.head()
                assert raised.value.failure is Failure.TIMEOUT
                await upstream.until(lambda: upstream.open_connections == 0)

    run(body())


def test_forty_cancelled_readers_leave_no_socket_behind(run: Run) -> None:
    async def body() -> None:
        async with world(steps(STREAM_HEAD, chunk_bytes(b"one"), asyncio.Event())) as (
            transport,
            upstream,
        ):

            async def reader() -> None:
                with Inbox(SystemClock()) as inbox:
                    inbox.start(transport, post(upstream), connect_s=WAIT_S)
                    await inbox.head()
                    while await inbox.read():
                        pass

            tasks = [asyncio.create_task(reader()) for _ in range(40)]
            await upstream.until(lambda: len(upstream.requests) == 40)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await upstream.until(lambda: upstream.open_connections == 0)
            assert (transport.open_connections, transport.idle_connections) == (0, 0)

    run(body())
