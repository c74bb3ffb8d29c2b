import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.cli.check import check, schema
from tidegate.config import NotInEffect

BROKEN = "server: { port: 70000 }\nstore: { wait_s: -1 }\n"
DOCUMENTED = """identity:
  keys: [{ key: not-so-secret-at-all, principal: acme }]
  jwt: [{ issuer: https://id.example, audience: me, jwks_url: https://id.example/jwks }]
mcp: { servers: { a: { command: [sh] }, backend: { url: "http://localhost:9001/m", pin: block } } }
providers: { other: { dialect: anthropic, base_url: "http://localhost:9003/v1" } }
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.chdir(tmp_path)
    for name in ("TIDEGATE_CONFIG", "TIDEGATE_LOG", "HIDE_ADMIN_TOOLS", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return Run(tmp_path)


class Run:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, text: str | None, *arguments: str) -> Result:
        if text is not None:
            (self._folder / "tidegate.yaml").write_text(text)
        return CliRunner().invoke(check, arguments)


def test_without_a_file_it_reports_on_the_demo_world(run: Run) -> None:
    result = run(None)
    assert result.exit_code == 0
    assert result.stdout.startswith("demo world: valid, revision ")


def test_all_problems_are_on_stderr_one_a_line_and_the_exit_code_is_3(run: Run) -> None:
    result = run(BROKEN)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert [line.split(": ")[0] for line in result.stderr.splitlines()] == [
        "tidegate.yaml:1:17",
        "tidegate.yaml:2:18",
    ]


def test_remarks_come_before_the_verdict(run: Run) -> None:
    result = run(DOCUMENTED)
    assert result.exit_code == 0
    kinds = [line.split(": ")[:3] for line in result.stdout.splitlines()]
    assert kinds[0][0] == "warning"
    assert kinds[1][1:] == ["providers.other.dialect", "not in effect yet"]
    assert kinds[2][1].startswith("valid, revision")


def test_a_key_without_effect_that_somebody_may_rely_on_is_told_loudly() -> None:
    quiet = NotInEffect("a.yaml", 1, 2, "some.key", "something else happens", weakens=False)
    loud = replace(quiet, weakens=True)
    assert str(quiet) == "a.yaml:1:2: some.key: not in effect yet: something else happens"
    assert str(loud) == str(quiet).replace("some.key:", "some.key: NOT PROTECTED:")


def test_show_prints_a_file_with_origins_in_which_remarks_are_comments(run: Run) -> None:
    result = run(DOCUMENTED, "--show")
    assert result.exit_code == 0
    assert "# warning: tidegate.yaml:2:17: identity.keys[0].key" in result.stdout
    assert "  port: 8080" in result.stdout
    assert "not-so-secret-at-all" not in result.stdout


def test_what_serve_would_refuse_is_refused_here_too(run: Run) -> None:
    result = run("demo: true\nserver: { host: '::' }\n")
    assert result.exit_code == 3
    assert "refused by serve" in result.stdout
    assert "identity.keys[0]: everybody knows this demo key" in result.stdout


def test_json_holds_everything_and_only_json(run: Run) -> None:
    report = json.loads(run(DOCUMENTED, "--json", "--show").stdout)
    assert report["valid"] is True
    assert report["source"] == "tidegate.yaml"
    assert [entry["path"] for entry in report["warnings"]] == ["identity.keys[0].key"]
    assert [(entry["path"], entry["weakens"]) for entry in report["not_in_effect"]] == [
        ("providers.other.dialect", False),
    ]
    assert report["configuration"]["identity"]["keys"][0]["key"] == "(literal)"
    assert report["origins"]["mcp.servers.backend.pin"] == "tidegate.yaml:4"
    assert report["origins"]["server.port"] == "default"


def test_json_of_an_invalid_file_holds_the_problems(run: Run) -> None:
    result = run(BROKEN, "--json")
    assert result.exit_code == 3
    report = json.loads(result.stdout)
    assert report["valid"] is False
    assert [(entry["line"], entry["path"]) for entry in report["problems"]] == [
        (1, "server.port"),
        (2, "store.wait_s"),
    ]


def test_a_file_that_is_named_must_exist(run: Run) -> None:
    result = run(None, "--config", "none.yaml")
    assert result.exit_code == 3
    assert result.stderr == (
        "none.yaml: there is no such file: create it, or name another one with --config\n"
    )


def test_the_variable_names_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.yaml").write_text(BROKEN)
    monkeypatch.setenv("TIDEGATE_CONFIG", "other.yaml")
    assert run("demo: true\n").stderr.startswith("other.yaml:1:17: ")


def test_the_schema_is_one_json_document() -> None:
    result = CliRunner().invoke(schema)
    assert result.exit_code == 0
    assert set(json.loads(result.stdout)["properties"]) >= {"server", "routes", "mcp", "demo"}


TENANTS = """identity: { anonymous: { principal: guest, tenant: acme, roles: [viewer] } }
mcp: { servers: { backend: { url: "http://127.0.0.1:9001/mcp" } }, rules_dir: tenants }
"""


def test_rules_of_tenants_are_judged_and_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tenants").mkdir()
    file = tmp_path / "tenants" / "acme.yaml"
    file.write_text("rules:\n- { allow: { tools: [report] } }\n")
    shown = run(TENANTS, "--show")
    assert shown.exit_code == 0
    assert "# tenants: 1 tenants with 1 rules of their own\n" in shown.stdout
    assert '"allow": {"tools": ["report"]' in shown.stdout
    assert "# tenants/acme.yaml:2\n" in shown.stdout
    report = json.loads(run(TENANTS, "--show", "--json").stdout)
    assert report["tenant_rules"]["acme"]["file"] == "tenants/acme.yaml"
    assert report["tenant_rules"]["acme"]["lines"] == [2]
    file.write_text("rules:\n- { allow: { tools: report } }\n")
    broken = run(TENANTS)
    assert (broken.exit_code, broken.stdout) == (3, "")
    assert broken.stderr.startswith("tenants/acme.yaml:2:21: rules[0].allow.tools: ")
