"""Does a kept connection carry the same request and bring the same answer as a first one?"""

import asyncio
import gzip

import pytest

from tests.wire.attempts import CHUNKED, HEAD, Log, post, told, turns, world
from tests.wire.conftest import Run
from tests.wire.test_transport_ends import MALFORMED
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import answer_bytes, cut_after, steps
from tidegate.transport import Attempt, Failure, UpstreamRequest

FINE = steps(answer_bytes(body=b"{}"))
ANSWERS = {
    **MALFORMED,
    "whole": HEAD + b"Content-Length: 2\r\n\r\nhi",
    "chunks": CHUNKED + b"2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nT: r\r\n\r\n",
    "empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nhi",
    "joined": HEAD + b"X-A: 1\r\nx-a: 2\r\nSet-Cookie: c\r\nContent-Length: 0\r\n\r\n",
    "gzip": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 22\r\n\r\n" + gzip.compress(b"hi"),
    "long_line": HEAD + b"X: " + b"y" * 9_000 + b"\r\n\r\n",
    "long_head": HEAD + b"".join(b"X-%d: %b\r\n" % (n, b"y" * 900) for n in range(90)) + b"\r\n",
    "lenient": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
}
CUT = {
    "to_the_end": HEAD + b"\r\nhi",
    "cut_length": HEAD + b"Content-Length: 9\r\n\r\nhi",
    "cut_chunks": CHUNKED + b"2\r\nhi\r\n",
    "cut_head": HEAD,
}


async def outcome(answer: bytes, *, again: bool, cut: bool) -> list[object]:
    last = cut_after(answer) if cut else steps(answer)
    async with world(*([FINE] if again else []), last) as (transport, upstream):
        if again:
            await told(transport, upstream)
            assert transport.idle_connections == 1
        found = await told(transport, upstream)
        assert upstream.connections == 1
        return found


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_answer_on_a_kept_connection_is_what_it_is_on_a_fresh_one(run: Run, name: str) -> None:
    async def body() -> None:
        fresh = await outcome(ANSWERS[name], again=False, cut=False)
        assert await outcome(ANSWERS[name], again=True, cut=False) == fresh
        assert fresh[-1] == "end" or isinstance(fresh[-1], Failure)

    run(body())


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(CUT))
def test_a_cut_on_a_kept_connection_is_what_it_is_on_a_fresh_one(run: Run, name: str) -> None:
    async def body() -> None:
        fresh = await outcome(CUT[name], again=False, cut=True)
        assert await outcome(CUT[name], again=True, cut=True) == fresh

    run(body())


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("body_bytes", [b"", b'{"n":1}', b"x" * 300_000])
def test_a_second_request_leaves_like_the_first(run: Run, method: str, body_bytes: bytes) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            fields = (("Content-Type", "x"), ("X-Key", "k"), ("Host", "evil"), ("X-U", "\u00fc"))
            url = upstream.url + "/v1/a%2Fb?x=%41&y=1#z"
            for _ in range(3):
                sink = Log()
                request = UpstreamRequest(method, url, fields, body_bytes)
                transport.start(request, sink, connect_s=WAIT_S)
                await sink.until(lambda _, sink=sink: sink.over)
                assert sink.told[-1] == "end"
            first, *others = upstream.requests
            for other in others:
                assert (other.method, other.target) == (first.method, first.target)
                assert (other.body, sorted(other.headers)) == (first.body, sorted(first.headers))
            assert upstream.connections == 1

    run(body())


@pytest.mark.parametrize("value", ["1\r\nX-B: 2", "1\nX-B: 2", "1\rX-B: 2", "1\0"])
def test_no_header_breaks_the_frame_of_a_kept_connection(run: Run, value: str) -> None:
    async def body() -> None:
        async with world() as (transport, upstream):
            await told(transport, upstream)
            sink = Log()
            request = post(upstream)
            bad = UpstreamRequest("POST", request.url, (("X-A", value),), b"{}")
            transport.start(bad, sink, connect_s=WAIT_S)
            await sink.until(lambda _: sink.over)
            assert sink.told == [Failure.MALFORMED]
            assert len(upstream.requests) == 1

    run(body())


def test_a_transport_that_is_closed_ends_what_runs_on_a_kept_connection(run: Run) -> None:
    async def body() -> None:
        async with world(FINE, steps(HEAD, asyncio.Event())) as (transport, upstream):
            await told(transport, upstream)
            sink = Log()
            transport.start(post(upstream), sink, connect_s=WAIT_S)
            await upstream.until(lambda: len(upstream.requests) == 2)
            await transport.close()
            assert (transport.open_connections, sink.told) == (0, [])
            await upstream.until(lambda: upstream.open_connections == 0)

    run(body())


@pytest.mark.parametrize("when", ["head", "body"])
def test_a_sink_may_leave_while_it_is_told(run: Run, when: str) -> None:
    class Leaving(Log):
        def _add(self, what: object) -> None:
            super()._add(what)
            if (what == b"{}") == (when == "body"):
                attempt.abort()

    async def body() -> None:
        nonlocal attempt
        async with world() as (transport, upstream):
            await told(transport, upstream)
            sink = Leaving()
            attempt = transport.start(post(upstream), sink, connect_s=WAIT_S)
            await sink.until(lambda told: len(told) == (1 if when == "head" else 2))
            await turns(3)
            assert sink.told == ([(200, {})] if when == "head" else [(200, {}), b"{}"])

    attempt: Attempt
    run(body())


def test_an_abort_on_a_kept_connection_closes_it(run: Run) -> None:
    async def body() -> None:
        go = asyncio.Event()
        async with world(FINE, steps(HEAD, go)) as (transport, upstream):
            await told(transport, upstream)
            sink = Log()
            attempt = transport.start(post(upstream), sink, connect_s=WAIT_S)
            await upstream.until(lambda: len(upstream.requests) == 2)
            attempt.abort()
            await upstream.until(lambda: upstream.open_connections == 0)
            go.set()
            assert sink.told == []
            assert (transport.open_connections, transport.idle_connections) == (0, 0)

    run(body())
