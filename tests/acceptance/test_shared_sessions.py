"""Do legacy MCP sessions live on in other workers, after a restart and on other gateways?"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitResult
from pydantic import BaseModel

from tests.acceptance.crews import kill, pid, replaced
from tests.acceptance.processes import HOST, WAIT_S, Running, serving
from tests.acceptance.worlds import ADMIN_KEY, KEY, configuration, write
from tests.redis_server import redis_server
from tests.wire.one_era import only as one_era
from tidegate.demo.listener import bind, listening

pytestmark = pytest.mark.full

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
def only(gateway: Running, worker: int, workers: int = 2) -> Iterator[None]:
    """The others stand still: whoever connects comes to this worker."""
    others = [pid(gateway, other) for other in range(1, workers + 1) if other != worker]
    for other in others:
        os.kill(other, signal.SIGSTOP)
    try:
        yield
    finally:
        for other in others:
            os.kill(other, signal.SIGCONT)


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


def test_an_official_client_on_fresh_connections_is_served_by_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        limits = httpx2.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            upstream() as (server, url),
            serving_two(tmp_path, url) as gateway,
            httpx2.AsyncClient(headers=headers, limits=limits) as http,
            Client(
                streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                mode="legacy",
            ) as client,
        ):
            assert client.protocol_version == VERSION
            for worker in (1, 2, 1, 2):
                with only(gateway, worker):
                    tools = (await client.list_tools()).tools
                    assert [tool.name for tool in tools] == ["get_status", "order"]
                    result = await client.call_tool("get_status", {"service": "billing"})
                    assert result.structured_content == {"result": "billing is up"}
            for _ in range(10):
                assert (await client.list_tools()).tools
        assert server.ran == ["billing"] * 4

    run(body)


@asynccontextmanager
async def serving_two(folder: Path, url: str, **parts: Any) -> AsyncIterator[Running]:
    write(folder, tree(url, workers=2, **parts))
    async with serving(folder) as gateway:
        yield gateway


def test_the_answer_to_a_question_comes_in_through_another_worker(tmp_path: Path) -> None:
    async def body() -> None:
        limits = httpx2.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {KEY}"}
        with ExitStack() as standing:

            async def answer(context: Any, params: Any) -> ElicitResult:
                """The worker that showed the question stands still until the server has heard."""
                standing.enter_context(only(gateway, 2))
                return ElicitResult(action="accept", content={"count": 3})

            async with (
                upstream() as (server, url),
                serving_two(tmp_path, url) as gateway,
                httpx2.AsyncClient(headers=headers, limits=limits) as http,
                Client(
                    streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                    mode="legacy",
                    elicitation_callback=answer,
                ) as client,
            ):
                with only(gateway, 1):
                    calling = asyncio.ensure_future(client.call_tool("order", {}))
                    await server.asking.wait()
                await server.heard.wait()
                standing.close()
                result = await calling
                assert result.structured_content == {"result": "3 ordered"}

    run(body)


def test_a_session_is_of_one_principal_and_ends_once_in_all_workers(tmp_path: Path) -> None:
    """Case 28 of the adversarial ones: agentic-community/mcp-gateway-registry #1357."""

    async def body() -> None:
        async with (
            upstream() as (server, url),
            serving_two(tmp_path, url) as gateway,
            Caller() as alice,
            Caller(ADMIN_KEY) as bob,
        ):
            with only(gateway, 1):
                await alice.begin(gateway)
            bob.session = alice.session
            for worker in (2, 1):
                with only(gateway, worker):
                    assert await bob.status(gateway) == 404
                    assert await bob.hear(gateway) == 404
                    assert await bob.end(gateway) == 404
                    assert await alice.status(gateway) == 200
            with only(gateway, 1):
                assert await alice.end(gateway) == 200
                await refused(alice, gateway, server)
            with only(gateway, 2):
                await refused(alice, gateway, server)

    run(body)


def test_a_worker_that_is_killed_takes_no_session_with_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with (
            upstream() as (_, url),
            serving_two(tmp_path, url) as gateway,
            Caller() as alice,
        ):
            with only(gateway, 1):
                await alice.begin(gateway)
                assert await alice.status(gateway) == 200
            kill(gateway, 1)
            assert await alice.status(gateway) == 200
            await replaced(gateway)
            for worker in (1, 2):
                with only(gateway, worker):
                    assert await alice.status(gateway) == 200

    run(body)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_survives_a_restart_of_the_gateway(tmp_path: Path, workers: int) -> None:
    async def body() -> None:
        async with upstream() as (_, url), Caller() as alice, Caller(ADMIN_KEY) as bob:
            write(tmp_path, tree(url, workers=workers))
            async with serving(tmp_path) as gateway:
                await alice.begin(gateway)
                await bob.begin(gateway)
                assert await bob.end(gateway) == 200
            async with serving(tmp_path) as gateway:
                assert await alice.status(gateway) == 200
                assert await bob.status(gateway) == 404
                bob.session = alice.session
                assert await bob.status(gateway) == 404
                assert await alice.end(gateway) == 200
            written = b"".join(
                path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("ledger")
            )
            assert b"shelf_documents" in written
            assert alice.session.encode() not in written

    run(body)


def test_a_session_of_several_servers_is_known_to_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (_, one), upstream() as (_, two):
            servers = {"one": {"url": f"{one}/mcp"}, "two": {"url": f"{two}/mcp"}}
            rules = [{"allow": {"roles": ["tenant"]}}]
            mcp = {"hide_denied": "off", "servers": servers, "rules": rules}
            async with serving_two(tmp_path, one, mcp=mcp) as gateway, Caller() as alice:
                with only(gateway, 1):
                    await alice.begin(gateway)
                for worker in (2, 1):
                    with only(gateway, worker):
                        answer = await alice.ask(gateway, "tools/list")
                        assert "one__get_status" in answer.text, answer.text
                        assert "two__get_status" in answer.text
                with only(gateway, 2):
                    assert await alice.end(gateway) == 200
                with only(gateway, 1):
                    async with asyncio.timeout(WAIT_S):
                        while (await alice.ask(gateway, "tools/list")).status_code != 404:
                            pass

    run(body)


def test_a_client_of_a_server_of_another_era_is_served_by_every_worker(tmp_path: Path) -> None:
    async def body() -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with (
            upstream("modern") as (server, url),
            serving_two(tmp_path, url) as gateway,
            httpx2.AsyncClient(headers=headers, limits=limits) as http,
            Client(
                streamable_http_client(f"http://{HOST}:{gateway.port}/mcp", http_client=http),
                mode="legacy",
            ) as client,
        ):
            for worker in (1, 2, 1, 2):
                with only(gateway, worker):
                    result = await client.call_tool("get_status", {"service": "billing"})
                    assert result.structured_content == {"result": "billing is up"}
        assert server.ran == ["billing"] * 4

    run(body)


def test_gateways_on_one_redis_share_sessions_and_outlive_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with upstream() as (server, url), AsyncExitStack() as stack:
            redis = stack.enter_context(redis_server(tmp_path))
            gateways = []
            for number in range(2):
                folder = tmp_path / f"gateway{number}"
                folder.mkdir()
                write(folder, tree(url, store={"url": redis.url, "deadline_s": 10.0}))
                gateways.append(await stack.enter_async_context(serving(folder)))
            one, other = gateways
            alice, late = Caller(), Caller()
            for caller in (alice, late):
                await stack.enter_async_context(caller)
            await alice.begin(one)
            await late.begin(one)
            assert [await alice.status(each) for each in gateways] == [200, 200]
            redis.kill()
            await other.event("session_store_failed")
            await one.event("session_store_failed")
            assert [await alice.status(each) for each in gateways] == [200, 200]
            assert await late.status(other) == 503  # it never saw that one
            told = await Caller().ask(one, "initialize", protocolVersion=VERSION)
            assert (told.status_code, told.json()["id"]) == (503, 7)
            redis.start()
            for each in gateways:
                await each.event("session_store_serves_again")
            assert await late.status(other) == 200
            assert await alice.end(other) == 200
            for each in gateways:
                await refused(alice, each, server)

    run(body)
