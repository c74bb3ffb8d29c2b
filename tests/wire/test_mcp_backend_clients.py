"""Do official MCP clients of both eras work with the demo backend over a real socket?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend

TOKEN = "-".join(("backend", "of", "the", "test"))
MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)


@asynccontextmanager
async def client_of(backend: McpBackend, mode: str, token: str = TOKEN) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with listening(backend, bind(0)) as port, httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@MODES
def test_a_client_lists_and_calls_in_every_mode(mode: str, version: str) -> None:
    async def body() -> None:
        backend = McpBackend(token=TOKEN)
        async with client_of(backend, mode) as client:
            assert client.protocol_version == version
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools][:2] == ["get_status", "search_docs"]
            result = await client.call_tool("get_status", {"service": "billing"})
            assert result.content[0].text == "billing is up"
            with pytest.raises(MCPError) as caught:
                await client.call_tool("no_such_tool", {})
            assert caught.value.error.code == -32602
        assert backend.log == ["get_status"]

    asyncio.run(body())


@MODES
def test_progress_of_a_long_tool_reaches_the_client(mode: str, version: str) -> None:
    async def body() -> None:
        seen: list[float] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            seen.append(done)

        async def no_pause(step: int) -> None:
            del step

        async with client_of(McpBackend(token=TOKEN, pace=no_pause), mode) as client:
            result = await client.call_tool(
                "run_report", {"title": "costs"}, progress_callback=on_progress
            )
        assert result.content[0].text == "the report is done"
        assert seen == [1.0, 2.0, 3.0]

    asyncio.run(body())
