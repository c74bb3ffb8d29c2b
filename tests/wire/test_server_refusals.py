"""What is not one plain HTTP/1.1 request never reaches a handler and is answered in our words."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import LATER_S, SOON_S, echo, listening, parsed
from tidegate.testing.asgi import WAIT_S

POST = b"POST /v1/x HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /v1/x HTTP/1.1\r\nHost: a\r\n"

NOT_HTTP: dict[str, bytes] = {
    "noise": b"hello\r\n\r\n",
    "tls_hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    "both_lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both_lengths_swapped": POST
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two_lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "two_equal_lengths": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "list_of_lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "signed_length": POST + b"Content-Length: +5\r\n\r\nhello",
    "negative_length": POST + b"Content-Length: -5\r\n\r\nhello",
    "hex_length": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "chunked_not_last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "unknown_coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coded_and_chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two_codings": POST + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked_twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked_with_parameter": POST + b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
    "no_coding": POST + b"Transfer-Encoding:\r\n\r\n",
    "bare_lf": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare_lf_in_field": b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    "bare_cr_in_field": GET + b"X: a\rb\r\n\r\n",
    "space_before_colon": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "folded_field": GET + b"X: b\r\n c\r\n\r\n",
    "nul_in_field": GET + b"X: b\0\r\n\r\n",
    "empty_name": GET + b": b\r\n\r\n",
    "absolute_target": b"GET http://evil.example/v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority_target": b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk_target": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment_in_target": b"GET /v1/x#y HTTP/1.1\r\nHost: a\r\n\r\n",
    "raw_utf8_in_target": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
    "unknown_method": b"FETCH /v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "old_version": b"GET /v1/x\r\n\r\n",
    "next_version": b"GET /v1/x HTTP/3.0\r\nHost: a\r\n\r\n",
    "h2_preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "chunked_upgrade": POST
    + b"Upgrade: h2c\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def test_what_is_not_http_is_400_in_the_envelope(run: Run) -> None:
    async def body() -> None:
        async with listening(_never) as scene:
            for name, data in NOT_HTTP.items():
                scene.refused.clear()
                _assert_refusal(await scene.raw(data), 400, "gateway.invalid_request", name)
                ((error, request_id),) = scene.refused
                assert (error.status, len(request_id)) == (400, 32), name

    run(body())


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
@pytest.mark.parametrize(
    "field", [b"X: %b" % (b"y" * 40_000), b"X: y\r\n" * 8_000, b"\r\n" * 40_000]
)
def test_a_head_above_the_cap_is_431_whether_or_not_it_ends(
    run: Run, field: bytes, end: bytes
) -> None:
    async def body() -> None:
        start = b"" if field.startswith(b"\r\n") else GET
        async with listening(_never) as scene:
            raw = await scene.raw(start + field + end)
            _assert_refusal(raw, 431, "gateway.header_too_large")

    run(body())


def test_a_head_just_below_the_cap_is_served_and_the_target_counts(run: Run) -> None:
    async def body() -> None:
        async with listening(echo, header_bytes=2_000) as scene:
            async with await scene.client() as client:
                fits = await client.ask("GET", "/v1/x", headers=[("X", "y" * 1_900)])
                assert fits.status == 200
            target = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"y" * 2_000)
            _assert_refusal(await scene.raw(target), 431, "gateway.header_too_large")

    run(body())


@pytest.mark.full
def test_half_a_head_is_answered_with_408_when_its_time_is_over(run: Run) -> None:
    async def body() -> None:
        async with listening(_never, header_timeout_s=LATER_S) as scene:
            _assert_refusal(await scene.raw(GET), 408, "gateway.invalid_request")

    run(body())


def test_a_connection_that_says_nothing_is_closed_without_a_word(run: Run) -> None:
    async def body() -> None:
        async with listening(_never, header_timeout_s=SOON_S) as scene:
            assert await scene.raw(b"") == b""
            assert scene.refused == []

    run(body())


@pytest.mark.full
def test_the_time_of_a_later_head_counts_from_its_first_byte(run: Run) -> None:
    async def body() -> None:
        async with (
            listening(echo, header_timeout_s=LATER_S) as scene,
            await scene.client() as client,
        ):
            assert (await client.ask("GET", "/1")).status == 200
            # An idle kept-alive connection is not yet a late head.
            assert (await client.ask("GET", "/2")).status == 200
            await client.send(b"GET /3 HTTP/1.1\r\n")
            assert (await client.answer()).status == 408

    run(body())


def test_an_idle_kept_alive_connection_is_closed_in_the_end(run: Run) -> None:
    async def body() -> None:
        async with listening(echo, keep_alive_s=SOON_S) as scene, await scene.client() as client:
            assert (await client.ask("GET", "/1")).status == 200
            assert await client.rest() == b""

    run(body())


def test_garbage_after_a_request_does_not_mix_into_its_answer(run: Run) -> None:
    async def body() -> None:
        async with listening(echo) as scene:
            raw = await scene.raw(GET + b"\r\n" + b"\0garbage\r\n\r\n")
            status, headers, rest = parsed(raw)
            assert (status, headers["connection"]) == (200, "close")
            assert json.loads(rest)["raw_path"] == "/v1/x"

    run(body())


def test_more_connections_than_there_is_room_for_are_told_so_and_closed(run: Run) -> None:
    async def body() -> None:
        async with listening(echo, connections=2) as scene:
            held = [await scene.client() for _ in range(2)]
            await scene.until(lambda: len(scene.listener.connections) == 2)
            status, headers, rest = parsed(await scene.raw(b""))
            assert (status, headers["connection"]) == (503, "close")
            assert json.loads(rest)["error"]["code"] == "gateway.overloaded"
            assert [error.code for error, _ in scene.refused] == ["gateway.overloaded"]
            await held[0].close()
            await scene.until(lambda: len(scene.listener.connections) == 1)
            assert (await held[1].ask("GET", "/held")).status == 200
            async with await scene.client() as late:
                assert (await late.ask("GET", "/late")).status == 200
            await held[1].close()

    run(body())


def test_a_client_that_goes_on_talking_after_a_refusal_is_cut(run: Run) -> None:
    async def body() -> None:
        async with (
            listening(_never, linger_bytes=100_000, linger_s=60.0) as scene,
            await scene.client() as client,
        ):
            await client.send(b"nonsense\r\n\r\n")
            assert (await client.answer()).status == 400
            with suppress(ConnectionError):
                async with asyncio.timeout(WAIT_S):
                    while scene.listener.connections:
                        await client.send(b"x" * 65_536)
            assert scene.listener.connections == []

    run(body())


def _assert_refusal(raw: bytes, status: int, code: str, name: str = "") -> None:
    seen, headers, body = parsed(raw)
    assert seen == status, (name, raw)
    assert headers["connection"] == "close"
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    (error,) = json.loads(body).values()
    assert sorted(error) == ["code", "message", "request_id", "type"]
    assert (error["code"], error["type"]) == (code, "invalid_request_error")
    assert error["request_id"] == headers["x-request-id"]


async def _never(_scope: Any, _receive: Any, _send: Any) -> None:
    raise AssertionError("a refused request reached a handler")
