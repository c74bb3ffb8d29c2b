"""Does a server hear that nobody waits any more for the answer that a client came back for?"""

from typing import Any

import pytest

from tests.app.mcp_answers import ENFORCE, run_in_no_time
from tests.app.mcp_streams import (
    StreamingServer,
    begin,
    event,
    let_go,
    listen,
    passes,
    prime,
    reply,
    said,
    taken_up,
    values,
)
from tests.app.mcp_world import Asked, World
from tidegate.transport.upstream import Failure

FAILED = -32603


def run(body: Any) -> None:
    run_in_no_time(body)


def cancelled(server: StreamingServer) -> list[Any]:
    """Which calls it was told to leave."""
    assert {notice["method"] for notice in server.notices} <= {"notifications/cancelled"}
    return [notice["params"]["requestId"] for notice in server.notices]


async def after_its_time(again: Asked) -> None:
    while not again.gone.is_set():
        event(again, said("still at it"))
        await passes(10.0)


async def too_much(again: Asked) -> None:
    for _ in range(3):
        again.body(b"data: " + b"x" * (1 << 20))


async def broken(again: Asked) -> None:
    again.fail(Failure.MALFORMED)


@pytest.mark.parametrize("how", [after_its_time, too_much, broken])
def test_a_call_that_is_given_up_is_cancelled_at_its_server(how: Any) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        async with taken_up(world, server, session, place) as (back, again):
            await how(again)
            await back.read()
        assert values(back)[-1]["error"]["code"] == FAILED
        await passes(1.0)
        assert cancelled(server) == [asked.message["id"]]
        await passes(100.0)
        assert len(server.notices) == 1

    run(body)


@pytest.mark.parametrize("status", [400, 405, 503])
def test_so_is_one_whose_rest_the_server_does_not_give(status: int) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        server.refuses = status
        async with listen(world, session, last_event_id=place) as back:
            await back.read()
        assert values(back)[-1]["error"]["code"] == FAILED
        await passes(1.0)
        assert cancelled(server) == [asked.message["id"]]

    run(body)


def test_a_call_that_was_answered_is_not_cancelled() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, masking=ENFORCE)
        session = await begin(world)
        asked, place = await let_go(world, server, session)
        async with taken_up(world, server, session, place) as (back, again):
            prime(again, "e9")
            again.end()
            await back.read()
        async with taken_up(world, server, session, place) as (back, again):
            reply(again, to=asked)
            await back.read()
        assert "result" in values(back)[-1]
        await passes(700.0)
        assert cancelled(server) == []

    run(body)
