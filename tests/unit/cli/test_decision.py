"""Does `tidegate explain --as` say what the gateway would decide?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.mcp_world import TOKENS, Asked, World, echo, value
from tidegate.cli import run
from tidegate.cli.decision import as_json, dry_run
from tidegate.config import load_config, values
from tidegate.identity.keys import KeyTable
from tidegate.jsonrpc import Notification
from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.policy import Principal

MAIN = """identity:
  keys:
    - { sha256: "ZEROS", principal: vera, tenant: acme, roles: [viewer] }
    - { sha256: "ONES", principal: adam, tenant: acme, roles: [admin] }
mcp:
  servers: { backend: { url: "http://127.0.0.1:9001/mcp" } }
  rules_dir: tenants
  rules:
    - { deny: { tools: ["admin_*"], unless_roles: [admin] } }
    - { allow: { roles: [viewer], tools: [refund], when: ["amount <= 500"] } }
    - { allow: { roles: [admin], resources: ["file:///data/*"], tools: ["*"] } }
""".replace("ZEROS", "0" * 64).replace("ONES", "1" * 64)
OTHER = (
    "rules:\n- { allow: { tools: [report] } }\n- { deny: { roles: [admin], tools: [refund] } }\n"
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("TIDEGATE_CONFIG", "HIDE_ADMIN_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "other.yaml").write_text(OTHER)
    (tmp_path / "tidegate.yaml").write_text(MAIN)
    return tmp_path


def said(capsys: Capture, *words: str) -> tuple[int, Any]:
    code = run(["explain", "--json", "--as", *words])
    return code, json.loads(capsys.readouterr().out)


def test_a_denied_call_names_its_rule_and_what_a_client_is_told(
    folder: Path, capsys: Capture
) -> None:
    (folder / "tidegate.yaml").write_text(MAIN.replace("mcp:\n", "mcp:\n  hide_denied: off\n"))
    code, told = said(capsys, "viewer", "tools/call", "admin_reset_key", "{}")
    assert code == 4
    assert (told["verdict"], told["rule"], told["place"]) == (
        "denied",
        "mcp.rules[0]",
        "tidegate.yaml:10",
    )
    assert (told["required_role"], told["your_role"]) == ("admin", "viewer")
    brief, spec = told["client_sees"]["brief"], told["client_sees"]["spec"]
    assert brief["body"]["error"] == {
        "code": -32001,
        "message": "Unauthorized Tool Call",
        "data": {"tool": "admin_reset_key", "required_role": "admin", "your_role": "viewer"},
    }
    assert (brief["status"], spec["status"]) == (200, 403)
    assert spec["www_authenticate"] == 'Bearer error="insufficient_scope", scope="admin"'


def test_a_condition_shows_what_it_looked_at(folder: Path, capsys: Capture) -> None:
    code, told = said(capsys, "viewer", "tools/call", "refund", '{"amount": 900}')
    assert (code, told["rule"], told["reason"]) == (4, "default", "arguments")
    (weighed,) = told["weighed"]
    assert (weighed["place"], weighed["applies"]) == ("tidegate.yaml:10", False)
    assert weighed["operands"] == [{"condition": "amount <= 500", "value": 900, "holds": False}]
    code, told = said(capsys, "viewer", "tools/call", "refund", '{"amount": 500}')
    assert (code, told["verdict"], told["client_sees"]["brief"]) == (0, "allowed", None)


def test_a_tenants_own_rule_is_named_by_file_and_line(folder: Path, capsys: Capture) -> None:
    words = ("viewer", "--tenant", "other", "tools/call", "report")
    code, told = said(capsys, *words)
    assert (code, told["rule"], told["place"]) == (
        0,
        "other.yaml:rules[0]",
        "tenants/other.yaml:2",
    )
    assert said(capsys, "viewer", "tools/call", "report")[0] == 4


def test_the_text_holds_the_same(folder: Path, capsys: Capture) -> None:
    assert run(["explain", "--as", "viewer", "tools/call", "refund", '{"amount": 900}']) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "denied     tools/call refund as viewer of tenant acme"
    assert lines[1] == "rule       default (arguments)"
    assert lines[2] == "needs      required_role admin, your_role viewer"
    assert lines[3] == "weighed    allow mcp.rules[1] at tidegate.yaml:10: does not apply"
    assert lines[4] == "             amount <= 500: no, with 900"
    assert lines[5].startswith("brief      HTTP 200 {")
    assert lines[6].startswith("spec       HTTP 403, WWW-Authenticate: Bearer ")


def test_what_cannot_be_asked_is_a_usage_error(folder: Path, capsys: Capture) -> None:
    for words in (
        ["--as", "viewer"],
        ["--as", "viewer", "tools/call", "a", "{}", "more"],
        ["--as", "viewer", "tools/call", "a", '{"x": 1, "x": 2}'],
        ["--as", "viewer", "tools/call", "a", "[]"],
        ["--tenant", "acme", "0" * 32],
    ):
        assert run(["explain", *words]) == 2, words
    text = MAIN.replace("principal: adam, tenant: acme", "principal: adam, tenant: second")
    (folder / "tidegate.yaml").write_text(text)
    capsys.readouterr()
    assert run(["explain", "--as", "viewer", "tools/call", "a"]) == 2
    assert "Give --tenant: callers are of acme, second." in capsys.readouterr().err


def test_secrets_that_this_shell_lacks_are_not_needed(folder: Path, capsys: Capture) -> None:
    text = MAIN.replace('sha256: "' + "0" * 64 + '"', "key: '${env:NOT_SET_HERE}'")
    (folder / "tidegate.yaml").write_text(text)
    assert run(["explain", "--as", "viewer", "tools/call", "refund", '{"amount": 5}']) == 2
    assert "Give --tenant: the rules are not the same for each." in capsys.readouterr().err
    words = ["--tenant", "acme", "tools/call", "refund", '{"amount": 5}']
    assert run(["explain", "--as", "viewer", *words]) == 0
    assert "only the part mcp counts here" in capsys.readouterr().err
    (folder / "tidegate.yaml").write_text(text.replace("allow:", "alow:"))
    assert run(["explain", "--as", "viewer", "tools/call", "refund"]) == 3


NAMES = ["refund", "report", "admin_reset", "Admin_Reset", "", "re fund", "file:///data/x", "x://y"]
METHODS = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "tools/list",
    "resources/list",
    "tasks/get",
    "logging/setLevel",
    "ping",
    "no/such",
    "notifications/cancelled",
]


async def listing(asked: Asked) -> None:
    """Lists all tools that are asked for, for a client cannot know of others, and nothing else."""
    member = LISTED_MEMBER.get(asked.message["method"])
    if member is None:
        await echo(asked)
    else:
        named = [{"name": name, "inputSchema": {}} for name in NAMES]
        asked.result({member: named if member == "tools" else []})


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(["viewer", "admin", "guest"]),
    st.lists(
        st.tuples(
            st.sampled_from(METHODS),
            st.sampled_from(NAMES),
            st.sampled_from(["", "{}", '{"amount": 5}', '{"amount": 900}', '{"amount": "5"}']),
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
        world = World(listing, rules=rules, hide_denied=hide, errors=errors)
        who = principal(world.policy.keys, role)
        for method, name, arguments in asked:
            words = (method, name, *([arguments] if arguments else []))
            found = dry_run(config, who, words)
            told: Any = as_json(found)
            message = found.message
            plain: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
            if message.params is not None:
                plain["params"] = message.params
            if not isinstance(message, Notification):
                plain["id"] = 1
            answer = await world.post(plain, role=role)
            if method == "tasks/get":
                continue  # the gateway knows no such task, whatever began it
            sees = told["client_sees"][errors]
            if told["verdict"] == "allowed":
                assert isinstance(message, Notification) or "result" in value(answer)
            elif sees["body"] is not None:
                assert (answer.status, value(answer)) == (sees["status"], sees["body"])

    asyncio.run(body())


def principal(table: KeyTable, role: str) -> Principal:
    return table.find([f"Bearer {TOKENS[role]}".encode()])
