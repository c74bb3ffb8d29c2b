"""Does a list show what the servers that answer have, and who is missing?"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.app.federated import (
    META,
    OLD,
    Federated,
    Server,
    dead,
    failing,
    html,
    modern,
    refusing,
    shapeless,
    silent,
    until,
)
from tests.app.mcp_answers import ENFORCE, generic
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, ask, value
from tests.logged import lines
from tests.unit.mcp.asking import allow
from tidegate.gateway.tool_requests.federation import PART_S
from tidegate.mcp import RuleSet
from tidegate.mcp.cursors import MOST_CHARS

UNAVAILABLE = "tidegate/unavailable"
EVERYTHING = RuleSet([allow()])
SHOWN = {
    "tools/list": ("tools", "name", ["{}__get_status", "{}__admin_reset"]),
    "prompts/list": ("prompts", "name", ["{}__greet"]),
    "resources/list": ("resources", "uri", ["{}+file:///a"]),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", ["{}+file:///{{name}}"]),
}
BROKEN: dict[str, Callable[[Asked], Any]] = {
    "dead": dead,
    "silent": silent,
    "html": html,
    "failing": failing,
    "refusing": refusing,
    "shapeless": shapeless,
}


def listing(**result: Any) -> Callable[[Asked], Any]:
    """A server that answers a request for its tools like this."""

    async def script(asked: Asked) -> None:
        asked.result({"resultType": "complete", **result})

    return script


NO_LISTS = {
    "spelled otherwise": listing(Tools=[{"name": "x"}]),
    "missing": listing(),
    "null": listing(tools=None),
    "no list": listing(tools={"name": "x"}),
    "no objects": listing(tools=["x"]),
    "two spellings": listing(tools=[], TOOLS=[{"name": "x"}]),
}
ODD_CURSORS = {
    "a number": listing(tools=[{"name": "x"}], nextCursor=2),
    "without end": listing(tools=[{"name": "x"}], nextCursor="c" * (MOST_CHARS + 1)),
}


def named(answer: Any, method: str) -> list[str]:
    member, key, _ = SHOWN[method]
    return [item[key] for item in answer["result"][member]]


def shown(method: str, *servers: str) -> list[str]:
    return [name.format(server) for server in servers for name in SHOWN[method][2]]


@pytest.mark.parametrize("method", SHOWN)
def test_a_list_is_that_of_every_server_in_the_order_of_the_file(method: str) -> None:
    async def body() -> None:
        world = Federated(b=Server(), a=Server(), c=Server(), rules=EVERYTHING)
        first = value(await world.post(ask(method), **OLD))
        assert named(first, method) == shown(method, "b", "a", "c")
        assert first["result"].keys() == {SHOWN[method][0]}
        assert value(await world.post(ask(method), **OLD))["result"] == first["result"]
        (item, *_) = first["result"][SHOWN[method][0]]
        assert item["title"].startswith("the ")

    run(body)


@pytest.mark.parametrize("page", [1, 2, 3])
def test_all_pages_of_each_server_become_one(page: int) -> None:
    async def body() -> None:
        tools = [f"t{n}" for n in range(5)]
        world = Federated(a=Server(tools=tools, page=page), b=Server(tools=["x"]), rules=EVERYTHING)
        result = value(await world.post(ask("tools/list")))["result"]
        assert [tool["name"] for tool in result["tools"]] == [
            *(f"a__{tool}" for tool in tools),
            "b__x",
        ]
        assert "nextCursor" not in result
        ids = [message["id"] for message in world.to("a")]
        assert len(set(ids)) == len(ids) == -(-5 // page)

    run(body)


@pytest.mark.parametrize("modern_client", [True, False])
def test_a_cursor_is_none_of_ours(*, modern_client: bool) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        meta = {"_meta": META} if modern_client else {}
        headers = modern("tools/list") if modern_client else OLD
        for cursor in ("1", 1, f"{'0' * 16}-{'0' * 32}-1"):
            answer = await world.post(ask("tools/list", cursor=cursor, **meta), **headers)
            assert answer.status == (400 if modern_client else 200)
            assert value(answer)["error"] == {"code": -32602, "message": "Invalid cursor"}
        assert world.transport.asked == []

    run(body)


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_server_is_named_and_the_others_are_listed(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=BROKEN[way], c=Server(), rules=EVERYTHING)
        answer = await world.post(ask("tools/list", _meta=META), **modern("tools/list"))
        result = value(answer)["result"]
        assert answer.status == 200
        assert [tool["name"] for tool in result["tools"]] == shown("tools/list", "a", "c")
        assert result["_meta"] == {UNAVAILABLE: ["b"]}
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        assert b"db-3" not in answer.body
        assert world.steps("federation") == [("missing", "b")]
        assert ("failed", "b") in world.steps("upstream")
        assert world.records.ends[-1].snapshot().outcome == "ok"
        await world.over()

    run(body)
    (line,) = [
        each
        for each in lines(caplog, "tidegate.gateway.tool_requests.failures")
        if each.getMessage() == "tool_server_failed"
    ]
    assert line.server == "b"  # type: ignore[attr-defined]


def test_a_slow_server_is_waited_for_a_few_seconds_once_and_not_for_each_page() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=silent, c=silent, rules=EVERYTHING)
        began = world.clock.monotonic_s()
        result = value(await world.post(ask("tools/list")))["result"]
        assert world.clock.monotonic_s() - began == pytest.approx(PART_S, abs=0.1)
        assert result["_meta"] == {UNAVAILABLE: ["b", "c"]}
        await world.over()
        assert all(asked.gone.is_set() or asked.ended for asked in world.transport.asked)

    run(body)


def test_a_server_that_dies_on_its_second_page_is_missing_as_a_whole() -> None:
    async def body() -> None:
        whole = Server(tools=["x", "y"], page=1)

        async def dying(asked: Asked) -> None:
            if asked.message.get("params", {}).get("cursor"):
                asked.fail()
            else:
                await whole(asked)

        world = Federated(a=dying, b=Server(), rules=EVERYTHING)
        result = value(await world.post(ask("tools/list")))["result"]
        assert [tool["name"] for tool in result["tools"]] == shown("tools/list", "b")
        assert result["_meta"] == {UNAVAILABLE: ["a"]}

    run(body)


@pytest.mark.parametrize(
    ("way", "hide"),
    [(way, "full") for way in (NO_LISTS | ODD_CURSORS).values()]
    + [(way, "off") for way in ODD_CURSORS.values()],
)
def test_a_server_whose_list_is_none_is_named_and_not_taken_for_one_without_tools(
    way: Callable[[Asked], Any], hide: str
) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=way, rules=EVERYTHING, hide_denied=hide)
        result = value(await world.post(ask("tools/list")))["result"]
        assert [tool["name"] for tool in result["tools"]] == shown("tools/list", "a")
        assert result["_meta"] == {UNAVAILABLE: ["b"]}

    run(body)


@pytest.mark.full
@pytest.mark.parametrize("cursor", ["same", "ever new"])
def test_a_list_without_end_is_given_up(cursor: str) -> None:
    async def body() -> None:
        count = 0

        whole = Server()

        async def endless(asked: Asked) -> None:
            nonlocal count
            if asked.message["method"] != "tools/list":
                await whole(asked)
                return
            count += 1
            following = "again" if cursor == "same" else str(count)
            asked.result({"tools": [{"name": "x"}], "nextCursor": following})

        world = Federated(a=endless, b=Server(), rules=EVERYTHING)
        result = value(await world.post(ask("tools/list")))["result"]
        assert [tool["name"] for tool in result["tools"]] == shown("tools/list", "b")
        assert result["_meta"] == {UNAVAILABLE: ["a"]}
        assert count == (2 if cursor == "same" else 1000)

    run(body)


@pytest.mark.parametrize("way", BROKEN)
def test_when_every_server_fails_the_client_gets_the_one_error(way: str) -> None:
    async def body() -> None:
        world = Federated(a=BROKEN[way], b=BROKEN[way], rules=EVERYTHING)
        answer = await world.post(ask("tools/list"))
        assert generic(answer)
        assert world.records.ends[-1].snapshot().outcome == "gateway.upstream_failed"
        assert sorted(world.steps("federation")) == [("missing", "a"), ("missing", "b")]
        await world.over()

    run(body)


def test_a_server_that_has_no_such_list_is_not_missing() -> None:
    async def body() -> None:
        world = Federated(a=Server(prompts=None), b=Server(), rules=EVERYTHING)
        result = value(await world.post(ask("prompts/list")))["result"]
        assert result["prompts"] == [{"name": "b__greet", "title": "the greet"}]
        assert "_meta" not in result

    asyncio.run(body())  # part of it runs in a thread


def test_only_servers_of_which_something_may_be_used_are_asked_or_missed() -> None:
    async def body() -> None:
        rules = RuleSet([allow(servers=("a",)), allow(servers=("b",), prompts=("*",))])
        world = Federated(a=Server(), b=dead, c=dead, rules=rules)
        result = value(await world.post(ask("tools/list")))["result"]
        assert [tool["name"] for tool in result["tools"]] == shown("tools/list", "a")
        assert "_meta" not in result
        assert {asked.server for asked in world.transport.asked} == {"a"}
        assert world.steps("authorize") == [("allow", "a"), ("deny", "b"), ("deny", "c")]
        prompts = value(await world.post(ask("prompts/list")))["result"]
        assert prompts["_meta"] == {UNAVAILABLE: ["b"]}

    run(body)


@pytest.mark.parametrize("modern_client", [True, False])
def test_who_may_use_nothing_of_a_kind_has_an_empty_list(*, modern_client: bool) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=RuleSet([allow(prompts=("*",))]))
        if modern_client:
            answer = await world.post(ask("tools/list", _meta=META), **modern("tools/list"))
        else:
            answer = await world.post(ask("tools/list"), **OLD)
        assert value(answer)["result"]["tools"] == []
        assert world.transport.asked == []

    run(body)


def test_a_modern_list_is_private_and_lives_as_short_as_the_shortest() -> None:
    async def body() -> None:
        a, b = Server(), Server(tools=["x", "y"], page=1)
        b.ttl_ms = 7_000
        world = Federated(a=a, b=b, rules=EVERYTHING)
        answer = await world.post(ask("tools/list", _meta=META), **modern("tools/list"))
        result = value(answer)["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (7_000, "private")
        assert result["resultType"] == "complete"
        meta = world.to("b")[-1]["params"]["_meta"]
        assert meta == META

    run(body)


def test_a_viewer_after_an_admin_sees_the_list_of_a_viewer() -> None:
    async def body() -> None:
        rules = RuleSet(
            [allow(roles=("admin",)), allow(roles=("viewer",), tools=("get_*",), servers=("a",))]
        )
        world = Federated(a=Server(), b=Server(), rules=rules, hide_denied="list")
        admin = value(await world.post(ask("tools/list"), role="admin"))
        viewer = value(await world.post(ask("tools/list")))
        assert named(admin, "tools/list") == shown("tools/list", "a", "b")
        assert named(viewer, "tools/list") == ["a__get_status"]

    run(body)


def test_what_no_client_could_name_is_left_out_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        tools = ["ok", "two words", "x" * 128, "slash/ed"]
        world = Federated(a=Server(tools=tools), b=Server(), rules=EVERYTHING, hide_denied="off")
        for _ in range(3):
            listed = value(await world.post(ask("tools/list")))
            assert named(listed, "tools/list") == ["a__ok", *shown("tools/list", "b")]
        assert world.steps("listing") == [("left_out", "a")]

    run(body)
    (line,) = [
        each
        for each in lines(caplog, "tidegate.gateway.tool_requests.relay")
        if each.getMessage() == "names_unusable"
    ]
    assert (line.server, line.count) == ("a", 3)  # type: ignore[attr-defined]


def test_a_list_is_masked_by_the_rules_of_its_server_and_its_names_stay() -> None:
    async def body() -> None:
        class Chatty(Server):
            async def __call__(self, asked: Asked) -> None:
                if asked.message["method"] != "tools/list":
                    await super().__call__(asked)
                    return
                asked.result({"tools": [{"name": "t", "description": "ask ann@example.com"}]})

        world = Federated(a=Chatty(), b=Server(), rules=EVERYTHING, masking=ENFORCE)
        listed = value(await world.post(ask("tools/list")))
        assert named(listed, "tools/list")[0] == "a__t"
        assert "ann@example.com" not in json.dumps(listed)

    run(body)


def test_progress_of_a_list_belongs_to_no_server() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        meta = {**META, "progressToken": 7, "x": 1}
        await world.post(ask("tools/list", _meta=meta))
        (params,) = [message["params"] for message in world.to("a")]
        assert "progressToken" not in params["_meta"]
        assert params["_meta"]["x"] == 1

    run(body)


def test_a_client_that_leaves_leaves_no_server_waiting() -> None:
    async def body() -> None:
        world = Federated(a=silent, b=silent, rules=EVERYTHING)
        async with world.exchange(ask("tools/list")) as exchange:
            await until(lambda: len(world.transport.asked) == 2)
            await exchange.disconnect()
        await world.over()
        assert len(world.traffic.relay.calls) == 0
        assert all(asked.gone.is_set() or asked.ended for asked in world.transport.asked)

    run(body)
