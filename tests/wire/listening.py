"""What the tests of the server share: a listener for an application written in the test."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import TidegateError
from tidegate.gateway.listener import ASGIApp, Listener, WireCaps
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import Answer, RawClient

SOON_S = 0.02
"""A timer that a test waits for."""
LATER_S = 1.0
"""One that must not be over before what the test does first, on a busy machine either."""


@dataclass
class Scene:
    """One listener and what it refused."""

    listener: Listener
    port: int
    refused: list[tuple[TidegateError, str]] = field(default_factory=list)

    async def client(self, **options: Any) -> RawClient:
        return await RawClient.connect("127.0.0.1", self.port, **options)

    async def raw(self, data: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        async with await self.client() as client:
            await client.send(data)
            return await client.rest()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true():
                await turn()


async def turn() -> None:
    """One turn of the loop."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


@asynccontextmanager
async def listening(app: ASGIApp, **caps: Any) -> AsyncIterator[Scene]:
    sock = socket.create_server(("127.0.0.1", 0))
    listener = Listener(app, WireCaps(**caps), refused=None)
    scene = Scene(listener, sock.getsockname()[1])
    listener.refused = lambda error, request_id: scene.refused.append((error, request_id))
    await listener.open(sock)
    try:
        yield scene
    finally:
        await listener.close(flush_s=SOON_S)
        sock.close()
        await scene.until(lambda: not listener.connections)


async def read_body(receive: Callable[[], Awaitable[Any]]) -> bytes | str:
    """The whole body, or the reason why there is none."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return str(message.get("reason", "gone"))
        body += message["body"]
        if not message["more_body"]:
            return body


async def answer(send: Callable[[Any], Awaitable[None]], body: bytes, status: int = 200) -> None:
    """A whole answer with its length."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what arrived, as JSON."""
    body = await read_body(receive)
    seen = {
        "method": scope["method"],
        "path": scope["path"],
        "raw_path": scope["raw_path"].decode("ascii"),
        "query": scope["query_string"].decode("ascii"),
        "headers": [[n.decode("latin-1"), v.decode("latin-1")] for n, v in scope["headers"]],
        "body": body if isinstance(body, str) else body.decode("latin-1"),
    }
    await answer(send, json.dumps(seen).encode())


def parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one raw answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), headers, body


def seen(answered: Answer) -> Any:
    """What `echo` saw."""
    return json.loads(answered.body)
