"""Is a server over stdio spoken to in its own era, by everybody in the one session that it has?"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import pytest

from tests.app.bridged import ADAM, CLIENTS, VERA, Bridged, reader
from tests.app.mcp_answers import run, run_in_no_time
from tests.app.mcp_upstreams import CAPABILITIES, DISCOVERED, PREFIX, RESULTS
from tests.app.mcp_world import ask, call
from tests.app.virtual import clock_here
from tidegate import strictjson
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge import BridgedCarrier
from tidegate.gateway.servers.carrier import Asked, Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Notification, Request, Tree
from tidegate.mcp.answers import Incoming
from tidegate.mcp.eras import LEGACY, MODERN, Revision

Server = Callable[["FakeProcess", Request], Awaitable[Any]]


class FakeProcess:
    """The carrier of a process that runs `server` for every request; None is silence."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.generation = 0
        self.running = False
        self.listener: Callable[[Tree], None] | None = None
        self.heard: list[tuple[int, str]] = []
        self.told: list[str] = []

    def exchange(self, asked: Asked) -> Exchange:
        return FakeExchange(self, asked)

    def cast(self, asked: Asked) -> None:
        raise AssertionError("a process is told by its own carrier")

    def ending(self, session: str, version: str | None) -> Exchange:
        raise AssertionError("a process has no session to end")

    def listening(self, *args: Any) -> Exchange:
        raise AssertionError("a process has no stream of its own")

    def crash(self) -> None:
        self.running, self.generation = False, self.generation + 1

    def say(self, method: str, **params: object) -> None:
        assert self.listener is not None
        self.listener({"jsonrpc": "2.0", "method": method, "params": params})


class FakeExchange:
    is_stream = True

    def __init__(self, process: FakeProcess, asked: Asked) -> None:
        self.process, self.asked = process, asked
        self.done = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    async def head(self) -> tuple[int, Mapping[str, str]]:
        process, message = self.process, self.asked.message
        if self.asked.session not in (None, str(process.generation)):
            raise ServerFailed("session_ended")
        if not process.running:
            process.running, process.generation = True, process.generation + 1
        assert isinstance(message, Request | Notification)
        process.heard.append((process.generation, message.method))
        return (200 if isinstance(message, Request) else 202), {}

    async def read(self) -> list[Incoming] | None:
        if self.done or not isinstance(self.asked.message, Request):
            return None
        self.done = True
        message = self.asked.message
        answer = await self.process.server(self.process, message)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, ServerFailed):
            self.process.crash()
            raise answer
        whole = {"jsonrpc": "2.0", "id": message.id, **answer}
        return [Incoming(whole, strictjson.dumps(whole))]

    def let_end(self) -> None:
        pass


async def legacy(process: FakeProcess, request: Request) -> Any:
    if any(key.startswith(PREFIX) for key in (request.params or {}).get("_meta") or {}):  # type: ignore[union-attr]
        process.told.append("an envelope")
    if request.method == "initialize":
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "serverInfo": info}
        return {"result": result}
    if request.method == "tools/call":
        process.told.append(str((request.params or {})["name"]))
        return {"result": {"content": []}}
    if request.method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        process.told.append(request.method)
        return {"result": {}}
    return {"result": RESULTS[request.method]}


async def polite(process: FakeProcess, request: Request) -> Any:
    if request.method == "server/discover":
        return {"error": {"code": -32601, "message": "Method not found"}}
    return await legacy(process, request)


async def silent(process: FakeProcess, request: Request) -> Any:
    return None if request.method == "server/discover" else await legacy(process, request)


async def touchy(process: FakeProcess, request: Request) -> Any:
    if request.method == "server/discover":
        return ServerFailed("crashed")
    return await legacy(process, request)


async def modern(process: FakeProcess, request: Request) -> Any:
    meta: Any = (request.params or {}).get("_meta") or {}
    if meta.get(f"{PREFIX}protocolVersion") != MODERN:
        named = {"supported": [MODERN], "requested": "x"}
        return {"error": {"code": -32022, "message": "Unsupported version", "data": named}}
    if request.method == "server/discover":
        return {"result": {**DISCOVERED, "resultType": "complete"}}
    if request.method == "tools/call":
        process.told.append(str((request.params or {})["name"]))
        return {"result": {"content": [], "resultType": "complete"}}
    return {"result": {**RESULTS[request.method], "resultType": "complete"}}


def slow(server: Server, seconds: float) -> Server:
    """`server`, which begins to answer after this time."""
    begun = asyncio.Event()

    async def starting(process: FakeProcess, request: Request) -> Any:
        if not begun.is_set():
            await pause(seconds)
            begun.set()
        return await server(process, request)

    return starting


class Piped(Bridged):
    """A bridged process."""

    def __init__(self, server: Server) -> None:
        self.process = FakeProcess(server)
        self.carrier = BridgedCarrier(
            self.process, name="backend", clock=clock_here(), terminates=False, stdio=True
        )


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", [polite, silent, touchy, modern])
def test_every_client_is_served_by_every_kind_of_process(server: Server, client: Any) -> None:
    async def body() -> None:
        piped = Piped(server)
        for owner in (VERA, ADAM):
            said = await piped.say(ask("tools/list"), client, owner=owner)
            assert ("resultType" in said.result) == (client == MODERN)
            assert (await piped.say(call("echo"), client, owner=owner)).result["content"] == []
        assert piped.process.told == ["echo", "echo"]
        methods = [method for _, method in piped.process.heard]
        assert methods.count("server/discover") == 1
        assert methods.count("initialize") == (0 if server is modern else 1)
        await piped.carrier.close()

    run_in_no_time(body)


@pytest.mark.parametrize("server", [polite, silent, touchy])
def test_a_process_that_was_started_again_is_greeted_again_and_no_call_runs_twice(
    server: Server,
) -> None:
    async def body() -> None:
        piped = Piped(server)
        await piped.say(call("echo"), MODERN)
        piped.process.crash()
        assert (await piped.say(call("echo"), LEGACY[0])).result["content"] == []
        assert piped.process.told == ["echo", "echo"]
        last = piped.process.generation
        methods = [method for life, method in piped.process.heard if life == last]
        assert methods == ["initialize", "notifications/initialized", "tools/call"]

    run_in_no_time(body)


@pytest.mark.parametrize("server", [polite, silent, modern])
@pytest.mark.parametrize("seconds", [1.0, 2.9, 4.0, 12.0])
def test_a_process_may_take_its_time_to_begin(server: Server, seconds: float) -> None:
    async def body() -> None:
        piped = Piped(slow(server, seconds))
        for client in (MODERN, LEGACY[0]):
            assert (await piped.say(call("echo"), client)).result["content"] == []
        assert piped.process.told == ["echo", "echo"]

    run_in_no_time(body)


def test_a_process_that_speaks_nothing_is_asked_again_next_time() -> None:
    async def refusing(process: FakeProcess, request: Request) -> Any:
        del process
        return {"error": {"code": -32603, "message": f"no {request.method}"}}

    async def body() -> None:
        piped = Piped(refusing)
        with pytest.raises(ServerFailed):
            await piped.say(call("echo"), MODERN)
        piped.process.server = modern
        assert (await piped.say(call("echo"), MODERN)).result["content"] == []

    run(body)


def test_a_process_that_ends_between_two_messages_runs_nothing_for_a_session_that_is_gone() -> None:
    async def body() -> None:
        piped = Piped(polite)
        await piped.say(call("echo"), MODERN)
        line = await piped.carrier._bridge.server.line(VERA)
        piped.process.crash()
        assert line.session != str(piped.process.generation)
        assert (await piped.say(call("echo"), MODERN)).result["content"] == []
        assert line.dropped

    run(body)


def test_a_process_that_fails_while_it_works_is_not_asked_again() -> None:
    async def failing(process: FakeProcess, request: Request) -> Any:
        if request.method == "tools/call":
            process.told.append("ran")
            return ServerFailed("crashed")
        return await polite(process, request)

    async def body() -> None:
        piped = Piped(failing)
        with pytest.raises(ServerFailed):
            await piped.say(call("echo"), MODERN)
        assert piped.process.told == ["ran"]

    run(body)


def test_what_a_process_says_aside_reaches_who_listens() -> None:
    async def body() -> None:
        piped, changed = Piped(polite), []
        piped.carrier.tell_of_tools(lambda _announced: changed.append(1))
        wish = {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]}
        listening = ask("subscriptions/listen", id="sub", notifications=wish)
        async with piped.hearing(listening, MODERN) as following:
            assert (await following())["params"]["notifications"] == wish
            with piped.carrier.listening(ADAM, None, Revision(LEGACY[0])) as exchange:
                await exchange.head()
                piped.process.say("notifications/tools/list_changed")
                piped.process.say("notifications/resources/updated", uri="test://a")
                piped.process.say("notifications/message", level="error", data="of somebody's call")
                assert (await following())["method"] == "notifications/tools/list_changed"
                assert (await following())["params"]["uri"] == "test://a"
                assert (await reader(exchange)())["method"] == "notifications/tools/list_changed"
        assert changed == [1]
        assert piped.process.told[0] == "resources/subscribe"

    run(body)


def test_a_session_of_one_process_is_no_owner_s() -> None:
    async def body() -> None:
        piped = Piped(polite)
        await asyncio.gather(piped.say(call("a"), MODERN), piped.say(call("b"), MODERN, owner=ADAM))
        assert (await piped.carrier._bridge.server.line(ADAM)).owner == ("", "", "", "")

    run(body)
