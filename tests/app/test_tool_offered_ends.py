"""What does a call of a tool cost that is denied or unknown, and what is said of it?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.app.federated import OLD, Federated
from tests.app.mcp_answers import generic
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_streams import passes
from tests.app.mcp_world import Asked, ask, call, tell
from tests.app.offered import ALL_BUT, UNKNOWN, Roster, methods, told, told_of, world_of
from tests.app.pinned import MODES, Pinned, Shifty, changed, tool
from tests.unit.mcp.asking import allow, deny
from tidegate.limits.ledger import Limit
from tidegate.mcp import RuleSet
from tidegate.mcp.pins import Mode

EXACT = RuleSet([allow(tools=("a", "b"))])


def test_where_the_rules_allow_nothing_unknown_a_denied_name_costs_nothing() -> None:
    """It is known that nobody can be told apart: no name that is allowed is unknown."""

    async def body() -> None:
        world, server = world_of(rules=EXACT)
        await world.post(ask("tools/list"))
        for name in ("secret", "made_up"):
            assert await told_of(world, name) == UNKNOWN
        server.state = "is down"
        await passes(2)
        for name in ("secret", "made_up"):
            assert await told_of(world, name) == UNKNOWN
        assert server.lists == 1

    run(body)


def test_a_server_of_which_nothing_may_be_used_is_never_asked() -> None:
    async def body() -> None:
        world, server = world_of(rules=RuleSet([allow(roles=("admin",)), allow(prompts=("*",))]))
        for name in ("secret", "made_up", "a"):
            assert await told_of(world, name) == UNKNOWN
        assert server.log == []
        several = Federated(a=server, b=Roster(), rules=RuleSet([allow(servers=("b",))]))
        several.policy = replace(several.policy, hide_denied="full")
        server.state = "is down"
        said = [told(await several.post(call(n), **OLD)) for n in ("a__a", "a__x", "c__x", "x")]
        assert [each["error"] for each in said] == [UNKNOWN] * 4
        assert server.log == []

    run(body)


@pytest.mark.parametrize("hide", ["off", "list"])
def test_without_hiding_in_full_nobody_is_asked(hide: str) -> None:
    async def body() -> None:
        world, server = world_of()
        world.policy = replace(world.policy, hide_denied=hide)
        await world.post(ask("tools/list"))
        for name in ("a", "made_up", "secret"):
            await told_of(world, name)
        assert methods(server.log) == ["tools/list", "tools/call", "tools/call"]
        assert server.called == ["a", "made_up"]

    run(body)


def test_a_tool_on_a_later_page_is_found() -> None:
    async def body() -> None:
        world, server = world_of("a", "b", "c", "d", "e")
        server.page = 2
        assert await told_of(world, "e") == "done"
        assert await told_of(world, "f") == UNKNOWN
        assert methods(server.log) == [*["tools/list"] * 3, "tools/call"]

    run(body)


def test_of_a_server_that_knows_no_lists_unknown_names_pass_and_denied_ones_stay_denied() -> None:
    async def body() -> None:
        world, server = world_of()
        server.state = "knows no lists"
        assert await told_of(world, "a") == "done"
        assert await told_of(world, "made_up") == UNKNOWN
        assert await told_of(world, "secret") == UNKNOWN
        assert server.called == ["a", "made_up"]

    run(body)


def test_a_list_that_never_comes_is_given_up_for_both() -> None:
    async def body() -> None:
        world, _ = world_of()

        async def silent(_: Asked) -> None:
            return

        world.transport.script = silent
        took = []
        for name in ("secret", "made_up"):
            began_s = world.clock.monotonic_s()
            async with world.exchange(call(name)) as exchange:
                await until_answered(exchange)
            took.append(round(world.clock.monotonic_s() - began_s))
            assert told(exchange)["error"]["code"] == -32603
        assert took[0] == took[1] <= 31

    run(body)


async def until_answered(exchange: Any) -> None:
    """Virtual time passes until there is an answer."""
    for _ in range(100):
        await passes(1)
        if exchange.ended:
            break
    await exchange.read()


SMALL = RuleSet([allow(tools=("*",), when=("x <= 1",)), deny(tools=("secret",))])


def test_arguments_that_are_denied_say_nothing_of_a_tool_that_is_not_there() -> None:
    async def body() -> None:
        world, server = world_of(rules=SMALL)
        for name, expected in (("a", -32001), ("made_up", -32601), ("secret", -32601)):
            assert told(await world.post(call(name, {"x": 5})))["error"]["code"] == expected
        assert server.called == []
        assert "result" in told(await world.post(call("a", {"x": 1})))

    run(body)


def test_an_unknown_tool_is_free_and_is_told_of_in_the_record() -> None:
    async def body() -> None:
        one = Limit("calls", unit="requests", per="principal", cap=1, tools=("*",))
        world, server = world_of(limits=[one])
        for name in ("made_up", "secret", "made_up"):
            assert await told_of(world, name) == UNKNOWN
        assert await told_of(world, "a") == "done"
        assert (await told_of(world, "a"))["code"] == -31000
        assert await told_of(world, "made_up") == UNKNOWN
        end = world.records.ends[0].snapshot()
        (step,) = [each for each in end.steps if each.stage == "offer"]
        assert (step.verdict, step.values["tool"]) == ("deny", "made_up")
        assert end.outcome == "not_offered"
        assert server.called == ["a"]

    run(body)


def test_a_failed_list_is_told_of_in_the_record_as_a_failed_call_would_be() -> None:
    async def body() -> None:
        world, server = world_of()
        server.state = "is behind a proxy that fails"
        answer = await world.post(call("secret"))
        assert generic(answer)
        end = world.records.ends[0].snapshot()
        (step,) = [each for each in end.steps if each.stage == "upstream"]
        assert (step.verdict, step.values["reason"]) == ("failed", "status")
        assert end.outcome == "gateway.upstream_failed"

    run(body)


def test_calls_in_a_batch_notifications_and_tasks_are_judged_like_any_other() -> None:
    async def body() -> None:
        world, server = world_of()
        batch = [call("a", id=1), call("made_up", id=2), call("secret", id=3), call("b", id=4)]
        answers = told(await world.post(batch))
        assert [each.get("error", "done") for each in answers] == ["done", UNKNOWN, UNKNOWN, "done"]
        for name in ("made_up", "secret", "a"):
            answer = await world.post(tell("tools/call", name=name))
            assert (answer.status, answer.body) == (202, b"")
        for name in ("made_up", "secret"):
            said = told(await world.post(call(name, task={"ttl": 1000})))
            assert said["error"] == UNKNOWN
        assert server.called == ["a", "b", "a"]
        assert server.lists == 1

    run(body)


def test_a_batch_asks_a_slow_server_once() -> None:
    async def body() -> None:
        world, server = world_of()

        async def slow(asked: Asked) -> None:
            if asked.message["method"] == "tools/list":
                await passes(3)
            await server(asked)

        world.transport.script = slow
        batch = [call(f"made_up_{n}" if n % 2 else "secret", id=n) for n in range(9)]
        async with world.exchange(batch) as exchange:
            await until_answered(exchange)
        assert [each["error"] for each in told(exchange)] == [UNKNOWN] * 9
        assert (server.lists, server.called) == (1, [])

    run(body)


def test_among_several_servers_each_is_asked_for_its_own() -> None:
    async def body() -> None:
        a, b = Roster("x", "secret"), Roster("y")
        world = Federated(a=a, b=b, rules=ALL_BUT, hide_denied="full")
        assert told(await world.post(call("a__y"), **OLD))["error"] == UNKNOWN
        assert (a.lists, b.lists) == (1, 0)
        assert "result" in told(await world.post(call("b__y"), **OLD))
        assert (a.lists, b.lists) == (1, 1)
        b.state = "is down"
        await passes(1)
        for name in ("b__secret", "b__made_up"):
            assert told(await world.post(call(name), **OLD))["error"]["code"] == -32603
        for name in ("a__secret", "a__made_up", "c__made_up"):
            assert told(await world.post(call(name), **OLD))["error"] == UNKNOWN
        assert (a.called, b.called) == ([], ["y"])
        await world.over()

    run(body)


@pytest.mark.parametrize("mode", MODES)
def test_pins_and_offers_are_looked_up_in_one_list(mode: Mode) -> None:
    async def body() -> None:
        world = Pinned(pin=mode, hide_denied="full", rules=ALL_BUT)
        assert await world.calls("read") == "done"
        assert world.server.heard == ["tools/list", "tools/call"]
        assert [step[0] for step in world.steps()] == ["allow"]
        assert await world.calls("made_up") == UNKNOWN
        assert world.server.ran == ["read"]

    run(body)


def test_a_tool_that_its_pin_holds_back_looks_like_an_unknown_one_whatever_the_server_is_like() -> (
    None
):
    async def body() -> None:
        world = Pinned(Shifty(tool("read"), tool("write")), hide_denied="full", rules=ALL_BUT)
        assert await world.calls("write") == "done"
        held = changed(world.server)
        await world.listed()
        await passes(1)
        assert [await world.calls(name) for name in (held, "made_up", "secret")] == [UNKNOWN] * 3
        assert await world.calls("write") == "done"
        world.server.broken = lambda asked: asked.fail()
        await passes(1)
        for name in (held, "made_up", "secret"):
            assert (await world.calls(name))["code"] == -32603
        world.server.broken = None
        await passes(1)
        await world.approve(held)
        assert await world.calls(held) == "done"
        assert world.server.ran == ["write", "write", held]

    run(body)
