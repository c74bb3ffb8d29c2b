"""Does nothing happen beside a request that nobody asked for, and all that has to?"""

import asyncio
import json
from typing import Any

import pytest

from tests.app.bridged import Bridged
from tests.app.federated import Federated, Server, until
from tests.app.mcp_answers import run_in_no_time
from tests.app.mcp_streams import CHANGED, StreamingServer, begin, event, heard, listen
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream
from tests.app.mcp_world import Asked, World, ask, call
from tests.app.pinned import Pinned
from tests.app.shelves import SharedStore, crew, pass_time, used
from tests.app.shelves import run as run_crew
from tests.app.test_tool_traffic_sessions import INITIALIZE
from tests.app.test_tool_traffic_sessions import begin as begin_stateful
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.upstream import ToolTimes
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.servers import ServerAddress
from tidegate.mcp.session_papers import TOUCH_S

OTHER = ServerAddress("other", "http://other.example/mcp")


@pytest.mark.parametrize("message", [CHANGED, {**CHANGED, "method": "notifications/message"}])
def test_changed_tools_that_a_listening_client_is_told_of_are_looked_at(message: Any) -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server, pin="block")
        session = await begin(world)
        known = world.pins._of("backend")
        before = known.news
        async with listen(world, session) as mine:
            asked = await server.arrival()
            event(asked, message)
            while not heard(mine):
                assert await mine.chunk() != b""
        assert (known.news > before) is (message is CHANGED)
        await pause(5)  # other processes are told, in a while

    run_in_no_time(body)


def test_the_way_to_a_server_is_another_one_once_there_are_several() -> None:
    async def body() -> None:
        world = World(LegacyUpstream())
        (server,) = world.policy.servers.values()
        alone = world.carriers.of(server.place)
        world.carriers.retain([server.place])
        assert world.carriers.of(server.place) is alone
        world.carriers.retain([server.place, OTHER])
        among = world.carriers.of(server.place)
        assert among is not alone
        world.carriers.retain([OTHER, server.place])
        assert world.carriers.of(server.place) is among
        world.carriers.retain([server.place])
        assert world.carriers.of(server.place) not in (alone, among)
        await world.carriers.close()

    run_in_no_time(body)


@pytest.mark.full
def test_a_way_that_was_given_up_ends_its_session_once_no_call_can_need_it() -> None:
    async def body() -> None:
        servers = {"a": LegacyUpstream(), "b": LegacyUpstream()}
        world = Federated(**servers, times=ToolTimes(total_s=3.0))
        await world.post(ask("tools/list"))
        (session,) = servers["b"].open
        kept = world.policy.servers["a"]
        world.reload({"a": kept})
        await pause(2.9)
        assert list(servers["b"].open) == [session]
        await pause(0.2)
        assert not servers["b"].open
        assert not world.carriers._retired
        await world.over()

    run_in_no_time(body)


async def asks(upstream: Any, asked: Asked, message: Any) -> None:
    """Asks the client something, within the answer to a call."""
    del upstream
    if message["method"] == "tools/call":
        result = {"content": [], "resultType": "complete"}
        asked.head(200, "text/event-stream")
        asked.event({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        asked.event({"jsonrpc": "2.0", "id": 10, "method": "roots/list"})
        asked.event({"jsonrpc": "2.0", "id": message["id"], "result": result})
        asked.end()


@pytest.mark.parametrize("upstream", [LegacyUpstream, ModernUpstream])
def test_a_server_of_2026_that_asks_in_a_stream_gets_no_post(upstream: Any) -> None:
    async def body() -> None:
        bridged = Bridged(upstream(handler=asks))
        client = LEGACY[0] if upstream is ModernUpstream else MODERN
        assert (await bridged.say(call("echo"), client)).result["content"] == []
        await pause(1)  # of a time that does not pass while anybody has something to do
        await bridged.carrier.close()
        answers = bridged.upstream.methods().count("answer")
        assert answers == (0 if upstream is ModernUpstream else 2)
        assert bridged.upstream.faults == []

    run_in_no_time(body)


def test_a_list_of_our_own_brings_no_progress_under_the_token_of_the_client() -> None:
    async def body() -> None:
        world = Pinned()
        await world.post(call("read", _meta={"progressToken": "theirs"}))
        sent = {each.message["method"]: each.message for each in world.transport.asked}
        assert sent["tools/call"]["params"]["_meta"]["progressToken"]
        assert "progressToken" not in json.dumps(sent["tools/list"])

    run_in_no_time(body)


@pytest.mark.full
def test_a_stranger_who_knows_a_session_does_not_keep_it_alive() -> None:
    async def body() -> None:
        async with crew() as here:
            session = await begin_stateful(here.one)
            await pass_time(TOUCH_S + 1)
            here.store.asked.clear()
            assert await used(here.one, session, "admin") == 404
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
            assert "touch" not in [word for word, _ in here.store.asked]
            assert await used(here.one, session) == 200
            await until(lambda: ("touch", "sessions") in here.store.asked)

    run_crew(body)


@pytest.mark.full
def test_while_sessions_cannot_be_kept_no_server_is_asked_for_one() -> None:
    async def body() -> None:
        store = SharedStore()
        world = Federated(a=Server(), b=Server(), shelf=store.shelf())
        store.away = True
        assert (await world.post(INITIALIZE)).status == 503  # nobody knew that it is away
        asked = len(world.transport.asked)
        answer = await world.post(INITIALIZE)
        assert (answer.status, answer.header("mcp-session-id")) == (503, None)
        assert len(world.transport.asked) == asked
        store.away = False
        assert (await world.post(INITIALIZE)).header("mcp-session-id")
        assert len(world.transport.asked) > asked
        await world.traffic.relay.shared.close()
        await world.over()

    run_in_no_time(body)
