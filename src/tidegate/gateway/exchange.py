"""How do one request's body and one answer cross the wire, in ASGI's words?

Lives here: `receive` and `send` of one request, framing, one write for head and first body
bytes. Does not live here: parsing, timers and the connection (server), what is answered
(respond).
"""

import asyncio
import http
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

from tidegate import strictjson
from tidegate.errors import TidegateError, envelope
from tidegate.gateway.respond import ErrorBody, error_headers

Broken = Literal["idle", "malformed"]
"""Why the rest of a body will not come: it stopped arriving, or its frame is broken."""

_FORBIDDEN = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS = frozenset({204, 304})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Link(Protocol):
    """What an exchange needs of its connection."""

    @property
    def ends_soon(self) -> bool:
        """Whether this listener is draining, so that no further request should come."""

    def date(self) -> bytes:
        """The Date header line."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the socket."""

    async def drain(self) -> None:
        """Wait until the write buffer is below its high-water mark, or the client is gone."""

    def resume_reading(self) -> None:
        """The body bytes that arrived were taken."""

    def answered(self, exchange: "Exchange") -> None:
        """The answer is complete."""


class Exchange:
    """One request and its answer. The connection feeds the body and says when the client left.

    `whole`: the request has arrived completely. `complete`: the answer has been written. `gone`:
    the client has left; from then on `send` does nothing.
    """

    __slots__ = (
        "_awaits_continue",
        "_chunked",
        "_chunks",
        "_delivered",
        "_event",
        "_flush",
        "_head",
        "_left",
        "_link",
        "_loop",
        "_silent",
        "_version",
        "broken",
        "complete",
        "gone",
        "held_bytes",
        "keep_alive",
        "started",
        "task",
        "whole",
    )

    def __init__(
        self, link: Link, *, method: str, version: str, keep_alive: bool, awaits_continue: bool
    ) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._version = version
        self._silent = method == "HEAD"
        self._awaits_continue = awaits_continue
        self._chunks: list[bytes] = []
        self._delivered = False
        self._event = asyncio.Event()
        self._head = b""
        self._flush: asyncio.Handle | None = None
        self._left: int | None = None
        self._chunked = False
        self.held_bytes = 0
        self.keep_alive = keep_alive
        self.broken: Broken | None = None
        self.whole = self.started = self.complete = self.gone = False
        self.task: asyncio.Task[None] | None = None

    async def receive(self) -> dict[str, Any]:
        """ASGI. A disconnect has a `reason` when the client is there but its body will not come."""
        if self._awaits_continue and not self.gone:
            self._awaits_continue = False
            self._link.write(_CONTINUE)
        while True:
            if self.gone or self.complete:
                return {"type": "http.disconnect"}
            if self._chunks or (self.whole and not self._delivered):
                return self._take()
            if self.broken is not None:
                return {"type": "http.disconnect", "reason": self.broken}
            await self._event.wait()
            self._event.clear()

    async def send(self, message: Mapping[str, Any]) -> None:
        """ASGI. Returns when the connection is below its write high-water mark."""
        if self.gone:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
            return
        if not self.started or self.complete:
            raise RuntimeError("a body outside an answer")
        more: bool = message.get("more_body", False)
        self._body(message.get("body", b""), more=more)
        if more:
            await self._link.drain()
            return
        self.complete = True
        # What nobody read counts no more, or it would hold up a client that is still sending.
        self._chunks.clear()
        self.held_bytes = 0
        self._event.set()
        self._link.answered(self)

    def feed(self, chunk: bytes) -> None:
        """From the connection: more of the body."""
        if self.complete or self.broken is not None:
            return
        self._chunks.append(chunk)
        self.held_bytes += len(chunk)
        self._event.set()

    def end_body(self) -> None:
        """From the connection: the body is complete."""
        self.whole = True
        self._event.set()

    def break_off(self, why: Broken) -> None:
        """From the connection: the rest of the body will not come; the answer may still leave."""
        self.broken = why
        self.keep_alive = False
        self._event.set()

    def leave(self) -> None:
        """From the connection: the client has left. Its handler is cancelled at once."""
        if self.complete:
            return
        self.gone = True
        self._event.set()
        if self.task is not None:
            self.task.cancel()

    def _take(self) -> dict[str, Any]:
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self.held_bytes = 0
        self._delivered = self.whole
        # Also after the last chunk: while nobody reads, nobody sees the client leave.
        self._link.resume_reading()
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self.started:
            raise RuntimeError("a second head")
        self.started = True
        lines = [_status_line(status), self._link.date()]
        for name, value in headers:
            line = b"%b: %b" % (name, value)
            if _FORBIDDEN.search(line):
                raise RuntimeError("a header value with a control character")
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection":
                self.keep_alive = self.keep_alive and value.lower() != b"close"
                continue
            lines += (line, b"\r\n")
        self._frame(status, lines)
        self._head = b"".join(lines)
        # The body that follows in the same turn goes out with it, in one write.
        self._flush = self._loop.call_soon(self._flush_head)

    def _frame(self, status: int, lines: list[bytes]) -> None:
        self._silent = self._silent or status in _BODILESS
        if self._left is None and not self._silent:
            self._chunked = self._version == "1.1"
            if self._chunked:
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keep_alive = False
        # A body that still comes, or that was announced and may never come (Expect), leaves the
        # next message without a known beginning.
        if not self.whole or self._awaits_continue or self._link.ends_soon:
            self.keep_alive = False
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")

    def _flush_head(self) -> None:
        self._flush = None
        if self._head and not self.gone:
            head, self._head = self._head, b""
            self._link.write(head)

    def _body(self, body: bytes, *, more: bool) -> None:
        head, self._head = self._head, b""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._silent:
            parts = [head]
        elif self._chunked:
            parts = [head, b"%x\r\n" % len(body), body, b"\r\n"] if body else [head]
            if not more:
                parts.append(b"0\r\n\r\n")
        else:
            parts = [head, body]
            if self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (self._left and not more):
                    raise RuntimeError("a body of another length than announced")
        if data := b"".join(parts):
            self._link.write(data)


def refusal(
    error: TidegateError, request_id: str, date: bytes, error_body: ErrorBody = envelope
) -> bytes:
    """A whole answer for a request that has no handler; the connection ends with it."""
    body = strictjson.dumps(error_body(error, request_id))
    fields = b"".join(b"%b: %b\r\n" % pair for pair in error_headers(error))
    return b"".join(
        (
            _status_line(error.status),
            date,
            b"x-request-id: %b\r\n" % request_id.encode("ascii"),
            fields,
            b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        )
    )


@lru_cache(128)
def _status_line(status: int) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode("ascii")
