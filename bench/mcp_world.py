"""What stands behind and beside the gateway in bench_mcp_gateway.py?

Run as `mcp_world.py server PORT` or `mcp_world.py fastmcp PORT UPSTREAM_PORT`. The server answers
with bytes it made before, in one write, and costs as little as Python can: what it takes itself is
part of every figure, and must not hide what is in front of it.
"""

# ruff: noqa: PLC0415 - each design imports what it is made of

import asyncio
import json
import re
import sys
from functools import cache
from typing import Any, Final

ID: Final = re.compile(rb'"id":\s*("[^"]*"|[0-9]+)')
TEXT: Final = "The parcel of order 4711 left the warehouse in the morning. "
MODERN, LEGACY = "2026-07-28", "2025-11-25"
NAMES: Final = ("small", "large", *(f"tool_{number:02}" for number in range(48)))


def result_of(body: bytes) -> bytes:
    """The result for one request, without its id."""
    modern = MODERN.encode() in body
    if b'"tools/call"' in body:
        return answers()["large" if b'"large"' in body else "small", modern]
    for method in ("tools/list", "initialize", "server/discover"):
        if f'"{method}"'.encode() in body:
            return answers()[method, modern]
    return answers()["ping", modern]


@cache
def answers() -> dict[tuple[str, bool], bytes]:
    """Each result in both eras, made once."""
    return {
        (name, modern): json.dumps(value, separators=(",", ":")).encode()
        for modern in (False, True)
        for name, value in values(modern).items()
    }


def values(modern: bool) -> dict[str, dict[str, Any]]:  # noqa: FBT001
    """What the server says."""
    done = {"resultType": "complete"} if modern else {}
    kept = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
    named = {"name": "world", "version": "1"}
    tools: dict[str, Any] = {"tools": {"listChanged": False}}
    return {
        "initialize": {"protocolVersion": LEGACY, "capabilities": tools, "serverInfo": named},
        "server/discover": {
            **done,
            **kept,
            "supportedVersions": [MODERN, LEGACY],
            "capabilities": tools,
            "_meta": {"io.modelcontextprotocol/serverInfo": named},
        },
        "tools/list": {**done, **kept, "tools": [tool(name) for name in NAMES]},
        "small": {**done, **content([TEXT]), "isError": False},
        "large": {**done, **content([TEXT * 8] * 21), "isError": False},
        "ping": done,
    }


def content(texts: list[str]) -> dict[str, Any]:
    """What a tool says."""
    return {"content": [{"type": "text", "text": text} for text in texts]}


def tool(name: str) -> dict[str, Any]:
    """One of the tools of the list."""
    city = {"type": "string", "description": "Where it goes to"}
    count = {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many"}
    return {
        "name": name,
        "title": name.capitalize(),
        "description": f"{TEXT}It is the tool {name}, and it changes nothing.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": city, "count": count},
            "required": ["city"],
            "additionalProperties": False,
        },
    }


class Answering(asyncio.Protocol):
    """One connection. A head, then a body of the told length, whatever else the head says."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio calls this."""
        self._transport: Any = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        """Asyncio calls this."""
        self._held += data
        while (whole := self._whole()) is not None:
            self._answer(whole)

    def _whole(self) -> bytes | None:
        """The body of the next request, once it is here."""
        head, found, rest = self._held.partition(b"\r\n\r\n")
        if not found:
            return None
        length = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return None
        self._held = rest[size:]
        return rest[:size]

    def _answer(self, body: bytes) -> None:
        known = ID.search(body)
        if known is None:
            self._transport.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        says = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (known[1], result_of(body))
        session = b"mcp-session-id: one\r\n" if b'"initialize"' in body else b""
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n%b"
            % (session, len(says), says)
        )


async def serve(port: int) -> None:
    """The server, until it is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


def main(design: str, port: int, upstream: int = 0) -> None:
    """Be one of them."""
    if design == "server":
        import uvloop

        uvloop.run(serve(port))
        return
    import uvicorn
    from fastmcp.server import create_proxy

    proxy = create_proxy(f"http://127.0.0.1:{upstream}/mcp", name="bench")
    options: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "log_level": "error"}
    app = proxy.http_app(json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, **options)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
