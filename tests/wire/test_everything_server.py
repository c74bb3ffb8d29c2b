"""Does the reference server of the protocol's authors work behind the whole gateway?

`@modelcontextprotocol/server-everything`, in TypeScript and of the legacy era, on stdio and over
HTTP, alone and beside another one; the official client asks in its three modes.
`make conformance` installs the server, and the Node that it needs, into .venv/conformance.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.conformance.harness import NODE, PLACE
from tests.ports import free_port
from tests.wire.gateways import VIEWER, Served, config_text, serving
from tests.wire.test_tool_server_inspector import call as inspected
from tests.wire.test_tool_server_inspector import inspect

SCRIPT = PLACE / "@modelcontextprotocol/server-everything/dist/index.js"
LONGEST_S = 60.0
LOOPBACK = """
const net = require("node:net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === "number" ? listen.call(this, port, "127.0.0.1", ...rest.filter(
    (each) => typeof each === "function")) : listen.call(this, port, ...rest);
};
"""
"""It binds every interface; in a test it has the loopback only."""
RULES = [
    {"deny": {"tools": ["get-env"]}},
    {"allow": {"roles": ["viewer"]}},
]
KINDS = ("stdio", "http")

pytestmark = pytest.mark.full
MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


def run(body: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LONGEST_S):
            await body

    asyncio.run(bounded())


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """The server on a free port, as the gateway is told of it."""
    assert SCRIPT.exists(), "the server is not installed: make conformance does it"
    patch, port = folder / "loopback.cjs", free_port()
    patch.write_text(LOOPBACK)
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), "--require", str(patch), str(SCRIPT), "streamableHttp"),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        while b"listening" not in (line := await process.stderr.readline()):
            assert line, "the server ended"
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


@asynccontextmanager
async def gateway(folder: Path, *kinds: str) -> AsyncIterator[Served]:
    """A gateway in front of the server, once for each kind."""
    assert SCRIPT.exists(), "the server is not installed: make conformance does it"
    async with AsyncExitStack() as stack:
        servers: dict[str, Any] = {}
        for kind in kinds:
            servers[kind] = (
                {"command": [str(NODE), str(SCRIPT), "stdio"]}
                if kind == "stdio"
                else await stack.enter_async_context(over_http(folder))
            )
        mcp = {"servers": servers, "rules": RULES, "hide_denied": "list"}
        text = json.loads(config_text(folder))
        yield await stack.enter_async_context(serving(json.dumps({**text, "mcp": mcp})))


@asynccontextmanager
async def client_of(served: Served, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {VIEWER}"}
    async with httpx2.AsyncClient(headers=headers, timeout=LONGEST_S) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


@EACH_KIND
@MODES
def test_a_client_uses_what_it_may_in_every_mode(
    kind: str, mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path, kind) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"echo", "get-sum", "get-structured-content"} <= set(names)
            assert "get-env" not in names
            assert (
                text_of(await client.call_tool("echo", {"message": "h\u00e9"})) == "Echo: h\u00e9"
            )
            assert "5" in text_of(await client.call_tool("get-sum", {"a": 2, "b": 3}))
            with pytest.raises(MCPError) as denied:
                await client.call_tool("get-env", {})
            assert denied.value.code == -32001
            structured = await client.call_tool("get-structured-content", {"location": "Chicago"})
            assert set(structured.structured_content or {}) == {
                "temperature",
                "conditions",
                "humidity",
            }
            image = await client.call_tool("get-tiny-image", {})
            assert "image" in [block.type for block in image.content]

    run(body())


@EACH_KIND
@MODES
def test_resources_prompts_and_completion_work_in_every_mode(
    kind: str, mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path, kind) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            resources = (await client.list_resources()).resources
            read = await client.read_resource(resources[0].uri)
            assert str(read.contents[0].uri) == str(resources[0].uri)
            assert (await client.list_resource_templates()).resource_templates
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert "args-prompt" in prompts
            got = await client.get_prompt("args-prompt", {"city": "Oslo", "state": ""})
            assert "Oslo" in got.messages[0].content.text  # type: ignore[union-attr]

    run(body())


@EACH_KIND
@MODES
def test_progress_of_a_long_call_reaches_its_client(
    kind: str, mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        heard: list[float] = []

        async def progress(now: float, total: float | None, message: str | None) -> None:
            heard.append(now)

        async with gateway(tmp_path, kind) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            result = await client.call_tool(
                "trigger-long-running-operation",
                {"duration": 0.3, "steps": 3},
                progress_callback=progress,
            )
            assert "completed" in text_of(result)
            assert heard == [1.0, 2.0, 3.0]

    run(body())


@EACH_KIND
@MODES
def test_the_refusals_of_the_server_are_those_of_its_tools(
    kind: str, mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path, kind) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            wrong = await client.call_tool("get-sum", {"a": "x"})
            assert wrong.is_error
            assert re.search("invalid", text_of(wrong), re.IGNORECASE)

    run(body())


@EACH_KIND
def test_many_clients_of_all_modes_at_once_have_their_own_answers(
    kind: str, tmp_path: Path
) -> None:
    async def one(served: Served, mode: str, number: int) -> None:
        async with client_of(served, mode) as client:
            for step in range(3):
                told = await client.call_tool("echo", {"message": f"{number}/{step}"})
                assert text_of(told) == f"Echo: {number}/{step}"

    async def body() -> None:
        async with gateway(tmp_path, kind) as served:
            modes = ("legacy", "2026-07-28", "auto") * 3
            await asyncio.gather(*(one(served, mode, n) for n, mode in enumerate(modes)))

    run(body())


@MODES
def test_beside_another_server_its_tools_have_its_name_before_them(
    mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path, *KINDS) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            names = [tool.name for tool in (await client.list_tools()).tools]
            for kind in KINDS:
                assert {f"{kind}__echo", f"{kind}__get-sum"} <= set(names)
                told = await client.call_tool(f"{kind}__echo", {"message": kind})
                assert text_of(told) == f"Echo: {kind}"
            assert not [name for name in names if "get-env" in name]

    run(body())


@pytest.mark.parametrize("era", ["legacy", "modern"])
@EACH_KIND
def test_the_inspector_lists_calls_and_is_denied(kind: str, era: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with gateway(tmp_path, kind) as served:
            target = (f"{served.url}/mcp", "--transport", "http", "--protocol-era", era)
            token = ("--header", f"Authorization: Bearer {VIEWER}")
            listed = await inspect(tmp_path, target, *token, "--method", "tools/list")
            assert listed.code == 0, listed.error
            names = [tool["name"] for tool in listed.result["tools"]]
            assert "echo" in names
            assert "get-env" not in names
            told = await inspect(tmp_path, target, *token, *inspected("echo", message="hi"))
            assert (told.code, told.result["content"][0]["text"]) == (0, "Echo: hi")
            denied = await inspect(tmp_path, target, *token, *inspected("get-env"))
            assert (denied.code != 0, denied.result) == (True, None)

    run(body())
