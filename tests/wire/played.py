"""An MCP server on HTTP whose answers are functions of a test."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire.listening import listening, read_body

EVENTS = (b"content-type", b"text/event-stream")
JSON = (b"content-type", b"application/json")
Headers = tuple[tuple[bytes, bytes], ...]


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    headers: dict[str, str]
    body: Any

    @property
    def id(self) -> Any:
        return self.body.get("id")


@dataclass
class Played:
    """A server whose answer to a method is a function of the test."""

    acts: dict[str, Callable[[Seen, "Answering"], Awaitable[None]]]
    seen: list[Seen] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await read_body(receive)
        headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in scope["headers"]}
        parsed = json.loads(body) if body else {}
        request = Seen(scope["method"], headers, parsed)
        self.seen.append(request)
        act = self.acts.get(parsed.get("method", scope["method"]), accepted)
        await act(request, Answering(receive, send, self))

    def names(self) -> list[str]:
        return [seen.body.get("method", seen.method) for seen in self.seen]


@dataclass
class Answering:
    """The server's side of one exchange."""

    receive: Any
    send: Any
    server: Played

    async def head(self, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
        head = {"type": "http.response.start", "status": status, "headers": list(headers)}
        await self.send(head)

    async def body(self, data: bytes, *, more: bool = False) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def event(self, value: object) -> None:
        await self.body(b"data: " + json.dumps(value).encode() + b"\n\n", more=True)

    async def whole(self, data: bytes, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
        await self.head(status, (b"content-length", b"%d" % len(data)), *headers)
        await self.body(data)

    async def until_it_leaves(self) -> None:
        """Until the other side has closed the connection, of which the listener cancels us."""
        try:
            while (await self.receive())["type"] != "http.disconnect":
                pass
            await asyncio.Event().wait()
        finally:
            self.server.left.set()


async def accepted(seen: Seen, answer: Answering) -> None:
    if seen.method == "GET":
        await answer.whole(b"", 405)
    elif seen.id is None or "method" not in seen.body:
        await answer.whole(b"", 202)
    else:
        await answer.whole(json.dumps(result(seen.id)).encode(), 200, JSON)


def result(identifier: object, **members: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": members}


def says(data: bytes, status: int = 200, *headers: tuple[bytes, bytes]) -> Any:
    async def act(_: Seen, answer: Answering) -> None:
        await answer.whole(data, status, *headers)

    return act


async def hello(seen: Seen, answer: Answering) -> None:
    body = json.dumps(result(seen.id, protocolVersion="2025-11-25")).encode()
    await answer.whole(body, 200, JSON, (b"mcp-session-id", b"session-1"))


@asynccontextmanager
async def played(**acts: Any) -> AsyncIterator[Played]:
    """A server; the names of methods are written with __ for /."""
    server = Played({"initialize": hello, **{k.replace("__", "/"): v for k, v in acts.items()}})
    async with listening(server) as scene:
        server.url = f"http://127.0.0.1:{scene.port}/mcp"
        yield server
