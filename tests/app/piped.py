"""What does a test of servers on stdio need that runs no process?"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from tests.app.bridged import Bridged
from tests.app.mcp_upstreams import CAPABILITIES, DISCOVERED, PREFIX, RESULTS
from tests.app.virtual import clock_here
from tidegate import strictjson
from tidegate.gateway.servers.bridge import BridgedCarrier
from tidegate.gateway.servers.carrier import Asked, Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Notification, Request, Tree
from tidegate.mcp.answers import Incoming
from tidegate.mcp.eras import MODERN

Server = Callable[["FakeProcess", Request], Awaitable[Any]]


class FakeProcess:
    """The carrier of a process that runs `server` for every request; None is silence."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.generation = 0
        self.running = False
        self.listener: Callable[[Tree], None] | None = None
        self.over: Callable[[], None] | None = None
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
        if self.over is not None:
            self.over()

    def say(self, method: str, **params: object) -> None:
        assert self.listener is not None
        self.listener({"jsonrpc": "2.0", "method": method, "params": params})


class FakeExchange:
    """One message to it; the life that it is meant for is looked at, as the real one does."""

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
        if self.asked.life not in (None, process.generation):
            raise ServerFailed("restarted")
        if self.asked.session not in (None, str(process.generation)):
            raise ServerFailed("session_ended")
        if not process.running:
            process.running, process.generation = True, process.generation + 1
        assert isinstance(message, Request | Notification)
        process.heard.append((process.generation, message.method))
        session = {"mcp-session-id": str(process.generation)}
        return (200, session) if isinstance(message, Request) else (202, {})

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


class Piped(Bridged):
    """A bridged process."""

    def __init__(self, server: Server) -> None:
        self.process = FakeProcess(server)
        self.carrier = BridgedCarrier(
            self.process, name="backend", clock=clock_here(), terminates=False, stdio=True
        )
