"""If a client leaves at any moment of an MCP request, does anything stay behind?"""

import asyncio

import pytest

from tests.app.mcp_world import Asked, World, call, tell, value
from tidegate.limits.ledger import Limit
from tidegate.testing.asgi import WAIT_S, ASGIExchange

ONE_AT_A_TIME = Limit("one", "concurrent", cap=1, per="principal", tools=("*",), servers=("*",))
TURN = 0.0


async def stream(asked: Asked) -> None:
    """An answer with a pause after each part."""
    if "id" not in asked.message:
        asked.head(202)
        asked.end()
        return
    asked.head(200, "text/event-stream")
    await asyncio.sleep(TURN)  # noqa: TID251 - one turn of the loop, no time
    asked.event(tell("notifications/progress", progressToken=1))
    await asyncio.sleep(TURN)  # noqa: TID251
    asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
    await asyncio.sleep(TURN)  # noqa: TID251
    asked.end()


BODIES = {
    "request": call("get_status"),
    "batch": [
        call("get_status", id=1),
        tell("notifications/roots/list_changed"),
        call("admin_x", id=2),
    ],
    "notification": tell("tools/call", name="get_status"),
}


async def left_after(turns: int, exchange: ASGIExchange) -> bool:
    """Whether the request was still running when its client left after so many turns."""
    async with exchange:
        for _ in range(turns):
            await asyncio.sleep(TURN)  # noqa: TID251 - one turn of the loop, no time
        running = not exchange.ended
        await exchange.disconnect()
    return running


@pytest.mark.parametrize("shape", BODIES)
def test_leaving_at_any_turn_of_the_loop_leaves_nothing_behind(shape: str) -> None:
    async def body() -> None:
        turns, running = 0, True
        while running:
            turns += 1
            world = World(stream, limits=[ONE_AT_A_TIME])
            exchange = world.exchange(BODIES[shape], accept="application/json, text/event-stream")
            running = await left_after(turns, exchange)
            await world.upstream.drain(WAIT_S)
            assert len(world.traffic.relay.calls) == 0
            assert len(world.records.ends) <= 1
            assert all(asked.gone.is_set() or asked.ended for asked in world.transport.asked)
            outcomes = [trail.snapshot().outcome for trail in world.records.ends]
            assert outcomes in ([], ["cancelled"], ["ok"], ["denied"])
            # The slot of the call that was left is free again.
            answer = await world.post(call("get_status"), accept="application/json")
            assert value(answer) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert turns > 4

    asyncio.run(body())
