"""Can one principal take everything that the clients of MCP share?"""

import asyncio

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import run
from tests.app.mcp_world import Asked, World, ask, call, echo, value
from tidegate.errors import Overloaded, RateLimited
from tidegate.gateway.tool_shares import Shares
from tidegate.gateway.tool_streams import StreamCaps
from tidegate.policy import Principal

VERA = Principal("vera", "acme", ("viewer",), "k1")
BOB = Principal("bob", "acme", ("viewer",), "k2")


def test_one_principal_has_no_more_than_its_share_of_the_requests() -> None:
    async def body() -> None:
        async def hanging(asked: Asked) -> None:
            if asked.message["method"] == "tools/call":
                await asked.gone.wait()
            else:
                await echo(asked)

        world = World(hanging, caps=StreamCaps(requests=2))
        first, second = (world.exchange(call("get_status", id=n)) for n in (1, 2))
        async with first, second:
            await until(lambda: len(world.transport.asked) == 2)
            third = await world.post(ask("tools/list", id=3))
            assert (third.status, third.header("retry-after")) == (429, "1")
            assert "Limit 'requests' (per principal): 2 of 2" in value(third)["error"]["message"]
            assert (await world.post(ask("tools/list"), role="admin")).status == 200
            await first.disconnect()
            assert (await world.post(ask("tools/list"))).status == 200
        outcomes = [trail.snapshot().outcome for trail in world.records.ends]
        assert outcomes.count("gateway.rate_limited") == 1

    run(body)


def test_shares_are_counted_for_all_and_for_each() -> None:
    shares = Shares("things", most=10, of_principal=6, retry_after_s=3.0)
    with shares.taken(VERA, 4):
        with pytest.raises(RateLimited) as refused, shares.taken(VERA, 3):
            pass
        error = refused.value
        told = (error.limit, error.cap, error.used, error.requested, error.retry_after_s)
        assert told == ("things", 6, 4, 3, 3.0)
        with shares.taken(VERA, 2), shares.taken(BOB, 4):
            assert len(shares) == 10
            with pytest.raises(Overloaded, match="things"), shares.taken(BOB, 1):
                pass
        assert len(shares) == 4
    assert len(shares) == 0
    with shares.taken(VERA, 100), pytest.raises(Overloaded), shares.taken(BOB):
        pass


def test_what_is_too_large_for_any_share_passes_alone() -> None:
    async def body() -> None:
        shares = Shares("things", most=None, of_principal=2, retry_after_s=1.0)
        for amount in (5, 1):
            with shares.taken(VERA, amount):
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        assert len(shares) == 0

    run(body)
