"""Is a server over stdio spoken to in its own era, by everybody in the one session that it has?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import ADAM, CLIENTS, VERA, reader
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_world import ask, call
from tests.app.piped import FakeProcess, Piped, Server, modern, polite, silent, touchy
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Request
from tidegate.mcp.eras import LEGACY, MODERN, Revision


def slow(server: Server, seconds: float) -> Server:
    """`server`, which begins to answer after this time."""
    begun = asyncio.Event()

    async def starting(process: FakeProcess, request: Request) -> Any:
        if not begun.is_set():
            await pause(seconds)
            begun.set()
        return await server(process, request)

    return starting


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", [polite, silent, touchy, modern])
def test_every_client_is_served_by_every_kind_of_process(server: Server, client: Any) -> None:
    async def body() -> None:
        piped = Piped(server)
        for owner in (VERA, ADAM):
            said = await piped.say(ask("tools/list"), client, owner=owner)
            assert ("resultType" in said.result) == (client == MODERN)
            assert (await piped.say(call("echo"), client, owner=owner)).result["content"] == []
        assert piped.process.told == ["echo", "echo"]
        methods = [method for _, method in piped.process.heard]
        assert methods.count("server/discover") == 1
        assert methods.count("initialize") == (0 if server is modern else 1)
        await piped.carrier.close()

    run_in_no_time(body)


@pytest.mark.parametrize("server", [polite, silent, touchy])
def test_a_process_that_was_started_again_is_greeted_again_and_no_call_runs_twice(
    server: Server,
) -> None:
    async def body() -> None:
        piped = Piped(server)
        await piped.say(call("echo"), MODERN)
        piped.process.crash()
        assert (await piped.say(call("echo"), LEGACY[0])).result["content"] == []
        assert piped.process.told == ["echo", "echo"]
        last = piped.process.generation
        methods = [method for life, method in piped.process.heard if life == last]
        assert methods == ["initialize", "notifications/initialized", "tools/call"]

    run_in_no_time(body)


@pytest.mark.parametrize("server", [polite, silent, modern])
@pytest.mark.parametrize("seconds", [1.0, 2.9, 4.0, 12.0])
def test_a_process_may_take_its_time_to_begin(server: Server, seconds: float) -> None:
    async def body() -> None:
        piped = Piped(slow(server, seconds))
        for client in (MODERN, LEGACY[0]):
            assert (await piped.say(call("echo"), client)).result["content"] == []
        assert piped.process.told == ["echo", "echo"]

    run_in_no_time(body)


def test_a_process_that_speaks_nothing_is_asked_again_next_time() -> None:
    async def refusing(process: FakeProcess, request: Request) -> Any:
        del process
        return {"error": {"code": -32603, "message": f"no {request.method}"}}

    async def body() -> None:
        piped = Piped(refusing)
        with pytest.raises(ServerFailed):
            await piped.say(call("echo"), MODERN)
        piped.process.server = modern
        assert (await piped.say(call("echo"), MODERN)).result["content"] == []

    run(body)


def test_a_process_that_ends_between_two_messages_runs_nothing_for_a_session_that_is_gone() -> None:
    async def body() -> None:
        piped = Piped(polite)
        await piped.say(call("echo"), MODERN)
        line = await piped.carrier._bridge.server.line(VERA)
        piped.process.crash()
        assert line.session != str(piped.process.generation)
        assert (await piped.say(call("echo"), MODERN)).result["content"] == []
        assert line.dropped

    run(body)


def test_a_process_that_fails_while_it_works_is_not_asked_again() -> None:
    async def failing(process: FakeProcess, request: Request) -> Any:
        if request.method == "tools/call":
            process.told.append("ran")
            return ServerFailed("crashed")
        return await polite(process, request)

    async def body() -> None:
        piped = Piped(failing)
        with pytest.raises(ServerFailed):
            await piped.say(call("echo"), MODERN)
        assert piped.process.told == ["ran"]

    run(body)


def test_what_a_process_says_aside_reaches_who_listens() -> None:
    async def body() -> None:
        piped, changed = Piped(polite), []
        piped.carrier.tell_of_tools(lambda _announced: changed.append(1))
        wish = {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]}
        listening = ask("subscriptions/listen", id="sub", notifications=wish)
        async with piped.hearing(listening, MODERN) as following:
            assert (await following())["params"]["notifications"] == wish
            with piped.carrier.listening(ADAM, None, Revision(LEGACY[0])) as exchange:
                await exchange.head()
                piped.process.say("notifications/tools/list_changed")
                piped.process.say("notifications/resources/updated", uri="test://a")
                piped.process.say("notifications/message", level="error", data="of somebody's call")
                assert (await following())["method"] == "notifications/tools/list_changed"
                assert (await following())["params"]["uri"] == "test://a"
                assert (await reader(exchange)())["method"] == "notifications/tools/list_changed"
        assert changed == [1]
        assert piped.process.told[0] == "resources/subscribe"

    run(body)


def test_a_session_of_one_process_is_no_owner_s() -> None:
    async def body() -> None:
        piped = Piped(polite)
        await asyncio.gather(piped.say(call("a"), MODERN), piped.say(call("b"), MODERN, owner=ADAM))
        assert (await piped.carrier._bridge.server.line(ADAM)).owner == ("", "", "", "")

    run(body)
