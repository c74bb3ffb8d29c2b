"""Does everything that the path does for a client hold where the server speaks another revision?"""

import asyncio
from typing import Any

import pytest

from tests.app.mcp_answers import ENFORCE, META, modern, run
from tests.app.mcp_upstreams import TOOLS, LegacyUpstream, ModernUpstream, Upstream
from tests.app.mcp_world import Asked, World, ask, call, events, tell, value
from tidegate.mcp.eras import LEGACY
from tidegate.testing.asgi import WAIT_S, ASGIExchange

ADMIN = {"name": "admin_reset", "inputSchema": {"type": "object"}}
MAIL = "ann" + "@" + "example.com"


async def talkative(upstream: Upstream, asked: Asked, message: Any) -> Any:
    """A server with one more tool, whose results name somebody."""
    del upstream, asked
    if message["method"] == "tools/list":
        return {"tools": [*TOOLS, ADMIN]}
    if message["method"] == "tools/call" and message["params"]["name"] == "slow":
        return {"content": [{"type": "text", "text": f"write to {MAIL}"}]}
    return None


def of_modern(message: Any) -> Any:
    return {**message, "params": {**message.get("params", {}), "_meta": META}}


class Client:
    """A client of one era, as far as it needs to be one."""

    def __init__(self, world: World, *, is_modern: bool) -> None:
        self.world, self.is_modern = world, is_modern
        self.session: dict[str, str] = {}

    async def begin(self) -> None:
        if self.is_modern:
            assert "supportedVersions" in (await self.ask(ask("server/discover")))["result"]
            return
        params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "c"}}
        answer = await self.world.post(ask("initialize", **params))
        assert value(answer)["result"]["protocolVersion"] == LEGACY[0]
        self.session = {
            "mcp_session_id": dict(answer.headers)["mcp-session-id"],
            "mcp_protocol_version": LEGACY[0],
        }
        said = await self.world.post(tell("notifications/initialized"), **self.session)
        assert said.status == 202

    async def ask(self, message: Any, **head: str) -> Any:
        if self.is_modern:
            name = message.get("params", {}).get("name")
            named = modern(message["method"], **({"mcp_name": name} if name else {}))
            answer = await self.world.post(of_modern(message), **named, **head)
        else:
            answer = await self.world.post(message, **self.session, **head)
        return value(answer)


ACROSS = pytest.mark.parametrize(
    ("is_modern", "made"), [(True, LegacyUpstream), (False, ModernUpstream)]
)


@ACROSS
def test_rules_hold_across_eras(is_modern: bool, made: Any) -> None:  # noqa: FBT001
    async def body() -> None:
        upstream = made(handler=talkative)
        world = World(upstream, hide_denied="list", masking=ENFORCE)
        client = Client(world, is_modern=is_modern)
        await client.begin()
        listed = (await client.ask(ask("tools/list")))["result"]
        names = [tool["name"] for tool in listed["tools"]]
        assert "admin_reset" not in names
        assert "echo" in names
        assert listed.get("cacheScope", "private") == "private"
        heard = len(upstream.heard)
        denied = await client.ask(call("admin_reset", id=7))
        assert (denied["id"], denied["error"]["code"]) == (7, -32001)
        assert len(upstream.heard) == heard
        told = await client.ask(call("slow", id="x"))
        assert told["id"] == "x"
        assert MAIL not in str(told)
        assert "write to" in str(told)
        assert (await client.ask(call("echo", {"text": "hi"})))["result"]["content"]
        assert upstream.log == ["echo"]
        assert upstream.faults == []
        # What was denied left no intent.
        assert len(world.records.intents) == len(world.records.ends) - 1
        await world.carriers.close()

    run(body)


def test_a_batch_of_an_old_client_reaches_a_modern_server_one_by_one() -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        world = World(upstream)
        batch = [call("echo", {"text": "1"}, id=1), call("admin_x", id="1"), call("echo", id=2)]
        answers = value(await world.post([*batch, tell("notifications/initialized")]))
        assert [answer["id"] for answer in answers] == [1, "1", 2]
        assert ["result" in answer for answer in answers] == [True, False, True]
        assert upstream.log == ["echo", "echo"]
        assert upstream.faults == []

    run(body)


@pytest.mark.parametrize("made", [LegacyUpstream, ModernUpstream])
def test_pins_hold_for_clients_of_every_revision(made: Any) -> None:
    async def body() -> None:
        upstream = made()
        world = World(upstream, pin="block")
        for client in (Client(world, is_modern=True), Client(world, is_modern=False)):
            await client.begin()
            for _ in range(2):
                tools = (await client.ask(ask("tools/list")))["result"]["tools"]
                assert {"echo", "slow"} <= {tool["name"] for tool in tools}
            assert (await client.ask(call("echo")))["result"]["content"]
        if made is ModernUpstream:  # who names no revision hears of no outputSchema
            old = value(await world.post(ask("tools/list")))["result"]["tools"]
            assert [tool["name"] for tool in old if "outputSchema" in tool] == []
            assert {"echo", "slow"} <= {tool["name"] for tool in old}
        await world.carriers.close()

    run(body)


def test_a_session_belongs_to_who_began_it_and_ends_with_it() -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        world = World(upstream)
        client = Client(world, is_modern=False)
        await client.begin()
        stolen = await world.post(ask("tools/list"), role="second", **client.session)
        assert stolen.status == 404
        async with world.exchange(b"", method="DELETE", **client.session) as ending:
            await ending.read()
        assert ending.status == 200
        assert (await world.post(ask("tools/list"), **client.session)).status == 404

    run(body)


async def until(exchange: ASGIExchange, word: bytes) -> None:
    async with asyncio.timeout(WAIT_S):
        while word not in exchange.body:
            assert await exchange.chunk()


def test_a_subscription_is_answered_as_a_stream_under_the_client_s_id() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        world = World(upstream)
        wish = {"notifications": {"toolsListChanged": True}}
        message = of_modern(ask("subscriptions/listen", id="mine", **wish))
        head = {**modern("subscriptions/listen"), "accept": "application/json, text/event-stream"}
        async with world.exchange(message, **head) as exchange:
            await until(exchange, b"acknowledged")
            upstream.changes[0].event(tell("notifications/tools/list_changed"))
            await until(exchange, b"/list_changed")
            named = [event["params"]["_meta"] for event in events(exchange)]
        assert named == [{"io.modelcontextprotocol/subscriptionId": "mine"}] * 2
        await world.carriers.close()

    run(body)
