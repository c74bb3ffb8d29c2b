"""Does a server of the official SDK on stdio, which speaks both eras, work behind the gateway?

The official client in its three modes; the era of the process is decided by whoever asks first.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.wire.gateways import VIEWER, Served, config_text, serving

SERVER = str(Path(__file__).parent / "sdk_server.py")
LONGEST_S = 60.0

pytestmark = pytest.mark.full
MODES = pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, LONGEST_S))


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Served]:
    servers = {"sdk": {"command": [sys.executable, SERVER]}}
    rules = [{"allow": {"roles": ["viewer"]}}]
    mcp = {"servers": servers, "rules": rules, "hide_denied": "full"}
    text = json.loads(config_text(folder))
    async with serving(json.dumps({**text, "mcp": mcp})) as served:
        yield served


@asynccontextmanager
async def client_of(served: Served, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {VIEWER}"}
    async with httpx2.AsyncClient(headers=headers, timeout=LONGEST_S) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


@MODES
def test_tools_resources_and_prompts_work_in_every_mode(
    mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["add", "fail", "count", "wait_for_ever"]
            assert text_of(await client.call_tool("add", {"a": 2, "b": 3})) == "5"
            read = await client.read_resource("memo://today")
            assert read.contents[0].text == "buy milk"  # type: ignore[union-attr]
            got = await client.get_prompt("greet", {"name": "Ann"})
            assert got.messages[0].content.text == "Greet Ann"  # type: ignore[union-attr]
            with pytest.raises(MCPError):
                await client.call_tool("no_such_tool", {})

    run(body())


@MODES
def test_progress_reaches_its_client_and_a_crash_has_no_text_of_an_exception(
    mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        heard: list[float] = []

        async def progress(now: float, total: float | None, message: str | None) -> None:
            heard.append(now)

        async with gateway(tmp_path) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            told = await client.call_tool("count", {"steps": 3}, progress_callback=progress)
            assert (text_of(told), heard) == ("counted", [1.0, 2.0, 3.0])
            failed = await client.call_tool("fail", {})
            assert failed.is_error

    run(body())


@pytest.mark.parametrize("first", ["legacy", "2026-07-28"])
def test_whoever_comes_first_clients_of_both_eras_share_the_process(
    first: str, tmp_path: Path
) -> None:
    second = {"legacy": "2026-07-28", "2026-07-28": "legacy"}[first]

    async def body() -> None:
        async with (
            gateway(tmp_path) as served,
            client_of(served, first) as one,
            client_of(served, second) as two,
        ):
            for number in range(5):
                answers = await asyncio.gather(
                    one.call_tool("add", {"a": number, "b": 0}),
                    two.call_tool("add", {"a": number, "b": 100}),
                )
                assert [text_of(each) for each in answers] == [str(number), str(number + 100)]

    run(body())


@MODES
def test_a_call_that_its_client_gives_up_disturbs_no_other(
    mode: str, version: str, tmp_path: Path
) -> None:
    async def body() -> None:
        async with gateway(tmp_path) as served, client_of(served, mode) as client:
            assert client.protocol_version == version
            waiting = asyncio.ensure_future(client.call_tool("wait_for_ever", {}))
            await asyncio.wait((waiting,), timeout=0.2)
            waiting.cancel()
            await asyncio.wait((waiting,))
            assert text_of(await client.call_tool("add", {"a": 1, "b": 1})) == "2"

    run(body())
