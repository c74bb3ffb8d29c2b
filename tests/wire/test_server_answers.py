"""Requests and answers on one connection: framing, order, reuse, and what a handler may rely on."""

import asyncio
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import SOON_S, answer, echo, listening, parsed, read_body, seen
from tidegate.testing.sockets import request_bytes

BODY = b"x" * 2_000_000


def test_a_connection_serves_one_request_after_the_other(run: Run) -> None:
    async def body() -> None:
        async with listening(echo) as scene, await scene.client() as client:
            for size in (0, 1, 65_536, 300_000):
                answered = await client.ask("POST", f"/a%2Fb/{size}?q=%20", body=b"x" * size)
                assert answered.status == 200
                assert answered.header("connection") is None
                assert answered.header("date") is not None
                got = seen(answered)
                assert (got["path"], got["raw_path"]) == (f"/a/b/{size}", f"/a%2Fb/{size}")
                assert (got["method"], got["query"]) == ("POST", "q=%20")
                assert len(got["body"]) == size
            assert len(scene.listener.connections) == 1

    run(body())


def test_a_chunked_body_is_joined_and_its_trailers_are_nobodys_headers(run: Run) -> None:
    async def body() -> None:
        async with listening(echo) as scene, await scene.client() as client:
            head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            chunks = b"2\r\nab\r\n3;ext=1\r\ncde\r\n0\r\n"
            await client.send(head + chunks + b"Authorization: Bearer x\r\nHost: evil\r\n\r\n")
            got = seen(await client.answer())
            assert got["body"] == "abcde"
            assert [name for name, _ in got["headers"]] == ["host", "transfer-encoding"]
            assert seen(await client.ask("GET", "/next"))["path"] == "/next"

    run(body())


@pytest.mark.parametrize("cut", [1, 7, 20, 40])
def test_a_request_may_arrive_in_pieces_of_any_size(run: Run, cut: int) -> None:
    async def body() -> None:
        data = request_bytes("POST", "/x", headers=[("X-A", "b" * 30)], body=b'{"a":1}')
        async with listening(echo) as scene, await scene.client() as client:
            for at in range(0, len(data), cut):
                await client.send(data[at : at + cut])
            assert seen(await client.answer())["body"] == '{"a":1}'

    run(body())


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", "malformed"),
        (b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n", "malformed"),
        (b"Transfer-Encoding: chunked\r\n\r\n2\r\nab", "idle"),
        (b"Content-Length: 9\r\n\r\nhello", "idle"),
        (b"Content-Length: 9\r\n\r\n", "idle"),
    ],
)
def test_a_body_that_will_not_come_is_told_to_the_handler_which_still_answers(
    run: Run, frame: bytes, reason: str
) -> None:
    async def body() -> None:
        async with listening(echo, body_idle_s=SOON_S) as scene:
            raw = await scene.raw(b"POST /x HTTP/1.1\r\nHost: a\r\n" + frame)
            status, headers, answered = parsed(raw)
            assert (status, headers["connection"]) == (200, "close")
            assert f'"body": "{reason}"'.encode() in answered

    run(body())


@pytest.mark.parametrize("endless", [b"1;" + b"x" * 80_000, b"1\r\na\r\n0\r\nX: " + b"y" * 80_000])
def test_what_is_not_body_inside_a_body_is_bounded(run: Run, endless: bytes) -> None:
    async def body() -> None:
        async with listening(echo) as scene, await scene.client() as client:
            await client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            await scene.until(lambda: scene.listener.running == 1)
            await client.send(endless)
            for _ in range(2):
                await client.send(b"z" * 80_000)
            assert seen(await client.answer())["body"] == "malformed"

    run(body())


def test_a_body_is_asked_for_only_when_the_handler_wants_it(run: Run) -> None:
    async def body() -> None:
        expect = [("Expect", "100-continue"), ("Content-Length", "2")]
        async with listening(echo) as scene, await scene.client() as client:
            await client.send(request_bytes("POST", "/x", headers=expect))
            assert (await client.head()).status == 100
            await client.send(b"ab")
            assert seen(await client.answer())["body"] == "ab"
            assert seen(await client.ask("GET", "/next"))["path"] == "/next"

    run(body())


def test_an_answer_before_the_body_ends_the_connection(run: Run) -> None:
    async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, b"no", 401)

    async def body() -> None:
        for extra in ([("Expect", "100-continue")], []):
            async with listening(refuse) as scene:
                headers = [*extra, ("Content-Length", "9")]
                raw = await scene.raw(request_bytes("POST", "/x", headers=headers))
                status, seen_headers, rest = parsed(raw)
                # The next head would be read as the body that never came.
                assert (status, seen_headers["connection"], rest) == (401, "close", b"no")

    run(body())


def test_an_early_answer_reaches_a_client_that_is_still_sending(run: Run) -> None:
    async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, b"too large", 413)

    async def body() -> None:
        async with listening(refuse, linger_s=60.0) as scene, await scene.client() as client:
            await client.send(request_bytes("POST", "/x", headers=[("Content-Length", "2000000")]))
            for _ in range(20):
                await client.send(b"x" * 100_000)
            answered = await client.answer()
            assert (answered.status, answered.body) == (413, b"too large")
            assert await client.rest() == b""

    run(body())


def test_a_handler_may_end_the_connection_with_its_answer(run: Run) -> None:
    async def body() -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            close = [(b"connection", b"close"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 200, "headers": close})
            await send({"type": "http.response.body"})

        async with listening(app) as scene:
            _, headers, _ = parsed(await scene.raw(request_bytes("GET", "/")))
            assert headers["connection"] == "close"

    run(body())


@pytest.mark.full
def test_a_body_that_waits_for_its_handler_is_not_late(run: Run) -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await go.wait()
            await echo(scope, receive, send)

        async with (
            listening(app, body_idle_s=0.8, header_timeout_s=1.0) as scene,
            await scene.client() as client,
        ):
            sending = asyncio.create_task(client.send(request_bytes("POST", "/", body=BODY)))
            await scene.until(
                lambda: any(link.flow.read_paused for link in scene.listener.connections)
            )
            # A later connection has had its time, which is longer.
            assert await scene.raw(b"") == b""
            go.set()
            await sending
            assert len(seen(await client.answer())["body"]) == len(BODY)

    run(body())


def test_a_pipelined_request_ends_the_connection_after_the_first_answer(run: Run) -> None:
    async def body() -> None:
        one = request_bytes("GET", "/1")
        async with listening(echo) as scene:
            raw = await scene.raw(one + request_bytes("GET", "/2") * 500)
            assert raw.count(b"HTTP/1.1 200") == 1
            status, headers, rest = parsed(raw)
            assert (status, headers["connection"]) == (200, "close")
            assert b'"path": "/1"' in rest

    run(body())


@pytest.mark.parametrize("body_bytes", [b"", b'{"a":1}', b"x" * 200_000])
def test_an_upgrade_to_h2c_is_served_as_it_stands_with_its_body(
    run: Run, body_bytes: bytes
) -> None:
    async def body() -> None:
        headers = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")]
        async with listening(echo) as scene, await scene.client() as client:
            answered = await client.ask("POST", "/x", headers=headers, body=body_bytes)
            assert (answered.status, answered.header("connection")) == (200, "close")
            assert seen(answered)["body"] == body_bytes.decode()
            assert await client.rest() == b""

    run(body())


@pytest.mark.parametrize(
    ("request_head", "chunked", "ends"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True, False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", True, True),
        (b"GET / HTTP/1.0\r\n\r\n", False, True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False, True),
    ],
)
def test_a_stream_is_framed_as_its_client_understands(
    run: Run, request_head: bytes, *, chunked: bool, ends: bool
) -> None:
    async def stream(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one", b"", b"two"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async def body() -> None:
        async with listening(stream, keep_alive_s=SOON_S) as scene:
            _, headers, rest = parsed(await scene.raw(request_head))
            assert ("transfer-encoding" in headers) == chunked
            assert ("connection" in headers) == ends
            assert rest == (b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n" if chunked else b"onetwo")

    run(body())


def test_answers_without_a_body_have_none(run: Run) -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        status = int(scope["path"][1:])
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"" if status == 204 else b"text"})

    async def body() -> None:
        async with listening(app) as scene, await scene.client() as client:
            for method, path in (("HEAD", "/200"), ("POST", "/204"), ("GET", "/304")):
                answered = await client.ask(method, path)
                assert (answered.status, answered.body) == (int(path[1:]), b"")
                assert answered.header("transfer-encoding") is None
            assert (await client.ask("GET", "/200")).body == b"text"

    run(body())


def test_the_head_of_a_stream_leaves_before_its_first_event(run: Run) -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await go.wait()
            await send({"type": "http.response.body", "body": b"event", "more_body": True})
            await send({"type": "http.response.body"})

        async with listening(app) as scene, await scene.client() as client:
            await client.send(request_bytes("GET", "/"))
            assert (await client.head()).status == 200
            go.set()
            assert [await client.chunk(), await client.chunk()] == [b"event", b""]

    run(body())


async def _raise_first(_scope: Any, _receive: Any, _send: Any) -> None:
    raise LookupError("secret text")


async def _say_nothing(_scope: Any, _receive: Any, _send: Any) -> None:
    return


async def _two_heads(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def _split_header(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"x", b"a\r\nset-cookie: b")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _too_short(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"four"})


async def _too_long(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"four"})


async def _cut_stream(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    raise LookupError("secret text")


@pytest.mark.parametrize("app", [_raise_first, _say_nothing])
def test_a_handler_without_an_answer_is_a_500_in_the_envelope(run: Run, app: Any) -> None:
    async def body() -> None:
        async with listening(app) as scene:
            status, headers, rest = parsed(await scene.raw(request_bytes("GET", "/")))
            assert (status, headers["connection"]) == (500, "close")
            assert b"gateway.internal" in rest
            assert b"secret" not in rest

    run(body())


@pytest.mark.parametrize("app", [_two_heads, _split_header, _too_short, _too_long, _cut_stream])
def test_a_handler_that_breaks_its_answer_never_completes_it(run: Run, app: Any) -> None:
    async def body() -> None:
        async with listening(app) as scene:
            raw = await scene.raw(request_bytes("GET", "/"))
            assert b"set-cookie" not in raw
            assert not raw.endswith(b"0\r\n\r\n")
            assert b"four" not in raw

    run(body())


def test_the_rest_of_a_handler_may_outlast_its_answer(run: Run) -> None:
    async def body() -> None:
        go, done = asyncio.Event(), asyncio.Event()

        async def app(_scope: Any, receive: Any, send: Any) -> None:
            assert await read_body(receive) == b""
            await answer(send, b"1")
            await go.wait()
            assert (await receive())["type"] == "http.disconnect"
            done.set()

        async with listening(app) as scene:
            async with await scene.client() as client:
                assert (await client.ask("GET", "/")).body == b"1"
                assert (await client.ask("GET", "/")).body == b"1"
            await scene.until(lambda: not scene.listener.connections)
            assert scene.listener.running == 2
            go.set()
            await done.wait()

    run(body())
