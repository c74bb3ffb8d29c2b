"""How does a client that knows stdio alone talk to an MCP server on HTTP?

Lives here: the exchanges, the stream for what the server sends by itself, and the end. Does not
live here: what is sent and what may come back (turns), where to (endpoint), HTTP (transport).
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tidegate.bridges import refusals
from tidegate.bridges.endpoint import Endpoint
from tidegate.bridges.pipes import ClientEnd, signals_of_an_end
from tidegate.bridges.reading import Key
from tidegate.bridges.resuming import Place
from tidegate.bridges.turns import Post, Turn, Turns
from tidegate.clock import Clock, SystemClock
from tidegate.mcp.http_upstream import AnswerReader, AnswerTooLarge
from tidegate.tools.ends import HardEnd
from tidegate.tools.stdio import Wire, note
from tidegate.transport.aiohttp_client import AiohttpTransport
from tidegate.transport.inbox import AttemptFailed, Inbox
from tidegate.transport.upstream import Failure, Transport, UpstreamRequest

if TYPE_CHECKING:
    from tidegate.lines import LineTooLong

_CONNECT_S: Final = 10.0
_DELIVERY_S: Final = 2.0
"""How long what comes after a notification waits for the server to take it."""
_GRACE_S: Final = 1.2
_FAREWELL_S: Final = 0.4
_REFUSAL_S: Final = 5.0
_MOST_REFUSAL_BYTES: Final = 65_536
_LONGEST_PAUSE_S: Final = 30.0
_KEEPALIVE_S: Final = 4.0
"""Less than the servers in use grant: a call must not meet a connection that is being closed."""
_QUEUED: Final = 64
_MOST_PAGES: Final = 20
_MOST_FAILURES: Final = 3
"""How often in a row the rest of a stream is asked for in vain."""
_INTERRUPTED: Final = 130


def run_connected(
    server: Endpoint, wire: Wire, *, client_line_bytes: int, server_line_bytes: int
) -> int:
    """Carries messages until the client leaves or a signal comes; returns the exit code."""

    async def run(hard_end: HardEnd) -> int:
        transport = AiohttpTransport(keepalive_s=_KEEPALIVE_S)
        await transport.open()
        try:
            client, turns = ClientEnd(wire, client_line_bytes), Turns(server, client_line_bytes)
            carrier = Carrier(transport, SystemClock(), server.url, server_line_bytes)
            bridge = Bridge(client, turns, carrier, ending=hard_end.arm)
            for number in signals_of_an_end():
                asyncio.get_running_loop().add_signal_handler(number, bridge.stop, number)
            return await bridge.run()
        finally:
            await transport.close()

    # A name that is being looked up cannot be given up.
    with HardEnd(stays=True) as hard_end:
        return asyncio.run(run(hard_end))


class Carrier:
    """Starts requests to the one URL."""

    def __init__(self, transport: Transport, clock: Clock, url: str, max_bytes: int) -> None:
        self._transport, self.clock, self._url = transport, clock, url
        self.max_bytes = max_bytes

    def start(self, inbox: Inbox, post: Post, method: str = "POST") -> None:
        """Send `post`; its answer comes to `inbox`."""
        request = UpstreamRequest(
            method, self._url, post.headers, post.body, replayable=post.harmless
        )
        inbox.start(self._transport, request, connect_s=_CONNECT_S)

    def inbox(self) -> Inbox:
        """Where an answer arrives; to be entered with `with`."""
        return Inbox(self.clock)


class Bridge:
    """One client, one server, and what is under way between them. `ending` hears of the end."""

    def __init__(
        self,
        client: ClientEnd,
        turns: Turns,
        carrier: Carrier,
        *,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        self._ending = ending
        self._client, self._turns, self._carrier = client, turns, carrier
        self._calls: dict[Key, asyncio.Task[None]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._lines: asyncio.Queue[bytes | LineTooLong | None] = asyncio.Queue(_QUEUED)
        self._left = asyncio.Event()
        self._stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self) -> int:
        """Carries messages until the client leaves or `stop`; the exit code."""
        reader, worker, left = _task(self._read()), _task(self._work()), _task(self._left.wait())
        await _first(left, worker, self._stop)
        self._ending()
        if not self._stop.done() and not self._client.gone:
            await _first(_task(self._finish(worker)), self._stop, timeout_s=_GRACE_S)
        for task in (reader, worker, left):
            task.cancel()
        if worker.done() and not worker.cancelled():
            worker.result()
        last = _task(self._say_goodbye())
        await asyncio.wait({last}, timeout=_FAREWELL_S)
        last.cancel()
        interrupted = self._stop.done() and self._stop.result() == signal.SIGINT
        return _INTERRUPTED if interrupted else 0

    async def _read(self) -> None:
        async for line in self._client.lines():
            await self._lines.put(line)
        self._left.set()
        await self._lines.put(None)

    async def _work(self) -> None:
        while (line := await self._lines.get()) is not None:
            turn = self._turns.from_client(line)
            await self._tell(turn)
            if turn.close is not None and (call := self._calls.get(turn.close)) is not None:
                call.cancel()
            if turn.ending is not None:
                await self._deliver(turn.ending, "DELETE")
            if turn.post is not None:
                await self._send(turn.post)

    async def _send(self, post: Post) -> None:
        if post.key is None:
            await self._deliver(post)
            if post.method == "notifications/initialized" and self._listener is None:
                self._listener = _task(self._listen())
            return
        call = self._calls[post.key] = _task(self._call(post))
        call.add_done_callback(lambda _: self._forget(post.key, call))
        if post.method == "initialize":
            # What comes next belongs to the session that the answer names.
            if self._listener is not None:
                self._listener.cancel()
                self._listener = None
            await asyncio.wait({call})

    def _forget(self, key: Key | None, call: "asyncio.Task[None]") -> None:
        if key is not None and self._calls.get(key) is call:
            del self._calls[key]
        if not call.cancelled() and (error := call.exception()) is not None:
            raise error

    async def _call(self, post: Post) -> None:
        """One call and its answer, whatever it is."""
        began = False
        try:
            with self._carrier.inbox() as inbox:
                self._carrier.start(inbox, post)
                status, headers = await inbox.head()
                began = True
                self._turns.head(post, status, headers)
                body = b""
                if status == 200:
                    await self._hear_out(post, inbox)
                else:
                    body = await self._refusal(inbox)
                    if (again := await self._with_schemas(post, status, body)) is not None:
                        await self._call(again)
                        return
                await self._tell(
                    self._turns.refused(post, status, body, headers.get("retry-after"))
                )
        except AttemptFailed as failed:
            is_away = failed.failure is Failure.UNREACHABLE and not began
            sentence = refusals.UNREACHABLE if is_away else refusals.BROKEN
            await self._tell(self._turns.failed(post, refusals.broken(sentence)))
        except AnswerTooLarge:
            await self._tell(self._turns.failed(post, refusals.broken(refusals.TOO_LARGE)))

    async def _with_schemas(self, post: Post, status: int, body: bytes) -> Post | None:
        """The call once more, after the list of tools that it lacked; None if that was not it."""
        page = self._turns.schemas_wanted(post, status, body)
        if page is None:
            return None
        with suppress(AttemptFailed, AnswerTooLarge):
            for _ in range(_MOST_PAGES):
                page = await self._next_page(page)
                if page is None:
                    break
        return self._turns.again(post)

    async def _next_page(self, page: Post) -> Post | None:
        reader, following = AnswerReader(self._carrier.max_bytes), None
        with self._carrier.inbox() as inbox:
            self._carrier.start(inbox, page)
            while True:
                chunk = await inbox.read()
                for incoming in reader.feed(chunk) if chunk else reader.finish():
                    following = self._turns.schemas(page, incoming) or following
                if not chunk:
                    return following

    async def _hear_out(self, post: Post, inbox: Inbox) -> None:
        """The answer, also where the server lets its stream go before it has come."""
        place, failures = Place(), 0
        try:
            await self._pass_on(post, inbox, place)
        except AttemptFailed:
            if self._turns.resumption(post, place.last_id) is None:
                raise
        while (rest := self._turns.resumption(post, place.last_id)) is not None:
            await _first(self._stop, timeout_s=place.retry_s)
            if failures == _MOST_FAILURES or self._stop.done():
                return
            try:
                with self._carrier.inbox() as again:
                    self._carrier.start(again, rest, "GET")
                    status, _ = await again.head()
                    if status == 200:
                        failures = 0
                        await self._pass_on(post, again, place)
                    elif status < 500:
                        return
                    else:
                        failures += 1
            except AttemptFailed:
                failures += 1

    async def _pass_on(self, post: Post, inbox: Inbox, place: Place) -> None:
        """Messages as they come, until the body ends or the call is answered."""
        reader = AnswerReader(self._carrier.max_bytes)
        place.begin()
        while True:
            chunk = await inbox.read()
            place.feed(chunk)
            for incoming in reader.feed(chunk) if chunk else reader.finish():
                await self._tell(self._turns.from_server(post, incoming))
            if not chunk:
                return
            if post.key is not None and not self._turns.is_open(post):
                # Nothing may follow the answer; the connection can be used again if it ends.
                inbox.let_end(_FAREWELL_S)
                return

    async def _refusal(self, inbox: Inbox) -> bytes:
        """The beginning of a body that says why not; empty if it does not end."""
        body = b""
        inbox.arm(self._carrier.clock.monotonic_s() + _REFUSAL_S)
        try:
            while len(body) <= _MOST_REFUSAL_BYTES and (chunk := await inbox.read()):
                body += chunk
        except AttemptFailed:
            return b""
        return body

    async def _deliver(self, post: Post, method: str = "POST") -> None:
        """What wants no answer; the next message is not sent before it was taken."""
        try:
            async with asyncio.timeout(_DELIVERY_S):
                with self._carrier.inbox() as inbox:
                    self._carrier.start(inbox, post, method)
                    status, _ = await inbox.head()
                    inbox.let_end(_FAREWELL_S)
            if status >= 300 and method == "POST":
                await self._tell(self._turns.refused(post, status, b"", None))
        except (AttemptFailed, TimeoutError):
            if method == "POST":
                await self._tell(self._turns.failed(post, {}))

    async def _listen(self) -> None:
        """The stream for what the server sends by itself, again whenever it ended."""
        pause_s = 1.0
        while (post := self._turns.listening()) is not None:
            try:
                with self._carrier.inbox() as inbox:
                    self._carrier.start(inbox, post, "GET")
                    status, _ = await inbox.head()
                    if status < 500 and status != 200:
                        return
                    if status == 200:
                        pause_s = 1.0
                        await self._pass_on(post, inbox, Place())
            except AttemptFailed:
                pass
            except AnswerTooLarge:
                note("dropped a message of the server that was too long")
            await _first(self._stop, timeout_s=pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _finish(self, worker: "asyncio.Task[None]") -> None:
        """What was read is sent, and answered."""
        await asyncio.wait({worker})
        while self._calls:
            await asyncio.wait(set(self._calls.values()))

    async def _say_goodbye(self) -> None:
        tasks = [*self._calls.values(), *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        # At the same time: a client that does not read does not keep a session open.
        last = [_task(self._client.send(self._turns.ended()))]
        if (ending := self._turns.ending()) is not None:
            last.append(_task(self._deliver(ending, "DELETE")))
        await asyncio.wait(last)

    async def _tell(self, turn: Turn) -> None:
        note(turn.note)
        await self._client.send(turn.to_client)
        if self._client.gone:
            self._left.set()

    def stop(self, number: int) -> None:
        """End because of a signal."""
        if not self._stop.done():
            self._stop.set_result(number)


def _task(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(work)


async def _first(*awaited: "asyncio.Future[Any]", timeout_s: float | None = None) -> None:
    await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


__all__ = ["Bridge", "Carrier", "run_connected"]
