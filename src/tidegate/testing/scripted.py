"""What does an upstream do to us, in exactly which order?

A server on loopback that follows a script: bytes, pauses held by events, cuts. It records what
it was asked and notices who leaves. Every wait is bounded. Does not live here: what a provider
would say (the demo world), our own client side (sockets.py).
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, cast

import httptools

from tidegate.testing.asgi import WAIT_S

Headers = Iterable[tuple[str, str]]


def answer_bytes(status: int = 200, *, headers: Headers = (), body: bytes = b"") -> bytes:
    """One response with a Content-Length unless a framing header is given."""
    pairs = list(headers)
    if not {name.lower() for name, _ in pairs} & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"HTTP/1.1 {status} Answer\r\n{lines}\r\n".encode("latin-1") + body


def chunk_bytes(data: bytes) -> bytes:
    """One chunk of a chunked body; the last one for b""."""
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM_HEAD = answer_bytes(
    headers=[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
)
"""The head of a chunked event stream; follow it with `chunk_bytes`."""


@dataclass(slots=True)
class Received:
    """One request as the upstream saw it. Header names as they were sent."""

    method: str = ""
    target: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    connection: int = 0

    def header(self, name: str) -> str | None:
        """The first header of that name, case-insensitively."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


class UpstreamExchange:
    """What a script holds: the request, a way to send exact bytes, and news of the peer."""

    def __init__(self, link: "_Link", request: Received) -> None:
        self._link = link
        self.request = request
        self.gone = link.gone

    async def send(self, data: bytes) -> None:
        """Write, and wait until the socket has taken most of it; ConnectionError when gone."""
        if self.gone.is_set() or self._link.transport.is_closing():
            raise ConnectionResetError
        self._link.transport.write(data)
        await _turn()
        await self._link.writable.wait()

    def unsent_bytes(self) -> int:
        """What the peer has not let through yet."""
        return self._link.transport.get_write_buffer_size()

    def cut(self) -> None:
        """Close after what was sent."""
        self._link.transport.close()

    def reset(self) -> None:
        """Close at once; the peer gets a reset."""
        sock = self._link.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._link.transport.abort()


Script = Callable[[UpstreamExchange], Awaitable[None]]


def steps(*parts: bytes | asyncio.Event) -> Script:
    """A script that sends the bytes and waits for the events, in order; ends when the peer left."""

    async def run(exchange: UpstreamExchange) -> None:
        with suppress(ConnectionError):
            for part in parts:
                if isinstance(part, bytes):
                    await exchange.send(part)
                else:
                    await part.wait()

    return run


def cut_after(*parts: bytes | asyncio.Event) -> Script:
    """As `steps`, and then the connection is closed."""

    async def run(exchange: UpstreamExchange) -> None:
        await steps(*parts)(exchange)
        exchange.cut()

    return run


class ScriptedUpstream:
    """A server on a free loopback port: request n is answered by script n, the last one repeats.

    `requests` holds every complete request, `arrived` counts them for waiting, `connections` all
    sockets ever accepted, `open_connections` those still there.
    """

    def __init__(self, *scripts: Script) -> None:
        self.scripts: list[Script] = list(scripts) or [steps(answer_bytes(body=b"{}"))]
        self.requests: list[Received] = []
        self.connections = 0
        self.port = 0
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """http://127.0.0.1:port, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """Sockets still open on this side."""
        return len(self._links)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until `true()` holds; checked after each request and each change of a socket."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(true)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Link(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.transport.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        failures = await asyncio.gather(*tasks, return_exceptions=True)
        for failure in failures:
            if isinstance(failure, Exception) and kind is None:
                raise failure

    def serve(self, link: "_Link", request: Received) -> None:
        """Run the script of this request (called by the connection)."""
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        task = asyncio.ensure_future(_run(script, UpstreamExchange(link, request)))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        self.notify()

    def opened(self, link: "_Link") -> int:
        """Count one socket (called by the connection)."""
        self.connections += 1
        self._links.add(link)
        self.notify()
        return self.connections

    def closed(self, link: "_Link") -> None:
        """One socket less (called by the connection)."""
        self._links.discard(link)
        self.notify()

    def notify(self) -> None:
        """Let every `until` look again."""
        task = asyncio.ensure_future(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _forget(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)


async def _turn() -> None:
    """Let the loop run once: a script that only sends would never hear that its peer has left."""
    loop = asyncio.get_running_loop()
    turn: asyncio.Future[None] = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


async def _run(script: Script, exchange: UpstreamExchange) -> None:
    await script(exchange)


class _Link(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream
        self._parser = httptools.HttpRequestParser(self)
        self._request = Received()
        self._number = 0
        self.gone = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio.Transport.
        self.transport = cast("asyncio.Transport", transport)
        self._number = self._upstream.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # CONNECT: a complete request like any other
        except httptools.HttpParserError:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self.writable.set()
        self._upstream.closed(self)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def on_message_begin(self) -> None:
        self._request = Received(connection=self._number)

    def on_url(self, url: bytes) -> None:
        self._request.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._request.body += body

    def on_message_complete(self) -> None:
        self._request.method = self._parser.get_method().decode("ascii")
        self._upstream.serve(self, self._request)
