"""Do official clients hear their server through the gateway, and come back for what they missed?

The server is one of the official SDK with a store of events, which all its sessions share.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore

from tests.app.mcp_answers import BOTH
from tests.app.mcp_world import TOKENS, World, ask, call
from tests.conformance.harness import NODE, PLACE
from tests.wire.gateways import VIEWER, config_text, serving
from tests.wire.stdio_servers import until
from tests.wire.test_tool_traffic_clients import gateway
from tidegate import sse
from tidegate.demo.listener import bind, listening
from tidegate.testing.asgi import WAIT_S

pytestmark = pytest.mark.full

RETRY_MS = 100
SDK = PLACE / "@modelcontextprotocol" / "sdk"
SCRIPT = Path(__file__).with_name("stream_client.mjs")
MINE = "of nobody else"


class Events(EventStore):
    """Keeps everything, as the examples of the SDK do, for all sessions together."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.kept.append((stream_id, message))
        return f"{len(self.kept)}"

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        last = int(last_event_id)
        if not 0 < last <= len(self.kept):
            return None
        stream = self.kept[last - 1][0]
        for number, (of, message) in enumerate(self.kept[last:], last + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, f"{number}"))
        return stream


class Server:
    """The SDK's server; `lets_go` is set once it has closed the stream of a call."""

    def __init__(self) -> None:
        self.events = Events()
        self.go = asyncio.Event()
        self.closed = 0
        server = MCPServer("resumable")

        @server.tool()
        async def let_go(times: int, context: Context) -> str:
            await context.report_progress(1, 2)
            for _ in range(times):
                await context.close_sse_stream()
                self.closed += 1
                await asyncio.sleep(3 * RETRY_MS / 1000)  # noqa: TID251 - the client comes back
            return MINE

        @server.tool()
        async def change(context: Context) -> str:
            await context.session.send_tool_list_changed()
            return "changed"

        self.app = server.streamable_http_app(event_store=self.events, retry_interval=RETRY_MS)

    @asynccontextmanager
    async def behind(self, **settings: Any) -> AsyncIterator[tuple[World, str]]:
        """The gateway in front of it, and where that is."""
        async with self.app.router.lifespan_context(self.app), gateway(self.app, **settings) as it:
            yield it


@asynccontextmanager
async def client_of(url: str, heard: list[Any], role: str = "viewer") -> AsyncIterator[Client]:
    async def hear(message: Any) -> None:
        heard.append(message)

    headers = {"Authorization": f"Bearer {TOKENS[role]}"}
    async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http:
        transport = streamable_http_client(url, http_client=http)
        async with (
            asyncio.timeout(WAIT_S),
            Client(transport, mode="legacy", message_handler=hear) as client,
        ):
            yield client


def steps(world: World, stage: str) -> list[Any]:
    """All steps of this stage in the records so far."""
    trails = [trail.snapshot() for trail in world.records.ends]
    return [step.values for trail in trails for step in trail.steps if step.stage == stage]


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_client_comes_back_for_the_answer_that_its_server_has_let_go(times: int) -> None:
    async def body() -> None:
        server = Server()
        async with server.behind() as (world, url):
            async with client_of(url, []) as client:
                result = await client.call_tool("let_go", {"times": times})
                assert result.structured_content == {"result": MINE}
                assert server.closed == times
            await until(lambda: len(world.traffic.streams) == 0)
            assert len(steps(world, "resume")) >= (1 if times else 0)
            calls = [v for v in steps(world, "authorize") if v.get("tool") == "let_go"]
            assert len(calls) == 1

    asyncio.run(body())


def test_a_client_hears_that_the_tools_have_changed() -> None:
    async def body() -> None:
        server = Server()
        heard: list[Any] = []
        async with server.behind() as (world, url):
            async with client_of(url, heard) as client:
                await until(lambda: len(world.traffic.streams) == 1)
                while not heard:
                    await client.call_tool("change", {})
                assert {each.method for each in heard} == {"notifications/tools/list_changed"}
            await until(lambda: len(world.traffic.streams) == 0)
            # The end of the session, which the client asks for, ends the stream.
            reasons = {each["reason"] for each in steps(world, "stream")}
            assert reasons <= {"session_ended", "client_left"}

    asyncio.run(body())


def test_two_principals_hear_each_their_own_server_session() -> None:
    async def body() -> None:
        server = Server()
        mine: list[Any] = []
        theirs: list[Any] = []
        async with (
            server.behind() as (world, url),
            client_of(url, mine) as one,
            client_of(url, theirs, "second") as _,
        ):
            await until(lambda: len(world.traffic.streams) == 2)
            while not mine:
                await one.call_tool("change", {})
            assert theirs == []

    asyncio.run(body())


async def session_of(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """The headers of a new session."""
    hello = ask(
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "c", "version": "1"},
    )
    answer = await http.post(url, json=hello, headers={"accept": BOTH})
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await http.post(url, json=notice, headers={"accept": BOTH, **session})
    return session


async def first_of(http: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> tuple[int, str]:
    """The status of a GET and what comes before the server says that there is no more yet."""
    listening = {"accept": "text/event-stream", "mcp-protocol-version": "2025-11-25", **headers}
    async with http.stream("GET", url, headers=listening) as answer:
        said = ""
        async with asyncio.timeout(WAIT_S):
            async for text in answer.aiter_text():
                said += text
                if any(
                    not event.data for event in sse.Decoder(1 << 20, marks=True).feed(said.encode())
                ):
                    break
        return answer.status_code, said


@pytest.mark.parametrize("direct", [True, False])
def test_a_store_that_all_sessions_share_gives_nobody_the_messages_of_others(
    *, direct: bool
) -> None:
    """The server itself does: whoever guesses an id of an event gets what followed it."""

    async def body() -> None:
        server = Server()
        async with server.behind() as (world, url):
            where = str(world.policy.servers["backend"].place.key) if direct else url
            async with (
                httpx2.AsyncClient(headers=_bearer("viewer"), timeout=WAIT_S) as mine,
                httpx2.AsyncClient(headers=_bearer("admin"), timeout=WAIT_S) as theirs,
            ):
                session = await session_of(mine, where)
                message = call("let_go", {"times": 0})
                answer = await mine.post(where, json=message, headers={"accept": BOTH, **session})
                assert MINE in answer.text
                other = await session_of(theirs, where)
                found = []
                for number in range(1, len(server.events.kept) + 1):
                    stolen = {**other, "last-event-id": f"{number}"}
                    status, text = await first_of(theirs, where, stolen)
                    found.append(MINE in text)
                    assert direct or (status, text[:1]) == (400, "{")
                assert any(found) is direct

    asyncio.run(body())


def _bearer(role: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[role]}"}


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "heard"),
    [
        ("let_go", {"times": 0}, MINE, []),
        ("let_go", {"times": 2}, MINE, []),
        ("change", {}, "changed", ["notifications/tools/list_changed"]),
    ],
)
def test_the_client_of_the_typescript_sdk_does_the_same(
    tool: str, arguments: dict[str, Any], text: str, heard: list[str]
) -> None:
    assert NODE.exists(), "the SDK is not installed: make conformance does it"

    async def body() -> None:
        server = Server()
        async with server.behind() as (world, url):
            process = await asyncio.create_subprocess_exec(
                *(str(NODE), str(SCRIPT), str(SDK), url, TOKENS["viewer"]),
                *(tool, json.dumps(arguments)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(WAIT_S):
                    out, err = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            assert process.returncode == 0, err.decode()
            told = json.loads(out)
            assert told["result"]["content"][0]["text"] == text
            assert (told["heard"], told["errors"]) == (heard, [])
            await until(lambda: len(world.traffic.streams) == 0)
            assert server.closed == arguments.get("times", 0)

    asyncio.run(body())


def test_a_gateway_that_drains_ends_the_streams_of_its_clients_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        server = Server()
        async with server.app.router.lifespan_context(server.app), AsyncExitStack() as stack:
            port = await stack.enter_async_context(listening(server.app, bind(0)))
            text = config_text(tmp_path, mcp=f"http://127.0.0.1:{port}/mcp")
            served = await stack.enter_async_context(serving(text))
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers={"authorization": f"Bearer {VIEWER}"}, timeout=WAIT_S)
            )
            url = f"{served.url}/mcp"
            session = await session_of(http, url)
            accept = {"accept": "text/event-stream", **session}
            async with http.stream("GET", url, headers=accept) as answer:
                assert answer.status_code == 200
                served.app.let_go()
                assert await answer.aread() == b""
            late = await http.get(url, headers=accept)
            assert late.status_code == 503

    asyncio.run(body())
