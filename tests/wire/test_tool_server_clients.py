"""Does the official client work with the demo tools, in every mode, over stdio and over HTTP?"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult

from tests.conformance.serving import ROOT, served
from tidegate.demo.listener import bind, listening
from tidegate.demo.support import REPLAYED, SupportStore, support_tools
from tidegate.testing.asgi import WAIT_S
from tidegate.tools import ToolServer
from tidegate.tools.profiles import FAULTS_KEY, PROFILES, Profile

pytestmark = pytest.mark.full

MODES = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
SECRET = "CUST-1000" + "x"
LONGEST_S = 6 * WAIT_S
"""A server that is a process has to start on a busy machine."""

modes = pytest.mark.parametrize("mode", MODES)
profiles = pytest.mark.parametrize("profile", PROFILES)


@asynccontextmanager
async def over_http(profile: Profile) -> AsyncIterator[str]:
    app = ToolServer(support_tools(SupportStore()), errors=profile).http_app()
    async with app.running(), listening(app, bind(0)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


def on_stdio(folder: Path, profile: Profile, *, unbuffered: bool = False) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "tidegate", "mcp", "serve", "--errors", profile],
        env={
            **{key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
            **({"PYTHONUNBUFFERED": "1"} if unbuffered else {}),
            "PYTHONPATH": str(ROOT / "src"),
        },
        cwd=folder,
    )


async def uses(server: Any, mode: str, profile: Profile) -> None:
    """What a client does with the demo tools, and what it has to see."""
    async with asyncio.timeout(LONGEST_S), Client(server, mode=mode) as client:
        assert client.protocol_version == MODES[mode]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["get_customer_record", "trigger_refund"]
        assert all(tool.input_schema["additionalProperties"] is False for tool in tools.values())
        record = await client.call_tool("get_customer_record", {"customer_id": "CUST-10001"})
        assert record.structured_content["balance"] == "250.00"
        await refuses_what_is_wrong(client, profile)
        await refunds(client)


async def refuses_what_is_wrong(client: Client, profile: Profile) -> None:
    faults = await faults_of(client, "get_customer_record", {"customer_id": SECRET}, profile)
    assert [fault["pointer"] for fault in faults] == ["/customer_id"]
    wrong = {"customer_id": "CUST-10001", "amount": "12.50", "reason": "short", "more": 1}
    faults = await faults_of(client, "trigger_refund", wrong, profile)
    assert sorted(fault["pointer"] for fault in faults) == ["/amount", "/more", "/reason"]
    with pytest.raises(MCPError) as caught:
        await client.call_tool("drop_table", {})
    assert caught.value.error.code == (-32601 if profile == "brief" else -32602)


async def faults_of(
    client: Client, name: str, arguments: dict[str, Any], profile: Profile
) -> list[dict[str, str]]:
    """What is said of wrong arguments; never what they were."""
    if profile == "brief":
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, arguments)
        error = caught.value.error
        assert error.code == -32602
        said, faults = f"{error.message} {error.data}", error.data["faults"]
    else:
        result = await client.call_tool(name, arguments)
        assert isinstance(result, CallToolResult)
        assert result.is_error
        said, faults = result.model_dump_json(), (result.meta or {})[FAULTS_KEY]
    assert SECRET not in said
    assert "12.50" not in said
    found: list[dict[str, str]] = faults
    return found


async def refunds(client: Client) -> None:
    order = {"customer_id": "CUST-10001", "amount": 12.5, "reason": "arrived broken"}
    done = await client.call_tool("trigger_refund", order)
    assert not done.is_error
    assert done.structured_content["balance"] == "237.50"
    refused = await client.call_tool("trigger_refund", {**order, "amount": 9999.99})
    assert refused.is_error
    assert refused.structured_content is None
    named = {**order, "amount": 7.5, "refund_id": "retry-1"}
    first, again = [await client.call_tool("trigger_refund", named) for _ in range(2)]
    assert first.structured_content == again.structured_content
    assert (again.meta or {})[REPLAYED] is True
    assert first.structured_content["balance"] == "230.00"
    other = await client.call_tool("trigger_refund", {**named, "amount": 8})
    assert other.is_error
    record = await client.call_tool("get_customer_record", {"customer_id": "CUST-10001"})
    assert record.structured_content["balance"] == "230.00"


@modes
@profiles
def test_a_client_lists_calls_and_is_refused_over_http(mode: str, profile: Profile) -> None:
    async def body() -> None:
        async with over_http(profile) as url:
            await uses(url, mode, profile)

    asyncio.run(body())


@pytest.mark.full
@modes
@profiles
def test_a_client_lists_calls_and_is_refused_over_stdio(
    mode: str, profile: Profile, tmp_path: Path
) -> None:
    asyncio.run(uses(on_stdio(tmp_path, profile), mode, profile))


@pytest.mark.full
def test_a_client_sees_no_difference_when_python_does_not_buffer(tmp_path: Path) -> None:
    asyncio.run(uses(on_stdio(tmp_path, "brief", unbuffered=True), "auto", "brief"))


@pytest.mark.full
@profiles
def test_a_client_lists_calls_and_is_refused_by_the_command_over_http(profile: Profile) -> None:
    async def body() -> None:
        async with served(None, "--errors", profile) as url:
            await uses(url, "auto", profile)

    asyncio.run(body())


@pytest.mark.full
def test_many_clients_of_all_modes_at_once_share_one_balance() -> None:
    async def one(url: str, mode: str) -> None:
        async with Client(url, mode=mode) as client:
            order = {"customer_id": "CUST-10002", "amount": 0.5, "reason": "a small goodwill"}
            results = await asyncio.gather(
                *(client.call_tool("trigger_refund", order) for _ in range(4))
            )
            assert not any(result.is_error for result in results)

    async def body() -> None:
        async with asyncio.timeout(WAIT_S), over_http("brief") as url:
            await asyncio.gather(*(one(url, mode) for mode in MODES for _ in range(2)))
            async with Client(url) as client:
                query = {"customer_id": "CUST-10002"}
                record = await client.call_tool("get_customer_record", query)
            assert record.structured_content["balance"] == "1188.50"

    asyncio.run(body())
