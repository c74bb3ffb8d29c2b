"""Does a stream end when it should, and does nobody have more of them than there are?"""

import asyncio
from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest

from tests.app.mcp_answers import META, modern, run_in_no_time
from tests.app.mcp_streams import (
    CHANGED,
    StreamingServer,
    begin,
    event,
    heard,
    last_record,
    listen,
    passes,
    said,
    values,
)
from tests.app.mcp_world import Asked, World, ask, value
from tidegate.errors import Unauthenticated
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.gateway.tool_requests.streams import StreamCaps
from tidegate.policy import Principal
from tidegate.testing.asgi import WAIT_S

PING = b": keep-alive\n\n"


def run(body: Any) -> None:
    run_in_no_time(body)


async def reason(world: World, count: int) -> str:
    """Why the stream of the record number `count` ended."""
    record = await last_record(world, count)
    (ended,) = [step for step in record.steps if step.stage == "stream"]
    return str(ended.values["reason"])


def test_a_silent_stream_is_kept_alive_and_its_session_in_use() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        began_s = world.clock.monotonic_s()
        async with listen(world, session) as mine:
            asked = await server.arrival()
            for _ in range(200):
                assert await mine.chunk() == PING
            assert world.clock.monotonic_s() - began_s == pytest.approx(200 * 15.0, abs=1.0)
            event(asked, CHANGED)
            while not heard(mine):
                await mine.chunk()
            asked.end()
            await mine.read()
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200

    run(body)


def test_a_stream_does_not_outlast_its_time() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, times=ToolTimes(stream_s=60.0))
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            await mine.read()
        assert mine.body == PING * 3
        assert asked.gone.is_set()
        assert await reason(world, 2) == "lifetime"

    run(body)


def test_a_server_that_talks_all_the_time_does_not_outlast_it_either() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, times=ToolTimes(stream_s=60.0))
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            while not asked.gone.is_set():
                event(asked, CHANGED)
                await passes(1.0)
            await mine.read()
        assert 59 <= len(values(mine)) <= 76
        assert PING not in mine.body
        assert await reason(world, 2) == "lifetime"

    run(body)


def test_a_client_that_leaves_frees_everything_at_once() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            await mine.head()
            assert len(world.traffic.streams) == 1
            await mine.disconnect()
            assert asked.gone.is_set()
            assert len(world.traffic.streams) == 0
        assert await reason(world, 2) == "client_left"
        assert (await last_record(world, 2)).outcome == "cancelled"
        # It is no cancellation of anything: the server hears of no call.
        assert server.notices == []

    run(body)


@pytest.mark.parametrize("how", ["delete", "bound"])
def test_the_end_of_a_session_ends_its_streams(how: str) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            await mine.head()
            if how == "delete":
                async with world.exchange(b"", method="DELETE", mcp_session_id=session) as ending:
                    await ending.read()
                assert ending.status == 204
            else:
                for _ in range(100):
                    await begin(world)
            await mine.read()
            assert asked.gone.is_set()
        assert "session_ended" in [await reason(world, n) for n in streams_in(world)]

    run(body)


def streams_in(world: World) -> list[int]:
    """The numbers of the records of streams."""
    return [
        number
        for number, trail in enumerate(world.records.ends, 1)
        if any(step.stage == "stream" for step in trail.steps)
    ]


def test_a_stream_does_not_outlive_the_rules_it_was_opened_under() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            event(asked, CHANGED)
            while not heard(mine):
                await mine.chunk()
            world.policy = replace(world.policy, revision="r2")
            event(asked, CHANGED)
            await mine.read()
        assert values(mine) == [CHANGED]
        assert await reason(world, 2) == "configuration_changed"
        async with listen(world, session) as again:
            (await server.arrival()).end()
            await again.read()
        assert again.status == 200

    run(body)


def test_a_silent_stream_hears_of_new_rules_with_the_next_sign_of_life() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            await server.arrival()
            await mine.head()
            world.policy = replace(world.policy, revision="r2")
            assert await mine.read() == b""
        assert await reason(world, 2) == "configuration_changed"

    run(body)


def test_a_drain_ends_streams_at_once_and_begins_none() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session) as mine:
            asked = await server.arrival()
            await mine.head()
            world.traffic.streams.let_go()
            assert await mine.read() == b""
            assert asked.gone.is_set()
        assert await reason(world, 2) == "draining"
        async with listen(world, session) as late:
            await late.read()
        assert (late.status, late.header("retry-after")) == (503, "1")
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 200

    run(body)


def test_a_drain_ends_a_stream_that_its_server_has_not_begun() -> None:
    async def body() -> None:
        arrived = asyncio.Event()

        async def script(asked: Asked) -> None:
            if asked.method == "GET":
                arrived.set()
            else:
                await server(asked)

        server = StreamingServer()
        world = World(script)
        session = await begin(world)
        async with listen(world, session) as mine:
            async with asyncio.timeout(WAIT_S):
                await arrived.wait()
            world.traffic.streams.let_go()
            await mine.read()
        assert mine.status == 503

    run(body)


def test_one_principal_cannot_have_all_streams() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, caps=StreamCaps(all=3, of_principal=2))
        sessions = {role: await begin(world, role) for role in ("viewer", "admin")}
        first = listen(world, sessions["viewer"])
        second = listen(world, sessions["viewer"])
        async with first, second:
            for open_one in (first, second):
                assert await open_one.head() == 200
            async with listen(world, sessions["viewer"]) as third:
                await third.read()
            assert (third.status, third.header("retry-after")) == (429, "15")
            assert "Limit 'streams' (per principal): 2 of 2" in value(third)["error"]["message"]
            async with listen(world, sessions["admin"], role="admin") as other:
                assert await other.head() == 200
                async with listen(world, sessions["admin"], role="admin") as full:
                    await full.read()
                assert full.status == 503
            await first.disconnect()
            async with listen(world, sessions["viewer"]) as again:
                assert await again.head() == 200
        assert len(world.traffic.streams) == 0

    run(body)


def test_subscriptions_are_streams_too() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.head(200, "text/event-stream")
            asked.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})

        world = World(script, caps=StreamCaps(all=9, of_principal=1))
        request = ask("subscriptions/listen", notifications={}, _meta=META)
        headers = modern("subscriptions/listen", accept="application/json, text/event-stream")
        async with world.exchange(request, **headers) as mine:
            assert await mine.head() == 200
            refused = await world.post(request, **headers)
            assert refused.status == 429
            assert value(refused)["id"] == 1
        assert (await world.post(ask("ping"))).status == 200

    run(body)


def test_whoever_does_not_read_does_not_fill_the_memory() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        async with listen(world, session):
            asked = await server.arrival()
            for _ in range(500):
                event(asked, said("x" * 1000))
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
            assert asked.paused
        assert asked.gone.is_set()

    run(body)


class Expiring:
    """Issuers whose tokens name somebody until `until_s`."""

    metadata_url = None

    def __init__(self, clock: Any, until_s: float) -> None:
        self._clock, self._until_s = clock, until_s

    async def principal(self, _credential: bytes) -> Principal:
        if self._clock.monotonic_s() >= self._until_s:
            raise Unauthenticated(reason="expired")
        return Principal("vera", "acme", ("viewer",), "t1", issuer="https://id.example")


def test_a_stream_does_not_outlive_the_token_it_was_opened_with() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        began_s = world.clock.monotonic_s()
        tokens: Any = Expiring(world.clock, began_s + 100.0)
        world.policy = replace(world.policy, tokens=tokens)
        parts = (b'{"alg":"RS256"}', b'{"iss":"x"}', b"signature")
        token = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
        bearer = {"authorization": f"Bearer {token}"}
        session = await begin(world, **bearer)
        async with listen(world, session, **bearer) as mine:
            await server.arrival()
            await mine.read()
        assert mine.status == 200
        assert 100 <= world.clock.monotonic_s() - began_s <= 116
        assert await reason(world, 2) == "credential_ended"
        async with listen(world, session, **bearer) as late:
            await late.read()
        assert late.status == 401

    run(body)
