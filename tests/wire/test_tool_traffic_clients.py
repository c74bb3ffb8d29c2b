"""Do official MCP clients work through the gateway's MCP path, over real sockets on both sides?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer

from tests.app.mcp_world import CREDENTIAL, TOKENS, World
from tests.ports import free_port
from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend
from tidegate.testing.asgi import WAIT_S
from tidegate.transport.aiohttp_client import AiohttpTransport

MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)


@asynccontextmanager
async def gateway(backend: Any, **settings: Any) -> AsyncIterator[tuple[World, str]]:
    """The MCP path on a port of its own, in front of `backend` on another."""
    transport = AiohttpTransport()
    await transport.open()
    try:
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(listening(backend, bind(0)))
            url = f"http://127.0.0.1:{port}/mcp"
            world = World(url=url, transport=transport, **settings)
            own = await stack.enter_async_context(listening(world, bind(0)))
            yield world, f"http://127.0.0.1:{own}/mcp"
    finally:
        await transport.close()


@asynccontextmanager
async def client_of(url: str, mode: str, role: str = "viewer") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKENS[role]}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with asyncio.timeout(WAIT_S), Client(transport, mode=mode) as client:
            yield client


@MODES
def test_a_client_lists_calls_and_is_denied_in_every_mode(mode: str, version: str) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        async with gateway(backend, hide_denied="list") as (_, url):
            async with client_of(url, mode) as client:
                assert client.protocol_version == version
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert names == ["get_status", "search_docs", "get_customer", "run_report"]
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("admin_reset_key", {})
                assert caught.value.error.code == -32001
                assert caught.value.error.data == {
                    "tool": "admin_reset_key",
                    "required_role": "admin",
                    "your_role": "viewer",
                }
                result = await client.call_tool("get_status", {"service": "billing"})
                assert result.content[0].text == "billing is up"
                assert (await client.read_resource("docs://handbook")).contents[0].text
                assert (await client.list_prompts()).prompts[0].name == "greet"
            async with client_of(url, mode, "admin") as client:
                await client.call_tool("admin_reset_key", {})
        assert backend.log == ["get_status", "admin_reset_key"]

    asyncio.run(body())


@MODES
def test_progress_comes_through_live(mode: str, version: str) -> None:
    async def body() -> None:
        seen: list[float] = []
        first = asyncio.Event()

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            del total, message
            seen.append(done)
            first.set()

        async def pace(step: int) -> None:
            # The second step waits until the client has seen the first.
            if step > 1:
                await first.wait()

        async with (
            gateway(McpBackend(token=CREDENTIAL, pace=pace)) as (_, url),
            client_of(url, mode) as client,
        ):
            result = await client.call_tool("run_report", {}, progress_callback=on_progress)
        assert result.content[0].text == "the report is done"
        assert seen == [1.0, 2.0, 3.0]

    asyncio.run(body())


def sdk_server() -> Any:
    """A server of the official SDK: event streams, sessions and its own unknown-tool answer."""
    server = MCPServer("sdk")

    @server.tool()
    async def get_status(service: str, context: Context) -> str:
        await context.report_progress(1, 2)
        return f"{service} is up"

    @server.tool()
    def admin_reset_key() -> str:
        raise AssertionError

    return server.streamable_http_app()


@MODES
def test_a_server_of_the_sdk_works_behind_the_gateway(mode: str, version: str) -> None:
    async def body() -> None:
        app = sdk_server()
        async with (
            app.router.lifespan_context(app),
            gateway(app, hide_denied="full") as (world, url),
            client_of(url, mode) as client,
        ):
            assert client.protocol_version == version
            assert [tool.name for tool in (await client.list_tools()).tools] == ["get_status"]
            result = await client.call_tool("get_status", {"service": "billing"})
            assert result.structured_content == {"result": "billing is up"}
            errors = []
            for name in ("admin_reset_key", "no_such_tool"):
                with pytest.raises(MCPError) as caught:
                    await client.call_tool(name, {})
                errors.append(caught.value.error)
            assert errors[0] == errors[1]
            assert (errors[0].code, errors[0].message) == (-32601, "Unknown tool")
        assert len(world.traffic.relay.sessions) == 0

    asyncio.run(body())


@MODES
def test_sockets_to_the_server_are_used_again(mode: str, version: str) -> None:
    async def body() -> None:
        async with (
            gateway(McpBackend(token=CREDENTIAL)) as (world, url),
            client_of(url, mode) as client,
        ):
            for _ in range(5):
                await client.call_tool("get_status", {"service": "x"})
            assert world.transport.open_connections == 1

    asyncio.run(body())


def test_a_dead_server_is_one_generic_error() -> None:
    async def body() -> None:
        url = f"http://127.0.0.1:{free_port()}/mcp"
        transport = AiohttpTransport()
        await transport.open()
        world = World(url=url, transport=transport)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = await world.post(message)
        assert answer.status == 200
        assert b'"code":-32603' in answer.body
        assert b"127.0.0.1" not in answer.body
        await transport.close()

    asyncio.run(body())
