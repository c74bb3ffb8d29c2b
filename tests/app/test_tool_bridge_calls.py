"""Do progress, log messages and cancellations of a call cross the eras, and the call only once?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import VERA, Bridged, reader
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import LegacyUpstream, ModernUpstream, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call, tell
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.bridging import LEVELS
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.testing.asgi import WAIT_S


def note(method: str, **params: object) -> Any:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


async def telling(upstream: Upstream, asked: Got, message: Any) -> Any:
    """Tells of its progress and of everything else, and asks, before it answers."""
    if message["method"] != "tools/call":
        return None
    upstream.log.append(message["params"]["name"])
    token = message["params"].get("_meta", {}).get("progressToken")
    asked.head(200, "text/event-stream")
    if token is not None:
        asked.event(note("progress", progressToken=token, progress=0.5))
        asked.event(note("progress", progressToken="of-somebody-else", progress=0.6))
    for level in ("debug", "warning", "emergency"):
        asked.event(note("message", level=level, data=level))
    for number, method in enumerate(("ping", "sampling/createMessage", "elicitation/create")):
        asked.event({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
    asked.event({"jsonrpc": "2.0", "id": "somebody", "result": {"content": []}})
    asked.event(
        {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [], "resultType": "complete"}}
    )
    asked.end()
    return None


@pytest.mark.parametrize("client", [MODERN, LEGACY[0]])
@pytest.mark.parametrize("made", [LegacyUpstream, ModernUpstream])
@pytest.mark.parametrize("token", [None, 7, "seven"])
def test_progress_comes_under_the_client_s_own_token(client: str, made: Any, token: Any) -> None:
    async def body() -> None:
        bridged = Bridged(made(handler=telling))
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        said = await bridged.say(call("slow", **meta), client)
        heard = [m["params"] for m in said.values if m.get("method") == "notifications/progress"]
        assert heard == ([] if token is None else [{"progressToken": token, "progress": 0.5}])
        assert said.result["content"] == []
        assert bridged.upstream.log == ["slow"]

    run(body)


def levels(said: Any) -> list[str]:
    heard = [m for m in said.values if m.get("method") == "notifications/message"]
    return [message["params"]["level"] for message in heard]


@pytest.mark.parametrize("wanted", [None, *LEVELS])
def test_a_modern_client_hears_of_a_legacy_server_what_it_asked_for(wanted: str | None) -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(handler=telling))
        meta = {} if wanted is None else {"io.modelcontextprotocol/logLevel": wanted}
        said = await bridged.say(call("slow", _meta=meta), MODERN)
        told = [] if wanted is None else LEVELS[LEVELS.index(wanted) :]
        assert levels(said) == [each for each in ("debug", "warning", "emergency") if each in told]
        asked_for = [each for each in bridged.upstream.log if each[0] == "logging/setLevel"]
        assert asked_for == ([] if wanted is None else [("logging/setLevel", wanted)])
        assert bridged.upstream.faults == []

    run(body)


def test_a_legacy_session_is_told_from_the_lowest_level_on_that_anybody_wants() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream())
        for level in ("error", "info", "warning", "debug", "info"):
            meta = {"io.modelcontextprotocol/logLevel": level}
            await bridged.say(call("echo", _meta=meta), MODERN)
        asked_for = [each[1] for each in bridged.upstream.log if each[0] == "logging/setLevel"]
        assert asked_for == ["error", "info", "debug"]

    run(body)


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_of_a_legacy_session_goes_with_each_request_to_a_modern_server(
    level: str,
) -> None:
    async def body() -> None:
        bridged = Bridged(ModernUpstream())
        for session in ("bridged.a", "bridged.b"):
            await bridged.say(ask("logging/setLevel", level=level), LEGACY[0], session="bridged.a")
            await bridged.say(call("echo"), LEGACY[0], session=session)
        sent = [m["params"]["_meta"] for m in bridged.upstream.heard if m["method"] == "tools/call"]
        key = "io.modelcontextprotocol/logLevel"
        assert [meta.get(key) for meta in sent] == [level, "info"]

    run(body)


def test_a_client_without_a_session_is_told_nothing_unasked() -> None:
    async def body() -> None:
        bridged = Bridged(ModernUpstream())
        await bridged.say(call("echo"), None)
        assert (
            "io.modelcontextprotocol/logLevel" not in bridged.upstream.heard[-1]["params"]["_meta"]
        )
        bad = await bridged.say(ask("logging/setLevel", level="loud"), None)
        assert bad.error["code"] == -32602

    run(body)


@pytest.mark.parametrize("client", [MODERN, LEGACY[0]])
def test_what_a_legacy_server_asks_is_answered_in_its_session_and_never_passed_on(
    client: str,
) -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(handler=telling))
        said = await bridged.say(call("slow"), client)
        assert not [message for message in said.values if {"id", "method"} <= set(message)]
        await bridged.say(ask("prompts/list"), client)  # whatever was cast has arrived before
        answers = {answer["id"]: answer for answer in bridged.upstream.answers}
        assert answers[0]["result"] == {}
        assert [answers[number]["error"]["code"] for number in (1, 2)] == [-32601, -32601]
        assert bridged.upstream.faults == []

    run(body)


async def hanging(upstream: Upstream, asked: Got, message: Any) -> Any:
    """Begins a stream and waits for the test."""
    if message["method"] != "tools/call":
        return None
    asked.head(200, "text/event-stream")
    await upstream.stay(asked)
    return None


async def until_told(upstream: Upstream) -> Any:
    async with asyncio.timeout(WAIT_S):
        while not (told := [m for m in upstream.log if isinstance(m, dict)]):
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    return told


@pytest.mark.parametrize("client", [MODERN, LEGACY[0]])
def test_a_client_that_leaves_cancels_its_call_at_a_legacy_server(client: str) -> None:
    async def body() -> None:
        upstream = LegacyUpstream(handler=hanging)
        bridged = Bridged(upstream)
        waiting = asyncio.ensure_future(bridged.say(call("slow", id="x"), client))
        await asyncio.wait_for(upstream.streamed.wait(), WAIT_S)
        waiting.cancel()
        [cancelled] = await until_told(upstream)
        ran = next(m for m in upstream.heard if m.get("method") == "tools/call")
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == ran["id"]
        bridged.carrier.cast(bridged.asked(tell("notifications/cancelled", requestId="x"), client))
        await bridged.say(call("echo", id="y"), client) if client is None else None
        assert len(await until_told(upstream)) == 1
        assert upstream.faults == []

    run(body)


@pytest.mark.parametrize("client", [MODERN, LEGACY[0]])
def test_a_client_that_leaves_closes_the_stream_of_a_modern_server(client: str) -> None:
    async def body() -> None:
        upstream = ModernUpstream(handler=hanging)
        bridged = Bridged(upstream)
        waiting = asyncio.ensure_future(bridged.say(call("slow"), client))
        await asyncio.wait_for(upstream.streamed.wait(), WAIT_S)
        waiting.cancel()
        await asyncio.wait_for(upstream.streams[0].gone.wait(), WAIT_S)
        assert upstream.log == []

    run(body)


@pytest.mark.parametrize("made", [LegacyUpstream, ModernUpstream])
def test_a_cancellation_of_a_legacy_client_ends_its_own_call_alone(made: Any) -> None:
    async def body() -> None:
        upstream = made(handler=hanging)
        bridged = Bridged(upstream)
        mine = asyncio.ensure_future(
            bridged.say(call("slow", id=1), LEGACY[0], session="bridged.a")
        )
        other = asyncio.ensure_future(
            bridged.say(call("slow", id=1), LEGACY[0], session="bridged.b")
        )
        async with asyncio.timeout(WAIT_S):
            while len(upstream.streams) < 2:
                await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        gone = tell("notifications/cancelled", requestId=1)
        assert (await bridged.say(gone, LEGACY[0], session="bridged.a")).status == 202
        with pytest.raises(ServerFailed):
            await mine
        assert not other.done()
        await bridged.say(tell("notifications/cancelled", requestId=9), LEGACY[0])
        assert not other.done()
        other.cancel()

    run(body)


async def letting_go(upstream: Any, asked: Got, message: Any) -> Any:
    """Ends the stream of a call after a place to take it up again."""
    if message["method"] != "tools/call":
        return None
    upstream.log.append(message["params"]["name"])
    upstream.answers.append(message["id"])
    asked.head(200, "text/event-stream")
    asked.body(b"id: place-1\nretry: 500\ndata: \n\n")
    asked.end()
    return None


class Resumed(LegacyUpstream):
    """Its GET has the rest of the call."""

    places: list[str]

    async def other(self, asked: Got) -> None:
        if asked.method != "GET":
            await super().other(asked)
            return
        if "last-event-id" not in asked.headers:
            asked.whole(b"", 405)
            return
        self.places.append(asked.headers["last-event-id"])
        if len(self.places) == 1:
            asked.whole(b"", 503)
            return
        asked.head(200, "text/event-stream")
        if len(self.places) == 2:
            asked.body(b'id: place-2\ndata: {"jsonrpc":"2.0","method":"notifications/message",')
            asked.body(b'"params":{"level":"info","data":1}}\n\n')
        else:
            asked.event({"jsonrpc": "2.0", "id": self.answers[0], "result": {"content": []}})
        asked.end()


def test_a_call_whose_stream_a_legacy_server_lets_go_is_taken_up_again() -> None:
    async def body() -> None:
        upstream = Resumed(handler=letting_go)
        upstream.places = []
        bridged = Bridged(upstream)
        said = await bridged.say(call("slow"), LEGACY[0])
        assert said.result["content"] == []
        assert upstream.places == ["place-1", "place-1", "place-2"]
        assert upstream.log == ["slow"]
        assert levels(said) == ["info"]

    run_in_no_time(body)


class Mute(Resumed):
    """Takes the call up again, and never says another word."""

    async def other(self, asked: Got) -> None:
        if "last-event-id" not in asked.headers:
            await super().other(asked)
            return
        self.places.append(asked.headers["last-event-id"])
        asked.head(200, "text/event-stream")
        await asked.gone.wait()


def test_a_call_that_is_taken_up_again_does_not_wait_for_ever() -> None:
    async def body() -> None:
        upstream = Mute(handler=letting_go)
        upstream.places = []
        bridged = Bridged(upstream)
        exchange = bridged.carrier.exchange(bridged.asked(call("slow"), LEGACY[0]))
        with exchange, pytest.raises(ServerFailed):
            await exchange.head()
        assert upstream.places == ["place-1"]
        assert upstream.log[0] == "slow"
        await bridged.carrier.close()

    run_in_no_time(body)


def test_a_stream_without_a_place_that_ends_without_an_answer_has_none() -> None:
    async def ending(upstream: Upstream, asked: Got, message: Any) -> Any:
        del upstream
        if message["method"] == "tools/call":
            asked.head(200, "text/event-stream")
            asked.end()
        return None

    async def body() -> None:
        for upstream in (LegacyUpstream(handler=ending), ModernUpstream(handler=ending)):
            said = await Bridged(upstream).say(call("slow"), LEGACY[0])
            assert (said.status, said.values) == (200, [])

    run(body)


def test_headers_that_a_tool_demands_are_learned_before_the_call_that_ran_nothing_is_repeated() -> (
    None
):
    async def body() -> None:
        upstream = ModernUpstream()
        bridged = Bridged(upstream)
        said = await bridged.say(call("somewhere", {"zone": "süd"}), LEGACY[0])
        assert said.result["content"]
        assert upstream.log == ["somewhere"]
        assert upstream.methods() == ["server/discover", "tools/call", "tools/list", "tools/call"]
        await bridged.say(call("somewhere", {"zone": "x"}), LEGACY[0])
        assert upstream.methods()[4:] == ["tools/call"]
        said = await bridged.say(call("somewhere", {"zone": 5}), LEGACY[0], owner=VERA)
        assert said.error["code"] == -32603

    run(body)


def test_reading_one_message_at_a_time_gives_them_as_they_come() -> None:
    async def body() -> None:
        upstream = LegacyUpstream(handler=hanging)
        bridged = Bridged(upstream)
        level = {"io.modelcontextprotocol/logLevel": "debug"}
        exchange = bridged.carrier.exchange(bridged.asked(call("slow", _meta=level), MODERN))
        with exchange:
            head = asyncio.ensure_future(exchange.head())
            await asyncio.wait_for(upstream.streamed.wait(), WAIT_S)
            stream, following = upstream.streams[0], reader(exchange)
            stream.event(note("message", level="info", data=1))
            assert await head == (200, {})
            assert (await following())["params"]["data"] == 1
            stream.event(note("message", level="info", data=2))
            assert (await following())["params"]["data"] == 2
            assert exchange.is_stream

    run(body)
