"""Does a server of one era answer a client of another, over a wire that its own revision allows?"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.app.mcp_answers import META, run
from tests.app.mcp_upstreams import BOTH, LegacyUpstream, ModernUpstream, Upstream
from tests.app.mcp_world import ScriptedTransport, ask, call
from tests.app.virtual import clock_here
from tidegate.gateway.tool_bridge import BridgedCarrier
from tidegate.gateway.tool_carrier import Asked, HttpCarrier
from tidegate.gateway.tool_upstream import ToolUpstream
from tidegate.jsonrpc import classify
from tidegate.mcp.eras import LEGACY, MODERN, McpHeaders, Revision, encode_value
from tidegate.mcp.servers import ServerAddress
from tidegate.testing.asgi import WAIT_S
from tidegate.transport.inbox import Inboxes

VERA = ("static", "acme", "vera", "")
ADAM = ("static", "acme", "adam", "")
CLIENTS = (MODERN, *LEGACY, None)


def servers() -> list[Callable[[], Upstream]]:
    return [ModernUpstream, *(lambda v=v: LegacyUpstream(v) for v in (*LEGACY, "2024-11-05"))]


class Bridged:
    """One bridged server and what clients say to it."""

    def __init__(self, upstream: Upstream, *, terminates: bool = True) -> None:
        self.upstream = upstream
        self.transport = ScriptedTransport(upstream)
        clock = clock_here()
        http = ToolUpstream(self.transport, Inboxes(clock), clock)
        address = ServerAddress(
            "backend", "http://backend.example/mcp", "credential-of-the-gateway"
        )
        self.carrier = BridgedCarrier(
            HttpCarrier(http, address), name="backend", clock=clock, terminates=terminates
        )

    def asked(self, message: Any, client: str | None, **more: Any) -> Asked:
        if client == MODERN and "method" in message:
            params = dict(message.get("params", {}))
            params["_meta"] = {**META, **params.get("_meta", {})}
            message = {**message, "params": params}
        parsed = classify(message)
        # What a client of 2026-07-28 computes from the schema itself.
        zone = (message.get("params") or {}).get("arguments", {}).get("zone")
        own = client == MODERN and zone is not None
        params = (("mcp-param-zone", encode_value(zone)),) if own else ()
        headers = McpHeaders(accept=BOTH, params=params)
        return Asked(parsed, Revision(client), headers, more.pop("owner", VERA), **more)  # type: ignore[arg-type]

    async def say(self, message: Any, client: str | None, **more: Any) -> "Said":
        async with asyncio.timeout(WAIT_S):
            with self.carrier.exchange(self.asked(message, client, **more)) as exchange:
                status, head = await exchange.head()
                values: list[Any] = []
                while (arrived := await exchange.read()) is not None:
                    values += [incoming.value for incoming in arrived]
                return Said(status, dict(head), values)

    @asynccontextmanager
    async def hearing(self, message: Any, client: str | None, **more: Any) -> Any:
        """An exchange whose messages come one by one."""
        with self.carrier.exchange(self.asked(message, client, **more)) as exchange:
            await exchange.head()
            yield reader(exchange)


def reader(exchange: Any) -> Callable[[], Awaitable[Any]]:
    waiting: list[Any] = []

    async def following() -> Any:
        async with asyncio.timeout(WAIT_S):
            while not waiting:
                arrived = await exchange.read()
                if arrived is None:
                    return None
                waiting.extend(incoming.value for incoming in arrived)
        return waiting.pop(0)

    return following


class Said:
    """What a client got for one message."""

    def __init__(self, status: int, head: dict[str, str], values: list[Any]) -> None:
        self.status, self.head, self.values = status, head, values

    @property
    def result(self) -> Any:
        assert "result" in self.values[-1], self.values
        return self.values[-1]["result"]

    @property
    def error(self) -> Any:
        assert "error" in self.values[-1], self.values
        return self.values[-1]["error"]


CARRIED = [
    ask("tools/list"),
    call("echo", {"text": "hi"}),
    call("somewhere", {"zone": "north, ü"}),
    ask("resources/list"),
    ask("resources/templates/list"),
    ask("resources/read", uri="test://a"),
    ask("prompts/list"),
    ask("prompts/get", name="p"),
    ask(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "p"},
        argument={"name": "a", "value": ""},
    ),
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("made", servers())
def test_every_carried_method_is_answered_in_the_words_of_the_client(
    made: Callable[[], Upstream], client: str | None
) -> None:
    async def body() -> None:
        upstream = made()
        bridged = Bridged(upstream)
        for message in CARRIED:
            said = await bridged.say(message, client)
            assert said.status == 200, message
            assert said.values[-1]["id"] == 1
            assert ("resultType" in said.result) == (client == MODERN), message
            cached = message["method"].endswith("list") or message["method"] == "resources/read"
            assert ("ttlMs" in said.result) == (client == MODERN and cached), message
            if message["method"] == "tools/list":
                tools = {tool["name"]: tool for tool in said.result["tools"]}
                untouched = client == MODERN and isinstance(upstream, ModernUpstream)
                assert set(tools) == {"echo", "somewhere", "slow"} | (
                    {"broken"} if untouched else set()
                )
                assert ("outputSchema" in tools["echo"]) == (client not in ("2025-03-26", None))
                assert tools["echo"]["title"] == "Echo"
            assert "_meta" not in said.result
        assert upstream.faults == []
        await bridged.carrier.close()

    run(body)
