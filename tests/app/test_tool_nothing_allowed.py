"""What is there for a principal that no rule allows anything, and what of others' things?

With one server as with several: default deny does not depend on how many the file has.
"""

from typing import Any

import pytest

from tests.app.federated import META, OLD, Federated, Server, heard, modern
from tests.app.mcp_answers import BOTH, called, run, unlisted
from tests.app.mcp_streams import StreamingServer, begin, listen
from tests.app.mcp_world import Asked, World, ask, call, events, value
from tests.unit.mcp.asking import allow
from tidegate.mcp import RuleSet
from tidegate.testing.asgi import ASGIExchange

SUBSCRIPTION = "subscriptions/listen"
ACK = "notifications/subscriptions/acknowledged"
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}


def subscribe(world: World, role: str, **wanted: Any) -> ASGIExchange:
    message = ask(SUBSCRIPTION, id=9, notifications=wanted, _meta=META)
    return world.exchange(message, role=role, **modern(SUBSCRIPTION), accept=BOTH)


class Telling(Server):
    """Acknowledges whatever is asked for, and tells `news` at once and `last` at the end."""

    def __init__(self, *news: tuple[str, dict[str, Any]]) -> None:
        super().__init__(instructions="The tools of admins are admin_reset and admin_drop.")
        self.news = news
        self.wishes: list[Any] = []

    async def run(self, asked: Asked) -> None:
        asked.result({"resultType": "task", "taskId": "t1", "status": "working"})

    async def listen(self, asked: Asked) -> None:
        self.wishes.append(asked.message["params"]["notifications"])
        asked.head(200, "text/event-stream")
        asked.event(heard(asked, ACK, notifications=self.wishes[-1]))
        for method, params in (*self.news, ("notifications/message", {"data": "last"})):
            asked.event(heard(asked, method, **params))


def single(server: Server, *, hide: Any = "full", **policy: Any) -> World:
    return World(server, hide_denied=hide, **policy)


def several(server: Server, *, hide: Any = "full", **policy: Any) -> World:
    return Federated(a=server, b=Server(), hide_denied=hide, **policy)


@pytest.mark.parametrize("made", [single, several])
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_it_is_told_that_a_server_is_there_and_nothing_of_it(made: Any, method: str) -> None:
    async def body() -> None:
        for role, knows in (("guest", False), ("viewer", True)):
            world = made(Telling())
            about, headers = ABOUT, OLD
            if method == "server/discover":
                about, headers = {"_meta": META}, modern(method)
            answer = await world.post(ask(method, **about), role=role, **headers)
            result = value(answer)["result"]
            assert ("admin_drop" in str(result)) is knows
            assert bool(result["capabilities"]) is knows

    run(body)


@pytest.mark.parametrize("made", [single, several])
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
@pytest.mark.parametrize("hide", ["off", "list", "full"])
def test_whoever_may_use_tools_only_is_offered_no_prompts(
    made: Any, method: str, hide: Any
) -> None:
    async def body() -> None:
        world = made(Telling(), hide=hide, rules=RuleSet([allow(tools=("get_status",))]))
        about, headers = ABOUT, OLD
        if method == "server/discover":
            about, headers = {"_meta": META}, modern(method)
        answer = await world.post(ask(method, **about), **headers)
        offered = {"tools", "logging"}
        others = {"prompts", "resources", "completions"}
        found = set(value(answer)["result"]["capabilities"])
        assert found == (offered | others if hide == "off" else offered)

    run(body)


def test_it_has_no_stream() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world, "guest")
        async with listen(world, session, role="guest") as mine:
            await mine.read()
        assert (mine.status, server.gets) == (405, [])

    run(body)


def test_it_can_subscribe_to_nothing() -> None:
    async def body() -> None:
        server = Telling()
        world = single(server)
        async with subscribe(
            world, "guest", toolsListChanged=True, promptsListChanged=True
        ) as mine:
            await mine.head()
        assert server.wishes == [{}]

    run(body)


@pytest.mark.parametrize("made", [single, several])
def test_a_task_of_somebody_else_is_not_heard_of(made: Any) -> None:
    """The filter of the tasks extension, `taskIds`, names any task; its news carry the result."""

    async def body() -> None:
        news = ("notifications/tasks", {"taskId": "t1", "result": {"text": "what vera asked for"}})
        server = Telling(news)
        world = made(server)
        name = "a__get_status" if world.policy.federation else "get_status"
        begun = await world.post(call(name, _meta=META), **modern("tools/call", mcp_name=name))
        assert value(begun)["result"]["taskId"] == "t1"
        wish = {"taskIds": ["t1"], "toolsListChanged": True, "somethingElse": ["t1"]}
        for role, own in (("viewer", ["t1"]), ("second", [])):
            async with subscribe(world, role, **wish) as mine:
                while b'"last"' not in mine.body:
                    await mine.chunk()
            assert (b"what vera asked for" in mine.body) is bool(own)
            assert server.wishes[-1] == {"taskIds": own, "toolsListChanged": True}

    run(body)


@pytest.mark.parametrize("hide", ["off", "full"])
def test_of_each_server_those_lists_are_heard_of_that_may_be_asked_for(hide: Any) -> None:
    async def body() -> None:
        kinds = ("tools", "prompts", "resources")

        def telling(name: str) -> Telling:
            return Telling(
                *((f"notifications/{kind}/list_changed", {"of": name}) for kind in kinds)
            )

        rules = [allow(servers=("a",), tools=("*",)), allow(servers=("b",), prompts=("p",))]
        world = Federated(a=telling("a"), b=telling("b"), rules=RuleSet(rules), hide_denied=hide)
        wish = {f"{kind}ListChanged": True for kind in kinds}
        async with subscribe(world, "viewer", **wish) as mine:
            while mine.body.count(b'"last"') < 2:
                await mine.chunk()
        said = [each for each in events(mine) if each["method"].endswith("/list_changed")]
        told = {(each["params"]["of"], each["method"]) for each in said}
        assert told == {
            ("a", "notifications/tools/list_changed"),
            ("b", "notifications/prompts/list_changed"),
        }

    run(body)


def test_a_stream_is_recorded_before_a_server_is_asked_for_it() -> None:
    async def body() -> None:
        server = StreamingServer()
        world = World(server)
        session = await begin(world)
        world.records.fails = True
        async with listen(world, session) as mine:
            await mine.read()
        assert (mine.status, server.gets) == (503, [])

    run(body)


def test_a_denied_tool_looks_like_an_unknown_one_whatever_form_its_server_answers_in() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            name = asked.message["params"]["name"]
            error = {"code": -32602, "message": f"Unknown tool: {name}"}
            asked.head(200, "text/event-stream")
            asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "error": error})
            asked.end()

        world = World(unlisted(script), hide_denied="full")
        denied = await world.post(call("admin_drop"), accept=BOTH)
        unknown = await world.post(call("no_such_tool"), accept=BOTH)
        assert denied.status == unknown.status
        assert denied.header("content-type") == unknown.header("content-type")
        assert denied.body.replace(b"admin_drop", b"no_such_tool") == unknown.body
        assert called(world) == ["no_such_tool"]

    run(body)


def test_a_subscription_is_narrowed_to_what_may_be_read() -> None:
    async def body() -> None:
        async def script(asked: Asked) -> None:
            asked.head(200, "text/event-stream")
            for uri in ("file:///a/1", "file:///etc/passwd"):
                updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated"}
                asked.event({**updated, "params": {"uri": uri}})
            asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
            asked.end()

        rules = RuleSet([allow(resources=("file:///a/*",))])
        world = World(script, rules=rules, hide_denied="list")
        uris = ["file:///a/1", "file:///etc/passwd", "file:///a/../etc/passwd"]
        headers = modern(SUBSCRIPTION)
        message = ask(SUBSCRIPTION, notifications={"resourceSubscriptions": uris}, _meta=META)
        answer = await world.post(message, accept=BOTH, **headers)
        assert world.sent[0]["params"]["notifications"]["resourceSubscriptions"] == uris[:1]
        assert [e["params"]["uri"] for e in events(answer) if "params" in e] == uris[:1]
        message = ask(SUBSCRIPTION, notifications=1, _meta=META)
        broken = await world.post(message, **headers)
        assert value(broken)["error"]["code"] == -32602

    run(body)
