"""Do official MCP clients of both eras work with the whole gateway, made from a configuration?"""

import asyncio
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.wire.gateways import CREDENTIAL, VIEWER, config_text, serving
from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend
from tidegate.testing.asgi import WAIT_S


@pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)
def test_a_denied_call_raises_its_code_and_the_session_goes_on(
    tmp_path: Path, mode: str, version: str
) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        async with listening(backend, bind(0)) as port:
            text = config_text(tmp_path, mcp=f"http://127.0.0.1:{port}/mcp")
            async with serving(text) as served:
                headers = {"Authorization": f"Bearer {VIEWER}"}
                async with httpx2.AsyncClient(headers=headers) as http:
                    link = streamable_http_client(f"{served.url}/mcp", http_client=http)
                    async with asyncio.timeout(WAIT_S), Client(link, mode=mode) as client:
                        assert client.protocol_version == version
                        names = [tool.name for tool in (await client.list_tools()).tools]
                        assert {"get_status", "admin_reset_key"} <= set(names)
                        with pytest.raises(MCPError) as caught:
                            await client.call_tool("admin_reset_key", {})
                        assert caught.value.error.code == -32001
                        assert caught.value.error.message == "Unauthorized Tool Call"
                        result = await client.call_tool(
                            "get_customer", {"customer_id": "CUST-10001"}
                        )
                        assert result.content[0].text == (
                            "CUST-10001: Jane Doe, [REDACTED_EMAIL], card [REDACTED_CARD]"
                        )
                assert served.metric("requests_total", outcome="denied") == 1
        assert backend.log == ["get_customer"]

    asyncio.run(body())
