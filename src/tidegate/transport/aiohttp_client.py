"""How does aiohttp make one attempt?

Everything aiohttp knows ends here: its session, its pool, its exceptions. No redirect is followed
(a 3xx is an answer), no cookie is kept, no environment is read, certificates are verified, bodies
arrive undecoded and are decoded here piece by piece. A task runs only until there is an answer on
a new connection: a kept one is asked at once, and what arrives is handed on as the socket reads
it. Does not live here: deadlines after the connection stands (inbox.py), what an answer means
(routing.outcome), which connections there are (pool).

A kept-alive socket may be dead before we notice. Such a request is sent again, once, on a
fresh connection, if it is `replayable`, the socket had served before and was lost at once, without
a byte of an answer; the other sockets kept for that upstream are then not trusted either.
Any other loss is reported: who worked on a request before it broke off has had it.
"""

import asyncio
import io
import logging
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from multidict import CIMultiDict
from yarl import URL

from tidegate.transport.again import Answer, Bounds, answer_of, ask, caused_by
from tidegate.transport.decoding import DecodeError, Decoder, decoder_for
from tidegate.transport.fields import request_fields, response_fields
from tidegate.transport.pool import Pool, Socket
from tidegate.transport.upstream import Attempt, Failure, ResponseSink, UpstreamRequest

logger = logging.getLogger(__name__)

_KEEPALIVE_S = 15.0
_AT_ONCE_S = 0.5  # a long round trip: the news of an earlier close may be under way that long
_BOUNDS = Bounds(read_bytes=65_536, line_bytes=8_190, field_bytes=8_190, fields=100)
_HEAD_BYTES = 65_536
_ONE_WRITE_BYTES = 262_144
_LOST: Final = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
_NOTHING: Final[Iterator[bytes]] = iter(())


@dataclass(frozen=True, slots=True)
class _Ways:
    """What all attempts of one transport share; `running` are those that are not over."""

    session: aiohttp.ClientSession
    pool: Pool
    at_once_s: float
    running: "set[_Attempt]" = field(default_factory=set)


class AiohttpTransport:
    """Attempts over one aiohttp session. `open` it in the loop that serves, `close` it there."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        keepalive_s: float = _KEEPALIVE_S,
        at_once_s: float = _AT_ONCE_S,
    ) -> None:
        self._tls, self._at_once_s = tls, at_once_s
        self._keepalive_s = keepalive_s
        self._ways: _Ways | None = None
        self._sockets: set[Socket] = set()

    async def open(self) -> None:
        """Create the session and its empty pool."""
        pool = Pool(tls=self._tls, keepalive_s=self._keepalive_s)
        session = aiohttp.ClientSession(
            connector=pool,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            read_bufsize=_BOUNDS.read_bytes,
            max_line_size=_BOUNDS.line_bytes,
            max_field_size=_BOUNDS.field_bytes,
            max_headers=_BOUNDS.fields,
        )
        # One rule for sending again, ours: aiohttp's own also covers sockets that were fresh.
        session._retry_connection = False  # noqa: SLF001
        self._ways, self._sockets = _Ways(session, pool, self._at_once_s), pool.sockets

    async def close(self) -> None:
        """Abort what runs, close what is idle, return when the sockets are gone."""
        ways, self._ways = self._ways, None
        if ways is None:
            return
        for attempt in tuple(ways.running):
            attempt.abort()
        going = [socket.closed for socket in self._sockets if not socket.is_connected()]
        gone = [closed for closed in going if closed is not None]
        await asyncio.gather(*ways.pool.wanted_by, *gone, return_exceptions=True)
        await ways.session.close()

    @property
    def open_connections(self) -> int:
        """Sockets connected now, idle ones included."""
        return len(self._sockets)

    @property
    def idle_connections(self) -> int:
        """Sockets kept for reuse."""
        return sum(socket.idle for socket in self._sockets)

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Attempt:
        """Begin; the first callback comes from a later turn of the loop."""
        if self._ways is None:
            raise RuntimeError("open the transport first")
        attempt = _Attempt(self._ways, request, sink, connect_s)
        attempt.start()
        return attempt


class _Attempt:
    """One exchange. What it is told by its socket it tells the sink, as far as that wants it."""

    __slots__ = (
        "_answer",
        "_busy",
        "_connect_s",
        "_decoder",
        "_flowing",
        "_has_told_head",
        "_is_asking",
        "_loop",
        "_over",
        "_pieces",
        "_request",
        "_sink",
        "_socket",
        "_taken_s",
        "_task",
        "_ways",
        "wants_fresh",
    )

    def __init__(
        self, ways: _Ways, request: UpstreamRequest, sink: ResponseSink, connect_s: float
    ) -> None:
        self._ways, self._request, self._sink = ways, request, sink
        self._connect_s = connect_s
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self.wants_fresh = False
        self._socket: Socket | None = None
        self._taken_s = 0.0
        # Whether a socket that was kept was asked by us: its answer is ours to take.
        self._is_asking = False
        self._answer: Answer | None = None
        self._has_told_head = self._busy = self._over = False
        self._flowing = True
        self._decoder: Decoder | None = None
        self._pieces = _NOTHING

    @property
    def url(self) -> str:
        """What is asked."""
        return self._request.url

    def start(self) -> None:
        """Ask a connection that was kept, or begin to make one."""
        self._ways.running.add(self)
        if not self._ask_again():
            self._connect()

    def pause(self) -> None:
        """See Attempt."""
        self._flowing = False

    def resume(self) -> None:
        """See Attempt."""
        if not self._flowing:
            self._flowing = True
            self._loop.call_soon(self.arrived)

    def abort(self) -> None:
        """See Attempt."""
        if not self._over:
            self._end()
            if self._task is not None:
                self._task.cancel()

    def took(self, socket: Socket) -> None:
        """See Owner."""
        self._socket, self._taken_s = socket, self._loop.time()

    def arrived(self) -> None:
        """See Owner. Also when what waited may go on, or the answer was found by the task."""
        if self._over or self._busy or (self._answer is None and not self._is_asking):
            return
        # Reading makes room, and what then arrives at once must not overtake what was read.
        self._busy = True
        try:
            self._advance()
        except DecodeError:
            self._fail(Failure.MALFORMED)
        except (aiohttp.ClientError, OSError) as error:
            self._fail(_failure(error))
        except Exception as error:  # noqa: BLE001 - the sink must hear of an end in any case
            self._crash(error)
        finally:
            self._busy = False

    def _ask_again(self) -> bool:
        """The short way, on a connection that was kept; False if there is none."""
        pool, request = self._ways.pool, self._request
        key = pool.addresses.key_of(request)
        if key is None or len(request.body) > _ONE_WRITE_BYTES:
            return False
        head = pool.addresses.head(request)
        if head is None or (socket := pool.kept(key, self)) is None:
            return False
        self._is_asking = True
        ask(socket, head + request.body, _BOUNDS)
        return True

    def _connect(self) -> None:
        self._task = self._loop.create_task(self._run())
        self._ways.pool.wanted_by[self._task] = self
        self._task.add_done_callback(self._ran)

    def _ran(self, task: "asyncio.Task[None]") -> None:
        self._ways.pool.wanted_by.pop(task, None)
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash(error)

    async def _run(self) -> None:
        try:
            self._answer = await self._found()
        except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
            self._fail(_failure(error))
            return
        self.arrived()

    async def _found(self) -> Answer:
        if not self.wants_fresh:
            try:
                return await self._send()
            except _LOST:
                if not self._was_stale():
                    raise
            self.wants_fresh = True
        return await self._send()

    async def _send(self) -> Answer:
        request = self._request
        self._socket = None
        found = await self._ways.session.request(
            request.method,
            URL(request.url, encoded=True),
            headers=CIMultiDict(request_fields(request.headers)),
            data=_payload(request.body),
            proxy=request.proxy,
            allow_redirects=False,
            # Only the connection is timed here. The threshold keeps aiohttp from rounding up.
            timeout=aiohttp.ClientTimeout(
                total=None, connect=self._connect_s, ceil_threshold=float("inf")
            ),
        )
        return Answer(found.status, found.headers, found.raw_headers, found.content, found.close)

    def _was_stale(self) -> bool:
        """Whether the loss of the socket, just now, is a reason to send the request again."""
        lasted_s = self._loop.time() - self._taken_s
        was_dead = self._socket is not None and not self._socket.is_fresh
        return self._request.replayable and was_dead and lasted_s <= self._ways.at_once_s

    def _advance(self) -> None:
        if self._answer is None and self._socket is not None:
            self._answer = answer_of(self._socket)
            if self._answer is None:
                self._still_nothing(self._socket.exception())
            else:
                self._answer.content.on_eof(self._give_back)
        if self._answer is not None and not self._has_told_head:
            self._tell_head(self._answer)
        if self._answer is not None and not self._over:
            self._tell_body(self._answer.content)

    def _still_nothing(self, error: BaseException | None) -> None:
        if isinstance(error, _LOST) and self._was_stale():
            self._is_asking, self.wants_fresh = False, True
            self._connect()
        elif error is not None:
            self._fail(_failure(error))

    def _tell_head(self, answer: Answer) -> None:
        if answer.status < 200:
            raise DecodeError("an upgrade nobody asked for")
        if sum(map(len, chain.from_iterable(answer.raw_headers))) > _HEAD_BYTES:
            self._fail(Failure.TOO_LARGE)
            return
        if "Content-Encoding" in answer.headers:
            self._decoder = decoder_for(",".join(answer.headers.getall("Content-Encoding")))
        self._has_told_head = True
        self._sink.on_head(answer.status, response_fields(answer.raw_headers))

    def _tell_body(self, content: aiohttp.StreamReader) -> None:
        """What is there, until it is to wait; then, if that was all, the end."""
        while self._flowing:
            piece = next(self._pieces, None)
            if piece is None:
                chunk = content.read_nowait()
                if not chunk:
                    break
                if self._decoder is not None:
                    self._pieces = self._decoder.feed(chunk)
                    continue
                piece = chunk
            self._sink.on_body(piece)
            if self._over:
                return
        if not self._flowing:
            return
        if content.is_eof():
            if self._decoder is not None:
                self._decoder.finish()
            self._end()
            self._sink.on_end()
        elif self._socket is not None and self._socket.exception() is not None:
            # aiohttp forgets to tell a reader whose later chunk was malformed.
            self._fail(Failure.MALFORMED)

    def _crash(self, error: BaseException) -> None:
        """A sink that raises, a request or an answer that aiohttp chokes on, not foreseen."""
        logger.error("attempt_crashed", extra={"error": type(error).__name__})
        self._fail(Failure.MALFORMED)

    def _fail(self, failure: Failure) -> None:
        """Tell the sink, unless it was told of an end or has left."""
        if not self._over:
            self._end()
            self._sink.on_failure(failure)

    def _end(self) -> None:
        """No callback follows but the one that says so; the socket, if it is still ours, closes."""
        self._over = True
        self._ways.running.discard(self)
        # Once the message is complete, the pool may have passed the socket on.
        if self._socket is not None and self._socket.owner is self:
            self._socket.drop()
        if self._answer is not None and self._answer.close is not None:
            self._answer.close()

    def _give_back(self) -> None:
        # One that was lost has no owner any more.
        if self._socket is not None and self._socket.owner is self:
            self._ways.pool.give_back(self._socket)


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    # Above this aiohttp writes a BytesIO in parts, and waits for the socket between them.
    return io.BytesIO(body) if len(body) > _ONE_WRITE_BYTES else body or None


def _failure(error: BaseException) -> Failure:
    match error:
        case (
            aiohttp.ClientConnectorError()
            | aiohttp.ClientHttpProxyError()
            | aiohttp.ServerTimeoutError()
            | aiohttp.ServerFingerprintMismatch()
            | aiohttp.InvalidURL()
            | TimeoutError()
        ):
            return Failure.UNREACHABLE
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return Failure.TOO_LARGE if caused_by(error, LineTooLong) else Failure.MALFORMED
        case aiohttp.ClientError() | OSError():
            return Failure.RESET
        case _:
            return Failure.MALFORMED
