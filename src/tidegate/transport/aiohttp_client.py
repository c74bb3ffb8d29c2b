"""How does aiohttp make one attempt?

Everything aiohttp knows ends here: its session, its pool, its exceptions. No redirect is followed
(a 3xx is an answer), no cookie is kept, no environment is read, certificates are verified, bodies
arrive undecoded and are decoded here piece by piece. Does not live here: deadlines after the
connection stands (inbox.py), what an answer means (routing.outcome).

A kept-alive socket may be dead before we notice. Such a request is sent again, once, on a
fresh connection, if it is `replayable`, the socket had served before and was lost at once, without
a byte of an answer; the other sockets kept for that upstream are then not trusted either.
Any other loss is reported: who worked on a request before it broke off has had it.
"""

import asyncio
import io
import logging
import ssl
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from tidegate.transport.again import Addresses, Answer, Bounds, ask, caused_by
from tidegate.transport.connecting import connecting, make_socket
from tidegate.transport.decoding import DecodeError, decoder_for
from tidegate.transport.fields import request_fields, response_fields
from tidegate.transport.upstream import Attempt, Failure, ResponseSink, UpstreamRequest

logger = logging.getLogger(__name__)

_KEEPALIVE_S = 15.0
_AT_ONCE_S = 0.5  # a long round trip: the news of an earlier close may be under way that long
_BOUNDS = Bounds(read_bytes=65_536, line_bytes=8_190, field_bytes=8_190, fields=100)
_HEAD_BYTES = 65_536
_ONE_WRITE_BYTES = 262_144


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
        self._connector: _Connector | None = None
        self._session: aiohttp.ClientSession | None = None
        self._attempts: set[_Attempt] = set()

    async def open(self) -> None:
        """Create the session and its empty pool."""
        self._connector = _Connector(tls=self._tls, keepalive_s=self._keepalive_s)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
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
        self._session._retry_connection = False  # noqa: SLF001

    async def close(self) -> None:
        """Abort what runs, close what is idle, return when the sockets are gone."""
        attempts = list(self._attempts)
        for attempt in attempts:
            attempt.abort()
        await asyncio.gather(*(attempt.task for attempt in attempts), return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def open_connections(self) -> int:
        """Sockets connected now, idle ones included."""
        return len(self._connector.sockets) if self._connector is not None else 0

    @property
    def idle_connections(self) -> int:
        """Sockets kept for reuse."""
        if self._connector is None:
            return 0
        return sum(socket.idle for socket in self._connector.sockets)

    def start(self, request: UpstreamRequest, sink: ResponseSink, *, connect_s: float) -> Attempt:
        """Begin; the first callback comes from a later turn of the loop."""
        if self._session is None or self._connector is None:
            raise RuntimeError("open the transport first")
        attempt = _Attempt(
            self._session, self._connector, request, sink, connect_s, self._at_once_s
        )
        self._connector.wanted_by[attempt.task] = attempt
        self._attempts.add(attempt)
        attempt.task.add_done_callback(partial(self._done, attempt))
        return attempt

    def _done(self, attempt: "_Attempt", task: "asyncio.Task[None]") -> None:
        self._attempts.discard(attempt)
        if self._connector is not None:
            self._connector.wanted_by.pop(task, None)
        # A request or an answer that aiohttp chokes on in a way not foreseen: the sink must hear
        # of an end in any case.
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("attempt_crashed", extra={"error": type(error).__name__})
            attempt.fail(Failure.MALFORMED)


class _Attempt:
    """One exchange, run by one task."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        connector: "_Connector",
        request: UpstreamRequest,
        sink: ResponseSink,
        connect_s: float,
        at_once_s: float,
    ) -> None:
        self._at_once_s, self._taken_s = at_once_s, 0.0
        self._session, self._connector = session, connector
        self._request, self._sink, self._connect_s = request, sink, connect_s
        self._over = False
        self.wants_fresh = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._socket: _Socket | None = None
        self._content: aiohttp.StreamReader | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    @property
    def url(self) -> str:
        """What is asked."""
        return self._request.url

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def abort(self) -> None:
        if self._over:
            return
        self._over = True
        self._drop_socket()
        self.task.cancel()

    def fail(self, failure: Failure) -> None:
        """Tell the sink, unless it was told of an end or has left."""
        if not self._over:
            self._over = True
            self._sink.on_failure(failure)

    def took(self, socket: "_Socket") -> None:
        """The pool chose `socket` for this attempt."""
        self._socket, self._taken_s = socket, asyncio.get_running_loop().time()

    def lost(self) -> None:
        """The socket is gone. aiohttp forgets to tell a reader whose later chunk was malformed."""
        content = self._content
        if content is not None and not content.is_eof() and content.exception() is None:
            self.fail(Failure.MALFORMED)
            content.set_exception(aiohttp.ClientPayloadError())

    def _drop_socket(self) -> None:
        # Only while it is ours: once the message is complete, the pool may have passed it on.
        if self._socket is not None and self._socket.owner is self:
            self._socket.drop()

    async def _run(self) -> None:
        try:
            response = await self._answer()
        except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
            self.fail(_failure(error))
            return
        try:
            await self._push(response)
        except DecodeError:
            self.fail(Failure.MALFORMED)
        except (aiohttp.ClientError, OSError) as error:
            self.fail(_failure(error))
        finally:
            self._drop_socket()
            response.close()

    async def _answer(self) -> Answer:
        try:
            return await self._again() or await self._send()
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            lasted_s = asyncio.get_running_loop().time() - self._taken_s
            was_dead = self._socket is not None and not self._socket.is_fresh
            if not (self._request.replayable and was_dead and lasted_s <= self._at_once_s):
                raise
        self.wants_fresh = True
        return await self._send()

    async def _again(self) -> Answer | None:
        """The short way, on a connection that was kept; None if there is none."""
        addresses, request = self._connector.addresses, self._request
        key = addresses.key_of(request)
        if key is None or len(request.body) > _ONE_WRITE_BYTES:
            return None
        head = addresses.head(request)
        if head is None or (connection := await self._connector.kept(key, self)) is None:
            return None
        return await ask(connection, head + request.body, _BOUNDS)

    async def _send(self) -> Answer:
        request = self._request
        self._socket = None
        found = await self._session.request(
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

    async def _push(self, response: Answer) -> None:
        if response.status < 200:
            raise DecodeError("an upgrade nobody asked for")
        if sum(len(name) + len(value) for name, value in response.raw_headers) > _HEAD_BYTES:
            self.fail(Failure.TOO_LARGE)
            return
        decoder = decoder_for(",".join(response.headers.getall("Content-Encoding", ())))
        self._sink.on_head(response.status, response_fields(response.raw_headers))
        content = self._content = response.content
        if self._socket is not None and not self._socket.is_connected():
            self.lost()
        while chunk := await content.readany():
            if decoder is None:
                await self._flowing.wait()
                self._sink.on_body(chunk)
                continue
            for piece in decoder.feed(chunk):
                await self._flowing.wait()
                self._sink.on_body(piece)
        if decoder is not None:
            decoder.finish()
        self._over = True
        self._sink.on_end()


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, told which attempt took which socket."""

    def __init__(self, *, tls: ssl.SSLContext | None, keepalive_s: float) -> None:
        super().__init__(
            # Admission is the gateway's: here nobody may wait for a slot within a deadline.
            limit=0,
            keepalive_timeout=keepalive_s,
            ssl=True if tls is None else tls,
            timeout_ceil_threshold=float("inf"),
            socket_factory=make_socket,
        )
        self.sockets: set[_Socket] = set()
        self.addresses = Addresses()
        self.wanted_by: dict[asyncio.Task[None], _Attempt] = {}
        self._factory = partial(_Socket, loop=self._loop, register=self.sockets)  # type: ignore[assignment]

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> Connection:
        """As the base class, but never a socket that holds bytes nobody asked for."""
        task = asyncio.current_task()
        attempt = self.wanted_by.get(task) if task is not None else None
        wants_fresh = attempt is not None and attempt.wants_fresh
        while True:
            with connecting(self._loop):
                connection = await super().connect(req, traces, timeout)
            socket = connection.protocol
            if not isinstance(socket, _Socket) or not (
                socket.should_close or (wants_fresh and socket.has_served)
            ):
                break
            connection.close()
        if isinstance(socket, _Socket) and attempt is not None:
            socket.take(connection, attempt)
            attempt.took(socket)
            self.addresses.learn(attempt.url, req)
        return connection

    async def kept(self, key: ConnectionKey, attempt: _Attempt) -> Connection | None:
        """A connection out of the pool, taken for `attempt`."""
        while (connection := await self._get(key, [])) is not None:
            socket = connection.protocol
            if isinstance(socket, _Socket) and not socket.should_close:
                socket.take(connection, attempt)
                attempt.took(socket)
                break
            connection.close()
        return connection


class _Socket(ResponseHandler):
    """aiohttp's protocol, which also knows whether it is idle and what it has seen."""

    def __init__(self, loop: asyncio.AbstractEventLoop, register: "set[_Socket]") -> None:
        super().__init__(loop)
        self._register = register
        self._exchanges = 0
        self._heard = False
        self.owner: _Attempt | None = None
        self.idle = False

    @property
    def has_served(self) -> bool:
        """Whether it comes out of the pool."""
        return self._exchanges > 0

    @property
    def is_fresh(self) -> bool:
        """Whether a loss now says something about the upstream, not about keep-alive."""
        return self._exchanges < 2 or self._heard

    def take(self, connection: Connection, attempt: "_Attempt") -> None:
        """A new exchange begins; aiohttp says when it is over."""
        self.owner, self.idle, self._heard = attempt, False, False
        self._exchanges += 1
        if self.transport is not None:
            # Not when it was made: uvloop says nothing of the end of one that was given up then.
            self._register.add(self)
        connection.add_callback(self._release)

    def drop(self) -> None:
        """Close now, whatever is still to be written."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        owner, self.owner = self.owner, None
        self._register.discard(self)
        self.idle = False
        super().connection_lost(exc)
        if owner is not None:
            owner.lost()

    def data_received(self, data: bytes) -> None:
        if data and self.idle:
            # An answer without a question must not become the answer of the next one.
            self.drop()
            return
        self._heard = self._heard or bool(data)
        super().data_received(data)

    def _release(self) -> None:
        self.owner, self.idle = None, True


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
