"""A server with sessions, a client by hand, and workers one at a time."""

import asyncio
import fcntl
import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from tests.acceptance.crews import pid
from tests.acceptance.processes import HOST, WAIT_S, Running, serving
from tests.acceptance.worlds import KEY, configuration, write
from tests.wire.one_era import only as one_era
from tidegate.demo.listener import bind, listening

VERSION = "2025-11-25"
SQLITE = {"url": "sqlite:///ledger.db", "wait_s": 30.0}


class Wanted(BaseModel):
    count: int


class Server:
    """A server of the official SDK with sessions of its own.

    `ran` are the tools it ran, `asked` is how many requests it got.
    """

    def __init__(self, era: str = "") -> None:
        self.ran: list[str] = []
        self.asked = 0
        self.asking, self.heard = asyncio.Event(), asyncio.Event()
        server = MCPServer("sdk")

        @server.tool()
        async def get_status(service: str) -> str:
            self.ran.append(service)
            return f"{service} is up"

        @server.tool()
        async def order(context: Context) -> str:
            """Asks the client how many it wants."""
            self.asking.set()
            said = await context.elicit("How many?", Wanted)
            self.heard.set()
            assert isinstance(said, AcceptedElicitation)
            return f"{said.data.count} ordered"

        self.sdk = server.streamable_http_app()
        self._app: Any = one_era(self.sdk, era) if era else self.sdk

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        self.asked += 1
        await self._app(scope, receive, send)


@asynccontextmanager
async def upstream(era: str = "") -> AsyncIterator[tuple[Server, str]]:
    """A server, of both eras or one, and its address."""
    server = Server(era)
    async with (
        server.sdk.router.lifespan_context(server.sdk),
        listening(server, bind(0)) as port,
    ):
        yield server, f"http://{HOST}:{port}"


def tree(url: str, *, workers: int = 1, **parts: Any) -> dict[str, Any]:
    server = {"port": 0, "admin": {"port": 0}, "workers": workers, "drain_s": 2.0}
    return configuration(url, server=server, **({"store": SQLITE} | parts))


class Caller:
    """A client by hand: every request on a connection of its own, to any gateway."""

    def __init__(self, key: str = KEY) -> None:
        limits = httpx2.Limits(max_keepalive_connections=0)
        headers = {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._http = httpx2.AsyncClient(headers=headers, limits=limits, timeout=WAIT_S)
        self.session = ""

    async def __aenter__(self) -> "Caller":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, gateway: Running, method: str, **params: Any) -> httpx2.Response:
        """One message; a notification if its name says so."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            message["id"] = 7
        return await self._send(gateway, "POST", json.dumps(message))

    async def begin(self, gateway: Running) -> None:
        """A session."""
        client = {"name": "by-hand", "version": "1"}
        answer = await self.ask(
            gateway, "initialize", protocolVersion=VERSION, capabilities={}, clientInfo=client
        )
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        told = await self.ask(gateway, "notifications/initialized")
        assert told.status_code == 202

    async def status(self, gateway: Running) -> int:
        """Of a tool call in the session."""
        call = {"name": "get_status", "arguments": {"service": "billing"}}
        answer = await self.ask(gateway, "tools/call", **call)
        assert ("billing is up" in answer.text) is (answer.status_code == 200), answer.text
        return answer.status_code

    async def end(self, gateway: Running) -> int:
        """The status of a DELETE."""
        return (await self._send(gateway, "DELETE", "")).status_code

    async def hear(self, gateway: Running) -> int:
        """The status of a GET that is refused."""
        return (await self._send(gateway, "GET", "")).status_code

    async def _send(self, gateway: Running, method: str, body: str) -> httpx2.Response:
        named = {"mcp-session-id": self.session} if self.session else {}
        url = f"http://{HOST}:{gateway.port}/mcp"
        return await self._http.request(method, url, content=body, headers=named)


@contextmanager
def only(folder: Path, gateway: Running, worker: int) -> Iterator[None]:
    """The other worker stands still: whoever connects comes to this one."""
    other = pid(gateway, 3 - worker)
    os.kill(other, signal.SIGSTOP)
    while not _are_free(folder):
        # It had its turn on a file just then, and everybody would wait for it.
        os.kill(other, signal.SIGCONT)
        os.kill(other, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(other, signal.SIGCONT)


def _are_free(folder: Path) -> bool:
    try:
        for name in ("ledger.db", "records.db"):
            with closing(sqlite3.connect(folder / name, timeout=1.0)) as database:
                database.execute("BEGIN IMMEDIATE")
        with open(folder / "ledger.db.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (sqlite3.OperationalError, BlockingIOError):
        return False
    return True


async def refused(caller: "Caller", gateway: Running, server: Server) -> None:
    """Wait until the session is refused without a word to its server."""
    asked = -1
    async with asyncio.timeout(WAIT_S):
        while asked != server.asked:
            asked = server.asked
            assert await caller.status(gateway) == 404


def run(body: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(6 * WAIT_S):
            await body()

    asyncio.run(bounded())


@asynccontextmanager
async def serving_two(folder: Path, url: str, **parts: Any) -> AsyncIterator[Running]:
    write(folder, tree(url, workers=2, **parts))
    async with serving(folder) as gateway:
        yield gateway
