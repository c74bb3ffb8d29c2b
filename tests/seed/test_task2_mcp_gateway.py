"""Does the MCP gateway profile keep every promise made for it?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.seed.harness import Running, running
from tidegate.config.demo_world import ADMIN_TOKEN, BACKEND_TOKEN, VIEWER_TOKEN
from tidegate.demo.mcp_backend import McpBackend
from tidegate.testing.sockets import Answer

DENIED = {
    "jsonrpc": "2.0",
    "id": 1,
    "error": {
        "code": -32001,
        "message": "Unauthorized Tool Call",
        "data": {"tool": "admin_reset_key", "required_role": "admin", "your_role": "viewer"},
    },
}


class Tap:
    """Passes requests to a backend and keeps their headers; or answers with a leaky failure."""

    def __init__(self) -> None:
        self.backend = McpBackend(token=BACKEND_TOKEN)
        self.headers: list[dict[str, str]] = []
        self.broken = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers.append({n.decode(): v.decode() for n, v in scope["headers"]})
        if not self.broken:
            await self.backend(scope, receive, send)
            return
        body = b"<html>Traceback: db-3.us-east-1.internal refused org-4417</html>"
        headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 500, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def tap() -> Tap:
    return Tap()


@pytest.fixture(scope="module")
def gateway(tap: Tap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("task2")
    with running("mcp-gateway", {9001: tap}, folder) as made:
        yield made


@pytest.fixture(autouse=True)
def _fresh(tap: Tap) -> None:
    tap.backend.log.clear()
    tap.headers.clear()
    tap.broken = False


def call(identifier: object, name: str, **arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


def ask(gateway: Running, token: str | None, body: object) -> Answer:
    answer: Answer = gateway.run(gateway.post("/mcp", token, body))
    return answer


def test_the_curl_line_is_denied_exactly_as_shown_and_the_backend_runs_nothing(
    gateway: Running, tap: Tap
) -> None:
    answer = gateway.run(gateway.curl("denied tool call"))
    assert answer.status == 200
    assert json.loads(answer.body) == DENIED
    assert answer.header("x-request-id")
    assert tap.backend.log == []
    assert tap.headers == []


def test_the_readme_shows_that_answer(gateway: Running) -> None:
    answer = gateway.run(gateway.curl("denied tool call"))
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text()
    assert answer.body.decode() in readme


def test_an_admin_may_call_it(gateway: Running, tap: Tap) -> None:
    answer = ask(gateway, ADMIN_TOKEN, call(1, "admin_reset_key"))
    assert "result" in json.loads(answer.body)
    assert tap.backend.log == ["admin_reset_key"]


def test_a_viewer_may_call_an_ordinary_tool_without_a_handshake(gateway: Running, tap: Tap) -> None:
    answer = ask(gateway, VIEWER_TOKEN, call("a", "get_status"))
    assert answer.status == 200
    assert json.loads(answer.body)["id"] == "a"
    assert tap.backend.log == ["get_status"]


@pytest.mark.parametrize("name", ["Admin_Reset_Key", "ADMIN_RESET_KEY", "aDmin_delete_tenant"])
def test_another_spelling_does_not_slip_past(name: str, gateway: Running, tap: Tap) -> None:
    answer = json.loads(ask(gateway, VIEWER_TOKEN, call(1, name)).body)
    assert answer["error"]["code"] == -32001
    assert tap.headers == []


def test_the_list_of_tools_is_passed_on_whole(gateway: Running) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = json.loads(ask(gateway, VIEWER_TOKEN, body).body)
    names = {tool["name"] for tool in answer["result"]["tools"]}
    assert {"get_status", "admin_reset_key", "admin_delete_tenant"} <= names


def test_a_batch_is_decided_element_by_element_and_answered_in_its_order(
    gateway: Running, tap: Tap
) -> None:
    batch = [call(1, "get_status"), call("1", "admin_reset_key"), call(2, "get_status")]
    answer = json.loads(ask(gateway, VIEWER_TOKEN, batch).body)
    assert [element["id"] for element in answer] == [1, "1", 2]
    assert ["error" in element for element in answer] == [False, True, False]
    assert answer[1]["error"] == DENIED["error"]
    assert tap.backend.log == ["get_status", "get_status"]


def test_a_denied_notification_is_neither_forwarded_nor_answered(
    gateway: Running, tap: Tap
) -> None:
    notification = call(None, "admin_reset_key")
    del notification["id"]
    answer = ask(gateway, VIEWER_TOKEN, notification)
    assert (answer.status, answer.body) == (202, b"")
    assert tap.headers == []


@pytest.mark.parametrize("token", [None, "wrong", ""])
def test_without_a_good_token_both_layers_say_so(
    token: str | None, gateway: Running, tap: Tap
) -> None:
    answer = ask(gateway, token, call(1, "get_status"))
    assert answer.status == 401
    assert answer.header("www-authenticate")
    body = json.loads(answer.body)
    assert (body["jsonrpc"], body["id"], body["error"]["code"]) == ("2.0", None, -32000)
    assert tap.headers == []


def test_the_clients_token_is_not_forwarded(gateway: Running, tap: Tap) -> None:
    ask(gateway, VIEWER_TOKEN, call(1, "get_status"))
    assert [headers["authorization"] for headers in tap.headers] == [f"Bearer {BACKEND_TOKEN}"]
    assert VIEWER_TOKEN not in repr(tap.headers)


def test_a_broken_backend_becomes_an_error_that_names_nothing_of_it(
    gateway: Running, tap: Tap
) -> None:
    tap.broken = True
    answer = ask(gateway, VIEWER_TOKEN, call(7, "get_status"))
    body = json.loads(answer.body)
    assert (body["jsonrpc"], body["id"]) == ("2.0", 7)
    assert "error" in body
    for leak in (b"internal", b"org-4417", b"Traceback", b"127.0.0.1"):
        assert leak not in answer.body


def test_hide_admin_tools_takes_them_out_of_a_viewers_list_only(tmp_path: Path) -> None:
    tap = Tap()
    with running("mcp-gateway", {9001: tap}, tmp_path, environ={"HIDE_ADMIN_TOOLS": "1"}) as hiding:
        seen = {}
        for token in (VIEWER_TOKEN, ADMIN_TOKEN):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            tools = json.loads(ask(hiding, token, body).body)["result"]["tools"]
            seen[token] = {tool["name"] for tool in tools}
        assert not any(name.startswith("admin_") for name in seen[VIEWER_TOKEN])
        assert seen[ADMIN_TOKEN] - seen[VIEWER_TOKEN] == {"admin_reset_key", "admin_delete_tenant"}
        assert json.loads(ask(hiding, VIEWER_TOKEN, call(1, "admin_reset_key")).body) == DENIED
    assert tap.backend.log == []
