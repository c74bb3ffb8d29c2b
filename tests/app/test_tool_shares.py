"""Can one principal take everything that the clients of MCP share?"""

import asyncio

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import run
from tests.app.mcp_world import Asked, World, ask, call, echo, events, tell, value
from tidegate.errors import Overloaded, RateLimited
from tidegate.gateway.tool_requests.shares import Shares
from tidegate.gateway.tool_requests.streams import StreamCaps
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


@pytest.mark.full
@pytest.mark.parametrize("streamed", [True, False])
def test_answers_that_nobody_reads_do_not_fill_the_memory(*, streamed: bool) -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            reply = {"jsonrpc": "2.0", "id": asked.message["id"], "result": {"a": "x" * 100_000}}
            if streamed:
                asked.head(content_type="text/event-stream")
                asked.event(tell("notifications/message", data="y"))
                asked.event(reply)
                asked.end()
            else:
                asked.whole(reply)

        world = World(script, caps=StreamCaps(answers_bytes=1_000_000))
        accept = "application/json, text/event-stream"
        unread = [world.exchange(call("get_status", id=n), accept=accept) for n in range(2)]
        for each in unread:
            # Room for what precedes the answer, in messages of the application.
            each._room = asyncio.Semaphore(3 if streamed else 1)
        async with unread[0], unread[1]:
            await until(lambda: len(world.traffic._answers) > 200_000)
            late = await world.post(call("get_status", id=3), accept=accept)
            told = events(late)[-1] if streamed else value(late)
            assert late.status == (200 if streamed else 429)
            assert told["id"] == 3
            assert "Limit 'answers' (per principal)" in told["error"]["message"]
            assert (await world.post(call("get_status"), role="admin", accept=accept)).status == 200
            for each in unread:
                await each.read()
            assert b"xxx" in unread[0].body
        assert len(world.traffic._answers) == 0
        assert b"xxx" in (await world.post(call("get_status"), accept=accept)).body

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
