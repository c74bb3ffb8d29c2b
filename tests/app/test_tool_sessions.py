"""Do all processes of a gateway know the same sessions, and is that as safe as with one?

Two worlds stand for two processes; they share a store and the server behind them.
"""

import asyncio
from dataclasses import replace

import pytest

from tests.app.mcp_world import (
    ask,
    echo,
    tell,
    value,
)
from tests.app.shelves import LIST, SharedShelf, crew, delete, pass_time, run, used
from tests.app.test_tool_traffic_sessions import (
    INITIALIZE,
    MODERN,
    begin,
)
from tidegate.gateway.tool_requests.sessions import FRESH_S, GRACE_S, LOOK_S
from tidegate.mcp import session_papers as papers
from tidegate.mcp.session_papers import SESSIONS, TOUCH_S


def test_a_session_of_one_process_goes_on_in_every_other() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            for message, status in ((tell("notifications/initialized"), 202), (LIST, 200)):
                answer = await here.other.post(message, mcp_session_id=session)
                assert answer.status == status
                asked = here.other.transport.asked[-1]
                assert asked.headers["mcp-session-id"] == "theirs-0"
                assert asked.headers["mcp-protocol-version"] == "2025-11-25"

    run(body)


def test_a_session_survives_the_process_that_began_it() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            await here.one.traffic.relay.shared.close()
            assert await used(here.more(), session) == 200
            assert await used(here.more(), session, "second") == 404

    run(body)


def test_a_known_session_costs_the_store_one_look_a_while_and_nothing_by_request() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            assert await used(here.other, session) == 200
            here.store.asked.clear()
            for world in (here.one, here.other) * 50:
                assert await used(world, session) == 200
            assert here.store.asked == []
            await pass_time(10 * LOOK_S + 0.01)
            assert here.store.asked == [("news", "sessions")] * 20

    run(body)


@pytest.mark.parametrize("role", ["admin", "second", "guest"])
def test_nobody_else_has_the_session_in_any_process_and_it_survives(role: str) -> None:
    """Case 28 of the adversarial ones: agentic-community/mcp-gateway-registry #1357."""

    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            for world in (here.other, here.one, here.more()):
                asked, known = len(world.transport.asked), len(world.traffic.relay.sessions)
                assert await used(world, session, role) == 404
                assert len(world.traffic.relay.sessions) == known
                note = await world.post(
                    tell("notifications/roots/list_changed"), role=role, mcp_session_id=session
                )
                get = world.exchange(
                    b"", role=role, method="GET", mcp_session_id=session, accept="text/event-stream"
                )
                async with get:
                    await get.read()
                gone = await delete(world, session, role)
                assert (note.status, get.status, gone.status) == (404, 404, 404)
                assert len(world.transport.asked) == asked
                assert await used(world, session) == 200

    run(body)


def test_an_ended_session_is_refused_by_every_process_within_the_bound() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            assert await used(here.other, session) == 200
            assert (await delete(here.one, session)).status == 200
            assert await used(here.one, session) == 404
            assert await used(here.more(), session) == 404
            here.server.live.append("theirs-0")  # a server that is slow to forget
            await pass_time(LOOK_S + 0.01)
            asked = len(here.other.transport.asked)
            assert await used(here.other, session) == 404
            assert len(here.other.transport.asked) == asked

    run(body)


def test_an_end_that_overtakes_the_news_of_a_session_holds() -> None:
    """The store was read before the end, and the answer comes after the end was heard of."""

    async def body() -> None:
        async with crew() as here:
            session, own = await begin(here.one), await begin(here.other)
            shelf = here.other.traffic.relay.shared._shelf
            assert isinstance(shelf, SharedShelf)
            shelf.hold = asyncio.Event()
            late = asyncio.ensure_future(used(here.other, session))
            await shelf.held.wait()
            assert (await delete(here.one, session)).status == 200
            here.server.live.append("theirs-0")
            await pass_time(LOOK_S + 0.01)
            assert await used(here.other, own) == 200
            shelf.hold.set()
            assert await late == 404

    run(body)


def test_who_could_not_look_for_long_enough_looks_before_it_serves() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            assert await used(here.other, session) == 200
            shared = here.other.traffic.relay.shared
            assert shared._timer is not None
            shared._timer.cancel()  # a loop that was held up
            await delete(here.one, session)
            here.server.live.append("theirs-0")
            await pass_time(FRESH_S + 0.01)
            assert await used(here.other, session) == 404

    run(body)


def test_a_session_that_its_server_forgot_has_ended_for_every_process() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            here.server.live.clear()
            assert await used(here.other, session) == 404
            await pass_time(LOOK_S + 0.01)
            here.server.live.append("theirs-0")
            assert await used(here.one, session) == 404
            assert await used(here.more(), session) == 404

    run(body)


def test_without_the_store_known_sessions_go_on_for_a_while_and_no_new_ones_begin() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            here.store.away = True
            first = await here.one.post(INITIALIZE)  # nobody knows yet that it is away
            assert (first.status, first.header("mcp-session-id")) == (503, None)
            assert value(first)["id"] == 1
            assert value(first)["error"]["data"]["reason"] == "gateway.store_unavailable"
            asked = len(here.one.transport.asked)
            assert (await here.one.post(INITIALIZE)).status == 503
            assert len(here.one.transport.asked) == asked
            assert await used(here.one, session) == 200
            assert await used(here.other, session) == 503
            assert await used(here.one, session, "second") == 404
            assert here.one.traffic.relay.shared.degraded
            await pass_time(GRACE_S - 5)
            assert await used(here.one, session) == 200
            await pass_time(10)
            assert await used(here.one, session) == 503
            here.store.away = False
            await pass_time(2 * LOOK_S)
            for world in (here.one, here.other):
                assert await used(world, session) == 200
            assert await begin(here.other)
            assert not here.one.traffic.relay.shared.degraded

    run(body)


def test_an_end_that_the_store_did_not_hear_is_owed_to_it() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            assert await used(here.other, session) == 200
            here.store.away = True
            assert (await delete(here.one, session)).status == 503
            here.store.away = False
            await begin(here.one)
            await pass_time(LOOK_S + 0.01)
            here.server.live.append("theirs-0")
            for world in (here.one, here.other, here.more()):
                assert await used(world, session) == 404

    run(body)


def test_a_store_that_begins_anew_ends_all_sessions_at_the_next_look() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            assert await used(here.other, session) == 200
            here.store.models.clear()
            here.store.book += 1
            await pass_time(LOOK_S + 0.01)
            for world in (here.one, here.other):
                assert await used(world, session) == 404
                assert await begin(world)

    run(body)


def test_a_session_that_the_store_lost_ends_when_its_use_is_told() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            here.store.models[SESSIONS.name].documents.clear()
            await pass_time(TOUCH_S + 1)
            assert await used(here.one, session) == 200  # it was not told
            await pass_time(LOOK_S)
            assert await used(here.one, session) == 404

    run(body)


@pytest.mark.full
def test_a_session_lives_where_anybody_uses_it_and_ends_when_nobody_does() -> None:
    async def body() -> None:
        async with crew() as here:
            session, idle = await begin(here.one), await begin(here.one)
            for _ in range(5):
                await pass_time(papers.IDLE_S / 4)
                assert await used(here.other, session) == 200
            for world in (here.one, here.other):
                assert await used(world, session) == 200
                assert await used(world, idle) == 404
            await pass_time(SESSIONS.live_s + LOOK_S)
            assert await used(here.one, session) == 404
            assert len(here.one.traffic.relay.sessions) == 0

    run(body)


def test_too_many_sessions_of_one_principal_cost_nobody_else_one() -> None:
    async def body() -> None:
        async with crew() as here:
            others = await begin(here.one, "admin")
            first = await begin(here.one)
            for number in range(SESSIONS.most_of_group):
                await begin(here.worlds[number % 2])
            await pass_time(LOOK_S + 0.01)
            assert await used(here.one, first) == 404
            assert await used(here.other, others, "admin") == 200
            documents = here.store.models[SESSIONS.name].documents
            assert len(documents) == SESSIONS.most_of_group + 1

    run(body)


def test_whoever_reads_the_store_learns_no_session_and_no_principal() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            written = here.store.written
            assert len(written) > 100
            for secret in (session, "theirs-0", "vera", "acme", "backend.example"):
                assert secret.encode() not in written

    run(body)


def test_a_modern_request_asks_for_no_session() -> None:
    async def body() -> None:
        async with crew(echo) as here:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            answer = await here.one.post(
                ask("ping", _meta=meta),
                mcp_protocol_version=MODERN,
                mcp_method="ping",
                mcp_session_id="0" * 32,
            )
            assert answer.status == 200
            assert (await here.one.post(LIST, mcp_session_id="no id of ours")).status == 404
            assert here.store.asked == []

    run(body)


def test_another_server_in_the_place_of_its_own_ends_a_session_in_every_process() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin(here.one)
            server = here.other.policy.servers["backend"]
            place = replace(server.place, url="http://elsewhere.example/mcp")
            servers = {"backend": replace(server, place=place)}
            here.other.policy = replace(here.other.policy, servers=servers)
            assert await used(here.other, session) == 404
            assert await used(here.one, session) == 200

    run(body)


def test_the_store_of_questions_and_tasks_is_bounded_too() -> None:
    for kind in (papers.SESSIONS, papers.QUESTIONS, papers.TASKS):
        assert 0 < kind.most_of_group < kind.most <= 10_000
