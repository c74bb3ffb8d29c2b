"""Which connection does an attempt get, and who hears what happens on it?

aiohttp's pool and aiohttp's protocol, with what they do not tell: which attempt has which socket,
whether that one served before, and that something arrived on it or that it was lost. Does not
live here: what is sent and what is made of it (aiohttp_client), when to send again (there too).
"""

import asyncio
import ssl
from functools import partial
from time import monotonic
from typing import Final, Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.tracing import Trace

from tidegate.transport.again import Addresses
from tidegate.transport.connecting import connecting, make_socket

_NOT_SAID: Final = BaseException()


class Owner(Protocol):
    """Who has a socket for one exchange."""

    wants_fresh: bool
    """Whether no socket will do that served before."""

    @property
    def url(self) -> str:
        """What is asked."""

    def took(self, socket: "Socket") -> None:
        """The pool chose `socket`."""

    def arrived(self) -> None:
        """The socket has read something, or is lost, of which it keeps an exception."""


class Socket(ResponseHandler):
    """aiohttp's protocol, which also knows whose it is and what it has seen."""

    def __init__(self, loop: asyncio.AbstractEventLoop, register: "set[Socket]") -> None:
        super().__init__(loop)
        self._register = register
        self._exchanges = 0
        self._heard = False
        self.owner: Owner | None = None
        self.key: ConnectionKey | None = None
        self.idle = False

    @property
    def has_served(self) -> bool:
        """Whether it comes out of the pool."""
        return self._exchanges > 0

    @property
    def is_fresh(self) -> bool:
        """Whether a loss now says something about the upstream, not about keep-alive."""
        return self._exchanges < 2 or self._heard

    def take(self, owner: Owner) -> None:
        """A new exchange begins."""
        self.owner, self.idle, self._heard = owner, False, False
        self._exchanges += 1
        if self.transport is not None:
            # Not when it was made: uvloop says nothing of the end of one that was given up then.
            self._register.add(self)
        owner.took(self)

    def release(self) -> None:
        """It is over."""
        self.owner, self.idle = None, True

    def next_head(self) -> tuple[RawResponseMessage, aiohttp.StreamReader] | None:
        """The next head that was read, and its body; None if there is none yet."""
        return self._buffer.popleft()[0] if self._buffer else None

    def drop(self) -> None:
        """Close now, whatever is still to be written."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """From the loop."""
        owner, self.owner = self.owner, None
        self._register.discard(self)
        self.idle = False
        super().connection_lost(exc)
        if owner is not None:
            owner.arrived()

    def data_received(self, data: bytes) -> None:
        """From the loop."""
        if data:
            if self.idle:
                # An answer without a question must not become the answer of the next one.
                self.drop()
                return
            self._heard = True
        # It may end the exchange, and what arrived is still for who had it.
        owner = self.owner
        super().data_received(data)
        if owner is not None:
            owner.arrived()

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _NOT_SAID) -> None:
        """From aiohttp, which keeps the cause only if a task waits just now."""
        super().set_exception(exc, exc_cause)
        exc.__cause__ = exc_cause

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001
        """From aiohttp, after each read, mostly for nothing."""
        if self._reading_paused:
            super().resume_reading(resume_parser)


class Pool(aiohttp.TCPConnector):
    """aiohttp's pool, told which attempt takes which socket."""

    def __init__(self, *, tls: ssl.SSLContext | None, keepalive_s: float) -> None:
        super().__init__(
            # Admission is the gateway's: here nobody may wait for a slot within a deadline.
            limit=0,
            keepalive_timeout=keepalive_s,
            ssl=True if tls is None else tls,
            timeout_ceil_threshold=float("inf"),
            socket_factory=make_socket,
        )
        self._keepalive_s = keepalive_s
        self.sockets: set[Socket] = set()
        self.addresses = Addresses()
        self.wanted_by: dict[asyncio.Task[None], Owner] = {}
        self._factory = partial(Socket, loop=self._loop, register=self.sockets)  # type: ignore[assignment]

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> Connection:
        """As the base class, but never a socket that holds bytes nobody asked for."""
        task = asyncio.current_task()
        owner = self.wanted_by.get(task) if task is not None else None
        wants_fresh = owner is not None and owner.wants_fresh
        while True:
            with connecting(self._loop):
                connection = await super().connect(req, traces, timeout)
            socket = connection.protocol
            if not isinstance(socket, Socket) or not (
                socket.should_close or (wants_fresh and socket.has_served)
            ):
                break
            connection.close()
        if isinstance(socket, Socket) and owner is not None:
            socket.take(owner)
            connection.add_callback(socket.release)
            self.addresses.learn(owner.url, req)
        return connection

    def kept(self, key: ConnectionKey, owner: Owner) -> Socket | None:
        """A socket that was kept, taken for `owner`, who gives it back."""
        idle = self._conns.get(key)
        while idle:
            socket, since_s = idle.popleft()
            if not idle:
                del self._conns[key]
            is_late = monotonic() - since_s > self._keepalive_s
            is_good = socket.is_connected() and not socket.should_close and not is_late
            if isinstance(socket, Socket) and is_good:
                socket.key = key
                socket.take(owner)
                return socket
            socket.close()
        return None

    def give_back(self, socket: Socket) -> None:
        """What `kept` gave; its exchange has ended, and perhaps it can have another."""
        socket.release()
        if socket.key is not None:
            self._release(socket.key, socket)


__all__ = ["Owner", "Pool", "Socket"]
