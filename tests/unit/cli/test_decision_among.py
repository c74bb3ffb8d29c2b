"""Does `tidegate explain --as` say what the gateway would decide where it has several servers?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.federated import OLD, Federated, Server
from tests.app.mcp_world import value
from tests.unit.cli.test_decision import principal
from tidegate.cli import run
from tidegate.cli.decision import as_json, dry_run
from tidegate.config import load_config, values

pytestmark = pytest.mark.full

TEXT = """identity:
  keys:
    - { sha256: "ZEROS", principal: vera, tenant: acme, roles: [viewer] }
    - { sha256: "ONES", principal: adam, tenant: acme, roles: [admin] }
mcp:
  hide_denied: "off"
  servers:
    billing: { url: "http://127.0.0.1:9001/mcp" }
    crm: { url: "http://127.0.0.1:9002/mcp" }
  rules:
    - { deny: { servers: [billing], tools: ["admin_*"], unless_roles: [admin] } }
    - { allow: { roles: [viewer], servers: [billing], tools: [refund], when: ["amount <= 500"] } }
    - { allow: { roles: [viewer], servers: [crm], resources: ["file:///data/*"], prompts: ["*"] } }
    - { allow: { roles: [admin] } }
""".replace("ZEROS", "0" * 64).replace("ONES", "1" * 64)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("TIDEGATE_CONFIG", "HIDE_ADMIN_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tidegate.yaml").write_text(TEXT)
    return tmp_path


def said(capsys: Capture, *words: str) -> tuple[int, Any]:
    code = run(["explain", "--json", "--as", *words])
    return code, json.loads(capsys.readouterr().out)


def test_a_shown_name_is_decided_under_the_servers_own_and_told_as_written(
    folder: Path, capsys: Capture
) -> None:
    code, told = said(capsys, "viewer", "tools/call", "billing__admin_reset")
    assert (code, told["server"], told["rule"]) == (4, "billing", "mcp.rules[0]")
    data = told["client_sees"]["brief"]["body"]["error"]["data"]
    assert data["tool"] == "billing__admin_reset"
    assert [each["rule"] for each in told["weighed"]] == ["mcp.rules[0]"]
    code, told = said(capsys, "viewer", "tools/call", "billing__refund", '{"amount": 5}')
    assert (code, told["rule"]) == (0, "mcp.rules[1]")
    code, told = said(capsys, "viewer", "resources/read", "crm+file:///data/x")
    assert (code, told["server"], told["rule"]) == (0, "crm", "mcp.rules[2]")
    code, told = said(capsys, "viewer", "tasks/get", "billing__refund")
    assert (code, told["server"], told["rule"]) == (0, "billing", "mcp.rules[1]")


@pytest.mark.parametrize("name", ["refund", "nobody__refund", "Billing__refund", "billing_refund"])
def test_a_name_of_no_server_is_unknown(folder: Path, capsys: Capture, name: str) -> None:
    code, told = said(capsys, "admin", "tools/call", name)
    assert (code, told["server"], told["weighed"]) == (4, "", [])
    assert told["client_sees"]["brief"]["body"]["error"]["message"] == "Unknown tool"
    assert told["place"] is None


def test_a_list_is_decided_at_each_server(folder: Path, capsys: Capture) -> None:
    code, told = said(capsys, "viewer", "tools/list")
    assert (code, told["verdict"]) == (0, "allowed")
    assert told["servers"] == [
        {"server": "billing", "verdict": "allowed", "rule": "mcp.rules[1]"},
        {"server": "crm", "verdict": "denied", "rule": "default"},
    ]
    assert run(["explain", "--as", "viewer", "tools/list"]) == 0
    text = capsys.readouterr().out
    assert "server     billing: allowed by mcp.rules[1]" in text
    assert "server     crm: denied by default" in text
    assert run(["explain", "--as", "viewer", "tools/call", "billing__refund"]) == 4
    assert "server     billing\n" in capsys.readouterr().out


NAMES = [
    "billing__refund",
    "billing__admin_reset",
    "crm__greet",
    "crm__refund",
    "refund",
    "nobody__x",
    "billing__",
    "crm+file:///data/x",
    "billing+file:///data/x",
    "file:///data/x",
    "",
]
METHODS = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "tools/list",
    "resources/list",
    "ping",
    "no/such",
]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(["viewer", "admin", "guest"]),
    st.lists(
        st.tuples(
            st.sampled_from(METHODS),
            st.sampled_from(NAMES),
            st.sampled_from(["", "{}", '{"amount": 5}', '{"amount": 900}']),
        ),
        max_size=8,
    ),
    st.sampled_from(["off", "full"]),
    st.sampled_from(["brief", "spec"]),
)
def test_the_gateway_decides_and_says_the_same(
    folder: Path, role: str, asked: list[tuple[str, str, str]], hide: str, errors: str
) -> None:
    config = load_config(folder / "tidegate.yaml", {})
    mcp = config.mcp.model_copy(update={"hide_denied": hide, "errors": errors})
    config = config.model_copy(update={"mcp": mcp})

    async def body() -> None:
        rules = values.tool_rules(config)
        named = [name.partition("__")[2] or name for name in NAMES]
        # What a server does not list, a client of mode full cannot know of.
        servers = {"billing": Server(tools=named), "crm": Server(tools=named)}
        world = Federated(**servers, rules=rules, hide_denied=hide, errors=errors)
        who = principal(world.policy.keys, role)
        for method, name, arguments in asked:
            found = dry_run(config, who, (method, name, *([arguments] if arguments else [])))
            told: Any = as_json(found)
            plain = {"jsonrpc": "2.0", "id": 1, "method": method}
            if found.message.params is not None:
                plain["params"] = found.message.params
            for server in servers.values():
                server.ran.clear()
            answer = await world.post(plain, role=role, **OLD)
            sees = told["client_sees"][errors]
            ran = [name for name, server in servers.items() if server.ran]
            if told["verdict"] == "allowed":
                assert "result" in value(answer)
                assert ran in ([], [told["server"]])
            else:
                assert (answer.status, value(answer)) == (sees["status"], sees["body"])
                assert ran == []
        await world.over()

    asyncio.run(body())
