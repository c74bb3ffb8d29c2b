"""Can a client of a real server tell a denied tool from one that does not exist?

Servers of the official SDK, over HTTP with sessions that they demand and on stdio, and clients that
look at bytes.
"""

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.app.mcp_answers import META, modern
from tests.app.mcp_world import TOKENS, ask, call
from tests.unit.mcp.asking import allow, deny
from tests.wire.gateways import VIEWER, config_text, serving
from tests.wire.test_tool_traffic_clients import gateway, sdk_server
from tidegate.limits.ledger import Limit
from tidegate.mcp import RuleSet

SERVER = str(Path(__file__).parent / "sdk_server.py")
LONGEST_S = 60.0
ERAS = ("no session", "session", "modern")
LATEST = "2025-11-25"

pytestmark = pytest.mark.full


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, LONGEST_S))


class Raw:
    """A client that sees what is sent."""

    def __init__(self, http: httpx2.AsyncClient, url: str, era: str) -> None:
        self.http, self.url, self.era = http, url, era
        self.heads = {"accept": "application/json, text/event-stream"}

    async def begin(self) -> None:
        if self.era == "modern":
            return
        self.heads["mcp-protocol-version"] = LATEST
        if self.era == "session":
            hello = {"protocolVersion": LATEST, "capabilities": {}}
            client = {"name": "c", "version": "1"}
            answer = await self._post(ask("initialize", **hello, clientInfo=client))
            if "mcp-session-id" in answer.headers:
                self.heads["mcp-session-id"] = answer.headers["mcp-session-id"]

    async def seen(self, name: str, arguments: Any) -> Any:
        """Status, headers and body of a call, without what differs from request to request."""
        message, heads = call(name, arguments), {}
        if self.era == "modern":
            message["params"]["_meta"] = META
            heads = modern("tools/call", mcp_name=name)
        answer = await self._post(message, **heads)
        own_id = answer.headers["x-request-id"]
        kept = {k: v for k, v in answer.headers.items() if k not in ("x-request-id", "date")}
        return answer.status_code, kept, answer.text.replace(own_id, "-")

    async def _post(self, message: Any, **heads: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in heads.items()}
        return await self.http.post(self.url, json=message, headers={**self.heads, **named})


async def compare(url: str, token: str, era: str, *, hidden: str, there: str, serves: bool) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=LONGEST_S) as http:
        client = Raw(http, url, era)
        await client.begin()
        for arguments in ({}, {"x": "y" * 70_000}):
            seen = [await client.seen(name, arguments) for name in (hidden, "no_such_tool")]
            assert seen[0] == seen[1]
            assert json.loads(seen[0][2])["error"]["code"] == (-32601 if serves else -32600)
        # What is there answers, whatever was tried before, if the server has what it demands.
        _, _, body = await client.seen(there, {"a": 2, "b": 3, "service": "x"})
        assert ('"result"' in body) is serves


@pytest.mark.parametrize("era", ERAS)
def test_a_server_that_demands_sessions_gives_no_denied_tool_away(era: str) -> None:
    async def body() -> None:
        app = sdk_server()
        one = Limit("one", unit="requests", per="principal", cap=1, tools=("*",))
        rules = RuleSet([deny(tools=("admin_*",)), allow()])
        async with (
            app.router.lifespan_context(app),
            gateway(app, hide_denied="full", rules=rules, limits=[one]) as (_, url),
        ):
            names = {"hidden": "admin_reset_key", "there": "get_status"}
            serves = era != "no session"
            await compare(url, TOKENS["viewer"], era, **names, serves=serves)

    run(body())


@pytest.mark.parametrize("era", ERAS)
def test_a_process_gives_no_denied_tool_away(era: str, tmp_path: Path) -> None:
    async def body() -> None:
        mcp = {
            "servers": {"sdk": {"command": [sys.executable, SERVER]}},
            "rules": [{"deny": {"tools": ["fail"]}}, {"allow": {"roles": ["viewer"]}}],
            "hide_denied": "full",
        }
        text = json.loads(config_text(tmp_path))
        async with serving(json.dumps({**text, "mcp": mcp})) as served:
            url, names = f"{served.url}/mcp", {"hidden": "fail", "there": "add"}
            await compare(url, VIEWER, era, **names, serves=True)

    run(body())
