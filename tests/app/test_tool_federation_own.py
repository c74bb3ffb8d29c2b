"""Does the gateway keep for its clients what a single server would keep for them?"""

import asyncio
from dataclasses import replace

import pytest

from tests.app.federated import META, OLD, Federated, Server, dead, modern, places, silent, until
from tests.app.mcp_answers import generic
from tests.app.mcp_answers import run_in_no_time as run
from tests.app.mcp_world import Asked, ask, call, tell, value
from tests.unit.mcp.asking import allow
from tidegate import __version__
from tidegate.mcp import RuleSet
from tidegate.mcp.eras import SUPPORTED

EVERYTHING = RuleSet([allow()])
ONLY_A = RuleSet([allow(servers=("a",)), allow(roles=("admin",))])
OWN = {"name": "tidegate", "version": __version__}
INITIALIZE = ask(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c"}
)


async def begin(world: Federated, role: str = "viewer") -> str:
    answer = await world.post(INITIALIZE, role=role)
    session = answer.header("mcp-session-id")
    assert answer.status == 200
    assert session
    return session


def test_initialize_opens_a_session_with_the_gateway_and_offers_what_the_servers_offer() -> None:
    async def body() -> None:
        a = Server(instructions="Ask me.", prompts=None)
        world = Federated(a=a, b=Server(tools=None), rules=EVERYTHING)
        answer = await world.post(INITIALIZE)
        assert value(answer) == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {
                    "tools": {"listChanged": True},
                    "prompts": {},
                    "resources": {"subscribe": True},
                    "completions": {},
                    "logging": {},
                },
                "serverInfo": OWN,
                "instructions": "# a\n\nAsk me.",
            },
        }
        session = answer.header("mcp-session-id")
        assert session
        done = await world.post(tell("notifications/initialized"), mcp_session_id=session)
        assert (done.status, done.body) == (202, b"")
        listed = await world.post(ask("tools/list"), mcp_session_id=session)
        assert "result" in value(listed)
        for asked in world.transport.asked:
            assert "mcp-session-id" not in asked.headers
        assert "notifications/initialized" not in a.heard

    asyncio.run(body())  # part of it runs in a thread


def test_a_discovery_is_the_gateways_own() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=dead, c=Server(), rules=EVERYTHING)
        answer = await world.post(ask("server/discover", _meta=META), **modern("server/discover"))
        result = value(answer)["result"]
        assert result["supportedVersions"] == list(SUPPORTED)
        assert result["capabilities"]["tools"] == {"listChanged": True}
        assert result["capabilities"]["resources"] == {"subscribe": True}
        assert result["_meta"] == {
            "io.modelcontextprotocol/serverInfo": OWN,
            "tidegate/unavailable": ["b"],
        }
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        assert answer.header("mcp-session-id") is None

    run(body)


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_a_server_of_which_nothing_may_be_used_has_no_say_and_is_not_asked(method: str) -> None:
    async def body() -> None:
        b = Server(instructions="secret of b")
        world = Federated(a=Server(prompts=None), b=b, rules=ONLY_A)
        message = INITIALIZE if method == "initialize" else ask(method, _meta=META)
        headers = {} if method == "initialize" else modern(method)
        viewer = await world.post(message, **headers)
        assert "prompts" not in value(viewer)["result"]["capabilities"]
        assert b"secret" not in viewer.body
        assert b.heard == []
        guest = value(await world.post(message, role="guest", **headers))["result"]
        assert guest["capabilities"]["tools"] is not None
        world.policy = replace(world.policy, rules=RuleSet([]))
        nobody = value(await world.post(message, **headers))["result"]
        assert nobody["capabilities"] == {}
        admin_rules = RuleSet([allow(roles=("admin",))])
        world.policy = replace(world.policy, rules=admin_rules)
        admin = await world.post(message, role="admin", **headers)
        assert b"secret of b" in admin.body

    run(body)


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_without_any_server_the_gateway_says_that_it_failed_and_opens_nothing(method: str) -> None:
    async def body() -> None:
        world = Federated(a=dead, b=silent, rules=EVERYTHING)
        message = INITIALIZE if method == "initialize" else ask(method, _meta=META)
        headers = {} if method == "initialize" else modern(method)
        answer = await world.post(message, **headers)
        assert generic(answer)
        assert answer.header("mcp-session-id") is None
        assert len(world.traffic.relay.sessions) == 0
        await world.over()

    run(body)


def test_an_initialize_that_asks_for_no_version_is_malformed() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        answer = await world.post(ask("initialize", capabilities={}))
        assert value(answer)["error"] == {"code": -32602, "message": "Invalid params"}
        assert world.transport.asked == []

    run(body)


@pytest.mark.parametrize("role", ["admin", "second", "guest"])
def test_the_session_of_another_principal_is_unknown_and_survives(role: str) -> None:
    async def body() -> None:
        a, b = Server(), Server()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        session = await begin(world)
        before = len(world.transport.asked)
        for message in (
            ask("tools/list"),
            call("a__get_status"),
            tell("notifications/roots/list_changed"),
        ):
            answer = await world.post(message, role=role, mcp_session_id=session)
            assert answer.status == 404
        theirs = world.exchange(b"", role=role, method="DELETE", mcp_session_id=session)
        async with theirs:
            await theirs.read()
        assert theirs.status == 404
        assert len(world.transport.asked) == before
        assert "result" in value(await world.post(call("a__get_status"), mcp_session_id=session))

    run(body)


def test_a_session_ends_with_us_and_no_server_hears_of_it() -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        session = await begin(world)
        before = len(world.transport.asked)
        async with world.exchange(b"", method="DELETE", mcp_session_id=session) as ended:
            await ended.read()
        assert (ended.status, ended.body) == (200, b"")
        assert (await world.post(ask("ping"), mcp_session_id=session)).status == 404
        assert len(world.transport.asked) == before

    run(body)


def test_a_server_that_answers_404_ends_nothing() -> None:
    async def body() -> None:
        async def forgetful(asked: Asked) -> None:
            asked.whole({"jsonrpc": "2.0", "id": None, "error": {"code": -32600}}, 404)

        world = Federated(a=Server(), b=forgetful, rules=EVERYTHING)
        session = await begin(world)
        failed = await world.post(call("b__x"), mcp_session_id=session)
        assert failed.status == 200
        assert "error" in value(failed)
        assert "result" in value(await world.post(call("a__get_status"), mcp_session_id=session))

    asyncio.run(body())  # part of it runs in a thread


def test_ping_is_answered_even_if_no_server_lives() -> None:
    async def body() -> None:
        world = Federated(a=dead, b=dead, rules=EVERYTHING)
        assert value(await world.post(ask("ping"))) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert world.transport.asked == []

    run(body)


def test_the_level_of_the_log_is_told_to_each_server_that_may_be_used() -> None:
    async def body() -> None:
        a, b = Server(legacy=True), Server(legacy=True)
        world = Federated(a=a, b=b, c=dead, rules=RuleSet([allow(servers=("a", "c"))]))
        answer = value(await world.post(ask("logging/setLevel", level="debug")))
        assert answer["result"] == {}
        await world.post(call("a__get_status"), **OLD)
        assert [m["params"] for m in world.to("a") if m["method"] == "logging/setLevel"] == [
            {"level": "debug"}
        ]
        assert b.heard == []
        wrong = value(await world.post(ask("logging/setLevel", level="loud")))
        assert wrong["error"]["code"] == -32602
        world.policy = replace(world.policy, rules=RuleSet([]))
        nobody = value(await world.post(ask("logging/setLevel", level="debug")))
        assert nobody["error"]["code"] == -32601

    run(body)


@pytest.mark.parametrize(
    ("method", "is_modern"),
    [
        ("initialize", True),
        ("ping", True),
        ("logging/setLevel", True),
        ("resources/subscribe", True),
        ("resources/unsubscribe", True),
        ("server/discover", False),
        ("subscriptions/listen", False),
        ("sampling/createMessage", False),
        ("tools/unheard_of", True),
    ],
)
def test_a_method_of_the_other_era_or_of_none_is_not_found(
    method: str,
    is_modern: bool,  # noqa: FBT001 - of parametrize
) -> None:
    async def body() -> None:
        world = Federated(a=Server(), b=Server(), rules=EVERYTHING)
        message = ask(method, uri="a+file:///a", **({"_meta": META} if is_modern else {}))
        answer = await world.post(message, **(modern(method) if is_modern else OLD))
        assert answer.status == (404 if is_modern else 200)
        assert value(answer)["error"] == {"code": -32601, "message": "Method not found"}
        assert world.transport.asked == []

    run(body)


class Working(Server):
    """A server whose tools take until they are cancelled, in the way of its era."""

    async def run(self, asked: Asked) -> None:
        noted = "notifications/cancelled"
        await until(lambda: asked.gone.is_set() or noted in self.heard)
        asked.result({"content": []})


@pytest.mark.parametrize("legacy", [True, False])
def test_a_cancellation_goes_to_the_server_where_the_call_runs(*, legacy: bool) -> None:
    async def body() -> None:
        a, b = Working(legacy=legacy), Working(legacy=legacy)
        world = Federated(a=a, b=b, rules=EVERYTHING)
        session = await begin(world)
        running = world.exchange(call("b__get_status", id=7), mcp_session_id=session)
        async with running:
            await until(lambda: b.ran)
            called = world.transport.asked[-1]
            for role, id_ in (("second", 7), ("viewer", "7"), ("viewer", 8)):
                headers = {"mcp_session_id": session} if role == "viewer" else {}
                note = tell("notifications/cancelled", requestId=id_)
                assert (await world.post(note, role=role, **headers)).status == 202
            assert not called.gone.is_set()
            note = tell("notifications/cancelled", requestId=7)
            assert (await world.post(note, mcp_session_id=session)).status == 202
            await until(lambda: called.gone.is_set() or called.ended)
        assert "notifications/cancelled" not in a.told
        assert ("notifications/cancelled" in b.told) is legacy
        await world.over()

    run(body)


def test_two_clients_with_one_id_at_one_server_get_their_own_answers() -> None:
    async def body() -> None:
        gate = asyncio.Event()

        class Slow(Server):
            async def run(self, asked: Asked) -> None:
                await gate.wait()
                asked.result({"echo": asked.message["params"]["arguments"]})

        a = Slow()
        world = Federated(a=a, b=Server(), rules=EVERYTHING)
        sessions = [await begin(world), await begin(world)]
        one = world.exchange(call("a__get_status", {"n": 1}), mcp_session_id=sessions[0])
        two = world.exchange(call("a__get_status", {"n": 2}), mcp_session_id=sessions[1])
        async with one, two:
            await until(lambda: len(a.ran) == 2)
            gate.set()
            await one.read()
            await two.read()
        ids = [m["id"] for m in world.to("a") if m["method"] == "tools/call"]
        assert len(set(ids)) == 2
        assert [value(each)["result"]["echo"] for each in (one, two)] == [{"n": 1}, {"n": 2}]
        assert [value(each)["id"] for each in (one, two)] == [1, 1]

    run(body)


@pytest.mark.parametrize("others", [0, 1])
def test_a_task_follows_the_server_where_it_began(others: int) -> None:
    async def body() -> None:
        class Tasked(Server):
            async def run(self, asked: Asked) -> None:
                if asked.message["method"] == "tools/call":
                    asked.result({"task": {"taskId": "t-1", "status": "working"}})
                else:
                    asked.result({"taskId": "t-1", "status": "completed"})

        a, b = Tasked(), Tasked()
        world = Federated(a=a, b=b, rules=EVERYTHING)
        await world.post(call("b__get_status"))
        if others:
            # The same id at two servers: nobody can tell which of the two is meant.
            await world.post(call("a__get_status"))
        a.ran.clear()
        b.ran.clear()
        got = value(await world.post(ask("tasks/get", taskId="t-1")))
        foreign = value(await world.post(ask("tasks/get", taskId="t-1"), role="second"))
        unknown = value(await world.post(ask("tasks/get", taskId="t-2")))
        assert foreign["error"] == unknown["error"]
        assert a.ran == []
        if others:
            assert got["error"] == unknown["error"]
        else:
            assert got["result"]["status"] == "completed"
            assert len(b.ran) == 1

    run(body)


def test_a_question_of_a_server_reaches_no_client_and_an_answer_no_server() -> None:
    async def body() -> None:
        class Asking(Server):
            async def run(self, asked: Asked) -> None:
                asked.head(200, "text/event-stream")
                asked.event(ask("elicitation/create", id="q", message="your key?"))
                asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
                asked.end()

        a = Asking()
        world = Federated(a=a, b=Server(), rules=EVERYTHING)
        session = await begin(world)
        got = await world.post(
            call("a__get_status"), mcp_session_id=session, accept="text/event-stream"
        )
        assert b"elicitation" not in got.body
        before = len(world.transport.asked)
        reply = {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}
        assert (await world.post(reply, mcp_session_id=session)).status == 202
        assert len(world.transport.asked) == before

    run(body)


def test_a_reload_from_one_server_to_two_ends_sessions_of_the_one() -> None:
    async def body() -> None:
        class Minting(Server):
            async def __call__(self, asked: Asked) -> None:
                if asked.raw and asked.message["method"] == "initialize":
                    asked.result(self.described("initialize"), mcp_session_id="theirs")
                else:
                    await super().__call__(asked)

        world = Federated(a=Minting(), b=Server(), rules=EVERYTHING)
        two = world.policy.servers
        world.reload(places(("a",)))
        session = await begin(world)
        world.reload(two)
        assert (await world.post(ask("tools/list"), mcp_session_id=session)).status == 404

    run(body)
