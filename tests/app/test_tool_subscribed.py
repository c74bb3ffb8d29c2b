"""Is a subscription over when it should be, whatever its server says?"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import META, Federated, Server, heard, modern
from tests.app.mcp_answers import BOTH
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_streams import last_record, passes
from tests.app.mcp_world import Asked, World, ask, events, value
from tests.unit.mcp.asking import allow, deny
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.identity.keys import KeyTable
from tidegate.mcp import RuleSet
from tidegate.testing.asgi import ASGIExchange

EVERYTHING = RuleSet([allow()])
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ACK = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
HEADERS = {**modern("subscriptions/listen"), "accept": BOTH}
COMPLETE = {
    "jsonrpc": "2.0",
    "id": 9,
    "result": {"resultType": "complete", "_meta": {SUBSCRIPTION: 9}},
}


class Telling(Server):
    """A server whose subscriptions the test speaks on."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[Asked] = []

    async def listen(self, asked: Asked) -> None:
        asked.head(200, "text/event-stream")
        wanted = asked.message["params"]["notifications"]
        asked.event(heard(asked, ACK, notifications=wanted))
        self.open.append(asked)

    def tell(self) -> None:
        asked = self.open[-1]
        asked.event(heard(asked, UPDATED, uri="file:///a"))


def listening(world: World, uri: str = "file:///a") -> ASGIExchange:
    wish = {"resourceSubscriptions": [uri]}
    return world.exchange(
        ask("subscriptions/listen", id=9, notifications=wish, _meta=META), **HEADERS
    )


def single(server: Server, **more: Any) -> tuple[World, str]:
    return World(server, rules=EVERYTHING, **more), "file:///a"


def several(server: Server, **more: Any) -> tuple[World, str]:
    return Federated(a=server, b=Server(), rules=EVERYTHING, **more), "a+file:///a"


Made = Callable[..., tuple[World, str]]


async def acknowledged(exchange: ASGIExchange) -> None:
    while ACK.encode() not in exchange.body:
        await exchange.chunk()


async def is_over(exchange: ASGIExchange, server: Telling, world: World, why: str) -> None:
    """It ended in good order, after nothing but its beginning."""
    await exchange.read()
    said = events(exchange)
    assert [message.get("method") for message in said] == [ACK, None]
    assert said[-1] == COMPLETE
    assert all(asked.gone.is_set() for asked in server.open)
    assert len(world.traffic.streams) == 0
    assert len(world.traffic.relay.calls) == 0
    record = await last_record(world, 1)
    (ended,) = [step for step in record.steps if step.stage == "stream"]
    assert ended.values["reason"] == why
    assert record.outcome == "ok"


@pytest.mark.parametrize("made", [single, several])
def test_nothing_is_heard_under_rules_that_are_in_force_no_more(made: Made) -> None:
    async def body() -> None:
        server = Telling()
        world, uri = made(server)
        async with listening(world, uri) as mine:
            await acknowledged(mine)
            world.policy = replace(world.policy, rules=RuleSet([deny()]))
            server.tell()
            await is_over(mine, server, world, "configuration_changed")

    run(body)


@pytest.mark.parametrize("made", [single, several])
def test_a_silent_one_ends_too_once_the_configuration_has_changed(made: Made) -> None:
    async def body() -> None:
        server = Telling()
        world, uri = made(server)
        async with listening(world, uri) as mine:
            await acknowledged(mine)
            world.policy = replace(world.policy, keys=KeyTable([]))
            await is_over(mine, server, world, "configuration_changed")

    run(body)


def test_a_credential_that_names_nobody_any_more_ends_it() -> None:
    async def body() -> None:
        server = Telling()
        world, _ = single(server)
        async with listening(world) as mine:
            await acknowledged(mine)
            object.__setattr__(world.policy, "keys", KeyTable([]))
            await is_over(mine, server, world, "credential_ended")

    run(body)


@pytest.mark.full
@pytest.mark.parametrize("made", [single, several])
def test_it_does_not_outlast_its_time_however_much_its_server_says(made: Made) -> None:
    async def body() -> None:
        server = Telling()
        world, uri = made(server, times=ToolTimes(stream_s=60.0))
        async with listening(world, uri) as mine:
            await acknowledged(mine)
            while not server.open[0].gone.is_set():
                server.tell()
                await passes(1.0)
            await mine.read()
        said = events(mine)
        assert 59 <= len(said) - 2 <= 76
        assert said[-1] == COMPLETE

    run(body)


@pytest.mark.parametrize("made", [single, several])
def test_a_drain_ends_it_at_once_and_begins_none(made: Made) -> None:
    async def body() -> None:
        server = Telling()
        world, uri = made(server)
        began_s = world.clock.monotonic_s()
        async with listening(world, uri) as mine:
            await acknowledged(mine)
            world.traffic.streams.let_go()
            await is_over(mine, server, world, "draining")
        assert world.clock.monotonic_s() - began_s < 1
        async with listening(world, uri) as late:
            await late.read()
        assert late.status == 503
        assert value(late)["id"] == 9
        assert len(server.open) == 1

    run(body)


@pytest.mark.parametrize("made", [single, several])
def test_a_drain_ends_one_that_has_not_begun(made: Made) -> None:
    async def body() -> None:
        arrived = asyncio.Event()

        class Slow(Telling):
            async def listen(self, asked: Asked) -> None:
                arrived.set()
                await asked.gone.wait()

        server = Slow()
        world, uri = made(server)
        async with listening(world, uri) as mine:
            await arrived.wait()
            world.traffic.streams.let_go()
            await mine.read()
        assert events(mine) == [COMPLETE]

    run(body)


@pytest.mark.full
def test_one_that_goes_on_as_it_began_is_heard_for_long() -> None:
    async def body() -> None:
        server = Telling()
        world, _ = single(server)
        async with listening(world) as mine:
            await acknowledged(mine)
            await passes(600.0)
            server.tell()
            while UPDATED.encode() not in mine.body:
                await mine.chunk()
            await mine.disconnect()
        assert server.open[0].gone.is_set()
        assert len(world.traffic.streams) == 0

    run(body)
