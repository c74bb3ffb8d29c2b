"""Does a silent server cost its deadline once, and come back by itself?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.app.federated import Federated, Server, dead, until
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, ask, call, value
from tests.unit.mcp.asking import allow
from tidegate.gateway.pause import pause
from tidegate.gateway.tool_requests.federation import PART_S
from tidegate.mcp import RuleSet

EVERYTHING = RuleSet([allow()])
MISSING = ["b"]
LIST = "tools/list"


class Hanging(Server):
    """Leaves questions of some kinds without an answer."""

    def __init__(self, *kinds: str) -> None:
        super().__init__()
        self.hangs_over = set(kinds)
        self.go = asyncio.Event()

    async def __call__(self, asked: Asked) -> None:
        if asked.raw and asked.message["method"] in self.hangs_over:
            self.heard.append(asked.message["method"])
            waits = [asyncio.ensure_future(each.wait()) for each in (self.go, asked.gone)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()
            if asked.gone.is_set():
                return
        await super().__call__(asked)

    def back(self) -> None:
        self.hangs_over = set()
        self.go.set()


async def listed(world: Federated, method: str = LIST, role: str = "viewer") -> tuple[Any, float]:
    """Who is missing and how long it took, in seconds."""
    began_s = world.clock.monotonic_s()
    result = value(await world.post(ask(method), role=role))["result"]
    return result.get("_meta", {}).get("tidegate/unavailable"), round(
        world.clock.monotonic_s() - began_s, 3
    )


@asynccontextmanager
async def serving(*kinds: str) -> AsyncIterator[tuple[Federated, Hanging]]:
    silent = Hanging(*kinds)
    world = Federated(a=Server(), b=silent, rules=EVERYTHING)
    yield world, silent
    await world.over()


def test_a_server_that_missed_once_is_named_at_once_and_asked_again_later() -> None:
    async def body() -> None:
        async with serving(LIST) as (world, silent):
            assert await listed(world) == (MISSING, PART_S)
            for _ in range(5):
                assert await listed(world) == (MISSING, 0.0)
            assert silent.heard.count(LIST) == 1
            (step,) = [s for s in world.records.ends[-1].steps if s.stage == "federation"]
            assert step.values["reason"] == "resting"
            # Whatever names something goes to it all the same.
            assert "result" in value(await world.post(call("b__get_status")))
            await pause(5.0)
            assert await listed(world) == (MISSING, PART_S)
            await pause(5.0)
            assert await listed(world) == (MISSING, 0.0)
            silent.back()
            await pause(5.0)
            for _ in range(2):
                assert await listed(world) == (None, 0.0)

    run(body)


def test_one_list_looks_whether_it_is_back_and_the_others_do_not_wait() -> None:
    async def body() -> None:
        async with serving(LIST) as (world, silent):
            await listed(world)
            await pause(5.0)
            looking = asyncio.ensure_future(listed(world))
            await until(lambda: silent.heard.count(LIST) == 2)
            assert await listed(world) == (MISSING, 0.0)
            silent.back()
            assert await looking == (None, 0.0)
            assert await listed(world) == (None, 0.0)

    run(body)


def test_a_client_that_leaves_while_it_looks_leaves_that_to_the_next() -> None:
    async def body() -> None:
        async with serving(LIST) as (world, silent):
            await listed(world)
            await pause(5.0)
            async with world.exchange(ask(LIST)) as exchange:
                await until(lambda: silent.heard.count(LIST) == 2)
                await exchange.disconnect()
            await until(lambda: len(world.traffic.relay.calls) == 0)
            silent.back()
            assert await listed(world) == (None, 0.0)

    run(body)


def test_it_rests_for_others_once_two_have_missed_it_and_in_this_kind_of_list_alone() -> None:
    async def body() -> None:
        async with serving(LIST) as (world, _):
            assert await listed(world) == (MISSING, PART_S)
            assert await listed(world, "prompts/list") == (None, 0.0)
            assert await listed(world, role="second") == (MISSING, PART_S)
            assert await listed(world, role="admin") == (MISSING, 0.0)

    run(body)


def test_what_it_offers_is_missed_in_the_same_way() -> None:
    async def body() -> None:
        async with serving("server/discover") as (world, _):
            assert await listed(world, "server/discover") == (MISSING, PART_S)
            assert await listed(world, "server/discover") == (MISSING, 0.0)

    run(body)


@pytest.mark.parametrize("times", [5])
def test_a_server_that_fails_at_once_is_asked_every_time(times: int) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=dead, rules=EVERYTHING)
        for _ in range(times):
            assert await listed(world) == (MISSING, 0.0)
        asked = [each for each in world.transport.asked if each.server == "b"]
        assert len(asked) == times
        await world.over()

    run(body)
