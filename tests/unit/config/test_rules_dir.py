"""What do the files of tenants come to, at a start and while a gateway runs?"""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.config import Config, ConfigInvalid, load_config, values
from tidegate.config.rulefiles import MOST_BYTES, MOST_FILES, RulesDir, file_name, tenant_of
from tidegate.jsonrpc import Request
from tidegate.mcp import authorize
from tidegate.policy import Allow, Principal

pytestmark = pytest.mark.full

MAIN = """identity: { keys: [{ sha256: "%s", principal: v, tenant: acme, roles: [viewer] }] }
mcp:
  servers: { backend: { url: "http://127.0.0.1:9001/mcp" } }
  rules:
    - { deny: { tools: ["admin_*"] } }
    - { allow: { roles: [viewer], tools: [status] } }
  rules_dir: tenants
""" % ("0" * 64)
REPORTS = "rules:\n  - { allow: { roles: [viewer], tools: [report, admin_report] } }\n"
QUIET = "rules:\n- deny:\n    tools: [status]\n"


class Folder:
    """A main file and its folder of tenants."""

    def __init__(self, root: Path) -> None:
        self.main = root / "tidegate.yaml"
        self.tenants = root / "tenants"
        self.tenants.mkdir()
        self.main.write_text(MAIN)

    def put(self, name: str, text: str | bytes) -> Path:
        """As a control plane does: a file beside it, then a rename."""
        path, aside = self.tenants / name, self.tenants / f".{name}.new"
        aside.write_bytes(text if isinstance(text, bytes) else text.encode())
        return aside.rename(path)

    def load(self, known: Config | None = None) -> Config:
        """The configuration: at a start, or beside what is in force."""
        return load_config(self.main, {}, known=known.rules_dir if known is not None else None)

    def problems(self) -> list[str]:
        """Why a start is refused, without the folder of the test."""
        with pytest.raises(ConfigInvalid) as caught:
            self.load()
        return [str(each).replace(f"{self.main}", "main") for each in caught.value.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def allowed(config: Config, tool: str, tenant: str) -> bool:
    rules = values.tool_rules(config).of(tenant)
    message = Request(1, "tools/call", {"name": tool})
    principal = Principal("somebody", tenant, ("viewer",), "k")
    return isinstance(authorize(message, principal, rules, server="backend"), Allow)


def may(config: Config, tenant: str) -> list[str]:
    tools = ("status", "report", "admin_report")
    return [tool for tool in tools if allowed(config, tool, tenant)]


def test_a_tenants_rules_hold_beside_those_of_all_and_for_nobody_else(folder: Folder) -> None:
    folder.put("acme.yaml", REPORTS)
    folder.put("quiet%2Fone.yaml", QUIET)
    config = folder.load()
    assert may(config, "acme") == ["status", "report"]
    assert may(config, "quiet/one") == []
    for other in ("other", "Acme", "acme ", "", "*", "quiet", "a?me"):
        assert may(config, other) == ["status"], other


def test_no_file_lifts_a_deny_of_the_main_file(folder: Folder) -> None:
    folder.put("acme.yaml", REPORTS + "  - { deny: { tools: [status] } }\n")
    config = folder.load()
    assert may(config, "acme") == ["report"]
    assert len(values.tool_rules(config).of("acme").denies) == 2


def test_a_rule_of_a_tenant_is_named_by_its_file(folder: Folder) -> None:
    folder.put("acme.yaml", REPORTS)
    folder.put("quiet.yaml", QUIET)
    config = folder.load()
    rules = values.tool_rules(config)
    message = Request(1, "tools/call", {"name": "report"})
    assert authorize(message, Principal("v", "acme", ("viewer",), "k"), rules.of("acme")) == Allow(
        "acme.yaml:rules[0]"
    )
    assert rules.of("acme") is rules.of("acme")
    assert config.rules_dir.files["quiet"].lines == (2,)


def test_the_name_of_a_tenant_is_the_only_way_to_its_file() -> None:
    for tenant in ("acme", "a/b", "a:b", "a.yaml", "x@y.example"):
        assert tenant_of(file_name(tenant)) == tenant
    for name in (
        "acme.yml",
        "acme",
        "a%2fb.yaml",
        "%61cme.yaml",
        ".yaml",
        "a b.yaml",
        "a%20b.yaml",
        "a%zz.yaml",
    ):
        assert tenant_of(name) is None, name


def test_the_revision_covers_every_file(folder: Folder) -> None:
    seen = {folder.load().revision}
    folder.put("acme.yaml", REPORTS)
    seen.add(folder.load().revision)
    folder.put("acme.yaml", QUIET)
    seen.add(folder.load().revision)
    (folder.tenants / "acme.yaml").rename(folder.tenants / "other.yaml")
    seen.add(folder.load().revision)
    assert len(seen) == 4


def outside(folder: Folder, path: Path) -> None:
    (folder.tenants.parent / "elsewhere.yaml").write_text(REPORTS)
    path.unlink(missing_ok=True)
    path.symlink_to("../elsewhere.yaml")


def dangling(folder: Folder, path: Path) -> None:
    del folder
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


def pipe(folder: Folder, path: Path) -> None:
    del folder
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def directory(folder: Folder, path: Path) -> None:
    del folder
    path.unlink(missing_ok=True)
    path.mkdir()


def holding(text: str | bytes) -> Callable[[Folder, Path], None]:
    return lambda folder, path: folder.put(path.name, text) and None


BROKEN = {
    "empty": (holding(""), ":1:1: rules: the file holds no rules"),
    "only a key": (holding("rules:\n"), ":1:7: rules: the file holds no rules"),
    "half a line": (holding("rules:\n- { allow: { tools: [sta"), ":2:21: a list opened with ["),
    "half a rule": (
        holding("rules:\n- { allow: { tools: [a] } }\n- { deny:"),
        ":3:10: ",
    ),
    "a list": (holding("- { allow: {} }\n"), ":1:1: the file holds a list: begin it with `rules:`"),
    "not text": (holding(b"rules: \xff"), ":1:8: byte 0xff is not UTF-8"),
    "another key": (
        holding("rules: []\nerrors: spec\n"),
        ":2:1: errors: a tenant's file cannot set 'errors'",
    ),
    "another tenant": (
        holding("rules: [{ allow: { tenants: ['*'], tools: [a] } }]"),
        ":1:20: rules[0].allow.tenants: this file speaks for the tenant 'acme' alone",
    ),
    "a reference": (
        holding("rules: [{ allow: { tools: ['${env:HOME}'] } }]"),
        ":1:28: rules[0].allow.tools[0]: a tenant's file cannot refer to variables or files",
    ),
    "an unknown word": (
        holding("rules: [{ alow: {} }]"),
        ":1:11: rules[0].alow: ",
    ),
    "neither": (holding("rules: [{}]"), ":1:9: rules[0]: this rule has neither"),
    "a condition": (
        holding("rules: [{ allow: { tools: [a], when: ['x <'] } }]"),
        ":1:39: rules[0].allow.when[0]: not a condition",
    ),
    "a server": (
        holding("rules: [{ deny: { servers: [backnd] } }]"),
        ":1:29: rules[0].deny.servers[0]: 'backnd' matches nothing under `mcp.servers`",
    ),
    "twice": (holding("rules: []\nrules: []\n"), ":2:1: rules: this key stands here twice"),
    "too long": (
        holding(b"rules: []\n" + b"#" * MOST_BYTES),
        f": the file has more than {MOST_BYTES} bytes",
    ),
    "a link to the outside": (outside, ": this is a link to a file outside of the folder"),
    "a link to nothing": (dangling, ": the file cannot be read (No such file or directory)"),
    "a pipe": (pipe, ": this is not a file"),
    "a folder": (directory, ": this is not a file"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_not_right_refuses_a_start_and_keeps_the_last_good_rules(
    folder: Folder, case: str
) -> None:
    spoil, words = BROKEN[case]
    path = folder.put("acme.yaml", REPORTS)
    folder.put("quiet.yaml", REPORTS)
    good = folder.load()
    spoil(folder, path)
    folder.put("quiet.yaml", QUIET)
    (problem,) = folder.problems()
    assert problem.startswith(f"tenants/acme.yaml{words}"), problem
    later = folder.load(good)
    assert may(later, "acme") == ["status", "report"]
    assert may(later, "quiet") == []
    assert [str(fault) for fault in later.rules_dir.faults] == [problem]
    assert later.rules_dir.broken == ["tenants/acme.yaml"]
    path.rmdir() if path.is_dir() else path.unlink()
    folder.put("acme.yaml", QUIET)
    mended = folder.load(later)
    assert (may(mended, "acme"), mended.rules_dir.faults) == ([], ())


def test_a_first_file_that_is_not_right_leaves_its_tenant_the_rules_of_all(folder: Folder) -> None:
    good = folder.load()
    folder.put("acme.yaml", "rules: [")
    later = folder.load(good)
    assert may(later, "acme") == ["status"]
    assert later.rules_dir.broken == ["tenants/acme.yaml"]


def test_a_removed_file_takes_its_rules_away(folder: Folder) -> None:
    acme, quiet = folder.put("acme.yaml", REPORTS), folder.put("quiet.yaml", QUIET)
    good = folder.load()
    acme.unlink()
    quiet.unlink()
    later = folder.load(good)
    assert (may(later, "acme"), may(later, "quiet")) == (["status"], ["status"])
    assert later.rules_dir.faults == ()


def test_a_slip_in_the_name_of_a_file_takes_nothing_away(folder: Folder) -> None:
    acme = folder.put("acme.yaml", QUIET)
    good = folder.load()
    acme.rename(folder.tenants / "acme.yml")
    later = folder.load(good)
    assert may(later, "acme") == []
    assert [str(fault) for fault in later.rules_dir.faults] == folder.problems()
    assert folder.problems() == [
        "tenants/acme.yml: no tenant can have a file of this name"
        ": call it acme.yaml, or move it away"
    ]


@pytest.mark.parametrize("aside", [".acme.yaml", "acme.yaml.tmp", "acme.yaml~", "..data"])
def test_what_a_writer_leaves_beside_the_files_is_not_looked_at(folder: Folder, aside: str) -> None:
    folder.put("acme.yaml", REPORTS)
    (folder.tenants / aside).write_text("nothing of this [")
    assert list(folder.load().rules_dir.files) == ["acme"]


def test_links_inside_the_folder_are_followed(folder: Folder) -> None:
    """As a volume of a cluster is laid out: names are links into a hidden folder."""
    (folder.tenants / "..first").mkdir()
    (folder.tenants / "..first" / "acme.yaml").write_text(REPORTS)
    (folder.tenants / "..data").symlink_to("..first")
    (folder.tenants / "acme.yaml").symlink_to("..data/acme.yaml")
    config = folder.load()
    assert may(config, "acme") == ["status", "report"]
    (folder.tenants / "..second").mkdir()
    (folder.tenants / "..second" / "acme.yaml").write_text(QUIET)
    (folder.tenants / "..next").symlink_to("..second")
    (folder.tenants / "..next").rename(folder.tenants / "..data")
    assert may(folder.load(config), "acme") == []


def test_a_folder_that_is_gone_refuses_a_start_and_takes_nothing_back(folder: Folder) -> None:
    folder.put("acme.yaml", QUIET)
    good = folder.load()
    folder.tenants.rename(folder.tenants.parent / "elsewhere")
    (problem,) = folder.problems()
    assert problem == (
        "main:7:14: mcp.rules_dir: this folder cannot be read (No such file or directory)"
        ": create it, empty at first"
    )
    later = folder.load(good)
    assert may(later, "acme") == []
    assert [fault.path for fault in later.rules_dir.faults] == ["mcp.rules_dir"]
    (folder.tenants.parent / "elsewhere").rename(folder.tenants)
    assert folder.load(later).rules_dir.faults == ()


def test_another_folder_is_judged_like_at_a_start(folder: Folder) -> None:
    folder.put("acme.yaml", QUIET)
    good = folder.load()
    folder.main.write_text(MAIN.replace("rules_dir: tenants", "rules_dir: nowhere"))
    with pytest.raises(ConfigInvalid):
        folder.load(good)
    folder.main.write_text(MAIN.replace("  rules_dir: tenants\n", ""))
    assert may(folder.load(good), "acme") == ["status"]


def test_only_what_changed_is_read_again(folder: Folder) -> None:
    for number in range(20):
        folder.put(f"tenant{number}.yaml", QUIET)

    def kept(before: Config, after: Config) -> int:
        files = before.rules_dir.files
        return sum(after.rules_dir.files[tenant] is files[tenant] for tenant in files)

    first = folder.load()
    second = folder.load(first)
    assert kept(first, second) == 20
    folder.put("tenant7.yaml", REPORTS)
    third = folder.load(second)
    assert kept(second, third) == 19
    folder.main.write_text(MAIN.replace("backend:", "renamed:"))
    assert kept(third, folder.load(third)) == 0  # they may name servers


def test_a_file_is_judged_again_until_it_is_right(folder: Folder) -> None:
    """Also one that did not change: a server that its rules name is gone."""
    folder.put("acme.yaml", "rules: [{ deny: { servers: [backend], tools: [status] } }]")
    config = folder.load()
    folder.main.write_text(MAIN.replace("backend:", "renamed:"))
    for _ in range(3):
        config = folder.load(config)
        assert config.rules_dir.broken == ["tenants/acme.yaml"]
        assert may(config, "acme") == []
    folder.main.write_text(MAIN)
    assert folder.load(config).rules_dir.faults == ()


def test_all_of_it_reaches_another_process(folder: Folder) -> None:
    folder.put("acme.yaml", REPORTS)
    config = folder.load()
    other = pickle.loads(pickle.dumps(config))  # noqa: S301 - our own
    assert (may(other, "acme"), other.revision) == (["status", "report"], config.revision)
    assert other.rules_dir == config.rules_dir


def test_without_the_key_there_is_no_folder(folder: Folder) -> None:
    folder.main.write_text(MAIN.replace("  rules_dir: tenants\n", ""))
    assert folder.load().rules_dir == RulesDir()


@pytest.mark.full
def test_too_many_files_take_nothing_back(folder: Folder) -> None:
    folder.put("acme.yaml", QUIET)
    good = folder.load()
    for number in range(MOST_FILES):
        (folder.tenants / f"tenant{number}.yaml").touch()
    (problem,) = folder.problems()
    assert problem.startswith("main:7:14: mcp.rules_dir: more than 10000 files are in this folder")
    assert may(folder.load(good), "acme") == []
