"""What does a test of the bridge need: a bridged server, and clients of every revision."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.app.mcp_answers import META
from tests.app.mcp_upstreams import BOTH, Upstream
from tests.app.mcp_world import ScriptedTransport
from tests.app.virtual import clock_here
from tidegate.gateway.servers.bridge import BridgedCarrier
from tidegate.gateway.servers.bridge_line import BridgeTimes
from tidegate.gateway.servers.carrier import Asked, HttpCarrier
from tidegate.gateway.servers.upstream import ToolUpstream
from tidegate.jsonrpc import classify
from tidegate.mcp.eras import LEGACY, MODERN, McpHeaders, Revision
from tidegate.mcp.header_values import encode_value
from tidegate.mcp.servers import ServerAddress
from tidegate.testing.asgi import WAIT_S
from tidegate.transport.inbox import Inboxes

VERA = ("static", "acme", "vera", "")
ADAM = ("static", "acme", "adam", "")
CLIENTS = (MODERN, *LEGACY, None)


class Bridged:
    """One bridged server and what clients say to it."""

    def __init__(
        self, upstream: Upstream, *, terminates: bool = True, times: BridgeTimes | None = None
    ) -> None:
        self.upstream = upstream
        self.transport = ScriptedTransport(upstream)
        clock = clock_here()
        http = ToolUpstream(self.transport, Inboxes(clock), clock)
        address = ServerAddress(
            "backend", "http://backend.example/mcp", "credential-of-the-gateway"
        )
        self.carrier = BridgedCarrier(
            HttpCarrier(http, address),
            name="backend",
            clock=clock,
            terminates=terminates,
            times=times,
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
                    values += [each.value for each in arrived if each.value is not None]
                return Said(status, dict(head), values)

    @asynccontextmanager
    async def hearing(
        self, message: Any, client: str | None, **more: Any
    ) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
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
