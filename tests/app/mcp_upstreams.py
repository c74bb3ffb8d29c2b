"""What do MCP servers of one era look like that take no message which their revision forbids?

Scripted servers for tests of the bridge: each notes what breaks the rules of its own revision in
`faults`, answers as that revision demands, and logs every tool that ran.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.app.mcp_world import Asked
from tidegate.jsonrpc import classify
from tidegate.mcp.eras import MODERN, Rejection, read_headers, settle
from tidegate.mcp.header_values import decode_value

BOTH = "application/json, text/event-stream"
PREFIX = "io.modelcontextprotocol/"
SUBSCRIPTION = f"{PREFIX}subscriptionId"
ECHO = {
    "name": "echo",
    "title": "Echo",
    "icons": [{"src": "data:,x"}],
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "outputSchema": {"type": "object"},
}
SOMEWHERE = {
    "name": "somewhere",
    "inputSchema": {
        "type": "object",
        "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}},
    },
}
BROKEN = {
    "name": "broken",
    "inputSchema": {
        "type": "object",
        "properties": {"z": {"type": "number", "x-mcp-header": "Zone"}},
    },
}
TOOLS = [ECHO, SOMEWHERE, {"name": "slow", "inputSchema": {"type": "object"}}]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "logging": {},
    "completions": {},
}
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}
RESULTS: dict[str, Any] = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": [{"uri": "test://a", "name": "a"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "test://a", "text": "A"}]},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "prompts/get": {"messages": [HELLO]},
    "completion/complete": {"completion": {"values": ["x"], "hasMore": False}},
}
DISCOVERED: dict[str, Any] = {
    "supportedVersions": [MODERN],
    "capabilities": {**CAPABILITIES, "extensions": {"x/y": {}}},
    "instructions": "Be new.",
    "_meta": {f"{PREFIX}serverInfo": {"name": "new", "version": "2"}},
}
Handler = Callable[["Upstream", Asked, dict[str, Any]], Awaitable[object]]


class Refusal(Exception):
    """The message is answered with this error, under this status."""

    def __init__(self, status: int, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Upstream:
    """What servers of both eras have in common: a script for a ScriptedTransport.

    `handler` may answer a request itself: it returns a result, or writes to `asked` and ends it.
    `streams` are answers that it left open, `changes` the streams for what changes.
    """

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler = handler
        self.log: list[Any] = []
        self.faults: list[str] = []
        self.heard: list[Any] = []
        self.streams: list[Asked] = []
        self.changes: list[Asked] = []
        self.answers: list[Any] = []
        self.streamed = asyncio.Event()
        self.go = asyncio.Event()

    def methods(self) -> list[str]:
        """The methods of what came, in order."""
        return [message.get("method", "answer") for message in self.heard]

    async def __call__(self, asked: Asked) -> None:
        if asked.method != "POST":
            await self.other(asked)
            return
        if asked.headers.get("accept") != BOTH:
            self.faults.append(f"accept: {asked.headers.get('accept')}")
        message = asked.message
        self.heard.append(message)
        try:
            result = await self.answer(asked, message)
        except Refusal as refusal:
            body = {"jsonrpc": "2.0", "id": message.get("id"), "error": refusal.error}
            asked.whole(body, refusal.status)
            return
        if "id" not in message or "method" not in message:
            asked.head(202)
            asked.end()
        elif not asked.ended and result is not None:
            asked.result(result, **self.more_head(message))

    def more_head(self, message: Any) -> dict[str, str]:
        del message
        return {}

    async def other(self, asked: Asked) -> None:
        asked.whole(b"", 405)

    async def answer(self, asked: Asked, message: Any) -> object:
        raise NotImplementedError

    async def work(self, asked: Asked, message: Any) -> Any:
        """What the methods of all revisions give."""
        method, params = message["method"], message.get("params") or {}
        given = await self.handler(self, asked, message) if self.handler is not None else None
        if given is not None or asked.ended:
            return given
        if method == "tools/call":
            self.log.append(params["name"])
            text = json.dumps(params.get("arguments"))
            return {"content": [{"type": "text", "text": text}]}
        if method not in RESULTS:
            raise self.no_method(method)
        if method == "resources/read" and params["uri"] != "test://a":
            raise self.no_resource(params["uri"])
        return RESULTS[method]

    async def stay(self, asked: Asked) -> None:
        """A stream that stays open until the gateway leaves it."""
        self.streams.append(asked)
        self.streamed.set()
        await asked.gone.wait()

    def no_resource(self, uri: str) -> Refusal:
        raise NotImplementedError

    def no_method(self, method: str) -> Refusal:
        raise NotImplementedError


class LegacyUpstream(Upstream):
    """A server of the handshake. `sessions`: it gives out session ids and demands them."""

    def __init__(
        self,
        version: str = "2025-11-25",
        handler: Handler | None = None,
        *,
        sessions: bool = True,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(handler)
        self.version = version
        self.sessions = sessions
        self.lost = Refusal(404, -32600, "Session not found")
        self.refusal = refusal or Refusal(400, -32000, "Bad Request: Unsupported protocol version")
        self.open: dict[str | None, list[str]] = {}
        self.made = 0

    async def other(self, asked: Asked) -> None:
        session = asked.headers.get("mcp-session-id")
        if asked.headers.get("mcp-protocol-version") != self.version:
            self.faults.append("version")
        if session not in self.open:
            asked.whole(b"", 404)
        elif asked.method == "DELETE":
            del self.open[session]
            self.log.append("DELETE")
            asked.whole(b"", 200)
        else:
            if asked.headers.get("accept") != "text/event-stream":
                self.faults.append("accept of a GET")
            asked.head(200, "text/event-stream")
            self.changes.append(asked)
            await asked.gone.wait()

    def more_head(self, message: Any) -> dict[str, str]:
        opens = message["method"] == "initialize" and self.sessions
        return {"mcp_session_id": f"session{self.made}"} if opens else {}

    async def answer(self, asked: Asked, message: Any) -> object:
        method = message.get("method")
        if asked.headers.get("mcp-protocol-version") == MODERN or method == "server/discover":
            raise self.refusal
        self._look_at(asked, message)
        if method == "initialize":
            return self._begin(asked)
        session = asked.headers.get("mcp-session-id")
        if session not in self.open:
            raise self.lost if session else Refusal(400, -32600, "Session not found")
        if asked.headers.get("mcp-protocol-version") != self.version:
            self.faults.append("version")
        if method is None:
            self.answers.append(message)
            return None
        if method == "notifications/initialized":
            self.open[session].append("initialized")
            return None
        if "initialized" not in self.open[session]:
            self.faults.append("nothing was initialized")
        if "id" not in message:
            self.log.append(message)
            return None
        if method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"):
            self.log.append((method, next(iter(message.get("params", {}).values()), None)))
            return {}
        return await self.work(asked, message)

    def _look_at(self, asked: Asked, message: Any) -> None:
        meta = (message.get("params") or {}).get("_meta") or {}
        if any(key.startswith(PREFIX) for key in meta):
            self.faults.append("an envelope")
        if any(name.startswith("mcp-param") or name == "mcp-method" for name in asked.headers):
            self.faults.append("headers of another era")

    def _begin(self, asked: Asked) -> object:
        if "mcp-session-id" in asked.headers or "mcp-protocol-version" in asked.headers:
            self.faults.append("headers at initialize")
        self.made += 1
        self.open[f"session{self.made}" if self.sessions else None] = []
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "old", "version": "1"},
            "instructions": "Be old.",
        }

    def no_resource(self, uri: str) -> Refusal:
        return Refusal(200, -32002, "Resource not found", {"uri": uri})

    def no_method(self, method: str) -> Refusal:
        return Refusal(200, -32601, f"Method not found: {method}")


class ModernUpstream(Upstream):
    """A server that knows 2026-07-28 and nothing else."""

    def __init__(self, handler: Handler | None = None, tools: Any = None) -> None:
        super().__init__(handler)
        self.tools = tools or [*TOOLS, BROKEN]

    async def answer(self, asked: Asked, message: Any) -> object:
        self._look_at(asked, message)
        if "id" not in message:
            self.log.append(message)
            return None
        method, params = message["method"], message["params"]
        if method == "server/discover":
            return {**DISCOVERED, "resultType": "complete", "ttlMs": 1000, "cacheScope": "public"}
        if method == "subscriptions/listen":
            await self.listen(asked, message)
            return None
        if method == "tools/call":
            self._compare(asked, params)
        result = await self.work(asked, message)
        if result is None:
            return None
        if method == "tools/list":
            result = {"tools": self.tools}
        whole = {"resultType": "complete", **result}
        cached = method.endswith("/list") or method == "resources/read"
        return {**whole, "ttlMs": 60_000, "cacheScope": "public"} if cached else whole

    def _look_at(self, asked: Asked, message: Any) -> None:
        version = asked.headers.get("mcp-protocol-version")
        if version != MODERN:
            named = {"supported": [MODERN], "requested": version or ""}
            raise Refusal(400, -32022, "Unsupported protocol version", named)
        pairs = [(name.encode(), value.encode()) for name, value in asked.headers.items()]
        settled = settle(classify(message), read_headers(pairs))  # type: ignore[arg-type]
        if isinstance(settled, Rejection):
            self.faults.append(settled.message)
            raise Refusal(400, int(settled.code), settled.message)
        if "mcp-session-id" in asked.headers:
            self.faults.append("a session")

    def _compare(self, asked: Asked, params: Any) -> None:
        schema = next((t["inputSchema"] for t in self.tools if t["name"] == params["name"]), {})
        for name, each in schema.get("properties", {}).items():
            if "x-mcp-header" not in each:
                continue
            header = asked.headers.get(f"mcp-param-{each['x-mcp-header'].lower()}")
            value = (params.get("arguments") or {}).get(name)
            if (None if header is None else decode_value(header)) != value:
                raise Refusal(400, -32020, f"Header mismatch: {name}")

    async def listen(self, asked: Asked, message: Any) -> None:
        asked.head(200, "text/event-stream")
        meta = {SUBSCRIPTION: message["id"]}
        params = {"notifications": message["params"]["notifications"], "_meta": meta}
        method = "notifications/subscriptions/acknowledged"
        asked.event({"jsonrpc": "2.0", "method": method, "params": params})
        self.changes.append(asked)
        await asked.gone.wait()

    def no_resource(self, uri: str) -> Refusal:
        return Refusal(400, -32602, "Resource not found", {"uri": uri})

    def no_method(self, method: str) -> Refusal:
        return Refusal(404, -32601, f"Method not found: {method}")
