"""Does the MCP gateway do what the cases of pillar 2 say where several requests matter?

One function for each case, named by its id; tests.casebook calls and cites them.
"""
# ruff: noqa: N802 - the id of a case has capitals

import asyncio
import json
from typing import Any

import pytest

from tests.casebook.seen import Exchange, check, equal, short
from tests.casebook.upstreams import Conversation
from tests.casebook.world import World, play, within

pytestmark = pytest.mark.full
PAIRS, AT_ONCE = 200, 20
SESSION = "Mcp-Session-Id"
VERSION = ("MCP-Protocol-Version", "2025-11-25")


def call(identifier: object, name: str, **arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


def said(exchange: Exchange) -> str:
    """The text of a tool's result."""
    content = (exchange.rpc.get("result") or {}).get("content") or [{}]
    return str(content[0].get("text"))


async def result(conversation: Conversation, text: str, headers: Any = ()) -> None:
    """A tool's result for the request of this conversation."""
    message = conversation.call.json
    content = {"content": [{"type": "text", "text": text}]}
    await answer(conversation, {"jsonrpc": "2.0", "id": message["id"], "result": content}, headers)


async def answer(conversation: Conversation, value: object, headers: Any = ()) -> None:
    data = json.dumps(value).encode()
    await conversation.head(200, [("Content-Type", "application/json"), *headers], length=len(data))
    await conversation.send(data)


async def echo(conversation: Conversation) -> None:
    """The argument back, after 50 to 200 ms that differ from call to call."""
    text = conversation.call.json["params"]["arguments"]["text"]
    await conversation.pause(0.05 + (sum(text.encode()) % 16) / 100)
    await result(conversation, text)


def test_case_P2_19() -> None:
    async def body() -> None:
        async with World() as world:
            world.upstreams.answer("tools", echo)
            for start in range(0, PAIRS, AT_ONCE):
                pairs = range(start, start + AT_ONCE)
                await asyncio.gather(*(pair(world, number) for number in pairs))
            check(len(world.calls("tools")) == 2 * PAIRS, f"{len(world.calls('tools'))} calls")

    play(body)


async def pair(world: World, number: int) -> None:
    """Two clients with the same id at the same moment; each must get its own text back."""
    texts = {role: f"{role} in round {number}" for role in ("viewer", "admin")}
    exchanges = await asyncio.gather(
        *(world.mcp(call(0, "echo", text=text), role=role) for role, text in texts.items())
    )
    for text, exchange in zip(texts.values(), exchanges, strict=True):
        check(said(exchange) == text, f"{text!r} got {short(exchange.text)}")
        check(exchange.rpc.get("id") == 0, f"{text!r} got the id {exchange.rpc.get('id')}")
        check(len(exchange.messages) == 1, f"{text!r} got {len(exchange.messages)} messages")


class Stateful:
    """An MCP 2025-11-25 server with sessions; other ids than its own are gone."""

    minted = "session-of-the-upstream"

    async def __call__(self, conversation: Conversation) -> None:
        request = conversation.call
        message = request.json if request.method == "POST" else {}
        session = request.header(SESSION)
        if request.method == "GET":
            await conversation.head(405, [("Allow", "POST")], length=0)
        elif message.get("method") == "initialize":
            value = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stateful", "version": "1"},
            }
            whole = {"jsonrpc": "2.0", "id": message["id"], "result": value}
            await answer(conversation, whole, [(SESSION, self.minted)])
        elif session != self.minted:
            await conversation.head(404, [], length=0)
        elif request.method == "DELETE":
            await conversation.head(204, [], length=0)
        else:
            value = {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": []}}
            await answer(conversation, value)


def test_case_P2_22() -> None:
    """The client's session id is the gateway's own, bound to the principal; the upstream's never
    leaves. So "unchanged" means: whoever minted an id gets exactly that one back."""

    async def body() -> None:
        async with World() as world:
            world.upstreams.answer("tools", Stateful())
            client = {"name": "c", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            first = await world.mcp(hello)
            session = first.header(SESSION)
            check(session, "initialize: no session id")
            own = (SESSION, session or "")
            listed = await world.mcp(listing, headers=[own, VERSION])
            seen = world.calls("tools")[-1].header(SESSION)
            equal(seen, Stateful.minted, "session at the upstream")
            unknown = await world.mcp(listing, headers=[(SESSION, "gone"), VERSION])
            ended = await world.mcp(None, headers=[own, VERSION], method="DELETE")
            deleted = world.calls("tools")[-1]
            equal(deleted.method, "DELETE", "last method at the upstream")
            equal(deleted.header(SESSION), Stateful.minted, "session of the DELETE")
            stream = await world.mcp(None, headers=[VERSION], method="GET")
            got = [e.status for e in (first, listed, unknown, ended, stream)]
            check(got[:3] == [200, 200, 404], f"statuses {got}")
            check(got[3] in (200, 202, 204) and got[4] == 405, f"statuses {got}")
            check("POST" in (stream.header("allow") or ""), f"Allow: {stream.header('allow')}")

    play(body)


def test_case_P2_23() -> None:
    async def body() -> None:
        async with World() as world:
            world.backend.expect(None)
            denied = await world.mcp(call(1, "admin_reset_key"))
            check(denied.status == 200, f"denial: status {denied.status}")
            kind = denied.header("content-type") or ""
            check(kind.startswith("application/json"), f"denial: {kind}")
            check(denied.error_code == -32001, f"denial: {short(denied.text)}")
            data = denied.rpc["error"]["data"]
            wanted = {"tool": "admin_reset_key", "required_role": "admin", "your_role": "viewer"}
            equal(data, wanted, "data")
            second = await world.mcp(call(2, "get_status"))
            check(said(second) == "ran get_status", f"second call: {short(second.text)}")
            equal(world.backend.executed, ["get_status"], "executed")

    play(body)


class Cancellable:
    """Runs each call until it is released or cancelled, and keeps what it was told."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.cancelled: dict[object, asyncio.Event] = {}
        self.ids: dict[str, object] = {}
        self.told: list[object] = []

    async def __call__(self, conversation: Conversation) -> None:
        message = conversation.call.json
        if message["method"] == "notifications/cancelled":
            wanted = message["params"].get("requestId")
            self.told.append(wanted)
            await conversation.head(202, [], length=0)
            self.cancelled.setdefault(wanted, asyncio.Event()).set()
            return
        text = message["params"]["arguments"]["text"]
        self.ids[text] = message["id"]
        stopped = self.cancelled.setdefault(message["id"], asyncio.Event())
        ends = [asyncio.ensure_future(event.wait()) for event in (stopped, self.release)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        await result(conversation, text)


def test_case_P2_26() -> None:
    async def body() -> None:
        async with World() as world:
            server = Cancellable()
            world.upstreams.answer("tools", server)
            x = asyncio.ensure_future(world.mcp(call(7, "slow", text="X"), role="viewer"))
            await world.upstreams.until(lambda: "X" in server.ids)
            y = asyncio.ensure_future(world.mcp(call(7, "slow", text="Y"), role="admin"))
            await world.upstreams.until(lambda: len(world.calls("tools")) == 2)
            cancel = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 7},
            }
            told = await within(3.0, "the answer to the cancel", world.mcp(cancel, role="viewer"))
            check(told.status == 202, f"cancel: status {told.status}")
            check(told.body == b"", f"cancel: a body {short(told.text)}")
            check(not y.done(), "the cancel was queued behind the call")
            await within(3.0, "the cancel at the upstream", x)
            equal(server.told, [server.ids["X"]], "cancelled at the upstream")
            check(server.ids["X"] != server.ids["Y"], "both calls have one id at the upstream")
            server.release.set()
            check(said(await y) == "Y", f"Y got {short((await y).text)}")

    play(body)
