"""What does a test of hidden and unknown tools need: servers that fail in every way, and a view of
everything that a client can see of an answer."""

import json
import re
from collections.abc import Iterable
from typing import Any

from tests.app.mcp_world import Asked, World, call
from tests.unit.mcp.asking import allow, deny
from tidegate.mcp import RuleSet

GONE = {"code": -32601, "message": "Method not found"}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "roster", "version": "1"},
    "resultType": "complete",
    "ttlMs": 1,
    "cacheScope": "public",
}


def _error(code: int, text: str) -> Any:
    return {"error": {"code": code, "message": text}}


def _failed(text: str) -> Any:
    return {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}


WAYS: dict[str, Any] = {
    "a result": lambda name: _failed(f"Unknown tool: {name}"),
    "a result that tells more": lambda name: _failed(f"Error executing tool {name}: KeyError"),
    "a success": lambda name: {"result": {"content": [{"type": "text", "text": name}]}},
    "invalid params": lambda name: _error(-32602, f"Unknown tool: {name}"),
    "invalid params of its own": lambda name: _error(-32602, f"{name}? never heard of it"),
    "no method": lambda _: _error(-32601, "Method not found"),
    "internal": lambda name: _error(-32603, f"Unknown tool: {name}"),
    "a code of its own": lambda name: _error(-32000, f"no {name}"),
}
"""How a server says that it has no such tool."""

BROKEN: dict[str, Any] = {
    "is down": Asked.fail,
    "is behind a proxy that fails": lambda asked: asked.whole(b"<html>502", 502),
    "refuses our credential": lambda asked: asked.whole({"error": "unauthorized"}, 401),
}
STATES = (
    *BROKEN,
    "serves",
    "demands a session",
    "fails lists",
    "refuses lists",
    "lists nonsense",
    "lists in circles",
)
"""What a server may be like beside that."""


class Roster:
    """A server with the tools in `names`, in one of STATES.

    `log` has all that reached it, as method and name; `changed` is said in the answer of each call.
    """

    def __init__(
        self, *names: str, way: str = "a result", state: str = "serves", is_modern: bool = False
    ) -> None:
        """`is_modern`: of 2026-07-28 alone; otherwise of the handshake."""
        self.is_modern = is_modern
        self.names = list(names)
        self.way = way
        self.state = state
        self.page = 100
        self.news = False
        self.log: list[tuple[str, str | None]] = []

    @property
    def called(self) -> list[str | None]:
        """The names of all tools that it was called for."""
        return [name for method, name in self.log if method == "tools/call"]

    @property
    def lists(self) -> int:
        """How often it was asked for its tools, page by page."""
        return sum(method == "tools/list" for method, _ in self.log)

    async def __call__(self, asked: Asked) -> None:
        if not asked.raw:
            asked.whole(b"", 405)
            return
        message = asked.message
        method, params = message.get("method", "answer"), message.get("params") or {}
        self.log.append((method, params.get("name")))
        if self.state in BROKEN:
            BROKEN[self.state](asked)
        elif "id" not in message:
            asked.head(202)
            asked.end()
        elif method == "initialize" and not self.is_modern:
            asked.result(
                {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
                mcp_session_id="theirs",
            )
        elif self.state == "demands a session" and "mcp-session-id" not in asked.headers:
            self._say(asked, _error(-32600, "Bad Request: Missing session ID"), 400)
        elif method == "server/discover":
            self._say(asked, {"result": DISCOVERED} if self.is_modern else {"error": GONE})
        elif method == "tools/list":
            self._list(asked, params)
        elif method == "tools/call":
            self._call(asked, params["name"])
        else:
            self._say(asked, {"error": GONE})

    def _list(self, asked: Asked, params: Any) -> None:
        start = int(params.get("cursor", 0))
        shown = self.names[start : start + self.page]
        result: Any = {"tools": [{"name": name, "inputSchema": {}} for name in shown]}
        if start + self.page < len(self.names):
            result["nextCursor"] = str(start + self.page)
        if "_meta" in params:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        said = {
            "fails lists": _error(-32603, "no database"),
            "refuses lists": _error(-32602, "not like this"),
            "lists nonsense": {"result": {"tools": "none"}},
            "lists in circles": {"result": {**result, "nextCursor": "0"}},
            "knows no lists": {"error": GONE},
        }.get(self.state, {"result": result})
        self._say(asked, said)

    def _call(self, asked: Asked, name: str) -> None:
        done = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}
        said = {"result": done} if name in self.names else WAYS[self.way](name)
        if not self.news:
            self._say(asked, said)
            return
        asked.head(content_type="text/event-stream")
        asked.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        asked.event({"jsonrpc": "2.0", "id": asked.message["id"], **said})
        asked.end()

    def _say(self, asked: Asked, said: Any, status: int = 200) -> None:
        asked.whole({"jsonrpc": "2.0", "id": asked.message["id"], **said}, status)


def seen(answer: Any, *ids: str) -> Any:
    """Everything a client sees of an answer, without the ids of requests and tags of cursors."""
    body = re.sub(rb"[0-9a-f]{16}-[0-9a-f]{32}-", b"-", answer.body)
    for each in (answer.header("x-request-id") or "", *ids):
        body = body.replace(each.encode(), b"-") if each else body
    headers = [pair for pair in answer.headers if pair[0] != "x-request-id"]
    return answer.status, headers, body


def told(answer: Any) -> Any:
    """The message in a body."""
    return json.loads(answer.body)


def methods(log: Iterable[tuple[str, str | None]]) -> list[str]:
    """Only the methods of a log."""
    return [method for method, _ in log]


ALL_BUT = RuleSet([deny(tools=("secret",)), allow()])
UNKNOWN = {"code": -32601, "message": "Unknown tool"}


def world_of(*names: str, rules: RuleSet = ALL_BUT, **more: Any) -> tuple[World, Roster]:
    server = Roster(*(names or ("a", "b", "secret")))
    return World(server, rules=rules, hide_denied="full", **more), server


async def told_of(world: World, name: str, **head: str) -> Any:
    """The word "done", or the error that a call ends with."""
    answer = told(await world.post(call(name), **head))
    return "done" if "result" in answer else answer["error"]
