"""Request bodies: media type, coding, caps, counting, strict JSON; nothing held when refused."""

import asyncio
from typing import Any

import pytest

from tidegate.errors import (
    BodyTooLarge,
    InvalidRequest,
    Overloaded,
    RequestTimeout,
    TidegateError,
    UnsupportedMediaType,
)
from tidegate.gateway.body import BodyGate, BodyReader, JSONBody

JSON = ("content-type", "application/json")


class Call:
    """A scope and a `receive` that hands out chunks, then whatever `last` is."""

    def __init__(
        self, *chunks: bytes, headers: tuple[tuple[str, str], ...] = (JSON,), last: Any = None
    ) -> None:
        self.scope = {"headers": [(name.encode(), value.encode()) for name, value in headers]}
        self._messages = iter(
            [
                *({"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks),
                last or {"type": "http.request", "body": b"", "more_body": False},
            ]
        )
        self.asked = 0

    async def receive(self) -> Any:
        self.asked += 1
        return next(self._messages)


def read(call: Call, *, gate: BodyGate | None = None, max_bytes: int = 100) -> JSONBody:
    """What the handler gets; checks that nothing stays counted."""
    gate = gate or BodyGate(1_000_000)

    async def body() -> JSONBody:
        before = gate.held_bytes
        try:
            async with BodyReader(gate, max_bytes=max_bytes).json(call.scope, call.receive) as got:
                assert gate.held_bytes == before + len(got.raw)
                return got
        finally:
            assert gate.held_bytes == before

    return asyncio.run(body())


def refused(call: Call, **options: Any) -> TidegateError:
    with pytest.raises(TidegateError) as raised:
        read(call, **options)
    return raised.value


@pytest.mark.parametrize(
    "media_type",
    [
        *("application/json", "Application/JSON", "application/json;", " application/json "),
        *("application/json; charset=utf-8", "application/json;charset=UTF-8"),
        *('application/json; charset="utf-8"', "application/json; Charset=Utf-8 ;"),
    ],
)
def test_json_in_utf_8_is_read(media_type: str) -> None:
    got = read(Call(b'{"a":', b"1}", headers=(("content-type", media_type),)))
    assert got == JSONBody(b'{"a":1}', {"a": 1})


@pytest.mark.parametrize(
    "media_type",
    [
        *("", "text/plain", "text/json", "application/jsonp", "application/json+x", "json"),
        *("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "*/*"),
        *("application/json; charset=utf-16", "application/json; charset=latin-1"),
        *("application/json; charset=", "application/json; boundary=x", "application/json, a/b"),
        *("application/json; charset=utf-8; charset=utf-16", "application/vnd.x+json"),
    ],
)
def test_any_other_media_type_is_415_and_its_body_is_not_read(media_type: str) -> None:
    call = Call(b"{}", headers=(("content-type", media_type),))
    assert isinstance(refused(call), UnsupportedMediaType)
    assert call.asked == 0


def test_no_media_type_is_415_and_two_are_400() -> None:
    none, two = Call(b"{}", headers=()), Call(b"{}", headers=(JSON, JSON))
    assert isinstance(refused(none), UnsupportedMediaType)
    assert isinstance(refused(two), InvalidRequest)
    assert (none.asked, two.asked) == (0, 0)


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "zstd", "deflate", "x"])
def test_a_coded_body_is_415_and_not_read(coding: str) -> None:
    call = Call(b"\x1f\x8b", headers=(JSON, ("content-encoding", coding)))
    assert isinstance(refused(call), UnsupportedMediaType)
    assert call.asked == 0


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
def test_identity_is_no_coding(coding: str) -> None:
    assert read(Call(b"{}", headers=(JSON, ("content-encoding", coding)))).value == {}


def test_an_announced_length_above_the_cap_is_413_before_anything_is_read() -> None:
    call = Call(b"{}", headers=(JSON, ("content-length", "101")))
    assert isinstance(refused(call), BodyTooLarge)
    assert call.asked == 0


@pytest.mark.parametrize("length", [(), (("content-length", "2"),)])
def test_a_lying_or_absent_length_is_413_when_the_bytes_have_come(
    length: tuple[tuple[str, str], ...],
) -> None:
    call = Call(*(b"[" * 10 for _ in range(1000)), headers=(JSON, *length))
    # Not JSON either, but nobody looks.
    assert isinstance(refused(call), BodyTooLarge)
    assert call.asked == 11


def test_a_body_of_exactly_the_cap_is_read() -> None:
    assert read(Call(b'"' + b"x" * 98 + b'"')).value == "x" * 98
    assert isinstance(refused(Call(b'"' + b"x" * 99 + b'"')), BodyTooLarge)


def test_all_bodies_together_are_bounded() -> None:
    gate = BodyGate(150)

    async def body() -> None:
        reader = BodyReader(gate, max_bytes=100)
        first, second, third = (Call(b'"' + b"x" * 78 + b'"') for _ in range(3))
        async with reader.json(first.scope, first.receive):
            assert gate.held_bytes == 80
            with pytest.raises(Overloaded):
                await reader.json(second.scope, second.receive).__aenter__()
            assert gate.held_bytes == 80
        async with reader.raw(third.scope, third.receive) as raw:
            assert len(raw) == 80
        assert gate.held_bytes == 0

    asyncio.run(body())


@pytest.mark.parametrize(
    ("reason", "error"),
    [({"reason": "idle"}, RequestTimeout), ({"reason": "malformed"}, InvalidRequest)],
)
def test_a_body_that_will_not_come_is_told_apart_from_a_broken_one(
    reason: dict[str, str], error: type[TidegateError]
) -> None:
    call = Call(b'{"a":', last={"type": "http.disconnect", **reason})
    assert isinstance(refused(call), error)


BAD: list[tuple[bytes, str]] = [
    (b"", "not one valid JSON"),
    (b"{", "not one valid JSON"),
    (b"{} {}", "not one valid JSON"),
    (b"\xef\xbb\xbf{}", "not one valid JSON"),
    ('{"a":1}'.encode("utf-16"), "not one valid JSON"),
    (b'{"a":"\xff"}', "not one valid JSON"),
    (b'{"a":NaN}', "not one valid JSON"),
    (b'{"a":1e999}', "not one valid JSON"),
    (b'{"a":"\\ud800"}', "not one valid JSON"),
    (b"[" * 70 + b"]" * 70, "not one valid JSON"),
    (b'{"a":1,"a":2}', "same key twice"),
    (b'{"x":{"a":1,"\\u0061":2}}', "same key twice"),
]


@pytest.mark.parametrize(("raw", "words"), BAD)
@pytest.mark.parametrize("padding", [0, 300_000])
def test_what_parsers_may_disagree_on_is_400_whatever_its_size(
    raw: bytes, words: str, padding: int
) -> None:
    # The large ones are judged in a thread.
    error = refused(Call(b" " * padding, raw), max_bytes=1_000_000)
    assert isinstance(error, InvalidRequest)
    assert words in error.message


def test_a_large_body_is_read_in_a_thread_with_the_same_result() -> None:
    raw = b'{"a":"' + b"x" * 300_000 + b'"}'
    assert read(Call(raw), max_bytes=1_000_000) == JSONBody(raw, {"a": "x" * 300_000})


def test_a_cancelled_reader_holds_nothing() -> None:
    gate = BodyGate(100)

    async def body() -> None:
        waiting = asyncio.Event()

        class Slow(Call):
            async def receive(self) -> Any:
                if self.asked:
                    waiting.set()
                    await asyncio.Event().wait()
                return await super().receive()

        call = Slow(b'{"a":')
        reading = asyncio.create_task(
            BodyReader(gate, max_bytes=100).json(call.scope, call.receive).__aenter__()
        )
        await waiting.wait()
        assert gate.held_bytes == 5
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert gate.held_bytes == 0

    asyncio.run(body())
