"""How does an outcome become HTTP?

Lives here: status lines, standard headers and the rule that a response has exactly one head.
Does not live here: what is decided (the path functions), which words an error uses (errors).
"""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Any, Protocol

from tidegate import strictjson
from tidegate.errors import MethodNotAllowed, TidegateError, Unauthenticated, envelope

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]
Headers = Sequence[Header]

JSON: Header = (b"content-type", b"application/json")
_STREAM: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # Proxies such as nginx would otherwise collect the stream before passing it on.
    (b"x-accel-buffering", b"no"),
)


_LARGE_BYTES = 65_536

Hold = Callable[[int], AbstractContextManager[bool]]
"""Counts so many bytes as long as its block lasts, which gets True. May raise TidegateError."""

MOST_WAITED_S = 120.0
"""The official SDKs follow a `retry-after` up to this; a longer one they ignore or give up at."""


class ErrorBody(Protocol):
    """Renders an error in one dialect: the OpenAI envelope, or a JSON-RPC error object."""

    def __call__(self, error: TidegateError, request_id: str, /) -> object:
        """The JSON value of the body."""


class ResponseStarted(RuntimeError):
    """A second head was asked for: a bug, since the first one has already left."""


class Responder:
    """Answers one request, once: `json`, `error`, `empty`, or `start_stream`, `chunk`, `end`.

    Every answer carries `x-request-id` and `extra`, the headers that hold whatever the outcome
    (CORS, `connection: close`). `status` is 0 until a head was sent. `error_body` is the dialect.
    `known` says that the caller was identified, so that its account tells how the request ended.
    `complete` says that the last byte has been handed over. `hold` counts what a client has yet to
    read of a large last part, and may refuse it; without it nobody waits for that.
    """

    __slots__ = (
        "_request_header",
        "_send",
        "complete",
        "error_body",
        "extra",
        "hold",
        "known",
        "request_id",
        "status",
    )

    def __init__(self, send: Send, request_id: str, *, extra: Headers = ()) -> None:
        self._send = send
        self._request_header: Header = (b"x-request-id", request_id.encode("ascii"))
        self.request_id = request_id
        self.extra: list[Header] = list(extra)
        self.error_body: ErrorBody = envelope
        self.known = False
        self.complete = False
        self.hold: Hold | None = None
        self.status = 0

    @property
    def started(self) -> bool:
        """Whether a head has left; from then on nothing can be taken back."""
        return self.status != 0

    async def json(self, status: int, body: bytes | object, headers: Headers = ()) -> None:
        """One whole JSON answer; `body` is either the bytes themselves or a value to encode."""
        data = body if isinstance(body, bytes) else strictjson.dumps(body)
        await self.whole(status, data, (JSON, *headers))

    async def empty(self, status: int, headers: Headers = ()) -> None:
        """An answer without a body."""
        await self.whole(status, b"", headers)

    async def whole(self, status: int, data: bytes, headers: Headers) -> None:
        """Any answer whose length is known. Raises what `hold` does, before anything has left."""
        length = () if status == 204 else ((b"content-length", b"%d" % len(data)),)
        with self._held(len(data)) as waits:
            await self._head(status, (*headers, *length))
            await (self._end_read(data) if waits else self.end(data))

    async def error(self, error: TidegateError, headers: Headers = ()) -> None:
        """`error` in this path's dialect, with the headers that tell a client what to do."""
        body = self.error_body(error, self.request_id)
        await self.json(error.status, body, (*error_headers(error), *headers))

    async def start_stream(self, headers: Headers = ()) -> None:
        """The head of an event stream."""
        await self._head(200, (*_STREAM, *headers))

    async def chunk(self, data: bytes) -> None:
        """Part of the body; returns when the connection is below its write high-water mark."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def last(self, data: bytes) -> None:
        """The last part of a stream. Raises what `hold` does; then the stream goes on."""
        with self._held(len(data)) as waits:
            await (self._end_read(data) if waits else self.end(data))

    def _held(self, size: int) -> AbstractContextManager[bool]:
        if self.hold is None or size <= _LARGE_BYTES:
            return nullcontext(False)
        return self.hold(size)

    async def _end_read(self, data: bytes) -> None:
        """The end, once nearly all of `data` was read."""
        await self.chunk(data)
        await self.end()

    async def end(self, data: bytes = b"") -> None:
        """The last part of the body."""
        await self._send({"type": "http.response.body", "body": data})
        self.complete = True

    async def _head(self, status: int, headers: Headers) -> None:
        if self.started:
            raise ResponseStarted
        self.status = status
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [self._request_header, *self.extra, *headers],
            }
        )


def error_headers(error: TidegateError) -> list[Header]:
    """What SDKs obey: `x-should-retry`, `retry-after` (whole seconds, rounded up) and its ms form.

    A known time says that a retry helps, unless it is longer than SDKs wait: then the retry they
    would make earlier is useless. Source: RFC 9110 section 10.2.3 and 11.6.1; `retry-after-ms` and
    `x-should-retry` are read by the official OpenAI and Anthropic clients.
    """
    headers: list[Header] = []
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", error.challenge.encode("ascii")))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(sorted(error.allowed)).encode("ascii")))
    # To the microsecond: what clock readings leave behind it is noise, and must not become a
    # millisecond, or a second.
    wait_s = None if error.retry_after_s is None else round(error.retry_after_s, 6)
    should_retry = error.should_retry
    if should_retry is None and wait_s is not None:
        should_retry = wait_s <= MOST_WAITED_S
    if should_retry is not None:
        headers.append((b"x-should-retry", b"true" if should_retry else b"false"))
    if wait_s is not None:
        wait_ms = max(1, ceil(round(wait_s * 1000, 3)))
        headers.append((b"retry-after", b"%d" % ceil(wait_ms / 1000)))
        headers.append((b"retry-after-ms", b"%d" % wait_ms))
    return headers


def authorization(scope: Scope) -> list[bytes]:
    """Every value of the Authorization header, as sent."""
    return [value for name, value in scope["headers"] if name == b"authorization"]
