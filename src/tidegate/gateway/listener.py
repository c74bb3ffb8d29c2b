"""Who accepts connections for one application, and when has the last of them ended?

Lives here: one accepting socket, its connections, the drain. Does not live here: what a
connection may do (server), which listeners there are (supervise, workers), how several processes
share a socket (acceptor).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate

from uvicorn import Config
from uvicorn.server import ServerState

from tidegate.errors import TidegateError, envelope
from tidegate.gateway.acceptor import Acceptor, Seats
from tidegate.gateway.closing_time import let_no_one_begin, those_who_wait
from tidegate.gateway.respond import ErrorBody, Receive, Scope, Send
from tidegate.gateway.server import Connection, WireCaps

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Refused = Callable[[TidegateError, str], None]
"""Told of each refusal that no handler saw: the error and the request id that was answered."""

_CANCEL_S = 5.0
_LOOK_S = 0.01


class Listener:
    """The connections of one application. `open` it on a bound socket; then `stop` and `close`.

    `seats`: other processes accept on the same socket, and this is how they share it fairly.
    `error_body` is the dialect of refusals that no handler sees.
    """

    def __init__(
        self,
        app: ASGIApp,
        caps: WireCaps,
        *,
        refused: Refused | None = None,
        seats: Seats | None = None,
        error_body: ErrorBody = envelope,
    ) -> None:
        self.app, self.caps = app, caps
        self.error_body: ErrorBody = error_body
        self.refused: Refused = refused or (lambda _error, _request_id: None)
        self.draining = False
        self._config = Config(
            app,
            http=self._connection,  # type: ignore[arg-type] # any factory will do
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
        )
        self._state = ServerState()
        self._seats = seats
        self._server: asyncio.Server | Acceptor | None = None
        self._alone: socket.socket | None = None  # what nobody but us accepts on
        self._late: set[asyncio.Task[object]] = set()
        self._quiet = asyncio.Event()
        self._second, self._date = -1, b""

    async def open(self, sock: socket.socket) -> None:
        """Accept connections on `sock`, which must be bound; it is closed with the listener."""
        loop = asyncio.get_running_loop()
        self._config.load()
        # Accepted sockets inherit it. asyncio sets it only on sockets that name their protocol,
        # which these do not: without it every small event would wait for an acknowledgment.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._seats is None:
            sock.setblocking(False)
            self._alone = sock
            self._server = await loop.create_server(self._connection, sock=sock, backlog=2048)
            return
        self._server = Acceptor(
            sock,
            self._seats,
            connect=lambda accepted: loop.connect_accepted_socket(self._connection, accepted),
            held=lambda: len(self._state.connections),
        )
        self._server.open()

    def stop(self) -> None:
        """Accept no more. Connections may finish what they ask; each answer closes its own."""
        self.draining = True
        if self._alone is not None:
            self._take_the_last(self._alone)
            self._alone = None
        if self._server is not None:
            self._server.close()

    async def met(self) -> None:
        """Wait until every connection has asked for something."""
        loop, later = asyncio.get_running_loop(), asyncio.Event()
        while self._coming or any(link.exchange is None for link in self.connections):
            later.clear()
            loop.call_later(_LOOK_S, later.set)
            await later.wait()

    async def quiet(self) -> None:
        """Wait until no handler runs."""
        while self._state.tasks:
            self._quiet.clear()
            await self._quiet.wait()

    async def close(self, *, flush_s: float = 1.0) -> None:
        """Cancel what runs, close every connection; written bytes get `flush_s` to leave."""
        self.stop()
        for task in list(self._state.tasks):
            task.cancel()
        with suppress(TimeoutError):
            # A handler that will not be cancelled must not keep the process.
            async with asyncio.timeout(_CANCEL_S):
                await self.quiet()
        for connection in list(self._state.connections):
            connection.transport.close()
        self._quiet.clear()
        if self._state.connections:
            try:
                async with asyncio.timeout(flush_s):
                    while self._state.connections:
                        self._quiet.clear()
                        await self._quiet.wait()
            except TimeoutError:
                for connection in list(self._state.connections):
                    connection.transport.abort()

    def _take_the_last(self, listening: socket.socket) -> None:
        let_no_one_begin(listening)
        loop = asyncio.get_running_loop()
        for accepted in those_who_wait(listening):
            task = loop.create_task(_made(loop.connect_accepted_socket(self._connection, accepted)))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    @property
    def _coming(self) -> int:
        return self._server.coming if isinstance(self._server, Acceptor) else len(self._late)

    @property
    def running(self) -> int:
        """Handlers running now."""
        return len(self._state.tasks)

    @property
    def connections(self) -> "list[Connection]":
        """The open connections."""
        return [link for link in self._state.connections if isinstance(link, Connection)]

    def date_line(self, now_s: float) -> bytes:
        """The Date header line, made once a second; `now_s` is the loop's time."""
        second = int(now_s)
        if second != self._second:
            self._second = second
            self._date = f"date: {formatdate(usegmt=True)}\r\n".encode("ascii")
        return self._date

    def changed(self) -> None:
        """A handler has ended or a connection was lost (called by connections)."""
        self._quiet.set()
        if isinstance(self._server, Acceptor):
            self._server.count()

    def _connection(self, **_kwargs: object) -> "Connection":
        return Connection(self, self._config, self._state)


async def _made(connecting: Awaitable[object]) -> None:
    with suppress(OSError):  # it was reset between our accepting and our first look at it
        await connecting


__all__ = ["ASGIApp", "Listener", "Refused", "WireCaps"]
