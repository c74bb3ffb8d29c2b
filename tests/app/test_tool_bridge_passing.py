"""Is a server let alone that speaks its client's era, and found out that does not?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import ADAM, Bridged
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Refusal, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call, tell
from tidegate.gateway.pause import pause
from tidegate.mcp.eras import LEGACY, MODERN

HELLO = ask("initialize", protocolVersion=LEGACY[0], capabilities={}, clientInfo={})


def passing(upstream: Upstream) -> Bridged:
    return Bridged(upstream, terminates=False)


class Both(Upstream):
    """A server of both eras, as most are: the message tells."""

    def __init__(self) -> None:
        super().__init__()
        self.modern, self.legacy = ModernUpstream(), LegacyUpstream()

    async def __call__(self, asked: Got) -> None:
        is_modern = asked.headers.get("mcp-protocol-version") == MODERN
        await (self.modern if is_modern else self.legacy)(asked)


def test_a_client_of_the_server_s_own_era_gets_its_bytes_and_its_session() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = passing(upstream)
        said = await bridged.say(HELLO, None)
        assert said.head["mcp-session-id"] == "session1"
        session = {"session": "session1"}
        await bridged.say(tell("notifications/initialized"), LEGACY[0], **session)
        said = await bridged.say(call("echo", id="mine"), LEGACY[0], **session)
        assert upstream.heard[-1]["id"] == "mine"
        assert upstream.methods() == ["initialize", "notifications/initialized", "tools/call"]
        missing = await bridged.say(call("echo"), LEGACY[0], session="another")
        assert missing.status == 404  # the client begins anew, and nobody is asked anything
        assert len(upstream.heard) == 4
        assert upstream.faults == []

    run(body)


def test_a_server_of_both_eras_is_never_bridged() -> None:
    async def body() -> None:
        upstream = Both()
        bridged = passing(upstream)
        for client in (MODERN, None, MODERN):
            hello = ask("server/discover") if client == MODERN else HELLO
            await bridged.say(hello, client)
        assert upstream.modern.methods() == ["server/discover"] * 2
        assert upstream.legacy.methods() == ["initialize"]

    run(body)


REFUSALS = [
    Refusal(400, -32000, "Bad Request: Unsupported protocol version: 2026-07-28"),
    Refusal(400, -32000, "Bad Request: Server not initialized"),
    Refusal(400, -32600, "Bad Request: Missing session ID"),
    Refusal(400, -32022, "Unsupported protocol version", {"supported": list(LEGACY)}),
    Refusal(404, -32600, "Session not found"),
]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("first", [ask("server/discover"), call("echo"), ask("tools/list")])
def test_a_modern_client_is_bridged_once_a_legacy_server_has_refused_it(
    refusal: Refusal, first: Any
) -> None:
    async def body() -> None:
        upstream = LegacyUpstream(refusal=refusal)
        bridged = passing(upstream)
        said = await bridged.say(first, MODERN)
        assert said.result["resultType"] == "complete"
        assert (await bridged.say(call("echo"), MODERN)).result["content"]
        assert upstream.log == ["echo"] * (2 if first["method"] == "tools/call" else 1)
        # The refusal, the handshake, and from then on what is asked.
        assert upstream.methods().count("initialize") == 1
        own = await bridged.say(HELLO, None)
        assert own.head["mcp-session-id"] == "session2"  # a client of its era has its own session
        assert upstream.faults == []

    run(body)


def test_a_method_that_a_legacy_server_does_not_know_tells_of_its_era() -> None:
    async def body() -> None:
        for status in (200, 404):
            upstream = LegacyUpstream(refusal=Refusal(status, -32601, "Method not found"))
            said = await passing(upstream).say(ask("server/discover"), MODERN)
            assert said.result["resultType"] == "complete"

    run(body)


def test_bare_refusals_are_asked_about_too() -> None:
    async def body() -> None:
        for status in (400, 404, 405):
            upstream = LegacyUpstream()
            bridged = passing(upstream)

            async def script(asked: Got, upstream: Any = upstream, status: int = status) -> None:
                if asked.headers.get("mcp-protocol-version") == MODERN:
                    asked.whole(b"Not here", status, content_type="text/plain")
                else:
                    await upstream(asked)

            bridged.transport.script = script
            assert (await bridged.say(call("echo"), MODERN)).result["content"]
            assert upstream.log == ["echo"]

    run(body)


@pytest.mark.parametrize("client", [None, *LEGACY])
def test_a_legacy_client_is_bridged_once_a_modern_server_has_refused_it(client: Any) -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        bridged = passing(upstream)
        said = await bridged.say({**HELLO, "params": {"protocolVersion": client}}, client)
        assert said.result["protocolVersion"] == (client or LEGACY[0])
        session = said.head["mcp-session-id"]
        said = await bridged.say(call("echo"), client, session=session)
        assert "resultType" not in said.result
        assert upstream.log == ["echo"]
        assert (await bridged.say(ask("ping"), client, session=session)).result == {}
        assert upstream.faults == []

    run(body)


def test_a_call_without_a_handshake_is_sent_again_only_where_it_was_refused_unread() -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        said = await passing(upstream).say(call("echo"), None)
        assert said.result["content"]  # -32022 says that it was not looked at
        assert upstream.log == ["echo"]

        def refusing(code: int) -> Any:
            async def script(asked: Got) -> None:
                if asked.headers.get("mcp-protocol-version") == MODERN:
                    await upstream(asked)
                else:
                    method = asked.message["method"]
                    error = {"code": code, "message": f"{method}: params._meta is missing"}
                    body = {"jsonrpc": "2.0", "id": asked.message["id"], "error": error}
                    asked.whole(body, 400)

            return script

        upstream.log.clear()
        bridged = passing(upstream)
        bridged.transport.script = refusing(-32602)  # which a tool may have said as well
        said = await bridged.say(call("echo"), None)
        assert (said.status, said.error["code"]) == (400, -32602)
        assert upstream.log == []
        assert (await bridged.say(call("echo"), None)).result["content"]

    run(body)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, -32602),
        (200, -32603),
        (400, -32602),
        (200, -32000),
        (401, None),
        (403, None),
        (500, None),
    ],
)
def test_errors_of_a_tool_and_of_the_door_are_no_matter_of_eras(status: int, code: Any) -> None:
    async def body() -> None:
        async def script(asked: Got) -> None:
            error = {"code": code, "message": "x"}
            body = {"jsonrpc": "2.0", "id": asked.message["id"], "error": error}
            asked.whole(body if code else b"", status)

        for client in (MODERN, LEGACY[0]):
            bridged = passing(ModernUpstream())
            bridged.transport.script = script
            said = await bridged.say(
                call("echo"), client, session="s" if client != MODERN else None
            )
            assert said.status == status
            assert len(bridged.transport.asked) == 1

    run(body)


def test_a_refusal_that_stays_unexplained_reaches_the_client_and_is_asked_about_once() -> None:
    async def body() -> None:
        async def script(asked: Got) -> None:
            error = {"code": -32600, "message": "Bad Request"}
            asked.whole({"jsonrpc": "2.0", "id": asked.message.get("id"), "error": error}, 400)

        bridged = passing(ModernUpstream())
        bridged.transport.script = script
        for _ in range(5):
            said = await bridged.say(call("echo"), MODERN)
            assert (said.status, said.error["message"]) == (400, "Bad Request")
        methods = [asked.message["method"] for asked in bridged.transport.asked]
        probes = ["server/discover", "initialize"]
        assert methods == ["tools/call", *probes, *["tools/call"] * 4]
        await pause(31.0)
        await bridged.say(call("echo"), MODERN, owner=ADAM)
        assert len(bridged.transport.asked) == 10

    run_in_no_time(body)


def test_an_error_status_without_mcp_is_passed_on_as_it_is() -> None:
    async def body() -> None:
        async def script(asked: Got) -> None:
            asked.whole(b"<html>", 404)

        bridged = passing(ModernUpstream())
        bridged.transport.script = script
        said = await bridged.say(call("echo"), MODERN)
        assert (said.status, said.values) == (404, [])

    run(body)


def test_two_clients_that_are_refused_at_once_make_one_probe() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = passing(upstream)
        said = await asyncio.gather(*(bridged.say(call("echo", id=n), MODERN) for n in range(8)))
        assert all(each.result["content"] for each in said)
        assert upstream.log == ["echo"] * 8
        assert upstream.methods().count("initialize") == 1

    run(body)
