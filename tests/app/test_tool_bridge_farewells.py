"""Does a server hear that the gateway leaves, however that ends?"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.app.bridged import ADAM, VERA, Bridged
from tests.app.federated import OLD, Federated, Server, until
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_upstreams import LegacyUpstream
from tests.app.mcp_world import Asked, call
from tests.app.test_tool_bridge_remembered import opened, over, worlds
from tests.unit.mcp.asking import allow
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge_line import BridgeTimes
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp import RuleSet
from tidegate.mcp.eras import MODERN

FAREWELL_S = BridgeTimes().farewell_s


class Parting(LegacyUpstream):
    """Takes its time for the end of a session; `deleted` says who was told good-bye to."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.begun: list[str] = []
        self.deleted: list[str] = []

    async def other(self, asked: Asked) -> None:
        if asked.method != "DELETE":
            await super().other(asked)
            return
        session = asked.headers["mcp-session-id"]
        self.begun.append(session)
        await pause(self.seconds)
        if not asked.gone.is_set():
            self.deleted.append(session)
            asked.whole(b"", 200)


@pytest.mark.parametrize("is_cut", [False, True])
def test_every_session_is_ended_at_the_server_also_when_the_drain_has_been_cut(
    is_cut: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        upstream = Parting(seconds=1.0)
        world = Federated(a=upstream, b=Server(), rules=RuleSet([allow()]))
        for role in ("viewer", "admin"):
            await world.post(call("a__echo"), role=role, **OLD)
        if is_cut:
            world.inboxes.cut()
            world.carriers.cut()
        await world.over()
        assert sorted(upstream.deleted) == ["session1", "session2"]

    run(body)


@pytest.mark.parametrize("way", ["alone", "among others"])
def test_a_call_that_the_end_of_the_drain_cuts_is_cancelled_at_the_server(way: str) -> None:
    async def hangs(upstream: Any, asked: Asked, message: Any) -> Any:
        if message["method"] == "tools/call":
            await upstream.stay(asked)
        return None

    async def body() -> None:
        upstream = LegacyUpstream(handler=hangs)
        world = worlds(upstream)[way]
        session = await opened(world)
        name = "echo" if way == "alone" else "a__echo"
        calling = asyncio.ensure_future(world.post(call(name), **session))
        await until(lambda: upstream.streams)
        world.inboxes.cut()
        world.carriers.cut()
        assert b"-32603" in (await calling).body
        await over(world)
        (cancelled,) = [each for each in upstream.log if isinstance(each, dict)]
        assert cancelled["method"] == "notifications/cancelled"
        (called,) = [each for each in upstream.heard if each["method"] == "tools/call"]
        assert cancelled["params"]["requestId"] == called["id"]

    run(body)


def test_a_farewell_that_is_under_way_is_not_cut_off_by_the_end() -> None:
    async def body() -> None:
        upstream = Parting(seconds=1.5)
        bridged = Bridged(upstream, times=BridgeTimes(idle_s=2.0))
        await bridged.say(call("echo"), MODERN)
        await asyncio.wait_for(waits_for(lambda: bool(upstream.begun)), 20)
        await bridged.carrier.close()
        assert upstream.deleted == upstream.begun == ["session1"]

    run(body)


async def waits_for(holds: Callable[[], bool]) -> None:
    while not holds():
        await pause(0.5)


def test_a_server_that_does_not_listen_is_waited_for_no_longer_than_that() -> None:
    async def body() -> None:
        upstream = Parting(seconds=10.0)
        bridged = Bridged(upstream)
        for owner in (VERA, ADAM):
            await bridged.say(call("echo"), MODERN, owner=owner)
        began_s = asyncio.get_running_loop().time()
        await bridged.carrier.close()
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(FAREWELL_S, abs=0.01)
        assert sorted(upstream.begun) == ["session1", "session2"]
        await pause(10.0)

    run(body)


def test_a_session_that_was_being_opened_is_ended_too() -> None:
    class Slow(Parting):
        async def answer(self, asked: Asked, message: Any) -> object:
            if message.get("method") == "notifications/initialized":
                await asked.gone.wait()
            return await super().answer(asked, message)

    async def body() -> None:
        upstream = Slow()
        bridged = Bridged(upstream)
        calling = asyncio.ensure_future(bridged.say(call("echo"), MODERN))
        await until(lambda: "notifications/initialized" in upstream.methods())
        await bridged.carrier.close()
        with pytest.raises(ServerFailed, match="draining"):
            await calling
        assert upstream.deleted == ["session1"]

    run(body)
