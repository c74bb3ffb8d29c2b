"""Does the demo backend run what it is told, and only for whoever holds its credential?"""

import asyncio
import json
from typing import Any

import pytest

from tidegate.demo.mcp_backend import McpBackend, app
from tidegate.testing.asgi import ASGIClient, ASGIExchange

TOKEN = "-".join(("token", "of", "the", "backend"))
OURS = [("authorization", f"Bearer {TOKEN}")]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def post(backend: McpBackend, body: object, headers: Any = OURS) -> ASGIExchange:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return asyncio.run(ASGIClient(backend).request("POST", "/mcp", headers=headers, body=data))


def ask(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(name: str, **arguments: str) -> dict[str, object]:
    return ask("tools/call", name=name, arguments=arguments)


def text(answer: ASGIExchange) -> str:
    content: str = json.loads(answer.body)["result"]["content"][0]["text"]
    return content


@pytest.mark.parametrize(
    "headers",
    [[], [("authorization", "Bearer other")], [*OURS, *OURS], [("authorization", TOKEN)]],
)
def test_nobody_else_runs_anything(headers: Any) -> None:
    backend = app(TOKEN)
    answer = post(backend, call("admin_reset_key"), headers)
    assert (answer.status, answer.header("www-authenticate")) == (401, "Bearer")
    assert backend.log == []


def test_the_log_names_what_ran_and_can_be_cleared() -> None:
    backend = McpBackend(token=TOKEN)
    client = ASGIClient(backend)
    for name in ("get_status", "admin_reset_key", "no_such"):
        post(backend, call(name))
    shown = asyncio.run(client.request("GET", "/_log"))
    assert json.loads(shown.body) == ["get_status", "admin_reset_key"]
    asyncio.run(client.request("POST", "/_reset"))
    assert backend.log == []


def test_tools_answer() -> None:
    backend = McpBackend(token=TOKEN)
    assert text(post(backend, call("get_status", service="mail"))) == "mail is up"
    assert "docs://handbook" in text(post(backend, call("search_docs", query="x")))
    assert "jane@example.com" in text(post(backend, call("get_customer", customer_id="CUST-10001")))
    unknown = json.loads(post(backend, call("get_customer", customer_id="x")).body)["result"]
    assert unknown["isError"] is True
    assert text(post(backend, call("admin_delete_tenant", tenant="t"))) == "tenant t is gone"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"{", -32700),
        ([ask("ping")], -32600),
        (ask("no/such"), -32601),
        (call("no_such"), -32602),
        (ask("tools/call", name="get_status", arguments=[]), -32602),
        (ask("resources/read", uri="docs://other"), -32602),
        (ask("prompts/get", name="other"), -32602),
    ],
)
def test_what_it_cannot_do_is_an_error(message: object, code: int) -> None:
    answer = post(McpBackend(token=TOKEN), message)
    assert json.loads(answer.body)["error"]["code"] == code


def test_modern_clients_get_statuses_and_the_members_they_need() -> None:
    backend = McpBackend(token=TOKEN)
    assert post(backend, ask("no/such", _meta=META)).status == 404
    assert post(backend, ask("tools/call", name="no_such", _meta=META)).status == 400
    listed = json.loads(post(backend, ask("tools/list", _meta=META)).body)["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
    found = json.loads(post(backend, ask("server/discover")).body)["result"]
    assert found["supportedVersions"][0] == "2026-07-28"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2026-07-28", "x"])
def test_a_handshake_settles_on_a_version_with_handshakes(version: str) -> None:
    answer = post(McpBackend(token=TOKEN), ask("initialize", protocolVersion=version))
    settled = json.loads(answer.body)["result"]["protocolVersion"]
    assert settled == (version if version.startswith("2025") else "2025-11-25")


def test_other_requests_are_told_so() -> None:
    client = ASGIClient(McpBackend(token=TOKEN))
    for method, path, status in (("GET", "/mcp", 405), ("GET", "/x", 404), ("PUT", "/_log", 404)):
        assert asyncio.run(client.request(method, path)).status == status
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    accepted = post(McpBackend(token=TOKEN), note)
    assert (accepted.status, accepted.body) == (202, b"")


def test_a_report_runs_in_its_own_pace_and_tells_whoever_asked() -> None:
    async def pace(step: int) -> None:
        del step

    backend = McpBackend(token=TOKEN, pace=pace)
    told = post(backend, ask("tools/call", name="run_report", _meta={"progressToken": 7}))
    assert told.body.count(b"notifications/progress") == 3
    untold = post(backend, ask("tools/call", name="run_report"))
    assert untold.body.count(b"notifications/progress") == 0
    assert b"the report is done" in untold.body
