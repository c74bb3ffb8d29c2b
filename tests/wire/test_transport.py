"""One attempt over real sockets: order of callbacks, ends, pool, pressure, on both event loops."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import brotli
import pytest
import uvloop

from tidegate.clock import SystemClock
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import (
    STREAM_HEAD,
    Script,
    ScriptedUpstream,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
    cut_after,
    steps,
)
from tidegate.transport import AttemptFailed, Failure, Inbox, UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.new_event_loop,
    uvloop.new_event_loop,
]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    def runner(body: Any) -> None:
        with asyncio.Runner(loop_factory=request.param) as loop:
            loop.run(body)

    return runner


Run = Callable[[Awaitable[None]], None]


@asynccontextmanager
async def world(*scripts: Script, tls: ssl.SSLContext | None = None):  # type: ignore[no-untyped-def]
    transport = AiohttpTransport(tls=tls)
    await transport.open()
    try:
        async with ScriptedUpstream(*scripts) as upstream:
            yield transport, upstream
            await transport.close()
            assert transport.open_connections == 0
    finally:
        await transport.close()


class Log:
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.changed = asyncio.Event()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._add((status, dict(headers)))

    def on_body(self, chunk: bytes) -> None:
        self._add(chunk)

    def on_end(self) -> None:
        self._add("end")

    def on_failure(self, failure: Failure) -> None:
        self._add(failure)

    def _add(self, what: object) -> None:
        self.told.append(what)
        self.changed.set()

    async def until(self, true: Callable[[list[object]], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true(self.told):
                self.changed.clear()
                await self.changed.wait()

    @property
    def over(self) -> bool:
        return bool(self.told) and (self.told[-1] == "end" or isinstance(self.told[-1], Failure))


async def turns(count: int) -> None:
    """Let the loop turn, so that whatever can move has moved."""
    for _ in range(count):
        turned = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turned.set_result, None)
        await turned


def post(upstream: ScriptedUpstream, *, replayable: bool = False) -> UpstreamRequest:
    return UpstreamRequest(
        "POST",
        upstream.url + "/v1/a%2Fb?x=%41&y=1",
        (("Content-Type", "application/json"), ("X-Key", "k"), ("Host", "evil")),
        b'{"n":1}',
        replayable=replayable,
    )


async def told(
    transport: AiohttpTransport, upstream: ScriptedUpstream, *, replayable: bool = False
) -> list[object]:
    sink = Log()
    transport.start(post(upstream, replayable=replayable), sink, connect_s=WAIT_S)
    assert sink.told == []
    await sink.until(lambda _: sink.over)
    return sink.told


def test_the_request_leaves_as_it_was_given(run: Run) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            await told(transport, upstream)
            (request,) = upstream.requests
            assert (request.method, request.target) == ("POST", "/v1/a%2Fb?x=%41&y=1")
            assert request.body == b'{"n":1}'
            names = sorted(name.lower() for name, _ in request.headers)
            assert names == [
                *("accept-encoding", "content-length", "content-type"),
                *("host", "user-agent", "x-key"),
            ]
            assert request.header("host") == f"127.0.0.1:{upstream.port}"
            assert request.header("accept-encoding") == "identity"

    run(body())


def test_each_part_is_pushed_when_it_arrives_and_the_socket_is_kept(run: Run) -> None:
    async def body() -> None:
        more, end = asyncio.Event(), asyncio.Event()
        script = steps(
            STREAM_HEAD, chunk_bytes(b"one"), more, chunk_bytes(b"two"), end, chunk_bytes(b"")
        )
        async with world(script) as (transport, upstream):
            sink = Log()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            head = (200, {"content-type": "text/event-stream"})
            await sink.until(lambda told: told == [head, b"one"])
            more.set()
            await sink.until(lambda told: told == [head, b"one", b"two"])
            end.set()
            await sink.until(lambda told: told == [head, b"one", b"two", "end"])
            assert (transport.open_connections, transport.idle_connections) == (1, 1)
            assert (await told(transport, upstream))[-1] == "end"
            assert upstream.connections == 1

    run(body())


@pytest.mark.parametrize("status", [301, 302, 307, 404, 500])
def test_a_redirect_or_an_error_is_an_answer_like_any_other(run: Run, status: int) -> None:
    async def body() -> None:
        answer = answer_bytes(
            status, headers=[("Location", "/elsewhere"), ("Set-Cookie", "sid=1")], body=b"{}"
        )
        async with world(steps(answer)) as (transport, upstream):
            assert await told(transport, upstream) == [
                (status, {"location": "/elsewhere"}),
                b"{}",
                "end",
            ]
            await told(transport, upstream)
            assert len(upstream.requests) == 2
            assert upstream.requests[1].header("cookie") is None

    run(body())


def test_headers_are_lower_case_joined_and_free_of_framing(run: Run) -> None:
    async def body() -> None:
        answer = answer_bytes(
            headers=[
                *(("X-A", "1"), ("x-a", "2"), ("Retry-After", "3")),
                *(
                    ("Connection", "keep-alive"),
                    ("Keep-Alive", "timeout=5"),
                    ("Content-Length", "0"),
                ),
            ]
        )
        async with world(steps(answer)) as (transport, upstream):
            assert await told(transport, upstream) == [
                (200, {"x-a": "1, 2", "retry-after": "3"}),
                "end",
            ]

    run(body())


@pytest.mark.parametrize(
    ("coding", "encode"), [("gzip", gzip.compress), ("br", brotli.compress), ("identity", bytes)]
)
def test_a_coded_body_is_decoded_and_its_headers_are_gone(
    run: Run, coding: str, encode: Callable[[bytes], bytes]
) -> None:
    async def body() -> None:
        answer = answer_bytes(headers=[("Content-Encoding", coding)], body=encode(b'{"a":1}'))
        async with world(steps(answer)) as (transport, upstream):
            assert await told(transport, upstream) == [(200, {}), b'{"a":1}', "end"]

    run(body())


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


def test_interim_answers_are_skipped_and_a_body_may_end_with_the_connection(run: Run) -> None:
    async def body() -> None:
        script = cut_after(b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + HEAD + b"\r\nhello")
        async with world(script) as (transport, upstream):
            assert await told(transport, upstream) == [
                (200, {"content-type": "x"}),
                b"hello",
                "end",
            ]

    run(body())


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


def test_pause_reaches_the_socket_of_the_upstream(run: Run) -> None:
    size = 32_000_000

    async def body() -> None:
        exchanges: list[UpstreamExchange] = []

        async def flood(exchange: UpstreamExchange) -> None:
            exchanges.append(exchange)
            await exchange.send(answer_bytes(headers=[("Content-Length", str(size))]))
            await exchange.send(b"x" * size)

        async with world(flood) as (transport, upstream):
            with Inbox(SystemClock(), high_water_bytes=100_000) as inbox:
                inbox.start(transport, post(upstream), connect_s=WAIT_S)
                await inbox.head()
                # Whatever the kernel holds (a few MB at most), it stops moving while we wait.
                left = -1
                while left != exchanges[0].unsent_bytes():
                    left = exchanges[0].unsent_bytes()
                    await turns(200)
                assert left > size // 4
                assert inbox.buffered_bytes < 500_000
                got = 0
                async with asyncio.timeout(WAIT_S):
                    while chunk := await inbox.read():
                        got += len(chunk)
                assert got == size

    run(body())


def test_a_bomb_is_decoded_only_as_far_as_it_is_read(run: Run) -> None:
    async def body() -> None:
        bomb = gzip.compress(b"\0" * 50_000_000)
        answer = answer_bytes(headers=[("Content-Encoding", "gzip")], body=bomb)
        async with world(steps(answer)) as (transport, upstream):
            with Inbox(SystemClock(), high_water_bytes=100_000) as inbox:
                inbox.start(transport, post(upstream), connect_s=WAIT_S)
                await inbox.head()
                first = await inbox.read()
                await turns(100)
                assert len(first) + inbox.buffered_bytes < 500_000

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


@pytest.mark.parametrize("case", ["not_replayable", "fresh", "byte_seen", "twice"])
def test_a_request_is_not_sent_again_when_that_might_do_harm(run: Run, case: str) -> None:
    async def body() -> None:
        good = steps(answer_bytes(body=b"1"))
        vanish = cut_after(b"HTTP/1.1 2" if case == "byte_seen" else b"")
        scripts = [vanish] if case == "fresh" else [good, vanish, vanish]
        async with world(*scripts) as (transport, upstream):
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


def test_a_proxy_is_asked_when_one_is_named(run: Run) -> None:
    async def body() -> None:
        async with world() as (transport, proxy):
            sink = Log()
            request = UpstreamRequest("GET", "http://model.example/v1", proxy=proxy.url)
            transport.start(request, sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [(200, {}), b"{}", "end"]
            assert proxy.requests[0].target == "http://model.example/v1"

    run(body())


def test_a_proxy_that_refuses_the_tunnel_is_unreachable(run: Run) -> None:
    async def body() -> None:
        async with world(steps(answer_bytes(407))) as (transport, proxy):
            sink = Log()
            request = UpstreamRequest("GET", "https://model.example/v1", proxy=proxy.url)
            transport.start(request, sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.UNREACHABLE]

    run(body())


def test_a_header_that_would_break_the_frame_never_leaves(run: Run) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            sink = Log()
            request = UpstreamRequest("GET", upstream.url, (("X-A", "1\r\nX-B: 2"),))
            transport.start(request, sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.MALFORMED]
            assert upstream.requests == []

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


def test_an_unforeseen_error_still_ends_the_attempt(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Log):
        def on_body(self, chunk: bytes) -> None:
            raise LookupError("content that must not be logged")

    async def body() -> None:
        async with world() as (transport, upstream):
            sink = Broken()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [(200, {}), Failure.MALFORMED]

    run(body())
    assert [record.getMessage() for record in caplog.records] == ["attempt_crashed"]
    assert "content that" not in caplog.text


def test_a_closed_transport_starts_nothing(run: Run) -> None:
    async def body() -> None:
        transport = AiohttpTransport()
        assert (transport.open_connections, transport.idle_connections) == (0, 0)
        request = UpstreamRequest("GET", "http://127.0.0.1:9/")
        with pytest.raises(RuntimeError):
            transport.start(request, Log(), connect_s=1)
        await transport.open()
        await transport.close()
        await transport.close()
        with pytest.raises(RuntimeError):
            transport.start(request, Log(), connect_s=1)

    run(body())
