"""Can the commands of MCP servers on stdio be started where they are to run?"""

import os
from pathlib import Path

import pytest

from tidegate.config import Config, ConfigInvalid, load_config_text, values
from tidegate.mcp.servers import ServerCommand


def load(folder: Path, *lines: str, **environ: str) -> Config:
    text = "mcp:\n  servers:\n    files:\n" + "".join(f"      {line}\n" for line in lines)
    return load_config_text(text, {"PATH": str(folder / "bin"), **environ}, name="f", folder=folder)


def program(path: Path, *, runs: bool = True) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755 if runs else 0o644)


def warnings(config: Config) -> list[str]:
    return [str(each) for each in config.warnings if each.path.startswith("mcp.servers")]


def test_a_program_on_the_path_needs_no_word(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "server-files")
    assert warnings(load(tmp_path, "command: [server-files, --deep]")) == []


def test_one_that_is_not_there_is_said_with_its_place(tmp_path: Path) -> None:
    assert warnings(load(tmp_path, "command: [server-files]")) == [
        "f:4:17: mcp.servers.files.command[0]: the program server-files was not found: calls of "
        "this server fail: install it, give its whole path, or write the PATH it is in under `env`"
    ]


def test_a_path_of_its_own_counts_and_ours_does_not(tmp_path: Path) -> None:
    program(tmp_path / "own" / "server-files")
    own = f"env: {{ PATH: '{tmp_path / 'own'}' }}"
    assert warnings(load(tmp_path, "command: [server-files]", own)) == []
    program(tmp_path / "bin" / "other")
    assert len(warnings(load(tmp_path, "command: [other]", own))) == 1


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("cwd", ["work", None])
def test_a_path_to_a_program_begins_at_its_directory(
    *, runs: bool, cwd: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    program(tmp_path / (cwd or "") / "here" / "server", runs=runs)
    lines = ["command: [./here/server]", *([f"cwd: {cwd}"] if cwd else [])]
    assert [w.partition(" was ")[0] for w in warnings(load(tmp_path, *lines))] == (
        [] if runs else ["f:4:17: mcp.servers.files.command[0]: the program ./here/server"]
    )


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    assert len(warnings(load(tmp_path, f"command: ['{tmp_path}']"))) == 1


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        load(tmp_path, "command: [sh]", "cwd: nowhere")
    assert [str(problem) for problem in invalid.value.problems] == [
        f"f:5:12: mcp.servers.files.cwd: the directory {tmp_path / 'nowhere'} does not exist: "
        "create it, or name another one"
    ]


def test_what_came_by_reference_is_not_shown(tmp_path: Path) -> None:
    config = load(tmp_path, "command: ['${env:PROGRAM}']", PROGRAM="canary-program")
    (said,) = warnings(config)
    assert "the program was not found" in said
    with pytest.raises(ConfigInvalid) as invalid:
        load(tmp_path, "command: [sh]", "cwd: '${env:FOLDER}'", FOLDER="canary-folder")
    assert "canary" not in said + str(invalid.value.problems)


def test_a_secret_among_the_arguments_is_warned_of(tmp_path: Path) -> None:
    secret = load(tmp_path, "command: [sh, --token, '${env:FILES_TOKEN}']", FILES_TOKEN="a" * 20)
    assert [w.partition(": mcp.")[0] for w in warnings(secret)] == ["f:4:17", "f:4:30"]
    assert "can read the arguments" in warnings(secret)[1]
    assert "a" * 20 not in str(warnings(secret))
    plain = load(tmp_path, "command: [sh, '${env:HOME}/files']", HOME="/root")
    assert len(warnings(plain)) == 1


def test_the_command_becomes_a_value_with_its_variables_and_whole_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    config = load(
        tmp_path, "command: [sh, -c, 'a b']", "cwd: work", "env: { A: '${env:B}' }", B="secret"
    )
    assert values.mcp_servers(config) == {
        "files": ServerCommand("files", ("sh", "-c", "a b"), {"A": "secret"}, f"{tmp_path}/work")
    }
    place = values.mcp_servers(load(tmp_path, "command: [sh]"))["files"]
    assert place == ServerCommand("files", ("sh",))
    assert "secret" not in repr(place)


def test_the_search_is_along_the_path_of_the_process_if_none_is_given() -> None:
    text = "mcp: { servers: { files: { command: [sh] } } }\n"
    assert "PATH" in os.environ
    assert warnings(load_config_text(text, {})) == []


@pytest.mark.parametrize("environ", [{"PATH": "/opt/bin:/bin"}, {}])
def test_the_configuration_says_where_programs_are_looked_for(environ: dict[str, str]) -> None:
    assert load_config_text("demo: true\n", environ).search_path == environ.get("PATH")
