"""How long may a server take to show its list before a call, and to begin?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_streams import passes
from tests.app.mcp_world import OFF, Asked, World, call
from tests.app.offered import ALL_BUT, told
from tests.app.piped import FakeProcess, Piped, polite
from tidegate.gateway.servers.bridge_line import BridgeTimes
from tidegate.gateway.tool_requests.offered import OfferGate
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.jsonrpc import Request
from tidegate.mcp.pins import Mode
from tidegate.mcp.servers import ServerCommand

COMMAND = ServerCommand("backend", ("server",))


class Slow:
    """The way to a process that does not answer the first message for `starts_s` seconds."""

    def __init__(self, starts_s: float) -> None:
        self.starts_s = starts_s
        self.piped = Piped(self.answer)

    async def answer(self, process: FakeProcess, request: Request) -> Any:
        if request.method == "initialize":
            await passes(self.starts_s)
        if request.method == "server/discover":
            return {"error": {"code": -32601, "message": "Method not found"}}
        if request.method == "tools/list":
            return {"result": {"tools": [{"name": "a", "inputSchema": {}}]}}
        return await polite(process, request)

    def of(self, _place: Any) -> Any:
        return self.piped.carrier

    def life_of(self, _place: Any) -> int:
        return self.piped.process.generation

    def watch(self, _place: Any) -> None: ...

    def is_heard(self, _place: Any) -> bool:
        return False


@pytest.mark.parametrize(
    ("hide", "pin"), [("off", "off"), ("full", "off"), ("off", "block"), ("full", "block")]
)
@pytest.mark.parametrize("starts_s", [20, 45, 58, 70])
def test_a_process_may_take_as_long_to_begin_as_for_any_call(
    starts_s: float, hide: str, pin: Mode
) -> None:
    async def body() -> None:
        world, slow = World(rules=ALL_BUT, hide_denied=hide), Slow(starts_s)
        servers = {"backend": ToolServer(COMMAND, OFF, pin=pin)}
        world.policy = replace(world.policy, servers=servers)
        relay: Any = world.traffic.relay
        relay.carriers = slow
        relay.pins = PinGate(world.pins, slow, relay.shared)  # type: ignore[arg-type]
        relay.offers = OfferGate(relay.pins, slow, relay.shared, world.clock)  # type: ignore[arg-type]
        async with world.exchange(call("a")) as exchange:
            while not exchange.ended:
                await passes(1)
            await exchange.read()
        served = starts_s <= BridgeTimes().start_s
        assert ("result" in told(exchange)) == served
        await world.pins.close()

    run(body)


@pytest.mark.parametrize(("hide", "pin"), [("full", "off"), ("off", "block")])
def test_a_list_that_never_comes_is_given_up(hide: str, pin: Mode) -> None:
    async def body() -> None:
        async def silent(_: Asked) -> None:
            return

        world = World(silent, rules=ALL_BUT, hide_denied=hide, pin=pin)
        began_s = world.clock.monotonic_s()
        async with world.exchange(call("a")) as exchange:
            while not exchange.ended:
                await passes(1)
            await exchange.read()
        assert told(exchange)["error"]["code"] == -32603
        assert 29 <= world.clock.monotonic_s() - began_s <= 32
        await world.pins.close()

    run(body)
