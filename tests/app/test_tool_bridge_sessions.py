"""Has each client of a bridged legacy server the right session there, and each session its end?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import ADAM, VERA, Bridged
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Refusal, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge_line import BridgeTimes
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.transport.upstream import Failure


def test_many_calls_at_once_make_one_probe_and_one_session() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream())
        said = await asyncio.gather(*(bridged.say(call("echo", id=n), MODERN) for n in range(20)))
        assert [each.values[-1]["id"] for each in said] == list(range(20))
        methods = bridged.upstream.methods()
        assert methods[:3] == ["server/discover", "initialize", "notifications/initialized"]
        # What its tools demand of headers has to be known before the first call.
        assert methods[3:] == ["tools/list", *["tools/call"] * 20]
        assert bridged.upstream.faults == []

    run(body)


def test_each_owner_has_a_session_of_its_own() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream())
        for owner in (VERA, ADAM, VERA):
            await bridged.say(call("echo"), MODERN, owner=owner)
        sessions = [
            asked.headers.get("mcp-session-id")
            for asked in bridged.transport.asked
            if asked.raw and asked.message.get("method") == "tools/call"
        ]
        assert sessions == ["session1", "session2", "session1"]
        ids = [
            (asked.headers.get("mcp-session-id"), asked.message["id"])
            for asked in bridged.transport.asked
            if asked.raw and "id" in asked.message and "mcp-session-id" in asked.headers
        ]
        assert len(set(ids)) == len(ids)

    run(body)


def test_a_client_s_head_stays_here() -> None:
    async def body() -> None:
        for upstream in (LegacyUpstream(), ModernUpstream()):
            bridged = Bridged(upstream)
            await bridged.say(call("echo"), LEGACY[0], session="bridged.of-another-worker")
            for asked in bridged.transport.asked:
                assert asked.headers["authorization"] == "Bearer credential-of-the-gateway"
                assert "bridged" not in str(asked.headers)

    run(body)


async def _forgetful(upstream: Any, asked: Got, message: Any) -> Any:
    """Loses its sessions before the first call."""
    del asked
    if message["method"] == "tools/call" and not upstream.answers:
        upstream.answers.append("lost")
        upstream.open.clear()
        raise upstream.lost
    return None


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(404, -32600, "Session not found"),
        Refusal(404, -32001, "Session not found"),
        Refusal(400, -32000, "Bad Request: No valid session ID provided"),
    ],
)
def test_a_lost_session_is_opened_once_more_and_the_call_runs_once(refusal: Refusal) -> None:
    async def body() -> None:
        upstream = LegacyUpstream(handler=_forgetful)
        upstream.lost = refusal
        bridged = Bridged(upstream)
        said = await bridged.say(call("echo"), MODERN)
        assert said.result["content"]
        assert upstream.log == ["echo"]
        assert upstream.methods().count("initialize") == 2
        assert upstream.faults == []

    run(body)


async def _never(upstream: Any, asked: Got, message: Any) -> Any:
    del asked
    upstream.open.clear()
    if message["method"] == "tools/call":
        raise upstream.lost
    return None


async def _touchy(upstream: Any, asked: Got, message: Any) -> Any:
    """A tool that talks like a server which has lost a session."""
    del asked
    if message["method"] == "tools/call":
        upstream.log.append("ran")
        raise upstream.said
    return None


WORDS = [
    Refusal(400, -32000, "Bad Request: No valid session ID provided"),
    Refusal(400, -32600, "the session of this user has expired"),
    Refusal(400, -32600, "x"),
    Refusal(400, -32022, "Unsupported protocol version", {"supported": list(LEGACY)}),
    Refusal(400, -32000, "Bad Request: Unsupported protocol version"),
    Refusal(400, -32020, "Header mismatch"),
    Refusal(400, -32602, "params._meta is missing"),
    Refusal(404, -32601, "Method not found"),
    Refusal(400, -32700, "Parse error"),
]


@pytest.mark.parametrize("client", [MODERN, LEGACY[0]])
@pytest.mark.parametrize("made", [LegacyUpstream, ModernUpstream])
@pytest.mark.parametrize("said", WORDS)
def test_a_tool_that_talks_like_a_server_of_another_era_runs_once(
    said: Refusal, made: Any, client: str
) -> None:
    async def body() -> None:
        for terminates in (True, False):
            upstream = made(handler=_touchy)
            upstream.said = said
            bridged = Bridged(upstream, terminates=terminates)
            if not terminates and isinstance(upstream, LegacyUpstream) and client != MODERN:
                continue  # nobody stands between them
            answer = await bridged.say(call("echo"), client)
            assert "error" in answer.values[-1]
            assert upstream.log.count("ran") == 1
            await bridged.say(call("echo"), client)
            assert upstream.log.count("ran") == 2

    run(body)


def test_a_server_that_loses_every_session_is_asked_no_third_time() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(handler=_never))
        said = await bridged.say(call("echo"), MODERN)
        assert said.error["code"] == -32600
        assert bridged.upstream.methods().count("tools/call") == 2

    run(body)


def test_sessions_are_ended_when_nobody_used_them_and_at_the_end() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream, times=BridgeTimes(known_s=1e6))
        await bridged.say(call("echo"), MODERN)
        await asyncio.wait_for(_until(lambda: "DELETE" in upstream.log), 2_000)
        assert upstream.open == {}
        await bridged.say(call("echo"), MODERN)
        assert upstream.methods().count("initialize") == 2
        await bridged.carrier.close()
        assert upstream.log.count("DELETE") == 2
        assert upstream.faults == []
        with pytest.raises(ServerFailed):
            await bridged.say(call("echo"), MODERN)

    run_in_no_time(body)


async def _until(holds: Any) -> None:
    while not holds():
        await pause(1.0)


def test_a_session_in_use_does_not_expire() -> None:
    async def _slow(upstream: Upstream, asked: Got, message: Any) -> Any:
        del upstream, asked
        if message["method"] == "tools/call":
            await pause(4.0)
        return None

    async def body() -> None:
        upstream = LegacyUpstream(handler=_slow)
        bridged = Bridged(upstream, times=BridgeTimes(idle_s=1.0))
        said = await bridged.say(call("slow"), MODERN)
        assert said.result["content"]
        assert "DELETE" not in upstream.log
        await bridged.carrier.close()

    run_in_no_time(body)


def test_a_server_that_cannot_be_reached_is_asked_again_next_time() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)

        async def down(asked: Got) -> None:
            asked.fail(Failure.UNREACHABLE)

        bridged.transport.script = down
        with pytest.raises(ServerFailed):
            await bridged.say(call("echo"), MODERN)
        bridged.transport.script = upstream
        assert (await bridged.say(call("echo"), MODERN)).result["content"]

    run(body)


def test_a_server_that_was_replaced_by_one_of_the_other_era_is_asked_what_it_speaks() -> None:
    async def body() -> None:
        old, new = LegacyUpstream(), ModernUpstream()
        bridged = Bridged(old)
        await bridged.say(call("echo"), LEGACY[0])
        bridged.transport.script = new
        assert (await bridged.say(call("echo"), LEGACY[0])).result["content"]
        assert (old.log, new.log) == (["echo"], ["echo"])
        bridged.transport.script = other = LegacyUpstream("2025-06-18")
        assert (await bridged.say(call("echo"), LEGACY[0])).result["content"]
        assert other.log == ["echo"]
        assert (await bridged.say(call("echo"), MODERN)).result["resultType"] == "complete"
        assert other.methods().count("initialize") == 1

    run(body)


def test_a_legacy_server_without_sessions_is_served_without_one() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(sessions=False))
        assert (await bridged.say(call("echo"), MODERN)).result["content"]
        assert (await bridged.say(ask("tools/list"), LEGACY[2])).result["tools"]
        assert bridged.upstream.faults == []
        await bridged.carrier.close()
        assert bridged.upstream.log == ["echo"]

    run(body)


def test_a_client_s_session_ends_here_without_the_server() -> None:
    async def body() -> None:
        bridged = Bridged(ModernUpstream())
        hello = ask("initialize", protocolVersion=LEGACY[0], capabilities={}, clientInfo={})
        session = (await bridged.say(hello, None)).head["mcp-session-id"]
        with bridged.carrier.ending(session, LEGACY[0]) as exchange:
            assert await exchange.head() == (200, {})
            assert await exchange.read() is None
        assert bridged.upstream.methods() == ["server/discover"]

    run(body)
