"""Do official clients work through `mcp wrap` and `mcp connect`, with real servers, in each mode?

The inspector is installed by `make conformance`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.mcpserver import Context, MCPServer

from tests.wire.gateways import CREDENTIAL, VIEWER, config_text, serving
from tests.wire.test_task1_stdio import WAIT_S
from tests.wire.test_tool_server_inspector import call, inspect
from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend

MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)
THIRD_PARTY = """
import asyncio, atexit, os, sys
print("starting up ...")
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

server = MCPServer("third party")

@server.tool()
async def add(a: int, b: int) -> int:
    print("adding")
    os.write(protocol, b"a log line on the very descriptor of the protocol\\n")
    return a + b

async def main():
    import anyio, io
    global protocol
    protocol = os.dup(1)
    async with stdio_server() as (reader, writer):
        low = server._lowlevel_server
        await low.run(reader, writer, low.create_initialization_options())

atexit.register(print, "bye")
asyncio.run(main())
"""


@asynccontextmanager
async def client_of(mode: str, *command: str, **env: str) -> AsyncIterator[Client]:
    """The official client of `tidegate mcp ...`, started as such clients do."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tidegate", "mcp", *command],
        env={**os.environ, "PYTHONUNBUFFERED": "", **env},
    )
    async with asyncio.timeout(WAIT_S), Client(parameters, mode=mode) as client:
        yield client


@pytest.mark.full
@MODES
def test_a_third_party_server_that_prints_works_when_wrapped(
    tmp_path: Path, mode: str, version: str
) -> None:
    (tmp_path / "third_party.py").write_text(THIRD_PARTY)

    async def body() -> None:
        command = ("wrap", "--", sys.executable, str(tmp_path / "third_party.py"))
        async with client_of(mode, *command) as client:
            assert client.protocol_version == version
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
            calls = (client.call_tool("add", {"a": n, "b": 1}) for n in range(10))
            results = await asyncio.gather(*calls)
            assert [r.structured_content for r in results] == [{"result": n + 1} for n in range(10)]

    asyncio.run(body())


@pytest.mark.full
@MODES
def test_the_demo_gateway_is_reached_through_connect(
    tmp_path: Path, mode: str, version: str
) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        async with listening(backend, bind(0)) as port:
            text = config_text(tmp_path, mcp=f"http://127.0.0.1:{port}/mcp")
            async with serving(text) as served:
                url = f"{served.url}/mcp"
                async with client_of(mode, "connect", url, TIDEGATE_TOKEN=VIEWER) as client:
                    assert client.protocol_version == version
                    names = [tool.name for tool in (await client.list_tools()).tools]
                    assert {"get_status", "admin_reset_key"} <= set(names)
                    with pytest.raises(MCPError) as caught:
                        await client.call_tool("admin_reset_key", {})
                    assert caught.value.error.code == -32001
                    assert caught.value.error.message == "Unauthorized Tool Call"
                    result = await client.call_tool("get_status", {"service": "billing"})
                    assert result.content[0].text == "billing is up"
        assert backend.log == ["get_status"]

    asyncio.run(body())


@pytest.mark.full
def test_without_a_token_the_gateway_says_so_through_connect(tmp_path: Path) -> None:
    async def body() -> None:
        async with serving(config_text(tmp_path)) as served:
            with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
                async with client_of("legacy", "connect", f"{served.url}/mcp", TIDEGATE_TOKEN=""):
                    pass
            assert "-32000" in repr(caught.value) or "Authentication" in repr(caught.value)

    asyncio.run(body())


def sdk_server() -> Any:
    server = MCPServer("of the SDK")

    @server.tool()
    async def add(a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2, "half")
        return a + b

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    return server


@pytest.mark.full
@MODES
def test_the_sdks_own_server_is_reached_through_connect(mode: str, version: str) -> None:
    async def body() -> None:
        server = sdk_server()
        app = server.streamable_http_app(host="127.0.0.1")
        async with server.session_manager.run(), listening(app, bind(0)) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with client_of(mode, "connect", url) as client:
                assert client.protocol_version == version
                heard: list[str | None] = []

                async def progress(_: float, __: float | None, message: str | None) -> None:
                    heard.append(message)

                result = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=progress)
                assert result.structured_content == {"result": 3}
                assert heard == ["half"]
                read = await client.read_resource("notes://ü one")
                assert read.contents[0].text.startswith("note ")

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_reaches_the_demo_gateway_through_connect(tmp_path: Path, era: str) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        async with listening(backend, bind(0)) as port:
            text = config_text(tmp_path, mcp=f"http://127.0.0.1:{port}/mcp")
            async with serving(text) as served:
                target = (sys.executable, "-m", "tidegate", "mcp", "connect", f"{served.url}/mcp")
                options = ("--protocol-era", era, "-e", f"TIDEGATE_TOKEN={VIEWER}")
                listed = await inspect(tmp_path, target, *options, "--method", "tools/list")
                assert listed.code == 0, listed.error
                assert "get_status" in [tool["name"] for tool in listed.result["tools"]]
                done = await inspect(
                    tmp_path, target, *options, *call("get_status", service="billing")
                )
                assert done.result["content"][0]["text"] == "billing is up"
                denied = await inspect(tmp_path, target, *options, *call("admin_reset_key"))
                assert denied.code != 0
                assert "Unauthorized Tool Call" in denied.error
        assert backend.log == ["get_status"]

    asyncio.run(body())


@pytest.mark.full
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_calls_a_wrapped_server_that_prints(tmp_path: Path, era: str) -> None:
    (tmp_path / "third_party.py").write_text(THIRD_PARTY)
    server = (sys.executable, str(tmp_path / "third_party.py"))
    target = (sys.executable, "-m", "tidegate", "mcp", "wrap", *server)
    done = asyncio.run(inspect(tmp_path, target, "--protocol-era", era, *call("add", a=1, b=2)))
    assert done.code == 0, done.error
    assert done.result["structuredContent"] == {"result": 3}
    assert "a log line on the very descriptor" in done.error
