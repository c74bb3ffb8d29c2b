"""Is nothing lost where two clients change what a server tells of at the same time?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import VERA, Bridged, reader
from tests.app.federated import until
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import SUBSCRIPTION, LegacyUpstream, ModernUpstream, Refusal
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call
from tests.app.test_tool_bridge_streams import changed, streams
from tidegate.mcp.eras import LEGACY, MODERN, Revision
from tidegate.testing.asgi import WAIT_S

A: Any = {"uri": "test://a"}


class Gated(LegacyUpstream):
    """Answers one method only once the gate is open."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.slow = method
        self.gate = asyncio.Event()

    async def answer(self, asked: Got, message: Any) -> object:
        if message.get("method") == self.slow:
            await self.gate.wait()
        return await super().answer(asked, message)

    def heard_of(self, method: str) -> int:
        return sum(message.get("method") == method for message in self.heard)

    def subscriptions(self) -> list[str]:
        return [each[0].rpartition("/")[2] for each in self.log if each[0].startswith("resources/")]


def test_a_subscription_is_not_overtaken_by_the_end_of_the_one_before() -> None:
    async def body() -> None:
        upstream = Gated("resources/unsubscribe")
        bridged = Bridged(upstream)

        async def say(method: str, session: str) -> Any:
            return await bridged.say(ask(method, **A), LEGACY[0], session=session)

        await say("resources/subscribe", "bridged.1")
        leaving = asyncio.ensure_future(say("resources/unsubscribe", "bridged.1"))
        await until(lambda: upstream.heard_of("resources/unsubscribe") == 1)
        coming = asyncio.ensure_future(say("resources/subscribe", "bridged.2"))
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        upstream.gate.set()
        assert (await leaving).result == {}
        assert (await coming).result == {}
        assert upstream.subscriptions() == ["subscribe", "unsubscribe", "subscribe"]
        await bridged.carrier.close()

    run(body)


@pytest.mark.parametrize("leaves", [False, True])
def test_two_that_come_at_the_same_time_are_one_subscription_that_lasts(
    leaves: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        upstream = Gated("resources/subscribe")
        bridged = Bridged(upstream)

        async def say(method: str, session: str) -> Any:
            return await bridged.say(ask(method, **A), LEGACY[0], session=session)

        both = [asyncio.ensure_future(say("resources/subscribe", f"bridged.{n}")) for n in (1, 2)]
        await until(lambda: upstream.heard_of("resources/subscribe") >= 1)
        upstream.gate.set()
        assert [(await one).result for one in both] == [{}, {}]
        if leaves:
            await say("resources/unsubscribe", "bridged.1")
        assert upstream.subscriptions() == ["subscribe", "subscribe"]
        await say("resources/unsubscribe", "bridged.2")
        assert upstream.subscriptions()[2:] == (["unsubscribe"] if leaves else [])
        await bridged.carrier.close()

    run(body)


class Later(ModernUpstream):
    """Acknowledges a subscription only once it is told to."""

    async def listen(self, asked: Got, message: Any) -> None:
        del message
        asked.head(200, "text/event-stream")
        self.changes.append(asked)
        await asked.gone.wait()


def acknowledge(stream: Got) -> Any:
    meta = {SUBSCRIPTION: stream.message["id"]}
    wish = stream.message["params"]["notifications"]
    stream.event(changed("subscriptions/acknowledged", notifications=wish, _meta=meta))
    return meta


def test_what_was_subscribed_to_is_heard_until_the_server_has_acknowledged_the_next() -> None:
    async def body() -> None:
        upstream = Later()
        bridged = Bridged(upstream)

        async def subscribes(uri: str) -> None:
            asked = ask("resources/subscribe", uri=uri)
            await bridged.say(asked, LEGACY[0], session="bridged.a")

        await subscribes("test://a")
        with bridged.carrier.listening(VERA, "bridged.a", Revision(LEGACY[0])) as exchange:
            await exchange.head()
            following = reader(exchange)
            first = await streams(upstream, 1)
            meta = acknowledge(first)
            first.event(changed("tools/list_changed", _meta=meta))
            assert (await following())["method"] == "notifications/tools/list_changed"
            await subscribes("test://b")
            second = await streams(upstream, 2)
            first.event(changed("resources/updated", **A, _meta=meta))
            assert (await following())["params"] == A
            await subscribes("test://c")
            third = await streams(upstream, 3)
            await asyncio.wait_for(second.gone.wait(), WAIT_S)
            assert not first.gone.is_set()
            meta = acknowledge(third)
            await asyncio.wait_for(first.gone.wait(), WAIT_S)
            third.event(changed("resources/updated", uri="test://c", _meta=meta))
            assert (await following())["params"] == {"uri": "test://c"}
        await asyncio.wait_for(third.gone.wait(), WAIT_S)
        assert upstream.faults == []

    run(body)


class Logs(LegacyUpstream):
    """Does not take a level as it should, the first time."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.levels: list[str] = []

    async def answer(self, asked: Got, message: Any) -> object:
        if message.get("method") == "logging/setLevel":
            self.levels.append(message["params"]["level"])
            if self.how == "hangs":
                await asked.gone.wait()
            if self.how == "refuses":
                raise Refusal(200, -32603, "not today")
        return await super().answer(asked, message)


@pytest.mark.parametrize("how", ["hangs", "refuses"])
def test_a_server_that_does_not_take_a_level_runs_its_tools_and_is_asked_again_later(
    how: str,
) -> None:
    async def body() -> None:
        upstream = Logs(how)
        bridged = Bridged(upstream)
        told = {"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}
        for _ in range(2):
            assert "content" in (await bridged.say(call("echo", **told), MODERN)).result
        assert upstream.levels == ["debug"]
        upstream.how = "takes it"
        await asyncio.sleep(120)  # noqa: TID251 - of the loop whose time does not pass
        for _ in range(2):
            assert "content" in (await bridged.say(call("echo", **told), MODERN)).result
        assert upstream.levels == ["debug", "debug"]
        await bridged.carrier.close()

    run_in_no_time(body)
