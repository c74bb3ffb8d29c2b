"""Does a client hear of what changes at a server that tells of it in another era's way?"""

import asyncio
from typing import Any

import pytest

from tests.app.bridged import ADAM, VERA, Bridged, reader
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import SUBSCRIPTION, LegacyUpstream, ModernUpstream, Refusal, Upstream
from tests.app.mcp_world import Asked as Got
from tests.app.mcp_world import ask, call
from tidegate.gateway.pause import pause
from tidegate.mcp.eras import LEGACY, MODERN, Revision
from tidegate.testing.asgi import WAIT_S

EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["test://a", "test://b"],
}


def changed(what: str, **params: object) -> Any:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": f"notifications/{what}"}
    return {**message, "params": params} if params else message


def listening(**wanted: Any) -> Any:
    return ask("subscriptions/listen", id="sub", notifications=wanted or EVERYTHING)


async def streams(upstream: Upstream, count: int) -> Got:
    async with asyncio.timeout(WAIT_S):
        while len(upstream.changes) < count:
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    return upstream.changes[count - 1]


def test_a_modern_subscription_hears_of_a_legacy_server() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        async with bridged.hearing(listening(), MODERN) as following:
            ack = await following()
            assert ack["method"] == "notifications/subscriptions/acknowledged"
            # The server promises no word about its prompts.
            granted = {k: v for k, v in EVERYTHING.items() if k != "promptsListChanged"}
            meta = {SUBSCRIPTION: "sub"}
            assert ack["params"] == {"notifications": granted, "_meta": meta}
            stream = await streams(upstream, 1)
            assert stream.method == "GET"
            for message in (
                changed("message", level="info", data="of no request"),
                changed("prompts/list_changed"),
                changed("resources/updated", uri="test://other"),
                changed("tools/list_changed"),
                changed("resources/updated", uri="test://a"),
                {"jsonrpc": "2.0", "id": 3, "method": "ping"},
            ):
                stream.event(message)
            assert await following() == changed("tools/list_changed", _meta=meta)
            assert await following() == changed("resources/updated", uri="test://a", _meta=meta)
        subscribed = [each for each in upstream.log if each[0].startswith("resources/")]
        assert subscribed[:2] == [
            ("resources/subscribe", "test://a"),
            ("resources/subscribe", "test://b"),
        ]
        async with asyncio.timeout(WAIT_S):
            while len([each for each in upstream.log if "/unsubscribe" in each[0]]) < 2:
                await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        assert not stream.gone.is_set()  # the session goes on
        await bridged.carrier.close()
        assert stream.gone.is_set()
        assert upstream.answers[0]["result"] == {}
        assert upstream.faults == []

    run(body)


def test_two_subscriptions_of_one_owner_share_a_stream_and_hear_what_each_wants() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        one, two = listening(toolsListChanged=True), listening(resourceSubscriptions=["test://a"])
        async with bridged.hearing(one, MODERN) as first:
            async with bridged.hearing(two, MODERN) as second:
                assert (await first())["params"]["notifications"] == {"toolsListChanged": True}
                await second()
                stream = await streams(upstream, 1)
                async with bridged.hearing(one, MODERN, owner=ADAM) as third:
                    await third()
                    other = await streams(upstream, 2)
                    stream.event(changed("tools/list_changed"))
                    stream.event(changed("resources/updated", uri="test://a"))
                    other.event(changed("resources/updated", uri="test://a"))
                    other.event(changed("tools/list_changed"))
                    assert (await first())["method"] == "notifications/tools/list_changed"
                    assert (await second())["params"]["uri"] == "test://a"
                    assert (await third())["method"] == "notifications/tools/list_changed"
            assert not stream.gone.is_set()  # the first one still hears
            stream.event(changed("tools/list_changed"))
            assert (await first())["method"] == "notifications/tools/list_changed"
        assert len(upstream.changes) == 2

    run(body)


async def aside(upstream: Upstream, asked: Got, message: Any) -> Any:
    """Tells of a change in the stream of a call, as servers without a GET do."""
    del upstream
    if message["method"] == "tools/call":
        asked.head(200, "text/event-stream")
        asked.event(changed("tools/list_changed"))
        asked.event({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
        asked.end()
    return None


def test_a_change_that_a_legacy_server_tells_within_a_call_reaches_who_subscribed() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream(handler=aside))
        async with bridged.hearing(listening(), MODERN) as following:
            await following()
            said = await bridged.say(call("echo"), MODERN)
            assert len(said.values) == 1
            assert (await following())["method"] == "notifications/tools/list_changed"
        said = await bridged.say(call("echo"), LEGACY[0])
        assert said.values[0]["method"] == "notifications/tools/list_changed"

    run(body)


def test_a_subscription_ends_with_its_result_when_the_gateway_leaves() -> None:
    async def body() -> None:
        bridged = Bridged(LegacyUpstream())
        async with bridged.hearing(listening(), MODERN) as following:
            await following()
            bridged.carrier.cut()
            result = {"resultType": "complete", "_meta": {SUBSCRIPTION: "sub"}}
            assert await following() == {"jsonrpc": "2.0", "id": "sub", "result": result}
            assert await following() is None

    run(body)


def test_a_subscription_ends_when_the_server_loses_the_session_and_comes_back_when_it_breaks() -> (
    None
):
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        async with bridged.hearing(listening(toolsListChanged=True), MODERN) as following:
            await following()
            first = await streams(upstream, 1)
            first.end()
            second = await streams_later(upstream, 2)
            second.event(changed("tools/list_changed"))
            assert (await following())["method"] == "notifications/tools/list_changed"
            upstream.open.clear()
            second.fail()
            assert (await following())["id"] == "sub"
            assert await following() is None
        async with bridged.hearing(listening(toolsListChanged=True), MODERN) as following:
            assert "method" in await following()
        assert upstream.methods().count("initialize") == 2
        await bridged.carrier.close()
        for stream in upstream.changes:
            stream.gone.set()

    run_in_no_time(body)


async def streams_later(upstream: Upstream, count: int) -> Got:
    while len(upstream.changes) < count:
        await pause(0.1)
    return upstream.changes[count - 1]


class Deaf(LegacyUpstream):
    """Has no stream of its own and no subscriptions."""

    async def other(self, asked: Got) -> None:
        asked.whole(b"", 405)

    async def answer(self, asked: Got, message: Any) -> object:
        result: Any = await super().answer(asked, message)
        if message.get("method") == "initialize":
            return {**result, "capabilities": {"tools": {}, "resources": {}}}
        return result


def test_a_server_that_tells_nothing_grants_nothing() -> None:
    async def body() -> None:
        bridged = Bridged(Deaf())
        async with bridged.hearing(listening(), MODERN) as following:
            assert (await following())["params"]["notifications"] == {}
        said = await bridged.say(ask("resources/subscribe", uri="test://a"), LEGACY[0])
        assert said.error["code"] == -32601

    run(body)


@pytest.mark.parametrize("session", ["bridged.a", None])
def test_a_legacy_client_s_stream_hears_of_a_modern_server(session: str | None) -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        bridged = Bridged(upstream)
        subscribe = ask("resources/subscribe", uri="test://a")
        await bridged.say(subscribe, LEGACY[0], session=session)
        revision = Revision(LEGACY[0])
        with bridged.carrier.listening(VERA, session, revision) as exchange:
            assert await exchange.head() == (200, {})
            following = reader(exchange)
            stream = await streams(upstream, 1)
            wish = stream.message["params"]["notifications"]
            assert wish == {**EVERYTHING, "resourceSubscriptions": ["test://a"]}
            meta = {SUBSCRIPTION: stream.message["id"]}
            stream.event(changed("tools/list_changed", _meta=meta))
            stream.event(changed("resources/updated", uri="test://a", _meta=meta))
            assert await following() == changed("tools/list_changed")
            assert await following() == changed("resources/updated", uri="test://a")
            await bridged.say(
                ask("resources/subscribe", uri="test://b"), LEGACY[0], session=session
            )
            stream = await streams(upstream, 2)
            assert stream.message["params"]["notifications"] == EVERYTHING
            stream.event(changed("resources/updated", uri="test://b", _meta=meta))
            assert (await following())["params"] == {"uri": "test://b"}
        await asyncio.wait_for(stream.gone.wait(), WAIT_S)
        assert upstream.faults == []

    run(body)


def test_a_legacy_client_s_stream_hears_of_a_legacy_server_in_our_session() -> None:
    async def body() -> None:
        upstream = LegacyUpstream("2025-06-18")
        bridged = Bridged(upstream)
        subscribe = ask("resources/subscribe", uri="test://a")
        for session in ("bridged.a", "bridged.b"):
            await bridged.say(subscribe, LEGACY[0], session=session)
        with bridged.carrier.listening(VERA, "bridged.a", Revision(LEGACY[0])) as exchange:
            assert await exchange.head() == (200, {})
            following, stream = reader(exchange), await streams(upstream, 1)
            stream.event(changed("resources/updated", uri="test://b"))
            stream.event(changed("resources/updated", uri="test://a"))
            assert (await following())["params"] == {"uri": "test://a"}
            with bridged.carrier.ending("bridged.b", LEGACY[0]):
                pass
            bridged.carrier.cut()
            assert await following() is None
        subscribed = [each for each in upstream.log if each[0].startswith("resources/")]
        assert subscribed == [("resources/subscribe", "test://a")] * 2
        assert upstream.faults == []

    run(body)


def test_who_does_not_read_is_not_remembered_for() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        async with bridged.hearing(listening(toolsListChanged=True), MODERN) as following:
            await following()
            stream = await streams(upstream, 1)
            for _ in range(600):
                stream.event(changed("tools/list_changed"))
            heard = [await following() for _ in range(256)]
            assert {message["method"] for message in heard} == {"notifications/tools/list_changed"}
            assert (await following())["id"] == "sub"
            assert await following() is None

    run(body)


def test_a_subscription_between_two_of_2026_is_the_server_s_own() -> None:
    async def body() -> None:
        upstream = ModernUpstream()
        bridged = Bridged(upstream)
        async with bridged.hearing(listening(), MODERN, endless=True) as following:
            ack = await following()
            assert ack["params"]["_meta"] == {SUBSCRIPTION: "sub"}
            stream = await streams(upstream, 1)
            meta = {SUBSCRIPTION: stream.message["id"]}
            stream.event(changed("tools/list_changed", _meta=meta))
            assert (await following())["params"]["_meta"] == {SUBSCRIPTION: "sub"}

    run(body)


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(404, -32600, "no session"),
        Refusal(400, -32000, "Bad Request: No valid session ID provided"),
    ],
)
def test_a_resource_is_subscribed_to_in_a_new_session_if_the_server_lost_ours(
    refusal: Refusal,
) -> None:
    async def body() -> None:
        upstream = LegacyUpstream("2025-06-18")
        upstream.lost = refusal
        bridged = Bridged(upstream)
        for uri in ("test://a", "test://b"):
            upstream.open.clear()
            said = await bridged.say(
                ask("resources/subscribe", uri=uri), LEGACY[0], session="bridged.a"
            )
            assert said.result == {}
        # What was subscribed to before is so again, and the client asks for nothing twice.
        held = [each[1] for each in upstream.log if each[0] == "resources/subscribe"]
        assert held == ["test://a", "test://a", "test://b"]
        upstream.open.clear()
        async with bridged.hearing(
            listening(resourceSubscriptions=["test://c"]), MODERN
        ) as following:
            wish = (await following())["params"]["notifications"]
            assert wish["resourceSubscriptions"] == ["test://c"]
            stream = await streams(upstream, 3)
            stream.event(changed("resources/updated", uri="test://c"))
            assert (await following())["params"]["uri"] == "test://c"

    run(body)


def test_a_resource_that_talks_like_a_lost_session_costs_no_session() -> None:
    class Misleading(LegacyUpstream):
        async def answer(self, asked: Got, message: Any) -> object:
            if message.get("method") == "resources/subscribe":
                raise self.lost
            return await super().answer(asked, message)

    async def body() -> None:
        upstream = Misleading()
        bridged = Bridged(upstream)
        said = await bridged.say(ask("resources/subscribe", uri="test://a"), LEGACY[0])
        assert said.error["code"] == -32600
        assert upstream.methods().count("initialize") == 1

    run(body)


def test_a_legacy_client_s_stream_hears_the_log_of_its_own_session_from_its_level_on() -> None:
    async def body() -> None:
        upstream = LegacyUpstream("2025-06-18")
        bridged = Bridged(upstream)
        heard: list[Any] = []
        for level in (None, "error"):
            if level is not None:
                said = await bridged.say(ask("logging/setLevel", level=level), LEGACY[0])
                assert said.result == {}
            with bridged.carrier.listening(VERA, None, Revision(LEGACY[0])) as exchange:
                await exchange.head()
                following, stream = reader(exchange), await streams(upstream, 1)
                stream.event(changed("message", level="info", data="a"))
                stream.event(changed("message", level="error", data="b"))
                stream.event(changed("tools/list_changed"))
                while (message := await following()) != changed("tools/list_changed"):
                    heard.append(message["params"]["data"])
        assert heard == ["a", "b", "b"]

    run(body)
