"""Does a server of one era answer a client of another, over a wire that its own revision allows?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.app.bridged import CLIENTS, Bridged
from tests.app.mcp_answers import run
from tests.app.mcp_upstreams import CAPABILITIES, LegacyUpstream, ModernUpstream, Refusal, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call, tell
from tidegate.mcp.eras import LEGACY, MODERN, SUPPORTED, McpHeaders


def servers() -> list[Callable[[], Upstream]]:
    return [ModernUpstream, *(lambda v=v: LegacyUpstream(v) for v in (*LEGACY, "2024-11-05"))]


CARRIED = [
    ask("tools/list"),
    call("echo", {"text": "hi"}),
    call("somewhere", {"zone": "north, ü"}),
    ask("resources/list"),
    ask("resources/templates/list"),
    ask("resources/read", uri="test://a"),
    ask("prompts/list"),
    ask("prompts/get", name="p"),
    ask(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "p"},
        argument={"name": "a", "value": ""},
    ),
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("made", servers())
def test_every_carried_method_is_answered_in_the_words_of_the_client(
    made: Callable[[], Upstream], client: str | None
) -> None:
    async def body() -> None:
        upstream = made()
        bridged = Bridged(upstream)
        for message in CARRIED:
            said = await bridged.say(message, client)
            assert said.status == 200, message
            assert said.values[-1]["id"] == 1
            assert ("resultType" in said.result) == (client == MODERN), message
            cached = message["method"].endswith("list") or message["method"] == "resources/read"
            assert ("ttlMs" in said.result) == (client == MODERN and cached), message
            if message["method"] == "tools/list":
                tools = {tool["name"]: tool for tool in said.result["tools"]}
                untouched = client == MODERN and isinstance(upstream, ModernUpstream)
                assert set(tools) == {"echo", "somewhere", "slow"} | (
                    {"broken"} if untouched else set()
                )
                assert ("outputSchema" in tools["echo"]) == (client not in ("2025-03-26", None))
                assert tools["echo"]["title"] == "Echo"
            assert "_meta" not in said.result
        assert upstream.faults == []
        await bridged.carrier.close()

    run(body)


@pytest.mark.parametrize("made", servers())
@pytest.mark.parametrize("version", [*LEGACY, "2024-11-05", "2099-01-01"])
def test_initialize_is_answered_with_what_the_server_says_of_itself(
    made: Callable[[], Upstream], version: str
) -> None:
    async def body() -> None:
        bridged = Bridged(made())
        hello = ask("initialize", protocolVersion=version, capabilities={}, clientInfo={})
        said = await bridged.say(hello, None)
        assert said.result["protocolVersion"] == (version if version in LEGACY else LEGACY[0])
        assert said.result["serverInfo"]["name"] in ("old", "new")
        assert said.result["instructions"].startswith("Be ")
        assert said.result["capabilities"]["tools"] == {"listChanged": True}
        assert "extensions" not in said.result["capabilities"]
        assert said.head["mcp-session-id"].startswith("bridged.")
        again = await bridged.say(hello, None)
        assert again.head["mcp-session-id"] != said.head["mcp-session-id"]
        assert bridged.upstream.faults == []

    run(body)


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_server_is_discovered_from_its_handshake(version: str) -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(version))
        said = await bridged.say(ask("server/discover"), MODERN)
        assert said.result == {
            "supportedVersions": list(SUPPORTED),
            "capabilities": CAPABILITIES,
            "instructions": "Be old.",
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "1"}},
        }

    run(body)


@pytest.mark.parametrize("made", servers())
@pytest.mark.parametrize("client", CLIENTS)
def test_what_only_one_era_has_is_answered_without_the_server_or_not_at_all(
    made: Callable[[], Upstream], client: str | None
) -> None:
    async def body() -> None:
        bridged = Bridged(made())
        legacy_only = [
            ask("ping"),
            ask("logging/setLevel", level="error"),
            ask("resources/subscribe", uri="test://a"),
            ask("resources/unsubscribe", uri="test://a"),
        ]
        if client == MODERN and isinstance(bridged.upstream, ModernUpstream):
            return  # nothing stands between them
        for message in legacy_only:
            said = await bridged.say(message, client)
            if client == MODERN:
                assert (said.status, said.error["code"]) == (404, -32601)
            else:
                assert (said.status, said.result) == (200, {})
        for method in ("subscriptions/listen", "server/discover"):
            if client != MODERN:
                assert (await bridged.say(ask(method), client)).error["code"] == -32601
        for note in ("notifications/initialized", "notifications/roots/list_changed"):
            assert (await bridged.say(tell(note), client)).status == 202
        strangers = {"notifications/roots/list_changed", "ping", "logging/setLevel"}
        assert not strangers & set(bridged.upstream.methods())
        assert bridged.upstream.faults == []

    run(body)


def test_an_unknown_resource_has_the_code_of_the_client_s_revision() -> None:
    async def body() -> None:
        for upstream in (LegacyUpstream(), ModernUpstream()):
            bridged = Bridged(upstream)
            message = ask("resources/read", uri="test://none")
            modern, legacy = (
                await bridged.say(message, MODERN),
                await bridged.say(message, LEGACY[0]),
            )
            assert (modern.status, modern.error["code"]) == (400, -32602)
            assert (legacy.status, legacy.error["code"]) == (200, -32002)
            assert modern.error["data"] == legacy.error["data"] == {"uri": "test://none"}

    run(body)


async def _asking(upstream: Upstream, asked: Got, message: Any) -> Any:
    del upstream, asked
    if message["method"] == "tools/call":
        return {"resultType": message["params"]["arguments"]["kind"], "inputRequests": {}}
    return None


@pytest.mark.parametrize(
    ("kind", "words"), [("input_required", "input"), ("task", "task"), ("other", "kind of result")]
)
def test_what_a_legacy_client_cannot_answer_is_a_clear_error(kind: str, words: str) -> None:
    async def body() -> None:
        bridged = Bridged(ModernUpstream(_asking))
        said = await bridged.say(call("echo", {"kind": kind}), LEGACY[0])
        assert (said.status, said.error["code"]) == (200, -32600)
        assert words in said.error["message"]

    run(body)


def test_a_further_round_for_a_legacy_server_runs_nothing() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream())
        said = await bridged.say(call("echo", requestState="x", inputResponses={}), MODERN)
        assert (said.status, said.error["code"]) == (400, -32602)
        assert bridged.upstream.log == []

    run(body)


async def _needy(upstream: Upstream, asked: Got, message: Any) -> Any:
    del upstream, asked
    if message["method"] == "tools/call":
        capabilities = {"requiredCapabilities": {"elicitation": {}}}
        raise Refusal(400, -32021, "Missing required client capability", capabilities)
    return None


def test_a_capability_that_is_not_declared_is_named_to_a_legacy_client() -> None:
    async def body() -> None:
        bridged = Bridged(ModernUpstream(_needy))
        said = await bridged.say(call("echo"), LEGACY[1])
        assert (said.status, said.error["code"]) == (200, -32600)
        assert said.error["data"] == {"requiredCapabilities": {"elicitation": {}}}

    run(body)


@pytest.mark.parametrize("version", LEGACY)
def test_headers_that_contradict_the_arguments_are_refused_where_the_server_knows_none(
    version: str,
) -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(version))
        asked = bridged.asked(call("somewhere", {"zone": "north"}), MODERN)
        for params in ((), (("Mcp-Param-Zone", "south"),)):
            lying = replace(asked, headers=McpHeaders(params=params))
            with bridged.carrier.exchange(lying) as exchange:
                status, _ = await exchange.head()
                [answer] = await exchange.read() or []
            assert (status, answer.value["error"]["code"]) == (400, -32020)  # type: ignore[index]
        assert bridged.upstream.log == []
        assert (await bridged.say(call("somewhere", {"zone": "north"}), MODERN)).result["content"]
        assert bridged.upstream.log == ["somewhere"]

    run(body)
