"""Does a client of the handshake era hear every server behind one endpoint?"""

import asyncio
from typing import Any

import pytest

from tests.app.federated import Federated, Server, dead, heard, html, silent
from tests.app.mcp_answers import run
from tests.app.mcp_streams import CHANGED, begin, last_record, listen, values
from tests.app.mcp_world import Asked, ask, value
from tidegate.mcp import Rule, RuleSet
from tidegate.testing.asgi import WAIT_S

ALL = RuleSet([Rule("all", "allow", roles=("viewer",))])


class Telling(Server):
    """A server that the test lets say things."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.open: list[Asked] = []
        self.news = asyncio.Event()

    async def listen(self, asked: Asked) -> None:
        self.open.append(asked)
        self.news.set()
        await super().listen(asked)

    async def heard_by_us(self) -> Asked:
        """The newest subscription of the gateway."""
        async with asyncio.timeout(WAIT_S):
            await self.news.wait()
        return self.open[-1]

    def say(self, asked: Asked, method: str, **params: Any) -> None:
        """A notification on that subscription."""
        asked.event(heard(asked, method, **params))


def test_what_each_server_says_reaches_a_client_that_listens() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        world = Federated(a=a, b=b, rules=ALL)
        session = await begin(world)
        subscribed = await world.post(
            ask("resources/subscribe", uri="b+file:///a"), mcp_session_id=session
        )
        assert "result" in value(subscribed)
        async with listen(world, session, mcp_protocol_version="2025-11-25") as mine:
            from_a, from_b = await a.heard_by_us(), await b.heard_by_us()
            assert await mine.head() == 200
            a.say(from_a, "notifications/tools/list_changed")
            while len(values(mine)) < 1:
                await mine.chunk()
            b.say(from_b, "notifications/resources/updated", uri="file:///a")
            while len(values(mine)) < 2:
                await mine.chunk()
        methods = [each["method"] for each in values(mine)]
        assert methods == [CHANGED["method"], "notifications/resources/updated"]
        assert values(mine)[1]["params"]["uri"] == "b+file:///a"
        await world.carriers.close()

    run(body)


@pytest.mark.parametrize(
    "other", [dead, html, pytest.param(silent, marks=pytest.mark.full, id="silent for 5 s")]
)
def test_a_server_that_gives_no_stream_takes_none_from_the_others(other: Any) -> None:
    async def body() -> None:
        a = Telling()
        world = Federated(a=a, b=other, rules=ALL)
        session = await begin(world)
        async with listen(world, session) as mine:
            from_a = await a.heard_by_us()
            assert await mine.head() == 200
            a.say(from_a, "notifications/tools/list_changed")
            while not values(mine):
                await mine.chunk()
        assert [each["method"] for each in values(mine)] == [CHANGED["method"]]
        record = await last_record(world, 2)
        missing = [step.values["server"] for step in record.steps if step.stage == "federation"]
        assert missing == ["b"]
        await world.carriers.close()

    run(body)


def test_a_server_that_ends_its_stream_ends_the_whole_so_that_nothing_is_missed() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        world = Federated(a=a, b=b, rules=ALL)
        session = await begin(world)
        async with listen(world, session) as mine:
            await a.heard_by_us()
            await b.heard_by_us()
            assert await mine.head() == 200
            world.carriers.of(world.policy.servers["b"].place).cut()
            await mine.read()
        assert mine.status == 200
        await world.carriers.close()

    run(body)


def test_a_drain_ends_it_at_once() -> None:
    async def body() -> None:
        world = Federated(a=Telling(), b=Telling(), rules=ALL)
        session = await begin(world)
        async with listen(world, session) as mine:
            assert await mine.head() == 200
            world.traffic.streams.let_go()
            await mine.read()
        record = await last_record(world, 2)
        (ended,) = [step for step in record.steps if step.stage == "stream"]
        assert ended.values["reason"] == "draining"
        await world.carriers.close()

    run(body)


def test_nobody_hears_a_server_that_he_may_not_use() -> None:
    async def body() -> None:
        a, b = Telling(), Telling()
        rules = RuleSet([Rule("a", "allow", roles=("viewer",), servers=("a",))])
        world = Federated(a=a, b=b, rules=rules)
        session = await begin(world)
        async with listen(world, session) as mine:
            await a.heard_by_us()
            assert await mine.head() == 200
        assert b.open == []
        await world.carriers.close()

    run(body)


def test_where_no_server_gives_a_stream_there_is_none() -> None:
    async def body() -> None:
        world = Federated(a=dead, b=html, rules=ALL)
        a = Telling()
        world.transport.scripts["a"] = a
        session = await begin(world)
        world.transport.scripts["a"] = dead
        await world.carriers.close()
        async with listen(world, session) as mine:
            await mine.read()
        assert mine.status == 405
        await world.carriers.close()

    run(body)
