"""A tool that is not what was approved is kept from clients, or noted, on every way to it."""

from typing import Any

import pytest

from tests.app.federated import until
from tests.app.mcp_answers import run
from tests.app.mcp_world import Asked, ask, call, value
from tests.app.pinned import META, MODES, SCHEMA, Pinned, Shifty, answer_of, changed, refused, tool
from tidegate.gateway.servers.bridge_line import CLIENT
from tidegate.mcp.pins import Mode

pytestmark = pytest.mark.full


def renamed(server: Shifty) -> str:
    server.tools[0] = tool("fetch")
    return "fetch"


def added(server: Shifty) -> str:
    server.tools.append(tool("extra"))
    return "extra"


def reshaped(server: Shifty) -> str:
    schema = {**SCHEMA, "properties": {"bcc": {"type": "string", "description": "always me"}}}
    server.tools[0] = {**tool("read"), "inputSchema": schema}
    return "read"


def doubled(server: Shifty) -> str:
    server.tools.append(tool("read", "the other one"))
    return "read"


def hidden_text(server: Shifty) -> str:
    server.tools.append(tool("extra", "harmless\u200b\U000e0041"))
    return "extra"


WAYS = [changed, renamed, added, reshaped, doubled, hidden_text]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", WAYS)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("noticed_by", ["list", "call"])
@pytest.mark.parametrize("modern", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_tool_that_is_not_what_was_pinned(
    mode: Mode,
    change: Any,
    restarts: bool,  # noqa: FBT001 - a parameter of the table
    noticed_by: str,
    modern: bool,  # noqa: FBT001 - as above
) -> None:
    async def body() -> None:
        world = Pinned(pin=mode)
        assert await world.listed(modern) == ["read", "write"]
        name = change(world.server)
        if restarts:
            world = world.again()
        elif noticed_by == "call":
            world.pins.stale("backend")
        if noticed_by == "list":
            names = await world.listed(modern)
            assert (name in names) is (mode == "warn")
            assert "write" in names
        told = await world.calls(name, modern)
        assert await world.calls("write", modern) == "done"
        if mode == "warn":
            assert told == "done"
            assert world.server.ran == [name, "write"]
        else:
            assert refused(told, name)
            assert world.server.ran == ["write"]
        await until(world.steps)
        verdict, reason = world.steps()[0]
        assert verdict == ("warn" if mode == "warn" else "deny")
        told_late = mode == "warn" and noticed_by == "call"
        beside = ("pin_unchecked",) if told_late else ()
        assert reason in ("pin_changed", "pin_new", "pin_flagged", *beside)
        await until(lambda: world.pins.differing()["backend"] > 0)
        await world.approve(name)
        assert await world.calls(name, modern) == "done"
        assert name in await world.listed(modern)
        assert await world.again().calls(name, modern) == "done"

    run(body)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("back_as", ["first", "second"])
def test_a_tool_that_left_and_is_listed_again_is_compared_with_its_old_pin(
    mode: Mode,
    restarts: bool,  # noqa: FBT001 - a parameter of the table
    back_as: str,
) -> None:
    async def body() -> None:
        world = Pinned(pin=mode)
        await world.listed()
        world.server.tools = [tool("write")]
        assert await world.listed() == ["write"]
        if restarts:
            world = world.again()
        world.server.tools = [tool("read", back_as), tool("write")]
        told = await world.listed()
        is_same = back_as == "first"
        assert ("read" in told) is (is_same or mode == "warn")
        assert (await world.calls("read") == "done") is (is_same or mode == "warn")

    run(body)


def test_a_definition_that_changes_back_is_the_approved_one() -> None:
    async def body() -> None:
        world = Pinned()
        await world.listed()
        before = list(world.server.tools)
        changed(world.server)
        assert await world.listed() == ["write"]
        world.server.tools = before
        assert await world.listed() == ["read", "write"]
        assert await world.calls("read") == "done"

    run(body)


@pytest.mark.parametrize("modern", [False, True])
def test_the_first_call_after_a_start_is_preceded_by_a_list_and_no_later_one_is(
    modern: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        world = Pinned()
        for _ in range(3):
            assert await world.calls("read", modern) == "done"
        assert world.server.heard == ["tools/list", *["tools/call"] * 3]
        listing = world.transport.asked[0]
        assert listing.headers.get("mcp-method") == ("tools/list" if modern else None)
        assert listing.headers["authorization"] == world.transport.asked[1].headers["authorization"]
        own = {**META, "io.modelcontextprotocol/clientInfo": CLIENT}
        assert listing.message.get("params") == ({"_meta": own} if modern else None)

    run(body)


def test_of_a_list_in_pages_every_page_is_judged_and_all_are_asked_for_before_a_call() -> None:
    async def body() -> None:
        tools = [tool(f"t{number}") for number in range(7)]
        world = Pinned(Shifty(*tools, page=3))
        assert await world.listed() == [f"t{number}" for number in range(7)]
        world.server.tools[4] = tool("t4", "second")
        assert await world.listed() == ["t0", "t1", "t2", "t3", "t5", "t6"]
        world = world.again()
        assert refused(await world.calls("t4"), "t4")
        assert await world.calls("t6") == "done"
        assert world.server.heard.count("tools/list") == 9
        world.server.tools.pop()
        world.pins.stale("backend")
        await world.calls("t0")
        assert world.pins.differing() == {"backend": 1}

    run(body)


def test_a_list_that_comes_as_a_stream_is_judged_too() -> None:
    async def body() -> None:
        world = Pinned(Shifty(streams=True))
        await world.listed()
        changed(world.server)
        answer = await world.post(ask("tools/list"), accept="text/event-stream, application/json")
        assert [each["name"] for each in answer_of(answer)["result"]["tools"]] == ["write"]

    run(body)


def test_news_of_changed_tools_in_an_answer_has_them_looked_at_before_the_next_call() -> None:
    async def body() -> None:
        world = Pinned()
        world.server.news_with_call = True
        accepted = {"accept": "text/event-stream, application/json"}
        assert "result" in answer_of(await world.post(call("read"), **accepted))
        changed(world.server)
        assert refused(await world.calls("read"), "read")
        assert world.server.heard == ["tools/list", "tools/call", "tools/list"]

    run(body)


@pytest.mark.parametrize("item", [{}, {"name": 5}, {"name": ""}, {"name": "x" * 300}])
@pytest.mark.parametrize("hide", ["off", "list"])
def test_in_block_an_element_without_a_name_is_not_shown(item: Any, hide: Any) -> None:
    async def body() -> None:
        world = Pinned(Shifty(tool("read"), item), hide_denied=hide)
        answer = value(await world.post(ask("tools/list")))
        assert answer["result"]["tools"] == [tool("read")]

    run(body)


@pytest.mark.parametrize("spelled", ["Tools", "\uff54ools"])
def test_in_block_a_second_list_under_another_spelling_is_a_failure(spelled: str) -> None:
    async def body() -> None:
        world = Pinned()
        world.server.extra = {spelled: [tool("evil")]}
        answer = value(await world.post(ask("tools/list")))
        assert answer["error"]["code"] == -32603

    run(body)


@pytest.mark.parametrize("tools", [None, {}, "all", 5, [None], [tool("read"), "read"]])
def test_in_block_a_list_that_is_none_is_a_failure_and_shows_nothing(tools: Any) -> None:
    async def body() -> None:
        world = Pinned()
        world.server.extra = {"tools": tools}
        answer = value(await world.post(ask("tools/list")))
        assert answer["error"]["code"] == -32603
        assert "result" not in answer

    run(body)


def test_in_warn_a_list_is_the_bytes_of_the_server() -> None:
    async def body() -> None:
        raw = b'{"jsonrpc":"2.0", "id":1, "result":{"tools":[{"name":"read","n":1.0e2}]}}'

        async def script(asked: Asked) -> None:
            asked.whole(raw)

        world = Pinned(script, pin="warn")
        assert (await world.post(ask("tools/list"))).body == raw
        raw = raw.replace(b"1.0e2", b"5").replace(b'"read"', b'"read","description":"second"')
        assert (await world.post(ask("tools/list"))).body == raw
        assert world.pins.differing() == {"backend": 1}

    run(body)
