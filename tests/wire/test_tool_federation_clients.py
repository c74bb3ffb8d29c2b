"""Does an official client of each era work with servers of every kind behind one endpoint?"""

import asyncio
import json
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.wire.gateways import VIEWER, Served, config_text, serving
from tests.wire.one_era import only
from tests.wire.test_tool_bridge_clients import sdk_server
from tidegate.config import load_config_text
from tidegate.demo.listener import bind, listening
from tidegate.testing.asgi import WAIT_S

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:The logging capability")]

MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)
STDIO = str(Path(__file__).parent / "sdk_server.py")
ALLOW = {"allow": {"roles": ["viewer"]}}
DENY = {"deny": {"tools": ["ask_user"], "servers": ["old"]}}


def configured(folder: Path, servers: Any) -> str:
    part = {
        "hide_denied": "full",
        "servers": servers,
        "rules": [ALLOW, DENY] if "old" in servers else [ALLOW],
    }
    return json.dumps({**json.loads(config_text(folder)), "mcp": part})


@asynccontextmanager
async def federation(folder: Path, log: list[str]) -> AsyncIterator[tuple[Served, Any]]:
    """A gateway before a server of the newest revision, an old one, one on stdio, and none."""
    async with AsyncExitStack() as stack:
        servers: dict[str, Any] = {}
        for name, era in (("new", "modern"), ("old", "legacy")):
            app = sdk_server(log).streamable_http_app()
            await stack.enter_async_context(app.router.lifespan_context(app))
            port = await stack.enter_async_context(listening(only(app, era), bind(0)))
            servers[name] = {"url": f"http://127.0.0.1:{port}/mcp"}
        servers["child"] = {"command": [sys.executable, STDIO]}
        free = bind(0)
        servers["gone"] = {"url": f"http://127.0.0.1:{free.getsockname()[1]}/mcp"}
        free.close()
        text = configured(folder, servers)
        yield await stack.enter_async_context(serving(text)), servers


@asynccontextmanager
async def client_of(served: Served, mode: str, **more: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {VIEWER}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        link = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with asyncio.timeout(WAIT_S), Client(link, mode=mode, **more) as client:
            yield client


@MODES
def test_tools_of_every_server_through_one_endpoint(
    tmp_path: Path, mode: str, version: str
) -> None:
    async def body() -> None:
        log: list[str] = []
        async with federation(tmp_path, log) as (served, _), client_of(served, mode) as client:
            assert client.protocol_version == version
            if mode != version:  # who names a version asks nobody who is there
                assert client.server_info is not None
                assert client.server_info.name == "tidegate"
                assert client.instructions == "# new\n\nBe brief.\n\n# old\n\nBe brief."
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [
                *(f"new__{name}" for name in ("get_status", "ask_user", "wait")),
                *(f"old__{name}" for name in ("get_status", "wait")),
                *(f"child__{name}" for name in ("add", "fail", "count", "wait_for_ever")),
            ]
            assert listed.meta == {"tidegate/unavailable": ["gone"]}
            seen: list[float] = []

            async def on_progress(done: float, total: float | None, message: str | None) -> None:
                del total, message
                seen.append(done)

            for name in ("new", "old"):
                result = await client.call_tool(
                    f"{name}__get_status", {"service": name}, progress_callback=on_progress
                )
                assert result.structured_content == {"result": f"{name} is up"}
            assert log == ["new", "old"]
            summed = await client.call_tool("child__add", {"a": 1, "b": 2})
            assert summed.structured_content == {"result": 3}
            counted = await client.call_tool(
                "child__count", {"steps": 2}, progress_callback=on_progress
            )
            assert counted.structured_content == {"result": "counted"}
            assert seen == [1.0, 2.0] * 3
            errors = []
            for name in ("old__ask_user", "old__nothing", "nobody__x", "get_status"):
                with pytest.raises(MCPError) as refused:
                    await client.call_tool(name, {})
                errors.append((refused.value.error.code, refused.value.error.message))
            assert errors == [(-32601, "Unknown tool")] * 4
            if mode == "legacy":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    await client.send_ping()
            assert "ask_user" not in log
        assert log == ["new", "old"]

    asyncio.run(body())


@MODES
def test_resources_and_prompts_of_every_server_through_one_endpoint(
    tmp_path: Path, mode: str, version: str
) -> None:
    async def body() -> None:
        async with federation(tmp_path, []) as (served, _), client_of(served, mode) as client:
            assert client.protocol_version == version
            uris = [str(each.uri) for each in (await client.list_resources()).resources]
            assert uris == ["new+docs://handbook", "old+docs://handbook", "child+memo://today"]
            for uri, text in zip(uris, ("Read me.", "Read me.", "buy milk"), strict=True):
                (page,) = (await client.read_resource(uri)).contents
                assert (str(page.uri), page.text) == (uri, text)
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert prompts == ["new__greet", "old__greet", "child__greet"]
            greeting = await client.get_prompt("child__greet", {"name": "Ann"})
            assert greeting.messages[0].content.text == "Greet Ann"

    asyncio.run(body())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_is_added_and_removed_while_clients_stay(tmp_path: Path, mode: str) -> None:
    async def body() -> None:
        async with (
            federation(tmp_path, []) as (served, servers),
            client_of(served, mode) as client,
        ):
            fewer = {name: servers[name] for name in ("new", "child")}
            served.app.reload(load_config_text(configured(tmp_path, fewer), {}))
            names = {tool.name.split("__")[0] for tool in (await client.list_tools()).tools}
            assert names == {"new", "child"}
            with pytest.raises(MCPError):
                await client.call_tool("old__get_status", {"service": "x"})
            served.app.reload(load_config_text(configured(tmp_path, servers), {}))
            result = await client.call_tool("old__get_status", {"service": "x"})
            assert result.structured_content == {"result": "x is up"}

    asyncio.run(body())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("name", ["new", "old"])
def test_a_call_that_the_client_gives_up_ends_at_its_server(
    tmp_path: Path, mode: str, name: str
) -> None:
    async def body() -> None:
        log: list[str] = []
        begun = asyncio.Event()

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            del done, total, message
            begun.set()

        async with federation(tmp_path, log) as (served, _), client_of(served, mode) as client:
            call = asyncio.ensure_future(
                client.call_tool(f"{name}__wait", {}, progress_callback=on_progress)
            )
            async with asyncio.timeout(WAIT_S):
                await begun.wait()
                call.cancel()
                await asyncio.wait({call})
                while "cancelled" not in log:
                    await client.list_prompts()
        assert log == ["wait", "cancelled"]

    asyncio.run(body())


def test_what_is_missing_is_in_the_record_and_in_the_numbers(tmp_path: Path) -> None:
    async def body() -> None:
        async with federation(tmp_path, []) as (served, _), client_of(served, "auto") as client:
            await client.list_tools()
            async with asyncio.timeout(WAIT_S):
                while served.metric("tool_parts_missing_total", server="gone", part="all") < 1:
                    await client.list_prompts()
            assert served.metric("tool_parts_missing_total", server="new") == 0

    asyncio.run(body())
