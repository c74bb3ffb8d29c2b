"""An upstream for crowds: it does what the plan of each request says, and counts what it holds.

It is small so that thousands of requests cost little, and strict about one thing: a connection
whose exchange did not end well must never bring another request.
"""

import asyncio
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, cast

from tests.app.chat_upstreams import BANG, DONE, ERROR, LO, ROLE, STOP, USAGE
from tidegate.testing.scripted import STREAM_HEAD, answer_bytes, chunk_bytes

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model":\s*"([a-z_]+)-(\d+)"')
JSON = ("Content-Type", "application/json")
ANSWER = (
    b'{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"Hello"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":12,"completion_tokens":31,"total_tokens":43}}'
)
_PLAIN_HEAD = answer_bytes(headers=[JSON, ("Content-Length", str(len(ANSWER)))])
_LATE_ERROR = answer_bytes(500, headers=[JSON, ("Content-Length", "10")])


class Side(asyncio.Protocol):
    """One connection of the gateway's to this upstream."""

    transport: asyncio.Transport

    def __init__(self, upstream: "CrowdUpstream") -> None:
        self.upstream = upstream
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.number, self.stream, self.provider = -1, False, ""
        self.clean = True
        self._data = b""
        self._wanted = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.upstream.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.upstream.open.discard(self)
        self.gone.done() or self.gone.set_result(None)
        self.upstream.moved(self.number)

    def data_received(self, data: bytes) -> None:
        if not self.clean:
            self.upstream.faults.append(f"{self.number}: bytes on a connection that is in use")
        self._data += data
        if self._wanted < 0:
            head, end, _ = self._data.partition(b"\r\n\r\n")
            if not end:
                return
            length = _LENGTH.search(head)
            self._wanted = len(head) + 4 + (int(length[1]) if length else 0)
        if len(self._data) >= self._wanted:
            self._asked()

    def _asked(self) -> None:
        asked, self._data, self._wanted = self._data, b"", -1
        self.clean = False
        model = _MODEL.search(asked)
        assert model is not None
        self.number = int(model[2])
        self.provider = asked[6 : asked.index(b"/", 6)].decode()
        self.stream = b'"stream":true' in asked.replace(b" ", b"")
        self.upstream.begin(self)

    def send(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def whole(self, data: bytes) -> None:
        """The rest of an answer: from here on the connection may be used again."""
        self.clean = True
        self.send(data)
        self.upstream.moved(self.number)

    def reset(self) -> None:
        if self.transport.is_closing():
            return
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


Script = Callable[[Side], Awaitable[None]]


async def turns(count: int) -> None:
    """So many turns of the loop."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


async def silent(side: Side) -> None:
    await side.gone


async def begins(side: Side) -> None:
    """Head and what is no content yet; then nothing."""
    side.send(STREAM_HEAD + chunk_bytes(ROLE) if side.stream else _PLAIN_HEAD + ANSWER[:50])
    await side.gone


async def dribbles(side: Side) -> None:
    """Bytes without end that are no content: they must reset no clock."""
    side.send(STREAM_HEAD if side.stream else _PLAIN_HEAD)
    piece, sent = chunk_bytes(b": ping\n\n") if side.stream else b" ", 0
    while not side.gone.done() and (side.stream or sent < len(ANSWER) - 1):
        side.send(piece)
        sent += 1
        await asyncio.wait((side.gone,), timeout=0.01)
    await side.gone


async def talks(side: Side) -> None:
    """Words without end, as fast as the gateway takes them one by one."""
    if not side.stream:
        await begins(side)
        return
    side.send(STREAM_HEAD + chunk_bytes(ROLE))
    for _ in range(40):
        side.send(chunk_bytes(BANG))
        await turns(4)
    await side.gone


async def answers(side: Side) -> None:
    if side.stream:
        side.send(STREAM_HEAD + chunk_bytes(ROLE + BANG))
        await turns(2)
        side.whole(chunk_bytes(LO + STOP + USAGE + DONE) + b"0\r\n\r\n")
    else:
        side.whole(_PLAIN_HEAD + ANSWER)


async def fails(side: Side) -> None:
    side.whole(answer_bytes(500, headers=[JSON], body=b'{"error":{"message":"no"}}'))


async def fails_slowly(side: Side) -> None:
    """The status of an error, whose body does not come."""
    side.send(_LATE_ERROR)
    await side.gone


async def breaks(side: Side) -> None:
    """A reset before anything, or after what is no content."""
    if side.stream:
        side.send(STREAM_HEAD + chunk_bytes(ROLE))
        await turns(3)
    side.reset()


async def errs(side: Side) -> None:
    """An error inside of a 200."""
    side.send(STREAM_HEAD + chunk_bytes(ROLE + ERROR) if side.stream else b"")
    if not side.stream:
        side.whole(answer_bytes(headers=[JSON], body=b"{}"))
    else:
        await side.gone


async def cuts(side: Side) -> None:
    """The connection is lost in the middle of the answer."""
    side.send(STREAM_HEAD + chunk_bytes(ROLE + BANG) if side.stream else _PLAIN_HEAD + ANSWER[:50])
    await turns(3)
    side.transport.close()


SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (
        silent,
        begins,
        dribbles,
        talks,
        answers,
        fails,
        fails_slowly,
        breaks,
        errs,
        cuts,
    )
}
FAULTS = ("fails", "breaks", "errs", "fails_slowly")
"""What lets the walk go on to the next target at once, or after a moment."""


class CrowdUpstream:
    """A server on a free port. `scripts(number, provider)` says what a request is answered with.

    `open` are the sockets it holds, `asked` the sides on which each request arrived, `faults`
    what must not happen.
    """

    def __init__(self, scripts: Callable[[int, str], str], moved: Callable[[int], None]) -> None:
        self.open: set[Side] = set()
        self.asked: dict[int, list[Side]] = {}
        self.faults: list[str] = []
        self.moved = moved
        self.port = 0
        self._scripts = scripts
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def begin(self, side: Side) -> None:
        """A request has arrived (called by its side)."""
        script = SCRIPTS[self._scripts(side.number, side.provider)]
        self.asked.setdefault(side.number, []).append(side)
        task = asyncio.ensure_future(script(side))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.moved(side.number)

    @property
    def running(self) -> int:
        """Scripts that have not ended."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Side(self), "127.0.0.1", 0, backlog=1024)
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
        for side in list(self.open):
            side.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Mute(asyncio.Protocol):
    """A connection that says nothing, as one whose TLS handshake never ends."""

    def __init__(self, held: "set[Mute]") -> None:
        self._held = held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._held.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.discard(self)


class Deaf(Mute):
    """One that reads the beginning of a request and then, each time it is told to, a bit more."""

    def __init__(self, held: "set[Mute]", moved: Callable[[int], None]) -> None:
        super().__init__(held)
        self._moved = moved
        self.number = -1

    def data_received(self, data: bytes) -> None:
        if self.number < 0:
            model = _MODEL.search(data)
            if model is None:
                return
            self.number = int(model[2])
            self._moved(self.number)
        self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._moved(self.number)
