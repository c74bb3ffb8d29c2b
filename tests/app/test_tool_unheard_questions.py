"""Is a server that asks a client something answered, if the client cannot hear it?"""

import asyncio
from typing import Any

import pytest

from tests.app.mcp_answers import BOTH, run
from tests.app.mcp_streams import STATUS, StreamingServer, begin
from tests.app.mcp_world import Asked, World, value


class Asking(StreamingServer):
    """Asks the client before it answers a call, and waits for what it says."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method
        self.told = asyncio.Event()
        self.answers: list[Any] = []

    async def __call__(self, asked: Asked) -> None:
        message = asked.message if asked.raw else {}
        if message.get("method") == "tools/call":
            asked.head(200, "text/event-stream")
            asked.event({"jsonrpc": "2.0", "id": "q1", "method": self.method, "params": {}})
            await self.told.wait()
            asked.event({"jsonrpc": "2.0", "id": message["id"], "result": {"done": True}})
            asked.end()
        elif message.get("id") == "q1":
            self.answers.append(message)
            asked.head(202)
            asked.end()
            self.told.set()
        else:
            await super().__call__(asked)


@pytest.mark.parametrize("method", ["elicitation/create", "ping"])
def test_a_question_that_nobody_can_hear_is_answered_at_once(method: str) -> None:
    async def body() -> None:
        server = Asking(method)
        world = World(server)
        session = await begin(world)
        answer = await world.post(STATUS, mcp_session_id=session, accept="application/json")
        assert value(answer)["result"] == {"done": True}
        (said,) = server.answers
        assert (said["id"], "result" in said) == ("q1", method == "ping")
        if method != "ping":
            assert said["error"]["code"] == -32601

    run(body)


def test_a_client_that_can_hear_it_is_asked() -> None:
    async def body() -> None:
        server = Asking("elicitation/create")
        world = World(server)
        session = await begin(world)
        async with world.exchange(STATUS, mcp_session_id=session, accept=BOTH) as mine:
            while b"elicitation/create" not in mine.body:
                await mine.chunk()
            assert server.answers == []
            await mine.disconnect()

    run(body)


class Pinging(Asking):
    """Asks the client before it lists its tools."""

    async def __call__(self, asked: Asked) -> None:
        message = asked.message if asked.raw else {}
        if message.get("method") == "tools/list":
            asked.head(200, "text/event-stream")
            asked.event({"jsonrpc": "2.0", "id": "q1", "method": self.method, "params": {}})
            await self.told.wait()
            tools = [{"name": "get_status", "inputSchema": {}}]
            asked.event({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
            asked.end()
        elif message.get("method") == "tools/call":
            asked.result({"done": True})
        else:
            await super().__call__(asked)


@pytest.mark.parametrize("hide", ["full", "off"])
@pytest.mark.parametrize("method", ["elicitation/create", "ping"])
def test_a_question_in_the_stream_of_a_list_that_we_ask_for_is_answered(
    method: str, hide: str
) -> None:
    async def body() -> None:
        server = Pinging(method)
        world = World(server, hide_denied=hide, pin="block")
        session = await begin(world)
        answer = await world.post(STATUS, mcp_session_id=session, accept=BOTH)
        assert value(answer)["result"] == {"done": True}
        (said,) = server.answers
        assert (said["id"], "result" in said) == ("q1", method == "ping")
        await world.pins.close()

    run(body)
