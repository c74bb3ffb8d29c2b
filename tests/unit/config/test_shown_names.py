"""Is a pattern that means what clients see found out, before it lets pass what it should stop?"""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli import run
from tidegate.cli.check import check
from tidegate.config import Config, ConfigInvalid, load_config, load_config_text, values
from tidegate.jsonrpc import Request
from tidegate.mcp import authorize
from tidegate.mcp.federation import Federation
from tidegate.policy import Allow, Principal

SERVERS = ("billing", "CRM_eu")
HEAD = """identity:
  keys: [{{ sha256: "{digest}", principal: v, tenant: acme, roles: [viewer] }}]
mcp:
  servers:
{servers}
  rules:
    - {{ allow: {{ roles: [viewer] }} }}
"""


def head(*servers: str) -> str:
    lines = [f'    {name}: {{ url: "http://127.0.0.1:9001/{name}" }}' for name in servers]
    return HEAD.format(digest="0" * 64, servers="\n".join(lines))


def loaded(rule: str, *servers: str, environ: dict[str, str] | None = None) -> Config:
    text = head(*(servers or SERVERS)) + f"    - {rule}\n"
    return load_config_text(text, environ or {}, name="t.yaml")


def said(rule: str, *servers: str, environ: dict[str, str] | None = None) -> list[str]:
    """What is said of the rule, each with the word for how bad it is."""
    try:
        config = loaded(rule, *servers, environ=environ)
    except ConfigInvalid as invalid:
        return [f"error {problem}" for problem in invalid.problems]
    return [f"warning {warning}" for warning in config.warnings]


def may_call(config: Config, server: str, tool: str) -> bool:
    message = Request(1, "tools/call", {"name": tool})
    principal = Principal("v", "acme", ("viewer",), "k")
    rules = values.tool_rules(config).of("acme")
    return isinstance(authorize(message, principal, rules, server=server), Allow)


OWN = st.text("abA_-.", min_size=1, max_size=6)


@given(OWN, st.sampled_from(SERVERS), st.data())
def test_a_deny_of_what_clients_see_is_refused_and_what_is_said_instead_denies(
    own: str, server: str, data: st.DataObject
) -> None:
    shown = Federation(SERVERS).shown_name(server, own)
    cut = data.draw(st.integers(0, len(own)))
    pattern, right = f"{server}__{own[:cut]}*", f"{own[:cut]}*"
    assert shown is not None
    rule = f'{{ deny: {{ tools: ["{pattern}"] }} }}'
    [problem] = said(rule)
    assert problem.startswith(f"error t.yaml:9:25: mcp.rules[1].deny.tools[0]: '{pattern}' is what")
    assert f"write '{right}' with `servers: [{server}]`" in problem
    instead = f'{{ deny: {{ servers: [{server}], tools: ["{right}"] }} }}'
    if not own[:cut].startswith(f"{server}_"):
        assert said(instead) == []
    config = loaded(instead)
    assert not may_call(config, server, own)
    assert may_call(config, next(name for name in SERVERS if name != server), own)


@given(OWN, st.sampled_from(SERVERS))
def test_whoever_means_own_names_that_look_so_can_say_it(own: str, server: str) -> None:
    config = loaded(f'{{ deny: {{ tools: ["{server}_?{own}"] }} }}')
    assert config.warnings == ()
    assert not may_call(config, server, f"{server}__{own}")
    assert may_call(config, server, own) or own.startswith(f"{server}_")


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("tools", "billing__x"),
        ("tools", "billing__*"),
        ("tools", "crm_EU__x"),
        ("prompts", "billing__x"),
        ("resources", "billing+file:///secret/*"),
        ("resources", "CRM_eu+db://x"),
        ("resources", "crm.eu+db://x"),
    ],
)
def test_what_is_written_out_is_an_error_of_a_deny_and_a_warning_of_an_allow(
    effect: str, kind: str, pattern: str
) -> None:
    [finding] = said(f'{{ {effect}: {{ {kind}: ["{pattern}"] }} }}')
    level = "error" if effect == "deny" else "warning"
    place = f"t.yaml:9:{16 + len(effect + kind)}: mcp.rules[1].{effect}.{kind}[0]"
    assert finding.startswith(f"{level} {place}: '{pattern}' is what clients see of ")
    assert said(f'{{ {effect}: {{ {kind}: ["{pattern}"] }} }}', "billing") == []


LIKE = ["*__x", "b*__x", "?illing__x", "billing*", "billing_*", "CRM_eu*"]


@pytest.mark.parametrize("pattern", LIKE)
@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_what_may_be_meant_so_is_a_warning_until_somebody_says_whose_it_is(
    effect: str, pattern: str
) -> None:
    [warning] = said(f'{{ {effect}: {{ tools: ["{pattern}"] }} }}')
    assert warning.startswith("warning t.yaml:9:")
    for servers in ("billing", "CRM_eu", '"*"', "billing, CRM_eu"):
        assert said(f'{{ {effect}: {{ servers: [{servers}], tools: ["{pattern}"] }} }}') == []


@pytest.mark.parametrize(
    "pattern",
    ["*", "?*", "*_x", "bill*", "billin?_x", "billing", "billing_x", "a__b", "other__*"],
)
def test_what_own_names_look_like_is_not_spoken_of(pattern: str) -> None:
    assert said(f'{{ deny: {{ tools: ["{pattern}"] }} }}') == []


@pytest.mark.parametrize(
    ("servers", "level"),
    [("billing", "error"), ('"*"', "error"), ('"b*"', "error"), ("CRM_eu", "warning")],
)
def test_a_deny_that_leaves_the_server_out_may_mean_another_one(servers: str, level: str) -> None:
    [finding] = said(f'{{ deny: {{ servers: [{servers}], tools: ["billing__x"] }} }}')
    assert finding.startswith(level)


def test_a_pattern_that_came_by_reference_is_not_repeated() -> None:
    environ = {"DENIED": "billing__the_secret_one"}
    [problem] = said('{ deny: { tools: ["${env:DENIED}"] } }', environ=environ)
    assert problem == (
        "error t.yaml:9:25: mcp.rules[1].deny.tools[0]: '${env:DENIED}' is what clients see of "
        "'billing'; the names in a deny are the server's own, so it holds for nothing there: "
        "write the own name, with `servers: [billing]`"
    )
    environ = {"DENIED": "*__the_secret_one"}
    [warning] = said('{ deny: { tools: ["${env:DENIED}"] } }', environ=environ)
    assert "secret" not in warning


def test_check_and_serve_refuse_and_say_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.yaml"
    path.write_text(head(*SERVERS) + '    - { deny: { tools: ["billing__admin_*"] } }\n')
    result = CliRunner().invoke(check, ["--config", "t.yaml"])
    assert result.exit_code == 3
    assert result.stderr.startswith(
        "t.yaml:9:25: mcp.rules[1].deny.tools[0]: 'billing__admin_*' is"
    )
    assert run(["serve", "--config", "t.yaml"]) == 3
    assert capsys.readouterr().err == result.stderr
    limits = 'limits: [{ name: a, match: { tools: ["billing__x"] }, requests: 5 }]\n'
    path.write_text(head(*SERVERS) + limits)
    result = CliRunner().invoke(check, ["--config", "t.yaml"])
    assert result.exit_code == 0
    assert "warning: t.yaml:9:38: limits[0].match.tools[0]: 'billing__x' is what" in result.stdout


class TestTenants:
    """Files of tenants are judged as the main file is."""

    @pytest.fixture
    def main(self, tmp_path: Path) -> Path:
        (tmp_path / "tenants").mkdir()
        path = tmp_path / "t.yaml"
        path.write_text(head(*SERVERS) + "  rules_dir: tenants\n")
        return path

    def put(self, main: Path, rule: str) -> None:
        (main.parent / "tenants" / "acme.yaml").write_text(f"rules:\n  - {rule}\n")

    def test_a_deny_is_refused_at_a_start_and_not_taken_while_a_gateway_runs(
        self, main: Path
    ) -> None:
        self.put(main, "{ deny: { tools: [refund] } }")
        known = load_config(main, {})
        self.put(main, '{ deny: { tools: ["billing__admin_*"] } }')
        with pytest.raises(ConfigInvalid) as caught:
            load_config(main, {})
        [problem] = map(str, caught.value.problems)
        assert problem.startswith(
            "tenants/acme.yaml:2:23: rules[0].deny.tools[0]: 'billing__admin_*' is what clients see"
        )
        later = load_config(main, {}, known=known.rules_dir)
        assert [str(fault) for fault in later.rules_dir.faults] == [problem]
        assert not may_call(later, "billing", "refund")

    def test_what_is_allowed_is_said_when_the_file_is_read(self, main: Path) -> None:
        self.put(main, '{ allow: { tools: ["billing__refund"] } }')
        config = load_config(main, {})
        [warning] = map(str, config.warnings)
        assert warning.startswith("tenants/acme.yaml:2:24: rules[0].allow.tools[0]: 'billing__re")
        assert load_config(main, {}, known=config.rules_dir).warnings == ()
