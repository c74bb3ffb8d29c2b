"""When is a server asked for its list before a call, and what comes of the call?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import META, modern
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_streams import begin, passes
from tests.app.mcp_world import OFF, Asked, ask, call, value
from tests.app.offered import UNKNOWN, methods, told, told_of, world_of
from tests.app.test_tool_pins_beside import Lives
from tests.unit.mcp.asking import allow
from tidegate.gateway.tool_requests.offered import OfferGate
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.turn import ToolServer
from tidegate.mcp import RuleSet
from tidegate.mcp.servers import ServerAddress


def test_a_tool_that_was_listed_is_called_without_another_list() -> None:
    async def body() -> None:
        world, server = world_of()
        await world.post(ask("tools/list"))
        for name in ("a", "b", "a"):
            assert await told_of(world, name) == "done"
        assert methods(server.log) == ["tools/list", *["tools/call"] * 3]

    run(body)


def test_what_another_caller_was_shown_is_known_for_all_whatever_they_may_see_of_it() -> None:
    async def body() -> None:
        world, server = world_of(rules=RuleSet([allow(roles=("viewer",), tools=("b*",)), *ADMINS]))
        listed = value(await world.post(ask("tools/list"), role="viewer"))
        assert [each["name"] for each in listed["result"]["tools"]] == ["b"]
        answer = told(await world.post(call("secret"), role="admin"))
        assert "result" in answer
        assert server.lists == 1

    run(body)


ADMINS = [allow(roles=("admin",))]


@pytest.mark.parametrize("name", ["a", "secret", "made_up"])
def test_the_first_call_asks_for_the_list_in_words_of_ours_once_its_intent_is_recorded(
    name: str,
) -> None:
    async def body() -> None:
        world, server = world_of()
        await told_of(world, name)
        first = world.sent[0]
        assert (first["method"], first.get("params")) == ("tools/list", None)
        assert world.records.order[0] == "intent"
        assert world.records.intents[0][0] == "request1"
        assert server.called == (["a"] if name == "a" else [])

    run(body)


@pytest.mark.parametrize("name", ["a", "secret", "made_up"])
def test_what_cannot_be_recorded_is_not_asked(name: str) -> None:
    async def body() -> None:
        world, server = world_of()
        world.records.fails = True
        answer = await world.post(call(name))
        assert (answer.status, server.log) == (503, [])

    run(body)


def test_the_list_is_asked_for_in_the_session_and_the_revision_of_the_call() -> None:
    async def body() -> None:
        world, server = world_of()
        server.state = "demands a session"
        session = await begin(world)
        head = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
        assert await told_of(world, "a", **head) == "done"
        looked = world.transport.asked[1]
        assert looked.message["method"] == "tools/list"
        assert looked.headers["mcp-session-id"] == "theirs"
        assert looked.headers["mcp-protocol-version"] == "2025-11-25"
        named = modern("tools/call", mcp_name="a")
        server.is_modern, server.state = True, "serves"
        new, server = world_of()
        server.is_modern = True
        assert "result" in told(await new.post(call("a", _meta=META), **named))
        assert new.transport.asked[0].headers["mcp-protocol-version"] == "2026-07-28"

    run(body)


def test_a_server_is_asked_at_most_once_a_second_however_often_it_is_tried() -> None:
    async def body() -> None:
        world, server = world_of()
        for second in range(3):
            for number in range(9):
                name = f"made_up_{number}" if number % 2 else "secret"
                assert await told_of(world, name) == UNKNOWN
            assert server.lists == second + 1
            await passes(0.99)
            assert await told_of(world, "secret") == UNKNOWN
            assert server.lists == second + 1
            await passes(0.02)
        assert server.called == []

    run(body)


def test_a_list_that_failed_is_not_asked_for_again_within_the_second() -> None:
    async def body() -> None:
        world, server = world_of()
        server.state = "is down"
        for name in ("secret", "made_up", "a"):
            assert (await told_of(world, name))["code"] == -32603
        assert server.lists == 1
        server.state = "serves"
        await passes(1)
        assert await told_of(world, "secret") == UNKNOWN
        assert await told_of(world, "a") == "done"

    run(body)


def test_calls_at_the_same_time_share_one_list_even_if_whoever_began_it_leaves() -> None:
    async def body() -> None:
        world, server = world_of()
        go = asyncio.Event()

        async def slow(asked: Asked) -> None:
            if asked.message["method"] == "tools/list":
                await go.wait()
            await server(asked)

        world.transport.script = slow
        names = ["a", "secret", "made_up", "b"]
        leaver = asyncio.create_task(told_of(world, "a"))
        await until(lambda: len(world.transport.asked) == 1)
        others = [asyncio.create_task(told_of(world, name)) for name in names]
        await passes(0.01)
        leaver.cancel()
        await asyncio.wait((leaver,))
        go.set()
        assert await asyncio.gather(*others) == ["done", UNKNOWN, UNKNOWN, "done"]
        assert server.lists == 1

    run(body)


def test_a_list_that_nobody_waits_for_any_more_is_given_up_and_the_next_call_asks_anew() -> None:
    async def body() -> None:
        world, server = world_of()

        async def silent(_: Asked) -> None:
            return

        world.transport.script = silent
        leavers = [asyncio.create_task(told_of(world, name)) for name in ("a", "secret")]
        await until(lambda: len(world.transport.asked) == 1)
        await passes(0.01)
        (looked,) = world.transport.asked
        leavers[0].cancel()
        await passes(0.01)
        assert not looked.gone.is_set()
        leavers[1].cancel()
        await asyncio.wait(leavers)
        await passes(0.01)
        assert looked.gone.is_set()
        world.transport.script = server
        assert await told_of(world, "a") == "done"

    run(body)


def test_what_fails_for_one_caller_or_in_one_session_is_no_failure_for_another() -> None:
    async def body() -> None:
        world, server = world_of()
        server.state = "demands a session"
        session = {"mcp_session_id": await begin(world)}
        assert "begin with initialize" in (await told_of(world, "secret"))["message"]
        assert await told_of(world, "secret", **session) == UNKNOWN
        assert await told_of(world, "made_up", **session) == UNKNOWN
        assert "begin with initialize" in (await told_of(world, "made_up"))["message"]
        assert server.lists == 2

    run(body)


def test_a_tool_that_comes_is_found_within_a_second_and_at_once_if_the_server_says_so() -> None:
    async def body() -> None:
        world, server = world_of()
        assert await told_of(world, "new") == UNKNOWN
        server.names.append("new")
        assert await told_of(world, "new") == UNKNOWN
        await passes(1)
        assert await told_of(world, "new") == "done"
        server.names.append("newer")
        server.news = True
        assert told_in_stream(await world.post(call("a"))) == "done"
        assert told_in_stream(await world.post(call("newer"))) == "done"

    run(body)


def told_in_stream(answer: Any) -> Any:
    return "done" if b'"done"' in answer.body else answer.body


def test_a_tool_that_goes_is_unknown_once_the_server_says_so() -> None:
    async def body() -> None:
        world, server = world_of()
        assert await told_of(world, "b") == "done"
        server.names.remove("b")
        server.news = True
        await world.post(call("a"))
        server.news = False
        assert await told_of(world, "b") == UNKNOWN
        assert server.called == ["b", "a"]

    run(body)


def test_a_server_that_changes_whenever_it_is_looked_at_is_a_failure_for_every_name() -> None:
    async def body() -> None:
        world, server = world_of()

        async def restless(asked: Asked) -> None:
            if asked.message["method"] == "tools/list":
                world.pins.stale("backend")
            await server(asked)

        world.transport.script = restless
        for number, name in enumerate(("a", "secret", "made_up"), start=1):
            assert (await told_of(world, name))["code"] == -32603
            assert server.lists == 3 * number
        assert server.called == []

    run(body)


def test_another_address_is_another_server_and_the_same_one_is_not() -> None:
    async def body() -> None:
        world, server = world_of()
        assert await told_of(world, "a") == "done"
        world.policy = replace(world.policy, revision="r2")
        assert await told_of(world, "a") == "done"
        assert server.lists == 1
        elsewhere = ServerAddress("backend", "http://elsewhere.example/mcp", "c")
        world.policy = replace(world.policy, servers={"backend": ToolServer(elsewhere, OFF)})
        world.carriers.retain([elsewhere])
        server.names.remove("a")
        assert await told_of(world, "a") == UNKNOWN
        assert server.lists == 2

    run(body)


def test_a_process_that_was_started_anew_is_asked_anew() -> None:
    async def body() -> None:
        world, server = world_of()
        lives = Lives(world.carriers)
        relay = world.traffic.relay
        relay.pins = PinGate(world.pins, lives, relay.shared)  # type: ignore[arg-type]
        relay.offers = OfferGate(  # type: ignore[arg-type]
            relay.pins, lives, relay.shared, world.clock
        )
        for _ in range(2):
            assert await told_of(world, "a") == "done"
        assert server.lists == 1
        lives.life += 2
        server.names.remove("a")
        assert await told_of(world, "a") == UNKNOWN
        assert server.lists == 2

    run(body)
