"""Does an official client of each era work with a server that knows the other one alone?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer

from tests.app.mcp_world import TOKENS, World
from tests.wire.gateways import VIEWER, config_text, serving
from tests.wire.one_era import only
from tidegate.demo.listener import bind, listening
from tidegate.testing.asgi import WAIT_S
from tidegate.transport.aiohttp_client import AiohttpTransport

pytestmark = [
    pytest.mark.full,
    # What the older revisions do is deprecated, and what this is about.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ACROSS = pytest.mark.parametrize(
    ("mode", "version", "era"),
    [
        ("legacy", "2025-11-25", "modern"),
        ("auto", "2026-07-28", "legacy"),
        ("2026-07-28", "2026-07-28", "legacy"),
        ("auto", "2026-07-28", "modern"),
        ("legacy", "2025-11-25", "legacy"),
    ],
)


def sdk_server(log: list[str]) -> MCPServer:
    """Tools, a resource and a prompt, of the official SDK."""
    server = MCPServer("sdk", instructions="Be brief.")

    @server.tool()
    async def get_status(service: str, context: Context) -> str:
        log.append(service)
        await context.report_progress(1, 2)
        await context.session.send_log_message(
            "warning", "half of it", related_request_id=context.request_id
        )
        await context.report_progress(2, 2)
        return f"{service} is up"

    @server.tool()
    async def ask_user(context: Context) -> str:
        log.append("ask_user")
        await context.session.elicit_form("Who?", {"type": "object", "properties": {}})
        return "somebody"

    @server.tool()
    async def wait(context: Context) -> str:
        log.append("wait")
        await context.report_progress(1, 2)
        try:
            await asyncio.Event().wait()
        except BaseException:
            log.append("cancelled")
            raise
        return "never"

    @server.resource("docs://handbook")
    def handbook() -> str:
        return "Read me."

    @server.prompt()
    def greet(name: str) -> str:
        return f"Hello {name}"

    return server


@asynccontextmanager
async def across(era: str, log: list[str], **settings: Any) -> AsyncIterator[tuple[World, str]]:
    """The MCP path on a port, in front of the SDK's server on another, cut down to one era."""
    app, transport = sdk_server(log).streamable_http_app(), AiohttpTransport()
    await transport.open()
    try:
        async with (
            app.router.lifespan_context(app),
            listening(only(app, era), bind(0)) as port,
        ):
            world = World(url=f"http://127.0.0.1:{port}/mcp", transport=transport, **settings)
            async with listening(world, bind(0)) as own:
                yield world, f"http://127.0.0.1:{own}/mcp"
            await world.carriers.close()
    finally:
        await transport.close()


@asynccontextmanager
async def client_of(
    url: str, mode: str, key: str = TOKENS["viewer"], **more: Any
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with asyncio.timeout(WAIT_S), Client(transport, mode=mode, **more) as client:
            yield client


@ACROSS
def test_lists_calls_pages_and_prompts(mode: str, version: str, era: str) -> None:
    async def body() -> None:
        log: list[str] = []
        async with across(era, log) as (world, url), client_of(url, mode) as client:
            assert client.protocol_version == version
            if mode != version:  # it asks nobody who they are
                assert client.instructions == "Be brief."
                assert client.server_info is not None
                assert client.server_info.name == "sdk"
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["get_status", "ask_user", "wait"]
            seen: list[float] = []

            async def on_progress(done: float, total: float | None, message: str | None) -> None:
                del total, message
                seen.append(done)

            for number in range(3):
                result = await client.call_tool(
                    "get_status", {"service": f"s{number}"}, progress_callback=on_progress
                )
                assert result.structured_content == {"result": f"s{number} is up"}
            assert seen == [1.0, 2.0] * 3
            assert log == ["s0", "s1", "s2"]
            bad = await client.call_tool("get_status", {"service": 3})
            assert bad.is_error
            with pytest.raises(MCPError) as denied:
                await client.call_tool("admin_reset_key", {})
            assert denied.value.error.code == -32001
            page = (await client.read_resource("docs://handbook")).contents[0]
            assert page.text == "Read me."
            greeting = (await client.get_prompt("greet", {"name": "Ann"})).messages[0]
            assert greeting.content.text == "Hello Ann"
            with pytest.raises(MCPError) as missing:
                await client.read_resource("docs://nothing")
            assert missing.value.error.code in (-32602, -32002)
            if mode == "legacy":
                await client.send_ping()
        assert world.transport.open_connections == 0

    asyncio.run(body())


@pytest.mark.parametrize(("mode", "era"), [("legacy", "modern"), ("2026-07-28", "legacy")])
def test_log_messages_from_the_level_on_that_the_client_wants(mode: str, era: str) -> None:
    async def body(level: Any) -> list[str]:
        heard: list[str] = []

        async def on_log(params: Any) -> None:
            heard.append(params.level)

        more: dict[str, Any] = {} if mode == "legacy" else {"log_level": level}
        async with (
            across(era, []) as (_, url),
            client_of(url, mode, logging_callback=on_log, **more) as client,
        ):
            if mode == "legacy" and level is not None:
                await client.set_logging_level(level)
            await client.call_tool("get_status", {"service": "x"})
        return heard

    assert asyncio.run(body("info")) == ["warning"]
    assert asyncio.run(body("error")) == []
    assert asyncio.run(body(None)) == (["warning"] if mode == "legacy" else [])


@pytest.mark.parametrize(("mode", "era"), [("legacy", "modern"), ("auto", "legacy")])
def test_a_tool_that_asks_the_user_is_told_that_nobody_can_be_asked(mode: str, era: str) -> None:
    async def body() -> None:
        log: list[str] = []
        async with across(era, log) as (_, url), client_of(url, mode) as client:
            try:
                result = await client.call_tool("ask_user", {})
                assert result.is_error
            except MCPError as error:
                assert error.error.code in (-32600, -32601)  # noqa: PT017 - either form is clear
        assert log == ["ask_user"]

    asyncio.run(body())


@pytest.mark.parametrize(("mode", "era"), [("legacy", "modern"), ("auto", "legacy")])
def test_a_call_that_the_client_gives_up_ends_at_the_server(
    mode: str, era: str, tmp_path: Path
) -> None:
    async def body() -> None:
        log: list[str] = []
        begun = asyncio.Event()

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            del done, total, message
            begun.set()

        app = sdk_server(log).streamable_http_app()
        async with (
            app.router.lifespan_context(app),
            listening(only(app, era), bind(0)) as port,
            serving(config_text(tmp_path, mcp=f"http://127.0.0.1:{port}/mcp")) as gateway,
            client_of(f"{gateway.url}/mcp", mode, VIEWER) as client,
        ):
            call = asyncio.ensure_future(
                client.call_tool("wait", {}, progress_callback=on_progress)
            )
            await begun.wait()
            call.cancel()
            await asyncio.wait({call})
            async with asyncio.timeout(WAIT_S):
                while "cancelled" not in log:
                    await client.read_resource("docs://handbook")
            assert log == ["wait", "cancelled"]

    asyncio.run(body())
