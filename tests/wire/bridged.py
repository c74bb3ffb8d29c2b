"""A client on pipes, and the bridge of `mcp connect` in this process between it and a URL."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tidegate.bridges.connect import Bridge, Carrier
from tidegate.bridges.endpoint import endpoint
from tidegate.bridges.pipes import ClientEnd
from tidegate.bridges.turns import Turns
from tidegate.clock import SystemClock
from tidegate.testing.asgi import WAIT_S
from tidegate.tools.stdio import Wire
from tidegate.transport.aiohttp_client import AiohttpTransport

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class LineClient:
    """Says messages, hears lines; every wait is bounded."""

    def __init__(self, bridge: Bridge, to_bridge: int, reader: asyncio.StreamReader) -> None:
        self.bridge = bridge
        self._to_bridge = to_bridge
        self._reader = reader
        self._closed = False

    def say(self, *messages: object) -> None:
        for message in messages:
            os.write(self._to_bridge, json.dumps(message).encode() + b"\n")

    def ask(self, identifier: object, method: str, **params: object) -> None:
        """A request without an envelope, as in a session."""
        self.say({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})

    def ask_modern(self, identifier: object, method: str, **params: object) -> None:
        self.ask(identifier, method, **params, _meta=MODERN)

    def note(self, method: str, **params: object) -> None:
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def hear(self) -> Any:
        async with asyncio.timeout(WAIT_S):
            return json.loads(await self._reader.readuntil(b"\n"))

    async def shake_hands(self) -> Any:
        self.ask("hello", "initialize", **HELLO)
        answer = await self.hear()
        self.note("notifications/initialized")
        return answer

    def leave(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._to_bridge)

    async def rest(self) -> list[Any]:
        """What still comes after the client has left."""
        self.leave()
        async with asyncio.timeout(WAIT_S):
            return [json.loads(line) for line in (await self._reader.read()).splitlines()]


@asynccontextmanager
async def bridged(
    url: str, token: str | None = None, max_bytes: int = 1 << 20
) -> AsyncIterator[LineClient]:
    """A client whose bridge leads to `url`; afterwards the bridge has ended."""
    inward, outward = os.pipe(), os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(outward[0], "rb")
    )
    http = AiohttpTransport()
    await http.open()
    end = ClientEnd(Wire(inward[0], outward[1]), max_bytes)
    carrier = Carrier(http, SystemClock(), url, max_bytes)
    bridge = Bridge(end, Turns(endpoint(url, token), max_bytes), carrier)
    running = asyncio.get_running_loop().create_task(bridge.run())
    running.add_done_callback(lambda _: os.close(outward[1]))
    client = LineClient(bridge, inward[1], reader)
    try:
        yield client
    finally:
        client.leave()
        async with asyncio.timeout(WAIT_S):
            await running
        await http.close()
        transport.close()
        os.close(inward[0])
