"""Does what outlives a request stay with the server it belongs to after a reload?"""

import asyncio
from dataclasses import replace

import pytest

from tests.app.mcp_world import OFF, Asked, World, ask, echo, value
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.mcp.servers import ServerAddress


async def minting(asked: Asked) -> None:
    """A server that opens a session for every initialize."""
    if asked.raw and asked.message["method"] == "initialize":
        asked.result({"protocolVersion": "2025-11-25"}, mcp_session_id="theirs")
    else:
        await echo(asked)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_session_is_unknown_once_its_server_was_replaced(method: str) -> None:
    async def body() -> None:
        world = World(minting)
        opened = await world.post(ask("initialize"))
        session = opened.header("mcp-session-id")
        assert session
        elsewhere = ServerAddress("backend", "http://elsewhere.example/mcp", "credential")
        before = world.policy
        world.policy = replace(before, servers={"backend": ToolServer(elsewhere, OFF)})
        message = ask("tools/list") if method == "POST" else b""
        exchange = world.exchange(message, method=method, mcp_session_id=session)
        async with exchange:
            await exchange.read()
        assert exchange.status == 404
        assert value(exchange)["error"]["message"] == "Session not found"
        assert len(world.transport.asked) == 1
        world.policy = before
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200

    asyncio.run(body())


def test_a_refused_initialize_opens_no_session() -> None:
    async def body() -> None:
        async def refusing(asked: Asked) -> None:
            error = {"code": -32602, "message": "no"}
            message = {"jsonrpc": "2.0", "id": 1, "error": error}
            asked.whole(message, 400, mcp_session_id="theirs")

        world = World(refusing)
        answer = await world.post(ask("initialize"))
        assert answer.status == 400
        assert answer.header("mcp-session-id") is None
        assert len(world.traffic.relay.sessions) == 0

    asyncio.run(body())


def test_a_late_request_of_the_old_configuration_stands_in_nobodys_way() -> None:
    async def body() -> None:
        world = World(echo)
        carriers, old = world.carriers, world.policy.servers["backend"].place
        new = ServerAddress("backend", "http://elsewhere.example/mcp", "credential")
        carriers.retain([old])
        first = carriers.of(old)
        carriers.retain([new])
        assert carriers.of(old) is first
        serving = carriers.of(new)
        assert serving is not first
        assert carriers.of(old) is first
        assert carriers.of(new) is serving
        carriers.retain([])
        assert carriers.of(new) is serving
        carriers.retain([old])
        assert carriers.of(old) is carriers.of(old)
        await carriers.close()

    asyncio.run(body())


def test_a_server_that_was_never_used_before_it_was_replaced_is_reached_in_one_way() -> None:
    async def body() -> None:
        world = World(echo)
        carriers, old = world.carriers, world.policy.servers["backend"].place
        new = ServerAddress("backend", "http://elsewhere.example/mcp", "credential")
        carriers.retain([new])
        late = carriers.of(old)
        assert carriers.of(new) is carriers.of(new)
        assert carriers.of(old) is late
        await carriers.close()

    asyncio.run(body())
