"""Is a client that subscribes answered only once the server that is there tells of the resource?"""

from typing import Any

import pytest

from tests.app.bridged import ADAM, VERA, Bridged, reader
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import LegacyUpstream, Refusal
from tests.app.mcp_world import ask
from tests.app.piped import FakeProcess, Piped, polite
from tests.app.test_tool_bridge_streams import changed, listening, streams
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Request
from tidegate.mcp.eras import LEGACY, MODERN, Revision

SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"


async def tells(bridged: Bridged, method: str, uri: str = "test://a", session: str = "1") -> Any:
    said = await bridged.say(ask(method, uri=uri), LEGACY[0], session=f"bridged.{session}")
    return said.values[-1].get("result", said.values[-1].get("error"))


class Restarted(LegacyUpstream):
    """Knows what was subscribed to in its life; without sessions nothing tells that it is new."""

    def __init__(self, *, sessions: bool) -> None:
        super().__init__(sessions=sessions)
        self.held: list[str] = []

    def restart(self) -> None:
        self.held = []
        if self.sessions:
            self.open.clear()

    async def answer(self, asked: Any, message: Any) -> object:
        result = await super().answer(asked, message)
        if message.get("method") == SUBSCRIBE:
            self.held.append(message["params"]["uri"])
        if message.get("method") == UNSUBSCRIBE:
            self.held.remove(message["params"]["uri"])
        return result

    async def other(self, asked: Any) -> None:
        """No stream, which would tell that the session is lost."""
        asked.whole(b"", 405)


@pytest.mark.parametrize("sessions", [True, False])
def test_a_subscription_that_is_repeated_is_made_with_a_server_that_was_started_anew(
    sessions: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    async def body() -> None:
        upstream = Restarted(sessions=sessions)
        bridged = Bridged(upstream)
        for uri in ("test://a", "test://b"):
            assert await tells(bridged, SUBSCRIBE, uri) == {}
        upstream.restart()
        assert await tells(bridged, SUBSCRIBE) == {}
        # With a session all of them are known to be gone.
        assert upstream.held == ["test://a", *(["test://b"] if sessions else [])]
        upstream.restart()
        assert await tells(bridged, SUBSCRIBE, session="2") == {}
        assert upstream.held == ["test://a"]
        upstream.restart()
        wish = listening(resourceSubscriptions=["test://a"])
        async with bridged.hearing(wish, MODERN) as following:
            told = (await following())["params"]["notifications"]
            assert told == {"resourceSubscriptions": ["test://a"]}
            assert upstream.held == ["test://a"]
        await bridged.carrier.close()

    run(body)


def test_one_client_that_subscribes_twice_has_one_subscription() -> None:
    async def body() -> None:
        upstream = LegacyUpstream()
        bridged = Bridged(upstream)
        for _ in range(3):
            assert await tells(bridged, SUBSCRIBE) == {}
        await tells(bridged, UNSUBSCRIBE)
        assert upstream.log == [(SUBSCRIBE, "test://a")] * 3 + [(UNSUBSCRIBE, "test://a")]
        await bridged.carrier.close()

    run(body)


def test_what_the_server_gives_no_more_the_client_has_no_more() -> None:
    async def body() -> None:
        class Fickle(LegacyUpstream):
            gives = True

            async def answer(self, asked: Any, message: Any) -> object:
                if message.get("method") == SUBSCRIBE and not self.gives:
                    raise Refusal(200, -32002, "Resource not found")
                return await super().answer(asked, message)

        upstream = Fickle()
        bridged = Bridged(upstream)
        assert await tells(bridged, SUBSCRIBE) == {}
        upstream.gives = False
        assert (await tells(bridged, SUBSCRIBE))["code"] == -32002
        with bridged.carrier.listening(VERA, "bridged.1", Revision(LEGACY[0])) as exchange:
            await exchange.head()
            following, stream = reader(exchange), await streams(upstream, 1)
            stream.event(changed("resources/updated", uri="test://a"))
            stream.event(changed("tools/list_changed"))
            assert (await following())["method"] == "notifications/tools/list_changed"
        await bridged.carrier.close()

    run(body)


def test_a_new_process_is_subscribed_to_before_anybody_is_told_so() -> None:
    silent: list[int] = []

    async def server(process: FakeProcess, request: Request) -> Any:
        if request.method == SUBSCRIBE and process.generation in silent:
            silent.remove(process.generation)
            return None
        return await polite(process, request)

    async def body() -> None:
        piped = Piped(server)
        for owner in (VERA, ADAM):
            message = ask(SUBSCRIBE, uri="test://a")
            said = await piped.say(message, LEGACY[0], session=f"bridged.{owner[2]}", owner=owner)
            assert said.result == {}
        piped.process.crash()
        piped.process.told.clear()
        silent.append(3)
        # It does not answer the first time: nothing is settled by that.
        with pytest.raises(ServerFailed, match="timeout"):
            await tells(piped, SUBSCRIBE, session="vera")
        assert piped.process.told == []
        for session in ("vera", "adam"):
            assert await tells(piped, SUBSCRIBE, session=session) == {}
        assert piped.process.told == [SUBSCRIBE, SUBSCRIBE]
        await tells(piped, UNSUBSCRIBE, session="vera")
        await tells(piped, UNSUBSCRIBE, session="adam")
        assert piped.process.told == [SUBSCRIBE, SUBSCRIBE, UNSUBSCRIBE]
        await piped.carrier.close()

    run_in_no_time(body)


def test_a_process_that_ends_while_it_is_asked_is_asked_again_in_its_next_life() -> None:
    async def body() -> None:
        piped = Piped(polite)
        assert await tells(piped, SUBSCRIBE) == {}
        resources = piped.carrier._bridge.changes.resources
        asks = resources.server.ask

        async def too_late(*asked: Any, **more: Any) -> Any:
            resources.server.ask = asks  # type: ignore[method-assign]
            piped.process.crash()
            return await asks(*asked, **more)

        resources.server.ask = too_late  # type: ignore[method-assign]
        assert await tells(piped, SUBSCRIBE, "test://b") == {}
        last = [method for life, method in piped.process.heard if life == 3]
        assert last.count(SUBSCRIBE) == 2
        await piped.carrier.close()

    run(body)


def test_whoever_listens_to_a_process_that_ends_hears_of_it_and_subscribes_anew() -> None:
    async def body() -> None:
        piped = Piped(polite)
        assert await tells(piped, SUBSCRIBE) == {}
        wish = listening(resourceSubscriptions=["test://b"])
        async with piped.hearing(wish, MODERN) as following:
            assert "method" in await following()
            with piped.carrier.listening(VERA, "bridged.1", Revision(LEGACY[0])) as exchange:
                await exchange.head()
                piped.process.crash()
                assert (await following())["id"] == "sub"
                assert await reader(exchange)() is None
        piped.process.told.clear()
        with piped.carrier.listening(VERA, "bridged.1", Revision(LEGACY[0])) as exchange:
            await exchange.head()
            assert piped.process.told == [SUBSCRIBE]
            piped.process.say("notifications/resources/updated", uri="test://a")
            assert (await reader(exchange)())["params"] == {"uri": "test://a"}
        await piped.carrier.close()

    run(body)


def test_what_could_not_be_asked_is_not_asked_for_behind_the_client_s_back() -> None:
    async def server(process: FakeProcess, request: Request) -> Any:
        params: Any = request.params or {}
        if request.method == SUBSCRIBE and params["uri"] == "test://a":
            return None
        return await polite(process, request)

    async def body() -> None:
        piped = Piped(server)
        with pytest.raises(ServerFailed, match="timeout"):
            await tells(piped, SUBSCRIBE)
        assert await tells(piped, SUBSCRIBE, "test://b") == {}
        assert piped.process.told == [SUBSCRIBE]
        await piped.carrier.close()

    run_in_no_time(body)
