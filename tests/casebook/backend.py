"""What does the scripted MCP upstream answer, and which tools did it run?

A small stateless server of its own (so that a fault of the demo's backend cannot hide one of the
gateway), whose answers a case can replace: `pages`, `result`, a raw `body`, or a `behaviour` in
words. Does not live here: the listener (upstreams), what is right (rules).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.casebook.rules.words import seconds
from tests.casebook.upstreams import Conversation

TOOLS = ("get_status", "admin_reset_key", "admin_delete_tenant")
_JSON = ("Content-Type", "application/json")
_EVENTS = ("Content-Type", "text/event-stream")
_STEP = re.compile(
    r"(?P<what>[\w /-]*?(?:notification|result|answer|error|comment)[\w /-]*?)"
    r"(?: with token (?P<token>[\w-]+))? at (?P<times>[0-9.]+ ?m?s(?:(?:, | and )[0-9.]+ ?m?s)*)"
)


class CannotBehave(ValueError):
    """Words that describe no behavior."""


class Backend:
    """Serves one case at a time: `expect` sets its script and forgets what ran before."""

    def __init__(self) -> None:
        self.script: Mapping[str, Any] = {}
        self.executed: list[str] = []
        self.said: list[bytes] = []
        self.expected_id: object = None

    def expect(self, script: Mapping[str, Any] | None) -> None:
        """Begin a case."""
        self.script = script or {}
        self.executed.clear()
        self.said.clear()

    async def serve(self, conversation: Conversation) -> None:
        """Answer one request."""
        call = conversation.call
        if call.method != "POST":
            await conversation.head(405, [("Allow", "POST")], length=0)
            return
        message = call.json
        if isinstance(message, list):
            answers = [answer for one in message if (answer := self._answer(one)) is not None]
            await self._whole(conversation, answers)
            return
        self._note(message)
        if not isinstance(message, dict) or "id" not in message:
            await conversation.head(202, [], length=0)
            return
        if "behaviour" in self.script or "behavior" in self.script:
            await self._behave(conversation, message)
        elif "body" in self.script:
            await self._raw(conversation, message)
        else:
            await self._whole(conversation, self._reply(message))

    def _answer(self, message: Any) -> dict[str, Any] | None:
        self._note(message)
        if not isinstance(message, dict) or "id" not in message:
            return None
        return self._reply(message)

    def _note(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            params = message.get("params")
            if isinstance(params, dict):
                self.executed.append(str(params.get("name")))

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        result = self._result(message)
        if result is None:
            error = {"code": -32601, "message": "Method not found"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, message: dict[str, Any]) -> Any:
        method, params = message.get("method"), message.get("params") or {}
        if method == "tools/call":
            text = {"type": "text", "text": f"ran {params.get('name')}"}
            return self.script.get("result", {"content": [text]})
        if method == "tools/list":
            return self._page(params)
        simple: dict[object, Any] = {
            "ping": {},
            "resources/list": {"resources": []},
            "prompts/list": {"prompts": []},
            "initialize": {
                "protocolVersion": params.get("protocolVersion", "2025-11-25"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            },
            "server/discover": {
                "supportedVersions": ["2026-07-28", "2025-11-25"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            },
        }
        return simple.get(method)

    def _page(self, params: dict[str, Any]) -> dict[str, Any]:
        pages = self.script.get("pages") or [list(self.script.get("tools", TOOLS))]
        # A cursor of odd characters: whoever re-encodes it breaks it.
        cursors = [None, *(f"c={at}&x=%2F é+/=" for at in range(1, len(pages)))]
        cursor = params.get("cursor")
        at = cursors.index(cursor) if cursor in cursors else 0
        tools = [
            tool if isinstance(tool, dict) else {"name": tool, "inputSchema": {"type": "object"}}
            for tool in pages[at]
        ]
        page: dict[str, Any] = {"tools": tools}
        if at + 1 < len(pages):
            page["nextCursor"] = cursors[at + 1]
        return page

    async def _whole(self, conversation: Conversation, value: object) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        self.said.append(data)
        status = int(self.script.get("status", 200))
        headers = [_JSON, *(self.script.get("headers") or {}).items()]
        await conversation.head(status, headers, length=len(data))
        await conversation.send(data)

    async def _raw(self, conversation: Conversation, message: dict[str, Any]) -> None:
        """The body as the case wrote it, under the id that came here."""
        text = str(self.script["body"])
        if not _same_id(message["id"], self.expected_id):
            text = re.sub(
                rf'("id"\s*:\s*){re.escape(json.dumps(self.expected_id))}\b',
                lambda m: m[1] + json.dumps(message["id"]),
                text,
            )
        data = text.encode()
        self.said.append(data)
        kind = str(self.script.get("content_type", "application/json"))
        status = int(self.script.get("status", 200))
        await conversation.head(status, [("Content-Type", kind)], length=None)
        await conversation.piece(data)
        await conversation.end()

    async def _behave(self, conversation: Conversation, message: dict[str, Any]) -> None:
        """A stream of steps at given moments, counted from the request."""
        words = str(self.script.get("behaviour", self.script.get("behavior")))
        steps = timeline(words)
        await conversation.head(200, [_EVENTS], length=None)
        now_s = 0.0
        for at_s, what, token in steps:
            await conversation.pause(at_s - now_s)
            now_s = at_s
            data = json.dumps(self._step(message, what, token)).encode()
            self.said.append(data)
            await conversation.piece(b"event: message\ndata: " + data + b"\n\n")
        await conversation.end()

    def _step(self, message: dict[str, Any], what: str, token: str) -> dict[str, Any]:
        if "notification" not in what:
            return self._reply(message)
        meta = (message.get("params") or {}).get("_meta") or {}
        if "progress" in what:
            params = {"progressToken": token or meta.get("progressToken"), "progress": 1}
            return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        params = {"level": "info", "data": "x"}
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def timeline(words: str) -> list[tuple[float, str, str]]:
    """(moment, what, token) in order; raises CannotBehave."""
    steps = []
    for found in _STEP.finditer(words):
        for moment in re.findall(r"[0-9.]+ ?m?s", found["times"]):
            steps.append((seconds(moment), found["what"].strip(), found["token"] or ""))
    if not steps:
        raise CannotBehave(words)
    return sorted(steps)


def _same_id(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
