"""Is what a client told the gateway to remember its own, bounded, and over with it?"""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.app.bridged import Bridged
from tests.app.federated import OLD, Federated, Server, until
from tests.app.mcp_answers import run
from tests.app.mcp_streams import listen, values
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream
from tests.app.mcp_world import World, ask, call, tell, value
from tests.unit.mcp.asking import allow
from tidegate.mcp import RuleSet
from tidegate.mcp.eras import LEGACY

EVERYTHING = RuleSet([allow()])
HELLO = ask(
    "initialize",
    protocolVersion=LEGACY[0],
    capabilities={},
    clientInfo={"name": "c", "version": "1"},
)
TOLD = ("resources/subscribe", "test://a"), ("resources/unsubscribe", "test://a")


def worlds(upstream: Any) -> dict[str, World]:
    """The server among others, and alone."""
    settings: dict[str, Any] = {"rules": EVERYTHING, "hide_denied": "off"}
    return {
        "among others": Federated(a=upstream, b=Server(legacy=True), **settings),
        "alone": World(upstream, **settings),
    }


async def opened(world: World) -> Mapping[str, str]:
    """The headers of a session."""
    answer = await world.post(HELLO, **OLD)
    return {**OLD, "mcp_session_id": answer.header("mcp-session-id") or ""}


def named(world: World, name: str) -> str:
    return f"a+{name}" if isinstance(world, Federated) else name


async def tells(world: World, session: Any, method: str) -> Any:
    return value(await world.post(ask(method, uri=named(world, "test://a")), **session))


async def deleted(world: World, session: Any) -> int:
    async with world.exchange(b"", method="DELETE", **session) as exchange:
        await exchange.read()
    return exchange.status


async def over(world: World) -> None:
    await world.carriers.close()
    await world.upstream.drain(5)


def test_two_sessions_of_one_principal_subscribe_for_themselves() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        world = worlds(upstream)["among others"]
        one, two = await opened(world), await opened(world)
        for session in (one, two):
            assert "result" in await tells(world, session, "resources/subscribe")
        assert upstream.log == [TOLD[0], TOLD[0]]
        await tells(world, two, "resources/unsubscribe")
        assert upstream.log == [TOLD[0], TOLD[0]]
        await tells(world, one, "resources/unsubscribe")
        assert upstream.log == [TOLD[0], *TOLD]
        await over(world)

    run(body)


def test_a_stream_brings_what_its_own_session_subscribed_to() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        world = worlds(upstream)["among others"]
        one, two = await opened(world), await opened(world)
        await tells(world, one, "resources/subscribe")
        mine = listen(world, one["mcp_session_id"])
        other = listen(world, two["mcp_session_id"])
        async with mine, other:
            assert (await mine.head(), await other.head()) == (200, 200)
            await until(lambda: upstream.changes)
            for method in ("resources/updated", "tools/list_changed"):
                params = {"uri": "test://a"} if "updated" in method else {}
                upstream.changes[0].event(tell(f"notifications/{method}", **params))
            for each in (mine, other):
                while b"tools" not in each.body:
                    await each.chunk()
        heard = [each["method"].rsplit("/")[-1] for each in values(mine)]
        assert heard == ["updated", "list_changed"]
        assert values(mine)[0]["params"]["uri"] == "a+test://a"
        assert [each["method"] for each in values(other)] == ["notifications/tools/list_changed"]
        await over(world)

    run(body)


@pytest.mark.parametrize("way", ["delete", "expire"])
def test_the_end_of_a_session_releases_what_it_subscribed_to(way: str) -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        world = worlds(upstream)["among others"]
        one, two = await opened(world), await opened(world)
        await tells(world, one, "resources/subscribe")
        if way == "delete":
            assert await deleted(world, one) == 200
        else:
            world.traffic.relay.sessions.expire(world.clock.monotonic_s() + 7200)
        await until(lambda: upstream.log == [*TOLD])
        if way == "delete":
            await tells(world, two, "resources/subscribe")
            assert upstream.log == [*TOLD, TOLD[0]]
        await over(world)

    run(body)


def test_a_level_is_that_of_one_session() -> None:
    async def body() -> None:
        async def talk(up: Any, asked: Any, message: Any) -> Any:
            if message["method"] != "tools/call":
                return None
            asked.head(200, "text/event-stream")
            asked.event(tell("notifications/message", level="info", data="x"))
            asked.event({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
            asked.end()
            return None

        world = worlds(LegacyUpstream(handler=talk))["among others"]
        one, two = await opened(world), await opened(world)
        await world.post(ask("logging/setLevel", level="info"), **one)
        await world.post(ask("logging/setLevel", level="error"), **two)
        accept = "application/json, text/event-stream"
        heard = [
            await world.post(call("a__echo"), accept=accept, **session) for session in (one, two)
        ]
        assert [b"notifications/message" in each.body for each in heard] == [True, False]
        await over(world)

    run(body)


@pytest.mark.full
@pytest.mark.parametrize("make", [LegacyUpstream, ModernUpstream])
def test_one_client_subscribes_to_so_much_and_no_more(make: Any) -> None:
    async def body() -> None:
        bridged = Bridged(make())
        answers = [
            await bridged.say(
                ask("resources/subscribe", uri=f"test://{n}"), LEGACY[0], session="bridged.x"
            )
            for n in range(1001)
        ]
        assert all("result" in each.values[-1] for each in answers[:-1])
        assert answers[-1].error["code"] == -32602
        await bridged.carrier.close()

    run(body)


def test_long_names_count_for_what_they_are() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        say = [
            await bridged.say(
                ask("resources/subscribe", uri=f"test://{n}/{'x' * 131_000}"),
                LEGACY[0],
                session=session,
            )
            for session, n in (
                ("bridged.x", 0),
                ("bridged.x", 1),
                ("bridged.x", 2),
                ("bridged.y", 3),
            )
        ]
        assert ["result" in each.values[-1] for each in say] == [True, True, False, True]
        await bridged.carrier.close()

    run(body)
