"""Which scripted upstream answers a request, and what did it see and write when?

One listener for many upstreams: the first segment of the path names the one. Lives here: the
listener, the log of calls, sending a canned answer. Does not live here: what is answered
(answers, backend), raw sockets (tidegate.testing.scripted).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.casebook.answers import Canned
from tests.casebook.seen import Call
from tidegate.testing.scripted import ScriptedUpstream, UpstreamExchange, answer_bytes, chunk_bytes


class Conversation:
    """One request at an upstream and the means to answer it; every write is logged."""

    def __init__(self, exchange: UpstreamExchange, call: Call) -> None:
        self._exchange = exchange
        self.call = call
        self.gone = exchange.gone

    async def send(self, data: bytes, *, body: bytes | None = None) -> None:
        """Write raw bytes; `body` is the part of them that belongs to the body."""
        self.call.writes.append((time.monotonic(), data if body is None else body))
        await self._exchange.send(data)

    async def head(
        self, status: int, headers: list[tuple[str, str]], *, length: int | None
    ) -> None:
        """The head, chunked unless the length is known."""
        framing = ("Transfer-Encoding", "chunked") if length is None else None
        lines = [*headers, framing or ("Content-Length", str(length))]
        self.call.answered = status
        await self._exchange.send(answer_bytes(status, headers=lines))

    async def piece(self, data: bytes) -> None:
        """One chunk of a chunked body."""
        await self.send(chunk_bytes(data), body=data)

    async def end(self) -> None:
        """The last chunk."""
        await self._exchange.send(chunk_bytes(b""))
        self.call.finished_s = time.monotonic()

    async def play(self, canned: Canned) -> None:
        """A whole canned answer with its pauses."""
        whole = len(canned.writes) == 1 and not canned.stream
        length = len(canned.writes[0].data) if whole else 0 if not canned.writes else None
        await self.head(canned.status, list(canned.headers), length=length)
        for write in canned.writes:
            if write.pause_s:
                await self.pause(write.pause_s)
            if length is None:
                await self.piece(write.data)
            else:
                await self.send(write.data)
        if length is None:
            await self.end()
        self.call.finished_s = time.monotonic()

    async def pause(self, seconds: float) -> None:
        """Real time passes, unless the peer leaves; ConnectionError then."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.gone.wait(), seconds)
            raise ConnectionResetError

    async def until_gone(self, seconds: float = 60.0) -> None:
        """Hold the connection until the peer leaves."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.gone.wait(), seconds)

    def cut(self) -> None:
        """Close after what was sent."""
        self._exchange.cut()

    def reset(self) -> None:
        """Close at once with a reset."""
        self._exchange.reset()


Answerer = Callable[[Conversation], Awaitable[None]]


class Upstreams:
    """A listener whose paths begin with the name of an upstream: `url("primary")`."""

    def __init__(self) -> None:
        self._answerers: dict[str, Answerer] = {}
        self._server = ScriptedUpstream(self._serve)
        self.calls: list[Call] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    @property
    def open_connections(self) -> int:
        """Sockets that are open on this side."""
        return self._server.open_connections

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until it holds, looking again after each request and each change of a socket."""
        await self._server.until(true)

    def url(self, name: str) -> str:
        """The base address of one upstream, without a slash at the end."""
        return f"{self._server.url}/{name}"

    def answer(self, name: str, answerer: Answerer) -> None:
        """From now on `answerer` serves the upstream `name`."""
        self._answerers[name] = answerer

    def of(self, name: str) -> list[Call]:
        """The calls of one upstream so far."""
        return [call for call in self.calls if call.server == name]

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    async def _serve(self, exchange: UpstreamExchange) -> None:
        request = exchange.request
        name = request.target.split("/")[1].split("?")[0]
        call = Call(
            request.method,
            request.target,
            list(request.headers),
            request.body,
            time.monotonic(),
            server=name,
            connection=request.connection,
        )
        self.calls.append(call)
        conversation = Conversation(exchange, call)
        watcher = asyncio.ensure_future(_note_gone(exchange, call))
        answerer = self._answerers.get(name)
        try:
            with suppress(ConnectionError):
                if answerer is None:
                    await conversation.head(404, [], length=0)
                else:
                    await answerer(conversation)
        finally:
            if call.finished_s is not None:
                watcher.cancel()


async def _note_gone(exchange: UpstreamExchange, call: Call) -> None:
    await exchange.gone.wait()
    call.gone_s = time.monotonic()
