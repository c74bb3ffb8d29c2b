"""One attempt over real sockets: what leaves, what is pushed when, and in which form."""

import asyncio
import gzip
from collections.abc import Callable

import brotli
import pytest

from tests.logged import logged
from tests.wire.attempts import HEAD, Log, post, told, turns, world
from tests.wire.conftest import Run
from tidegate.clock import SystemClock
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import (
    STREAM_HEAD,
    UpstreamExchange,
    answer_bytes,
    chunk_bytes,
    cut_after,
    steps,
)
from tidegate.transport import Failure, Inbox, UpstreamRequest
from tidegate.transport.aiohttp_client import AiohttpTransport

FINE = steps(answer_bytes(body=b"{}"))
CHUNK = bytes(range(251)) * 8
SENT = CHUNK * 16_000
CHUNKS = chunk_bytes(CHUNK) * 16_000 + chunk_bytes(b"")


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


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_pause_reaches_the_socket_of_the_upstream(run: Run, *, again: bool, chunked: bool) -> None:
    size = len(SENT)

    async def body() -> None:
        exchanges: list[UpstreamExchange] = []

        async def flood(exchange: UpstreamExchange) -> None:
            exchanges.append(exchange)
            if chunked:
                await exchange.send(STREAM_HEAD + CHUNKS)
            else:
                await exchange.send(answer_bytes(headers=[("Content-Length", str(size))]) + SENT)

        async with world(*([FINE] if again else []), flood) as (transport, upstream):
            if again:
                await told(transport, upstream)
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
                got = bytearray()
                async with asyncio.timeout(WAIT_S):
                    while chunk := await inbox.read():
                        got += chunk
                assert got == SENT
            assert upstream.connections == 1

    run(body())


@pytest.mark.parametrize("again", [False, True])
def test_a_bomb_is_decoded_only_as_far_as_it_is_read(run: Run, *, again: bool) -> None:
    size = 50_000_000

    async def body() -> None:
        bomb = gzip.compress(b"\0" * size)
        answer = answer_bytes(headers=[("Content-Encoding", "gzip")], body=bomb)
        async with world(*([FINE] if again else []), steps(answer)) as (transport, upstream):
            if again:
                await told(transport, upstream)
            with Inbox(SystemClock(), high_water_bytes=100_000) as inbox:
                inbox.start(transport, post(upstream), connect_s=WAIT_S)
                await inbox.head()
                first = await inbox.read()
                await turns(100)
                assert len(first) + inbox.buffered_bytes < 500_000
                got = len(first)
                async with asyncio.timeout(WAIT_S):
                    while chunk := await inbox.read():
                        got += len(chunk)
                assert got == size
            assert transport.idle_connections == 1

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


def test_no_proxy_and_no_cookie_comes_from_anywhere_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        setting = answer_bytes(headers=[("Set-Cookie", "a=1; Path=/"), ("Content-Length", "0")])
        async with world(steps(setting)) as (transport, upstream):
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
            monkeypatch.delenv("no_proxy", raising=False)
            # By its name: aiohttp itself keeps no cookies of an address.
            url = upstream.url.replace("127.0.0.1", "localhost")
            for _ in range(2):
                sink = Log()
                transport.start(UpstreamRequest("GET", url), sink, connect_s=WAIT_S)
                await sink.until(lambda told: bool(told) and told[-1] == "end")
            assert [request.header("cookie") for request in upstream.requests] == [None, None]

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


@pytest.mark.parametrize("again", [False, True])
def test_an_unforeseen_error_still_ends_the_attempt(
    run: Run, caplog: pytest.LogCaptureFixture, *, again: bool
) -> None:
    class Broken(Log):
        def on_body(self, chunk: bytes) -> None:
            raise LookupError("content that must not be logged")

    async def body() -> None:
        async with world() as (transport, upstream):
            if again:
                await told(transport, upstream)
            sink = Broken()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [(200, {}), Failure.MALFORMED]

    run(body())
    assert logged(caplog, "tidegate.transport") == ["attempt_crashed"]
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
