"""How an outcome becomes HTTP, and that it does so once."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tidegate import errors
from tidegate.errors import TidegateError
from tidegate.gateway.respond import Responder, ResponseStarted, authorization, error_headers

ID = "0" * 32


def all_errors() -> list[TidegateError]:
    """One of each class in the tree."""
    special: dict[str, dict[str, Any]] = {
        "RequestExceedsLimit": {"limit": "l", "scope": "tenant", "cap": 1, "requested": 2},
        "RateLimited": {
            "limit": "l",
            "scope": "tenant",
            "cap": 1,
            "used": 1,
            "requested": 1,
            "retry_after_s": 2.5,
        },
        "ContentBlocked": {"kind": "email"},
    }
    found = [getattr(errors, name) for name in errors.__all__]
    classes = [each for each in found if isinstance(each, type) and each.__name__[0].isupper()]
    assert len(classes) > 20
    return [each(**special.get(each.__name__, {})) for each in classes]


class Sent:
    """What a responder handed over."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.responder = Responder(self, ID)

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)

    @property
    def headers(self) -> dict[str, str]:
        pairs = [(n.decode(), v.decode()) for n, v in self.messages[0]["headers"]]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    @property
    def body(self) -> bytes:
        return b"".join(m["body"] for m in self.messages[1:])


ERRORS = all_errors()


@pytest.mark.parametrize("error", ERRORS, ids=[type(e).__name__ for e in ERRORS])
def test_every_error_has_the_envelope_and_honest_headers(error: TidegateError) -> None:
    sent = Sent()
    asyncio.run(sent.responder.error(error))
    body = json.loads(sent.body)
    assert set(body) == {"error"}
    assert set(body["error"]) == {"type", "code", "message", "request_id"}
    assert all(isinstance(value, str) and value for value in body["error"].values())
    assert body["error"]["request_id"] == ID == sent.headers["x-request-id"]
    assert sent.messages[0]["status"] == error.status == sent.responder.status
    assert sent.headers["content-type"] == "application/json"
    assert int(sent.headers["content-length"]) == len(sent.body)
    assert ("www-authenticate" in sent.headers) == (error.status == 401)
    assert ("allow" in sent.headers) == (error.status == 405)
    # Whoever may come back is told when, and nobody else is.
    waits = error.retry_after_s is not None
    assert ("retry-after" in sent.headers) == ("retry-after-ms" in sent.headers) == waits
    if error.should_retry is False:
        assert sent.headers["x-should-retry"] == "false"
        assert not waits or error.status >= 500
    else:
        assert sent.headers.get("x-should-retry") == ("true" if waits else None)
    assert sent.responder.complete


def test_the_detail_of_an_error_stays_with_us() -> None:
    for error in ERRORS:
        error.detail = "detail for the log"
        sent = Sent()
        asyncio.run(sent.responder.error(error))
        assert b"detail for the log" not in sent.body
        assert "detail for the log" not in repr(sent.headers)


def test_a_named_field_is_the_only_fifth_member() -> None:
    sent = Sent()
    error = errors.InvalidRequest(public="'model' is odd.", param="model")
    asyncio.run(sent.responder.error(error))
    body = json.loads(sent.body)["error"]
    assert body["param"] == "model"
    assert len(body) == 5


@pytest.mark.parametrize(
    ("wait_s", "whole", "ms"),
    [
        (0.0, b"1", b"1"),
        (0.0001, b"1", b"1"),
        (0.25, b"1", b"250"),
        (1.0, b"1", b"1000"),
        (1.0001, b"2", b"1001"),
        (59.4, b"60", b"59400"),
        (360.0000000001, b"360", b"360000"),
        (123_456.78 + 300.0 - 123_456.78, b"300", b"300000"),
        (299.999999999, b"300", b"300000"),
        (4.015, b"5", b"4015"),
    ],
)
def test_a_wait_is_rounded_up_and_never_nothing(wait_s: float, whole: bytes, ms: bytes) -> None:
    headers = dict(error_headers(errors.StoreUnavailable(retry_after_s=wait_s)))
    assert headers[b"retry-after"] == whole
    assert headers[b"retry-after-ms"] == ms


@pytest.mark.parametrize(("wait_s", "said"), [(120.0, b"true"), (120.001, b"false")])
def test_a_wait_that_no_sdk_waits_is_no_reason_to_retry_earlier(wait_s: float, said: bytes) -> None:
    full = errors.RateLimited(
        limit="l", scope="tenant", cap=1, used=1, requested=1, retry_after_s=wait_s
    )
    headers = dict(error_headers(full))
    assert headers[b"x-should-retry"] == said
    assert float(headers[b"retry-after-ms"]) / 1000 == wait_s


def test_methods_that_are_allowed_are_named() -> None:
    error = errors.MethodNotAllowed(allowed=frozenset({"POST", "GET", "DELETE"}))
    assert dict(error_headers(error))[b"allow"] == b"DELETE, GET, POST"
    assert dict(error_headers(errors.MethodNotAllowed()))[b"allow"] == b"POST"


HEADS: dict[str, Callable[[Responder], Awaitable[None]]] = {
    "json": lambda r: r.json(200, {"a": 1}),
    "bytes": lambda r: r.json(200, b"{}"),
    "empty": lambda r: r.empty(204),
    "error": lambda r: r.error(errors.NotFound()),
    "stream": lambda r: r.start_stream(),
}


@pytest.mark.parametrize("second", HEADS)
@pytest.mark.parametrize("first", HEADS)
def test_a_second_head_is_refused_and_never_sent(first: str, second: str) -> None:
    async def body() -> None:
        sent = Sent()
        assert not sent.responder.started
        await HEADS[first](sent.responder)
        assert sent.responder.started
        status, count = sent.responder.status, len(sent.messages)
        with pytest.raises(ResponseStarted):
            await HEADS[second](sent.responder)
        assert len(sent.messages) == count
        assert sent.responder.status == status

    asyncio.run(body())


def test_what_holds_for_every_answer_is_on_every_answer() -> None:
    async def body() -> None:
        for make in HEADS.values():
            sent = Sent()
            sent.responder.extra.append((b"vary", b"Origin"))
            await make(sent.responder)
            assert sent.headers["vary"] == "Origin"
            assert sent.headers["x-request-id"] == ID

    asyncio.run(body())


def test_a_stream_is_a_head_its_chunks_and_an_end() -> None:
    async def body() -> None:
        sent = Sent()
        await sent.responder.start_stream([(b"x-tidegate-provider", b"primary")])
        await sent.responder.chunk(b"data: 1\n\n")
        assert not sent.responder.complete
        await sent.responder.end()
        assert sent.responder.complete
        assert sent.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert sent.headers["cache-control"] == "no-cache"
        assert sent.headers["x-accel-buffering"] == "no"
        assert "content-length" not in sent.headers
        assert [m.get("more_body", False) for m in sent.messages[1:]] == [True, False]

    asyncio.run(body())


def test_an_empty_answer_of_204_has_no_length() -> None:
    async def body() -> None:
        for status, length in ((204, None), (202, "0")):
            sent = Sent()
            await sent.responder.empty(status)
            assert sent.headers.get("content-length") == length

    asyncio.run(body())


def test_every_authorization_header_counts() -> None:
    headers = [(b"authorization", b"a"), (b"x", b"y"), (b"authorization", b"b")]
    assert authorization({"headers": headers}) == [b"a", b"b"]
    assert authorization({"headers": []}) == []
