"""What may a socket do to us?

The connection: uvicorn's httptools protocol with our own bounds and timers for heads, bodies and
writes, refusals in our own words, and a disconnect that cancels the handler at once. Lives here:
that. Does not live here: framing of one request (exchange), the socket that accepts (listener),
what is answered (front, admin), processes and signals (supervise).

What leans on uvicorn is here and in listener: the class is given through the public `http=`
parameter, and tests/wire/test_server_contract.py pins what it expects of version 0.54.
"""

import asyncio
import logging
import re
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.errors import (
    HeaderTooLarge,
    InternalError,
    InvalidRequest,
    Overloaded,
    RequestTimeout,
    TidegateError,
)
from tidegate.gateway.exchange import Exchange, refusal
from tidegate.gateway.timers import BodyTime, Deadline, WriteWatch

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

    from tidegate.gateway.listener import Listener

logger = logging.getLogger(__name__)

_BODY_HIGH_WATER_BYTES = 65_536
_TARGET = re.compile(rb"/[!-\"$-~]*")
_VERSIONS = frozenset({"1.0", "1.1"})
_NOT_HTTP = "The request is not valid HTTP/1.1."
_NOT_CHUNKED = "The only transfer coding understood here is chunked."


@dataclass(frozen=True, slots=True)
class WireCaps:
    """What one connection may take. Seconds and bytes.

    `linger_*`: how long and how much we still read of a client that was answered before its
    request was complete, so that the answer reaches it. `connections` is how many a listener
    holds; one more gets 503 and is closed.
    """

    header_bytes: int = 32_768
    header_timeout_s: float = 10.0
    body_idle_s: float = 30.0
    write_stall_s: float = 60.0
    keep_alive_s: float = 75.0
    linger_s: float = 2.0
    linger_bytes: int = 4_194_304
    connections: int = 3024


class Connection(HttpToolsProtocol):
    """One client connection. At most one request at a time: a pipelined one ends it."""

    def __init__(self, listener: "Listener", config: "Config", state: "ServerState") -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self.listener = listener
        self.exchange: Exchange | None = None
        self._caps = listener.caps
        self._in_head = True
        self._head_bytes = 0
        self._exact_bytes = 0
        self._frame_bytes = 0
        # Deaf: what still comes belongs to nothing and is thrown away.
        self._deaf = False
        self._discarded = 0
        # Bytes of a body that the parser leaves to us (see _begin); None as a rule.
        self._raw_left: int | None = None
        self._deadline = Deadline(self.loop, self._too_late)
        self._body_time = BodyTime(self._caps.body_idle_s, self.loop.time())

    # What asyncio calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The head has its time from now on."""
        super().connection_made(transport)
        self._watch = WriteWatch(transport, self._caps.write_stall_s)
        self._deadline.within(self._caps.header_timeout_s)
        if len(self.connections) > self._caps.connections:
            self._deaf = True
            self._answer(Overloaded("connections"))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left: its handler is cancelled in this very turn of the loop."""
        self.connections.discard(self)
        self._deadline.stop()
        self._watch.stop()
        self._deaf = True
        if self.exchange is not None:
            self.exchange.leave()
        self.flow.resume_writing()
        self.listener.changed()

    def data_received(self, data: bytes) -> None:
        """Bytes, counted before they are parsed."""
        exchange = self.exchange
        if self._deaf or (exchange is not None and exchange.complete and not exchange.whole):
            self._discarded += len(data)
            if self._discarded > self._caps.linger_bytes:
                self.transport.abort()
                return
        if self._deaf:
            return
        if self._in_head:
            if self._head_bytes == 0:
                self._deadline.within(self._caps.header_timeout_s)
            self._head_bytes += len(data)
        else:
            self._frame_bytes += len(data)
        if self._raw_left is None:
            self._parse(data)
        else:
            self._take_raw(data)
        self._after_data()

    # What the parser calls. It goes on to the end of the data it was given, deaf or not.

    def on_message_begin(self) -> None:
        """A head begins."""
        if self._deaf:
            return
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._exact_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Part of the request target."""
        if not self._deaf:
            self.url += url
            self._exact_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of the head; of a trailer nothing is kept: nobody decided on it."""
        if self._deaf or not self._in_head:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self._exact_bytes += len(name) + len(value) + 4
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete: refuse it, or start its handler."""
        if self._deaf:
            return
        if self.exchange is not None and not self.exchange.complete:
            # Answers must leave in order; rather than queue them, end after the first.
            self.exchange.keep_alive = False
            self._deaf = True
            return
        self._in_head = False
        self._head_bytes = self._frame_bytes = 0
        fault = self._fault_of_head()
        if fault is not None:
            self._refuse(fault)
            return
        self._begin()

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        if self._deaf or self.exchange is None:
            return
        self._frame_bytes = 0
        now_s = self.loop.time()
        self._body_time.arrived(len(body), now_s)
        self.exchange.feed(body)
        if self.exchange.held_bytes > _BODY_HIGH_WATER_BYTES:
            self.flow.pause_reading()
            self._body_time.pause(now_s)

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._deaf or self.exchange is None or self._raw_left is not None:
            return
        self._in_head = True
        self._head_bytes = 0
        self._deadline.never()
        self.exchange.end_body()
        if self.exchange.complete:
            self.transport.close()

    # What an exchange calls.

    @property
    def ends_soon(self) -> bool:
        """Whether this listener is draining."""
        return self.listener.draining

    def date(self) -> bytes:
        """The Date header line."""
        return self.listener.date_line(self.loop.time())

    def write(self, data: bytes) -> None:
        """Hand bytes to the socket, and watch that they leave."""
        if self.transport.is_closing():
            return
        self.transport.write(data)
        self._watch.wrote()

    async def drain(self) -> None:
        """Wait until the write buffer is below its high-water mark, or the client is gone."""
        if self.flow.write_paused:
            await self.flow.drain()

    def resume_reading(self) -> None:
        """The body bytes that arrived were taken."""
        if self.transport.is_closing():
            return
        if self.flow.read_paused and not self._in_head:
            # While we did not read, nothing could come: its time goes on now.
            self._body_time.resume(self.loop.time())
            self._deadline.at(self._body_time.due_s)
        self.flow.resume_reading()

    def answered(self, exchange: Exchange) -> None:
        """The answer is complete: wait for the next request, or end."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if not exchange.whole:
            self._linger()
        elif exchange.keep_alive and not self._deaf and not self.listener.draining:
            if self._head_bytes == 0:
                self._deadline.within(self._caps.keep_alive_s)
        else:
            self.transport.close()

    # Our own.

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # We speak nothing else: the request is served as it is, and then the connection ends.
            if self._raw_left is not None:
                self._take_raw(data[upgrade.args[0] :])
            else:
                self._deaf = True
        except httptools.HttpParserError:
            if not self._deaf:
                self._refuse(InvalidRequest("not HTTP", public=_NOT_HTTP))

    def _after_data(self) -> None:
        if self._deaf:
            return
        if self._in_head:
            if self._head_bytes > self._caps.header_bytes:
                self._refuse(HeaderTooLarge("unfinished"))
        elif self.exchange is not None and not self.exchange.complete:
            if self.flow.read_paused:
                self._deadline.never()
            else:
                self._deadline.at(self._body_time.due_s)
            # Chunk extensions and trailers carry nothing and are bounded like a head.
            if self._frame_bytes > self._caps.header_bytes + _BODY_HIGH_WATER_BYTES:
                self._refuse(InvalidRequest("framing", public=_NOT_HTTP))

    def _take_raw(self, data: bytes) -> None:
        if self._raw_left is None:
            return
        body = data[: self._raw_left]
        self._raw_left -= len(body)
        if body:
            self.on_body(body)
        if self._raw_left == 0:
            self._raw_left = None
            self.on_message_complete()
            self._deaf = True

    def _fault_of_head(self) -> TidegateError | None:
        if self._exact_bytes > self._caps.header_bytes:
            return HeaderTooLarge("complete")
        if self.parser.get_http_version() not in _VERSIONS:
            return InvalidRequest("version", public=_NOT_HTTP)
        # Origin form only: an absolute target would name a second host beside Host, and a
        # fragment or a control character has no meaning here that all parties agree on.
        if _TARGET.fullmatch(self.url) is None:
            return InvalidRequest("target", public=_NOT_HTTP)
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        # The parser takes off chunked only: under another coding, what is left is no body.
        if codings:
            if len(codings) > 1 or codings[0].lower() != b"chunked":
                return InvalidRequest("transfer coding", public=_NOT_CHUNKED)
            if self.parser.should_upgrade():
                return InvalidRequest("upgrade of a chunked request", public=_NOT_HTTP)
        return None

    def _begin(self) -> None:
        version = self.parser.get_http_version()
        method = self.parser.get_method().decode("ascii")
        path, _, query = self.url.partition(b"?")
        upgrade = self.parser.should_upgrade()
        if upgrade:
            # Java's client asks for h2c on a POST; the parser then forgets that there is a body.
            length = next((int(v) for n, v in self.headers if n == b"content-length"), 0)
            self._raw_left = length or None
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": method,
            "scheme": self.scheme,
            "path": unquote(path.decode("ascii")) if b"%" in path else path.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self.headers,
            "client": self.client,
            "server": self.server,
            "state": {},
        }
        self._body_time = BodyTime(self._caps.body_idle_s, self.loop.time())
        exchange = self.exchange = Exchange(
            self,
            method=method,
            version=version,
            keep_alive=version == "1.1" and not upgrade and self.parser.should_keep_alive(),
            awaits_continue=self.expect_100_continue and version == "1.1",
        )
        handler: Any = self.listener.app(scope, exchange.receive, exchange.send)
        task = exchange.task = self.loop.create_task(handler)
        self.tasks.add(task)
        task.add_done_callback(partial(self._handler_ended, exchange))

    def _handler_ended(self, exchange: Exchange, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self.listener.changed()
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error("handler_failed", extra={"error": type(bug).__name__})
        if exchange.complete or exchange.gone:
            return
        if not exchange.started:
            ended = Overloaded("cancelled") if task.cancelled() else InternalError("no answer")
            self._answer(ended)
        # A chunked body without its last chunk, a short body: the client sees that it is cut.
        self.transport.close()

    def _refuse(self, error: TidegateError) -> None:
        self._deaf = True
        exchange = self.exchange
        if exchange is not None and not exchange.complete:
            # Nothing may be mixed into an answer that is on its way; if none is, its handler
            # learns that the body is broken and answers under its own request id.
            exchange.keep_alive = False
            if not exchange.whole:
                exchange.break_off("malformed")
            return
        self._answer(error)
        self._linger()

    def _answer(self, error: TidegateError) -> None:
        request_id = secrets.token_hex(16)
        self.write(refusal(error, request_id, self.date(), self.listener.error_body))
        self.listener.refused(error, request_id)

    def _linger(self) -> None:
        # Closing with unread bytes would reset the connection and may take the answer with it.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline.within(self._caps.linger_s)

    def _too_late(self) -> None:
        exchange = self.exchange
        if self.transport.is_closing():
            return
        if self._deaf and exchange is not None and not exchange.complete:
            return  # what came after a request must not cut the answer to it, which ends us
        if self._deaf or (exchange is not None and exchange.complete and not self._in_head):
            self.transport.close()
        elif self._in_head:
            if self._head_bytes:
                self._refuse(RequestTimeout("head"))
            else:
                self.transport.close()
        elif exchange is not None:
            exchange.break_off("idle")
