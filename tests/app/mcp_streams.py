"""What do the tests of GET streams share: a server with sessions and streams, and its clients."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.app.mcp_answers import BOTH, STREAM
from tests.app.mcp_world import Asked, World, ask, call, echo
from tidegate import sse
from tidegate.sse import Event
from tidegate.testing.asgi import WAIT_S, ASGIExchange

VERSION = "2025-11-25"
EVENTS_FIRST = "text/event-stream, application/json"
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
STATUS = call("get_status")
RESULT = {"content": [{"type": "text", "text": "done"}]}


def updated(uri: str) -> Any:
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}


def said(text: str) -> Any:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": text}}


class StreamingServer:
    """Mints sessions and lets the test answer calls and GETs; `calls` and `gets` are those so far.

    `refuses` is a status for every GET instead of a stream.
    """

    def __init__(self, *, version: str = VERSION, refuses: int = 0) -> None:
        self.calls: list[Asked] = []
        self.gets: list[Asked] = []
        self.notices: list[Any] = []
        self.refuses = refuses
        self._version = version
        self._sessions = 0
        self._waiting: deque[asyncio.Future[Asked]] = deque()
        self._fresh: deque[Asked] = deque()

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            self.gets.append(asked)
            if self.refuses:
                asked.head(self.refuses)
                asked.end()
                return
            asked.head(200, STREAM)
            self._hand_over(asked)
        elif asked.method == "DELETE":
            asked.head(204)
            asked.end()
        elif "id" not in asked.message or "method" not in asked.message:
            self.notices.append(asked.message)
            asked.head(202)
            asked.end()
        elif asked.message["method"] == "initialize":
            self._sessions += 1
            result = {"protocolVersion": self._version, "capabilities": {}}
            asked.result(result, mcp_session_id=f"theirs-{self._sessions}")
        elif asked.message["method"] == "tools/call":
            self.calls.append(asked)
            self._hand_over(asked)
        else:
            await echo(asked)

    def _hand_over(self, asked: Asked) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(asked)
        else:
            self._fresh.append(asked)

    async def arrival(self) -> Asked:
        """The next call or GET that has arrived and that the test has not had yet."""
        if self._fresh:
            return self._fresh.popleft()
        waiting: asyncio.Future[Asked] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        async with asyncio.timeout(WAIT_S):
            return await waiting


def event(asked: Asked, value: object, *, id: str | None = None) -> None:  # noqa: A002
    """The server says something, at a place in its stream."""
    asked.body(sse.encode(json.dumps(value).encode(), event="message", id=id))


def prime(asked: Asked, id: str, retry_ms: int | None = 500) -> None:  # noqa: A002
    """The server says where to come back to."""
    asked.body(sse.encode(b"", id=id, retry_ms=retry_ms))


def reply(asked: Asked, *, to: Asked | None = None, id: str | None = None) -> None:  # noqa: A002
    """The server answers the call `to`, or the one it was asked with."""
    number = (to or asked).message["id"]
    event(asked, {"jsonrpc": "2.0", "id": number, "result": RESULT}, id=id)


async def begin(world: World, role: str = "viewer", **headers: str) -> str:
    """A session's id."""
    hello = ask("initialize", protocolVersion=VERSION, capabilities={}, clientInfo={"name": "c"})
    answer = await world.post(hello, role=role, **headers)
    session = answer.header("mcp-session-id")
    assert session is not None
    return session


def listen(world: World, session: str | None, **headers: str) -> ASGIExchange:
    """A GET, to be entered."""
    named = {"accept": STREAM, **headers}
    if session is not None:
        named["mcp_session_id"] = session
    return world.exchange(b"", method="GET", **named)


def calling(world: World, session: str, message: Any, **headers: str) -> ASGIExchange:
    """A POST of a client that takes streams, to be entered."""
    return world.exchange(message, **{"accept": BOTH, "mcp_session_id": session, **headers})


def heard(exchange: ASGIExchange) -> list[Event]:
    """The events a client has got so far, with their places."""
    return sse.Decoder(1 << 20, marks=True).feed(exchange.body)


def values(exchange: ASGIExchange) -> list[Any]:
    """The messages a client has got so far."""
    return [json.loads(each.data) for each in heard(exchange) if each.data]


async def last_record(world: World, count: int) -> Any:
    """The end of the record number `count`, once it is there."""
    async with asyncio.timeout(WAIT_S):
        while len(world.records.ends) < count:
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
    return world.records.ends[count - 1].snapshot()


async def passes(seconds: float) -> None:
    """Time, on a loop where it is virtual."""
    await asyncio.sleep(seconds)  # noqa: TID251


async def let_go(world: World, server: StreamingServer, session: str, message: Any = STATUS) -> Any:
    """A call whose stream the server has ended; the call as the server has it, and the place."""
    async with calling(world, session, message) as exchange:
        asked = await server.arrival()
        asked.head(200, "text/event-stream")
        prime(asked, f"e{len(server.calls)}")
        asked.end()
        await exchange.read()
    assert exchange.status == 200
    (primed,) = heard(exchange)
    assert primed.data == b""
    return asked, primed.id


@asynccontextmanager
async def taken_up(
    world: World, server: StreamingServer, session: str, place: str
) -> AsyncIterator[tuple[ASGIExchange, Asked]]:
    """The GET of a client that comes back, and the one of ours."""
    async with listen(world, session, last_event_id=place) as exchange:
        yield exchange, await server.arrival()
