"""What does an ASGI application answer, chunk by chunk, without a socket?

A client that runs the application in this process, hands over each body message when it is
sent, and can leave in the middle. Does not live here: parsing of HTTP, flow control of sockets
(sockets.py and the wire tests have both).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[str, str]]

WAIT_S = 30.0
"""No wait of a test lasts longer; then TimeoutError. Only a test that fails waits so long."""


class ASGIClient:
    """Starts exchanges with one application; holds nothing between them."""

    def __init__(
        self, app: ASGIApp, *, host: str = "127.0.0.1:8080", client: str = "127.0.0.1"
    ) -> None:
        self._app = app
        self._host = host
        self._client = client

    def exchange(
        self, method: str, target: str, *, headers: Headers = (), body: bytes | None = b""
    ) -> "ASGIExchange":
        """One request, to be entered with `async with`.

        `target` is path and query as on the wire. `body=None` leaves the body open: feed it with
        `exchange.feed`. A Host header is added unless one is given.
        """
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if not any(name == b"host" for name, _ in raw):
            raw.insert(0, (b"host", self._host.encode("latin-1")))
        path, _, query = target.partition("?")
        name, _, port = self._host.rpartition(":")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": raw,
            "client": (self._client, 50000),
            "server": (name, int(port)),
            "state": {},
        }
        return ASGIExchange(self._app, scope, body)

    async def request(
        self, method: str, target: str, *, headers: Headers = (), body: bytes = b""
    ) -> "ASGIExchange":
        """The finished exchange: `status`, `headers`, `body`."""
        async with self.exchange(method, target, headers=headers, body=body) as exchange:
            await exchange.read()
        return exchange


class ASGIExchange:
    """One request in flight. Its task is the application's; leaving the block ends it."""

    def __init__(self, app: ASGIApp, scope: MutableMapping[str, Any], body: bytes | None) -> None:
        self._app, self._scope = app, scope
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Message | None] = asyncio.Queue()
        # As a socket would: who sends far ahead of the reader waits.
        self._room = asyncio.Semaphore(64)
        self._task: asyncio.Task[None] | None = None
        self._left = False
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        if body is not None:
            self.feed(body, more=False)

    def feed(self, chunk: bytes, *, more: bool = True) -> None:
        """Add to the request body; `more=False` ends it."""
        self._incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})

    def header(self, name: str) -> str | None:
        """The first header of that name, case-insensitively."""
        return next((v for n, v in self.headers if n == name.lower()), None)

    async def head(self) -> int:
        """Wait for the status; the exception of the application, if that came first."""
        if self.status:
            return self.status
        message = await self._next()
        if message is None:
            raise AssertionError("the application returned without an answer")
        if message["type"] != "http.response.start":
            raise AssertionError(f"expected a head, got {message['type']}")
        self.status = message["status"]
        self.headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in message.get("headers", ())
        ]
        return self.status

    async def chunk(self) -> bytes:
        """The next non-empty body message; b"" at the end. Appends to `body`."""
        await self.head()
        while (message := await self._next()) is not None:
            if message["type"] != "http.response.body":
                raise AssertionError("a second head")
            chunk: bytes = message.get("body", b"")
            self.body += chunk
            if chunk:
                return chunk
        return b""

    async def read(self) -> bytes:
        """The whole body, once the application is done."""
        while await self.chunk():
            pass
        return self.body

    async def disconnect(self) -> None:
        """Leave as a client does: the running handler is cancelled, and `receive` says so.

        Returns when the handler has ended.
        """
        self._left = True
        self._incoming.put_nowait({"type": "http.disconnect"})
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=WAIT_S)

    @property
    def ended(self) -> bool:
        """Whether the application has returned."""
        return self._task is not None and self._task.done()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = self._task
        if task is None:
            return
        if not task.done():
            await self.disconnect()
        if not task.done():
            raise AssertionError("the application did not end after its client left")
        if kind is None and not task.cancelled():
            task.result()

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._incoming.get, self._send)
        finally:
            self._outgoing.put_nowait(None)

    async def _send(self, message: Message) -> None:
        if not self._left:
            await self._room.acquire()
            self._outgoing.put_nowait(message)

    async def _next(self) -> Message | None:
        task = self._task
        if task is None:
            raise RuntimeError("enter the exchange first")
        async with asyncio.timeout(WAIT_S):
            message = await self._outgoing.get()
        if message is None:
            self._outgoing.put_nowait(None)
            await asyncio.wait([task], timeout=WAIT_S)
            task.result()
        self._room.release()
        return message
