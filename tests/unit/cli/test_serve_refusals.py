"""Does `serve` refuse what must not be served, before it opens anything?"""

from pathlib import Path

import pytest

from tidegate.cli import run

DEMO_KEY = """\
server: { host: 0.0.0.0 }
identity: { keys: [{ key: viewer-token-xyz, principal: vera, roles: [viewer] }] }
"""
ANONYMOUS = """\
server: { host: 0.0.0.0 }
identity: { anonymous: { principal: guest } }
"""


def test_a_broken_file_is_exit_code_3_with_a_problem_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidegate.yaml"
    path.write_text("servr: {}\nserver: { port: many }\n")
    assert run(["serve", "--config", str(path)]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"{path}:{number}:") for number, line in enumerate(lines, 1)] == [
        True,
        True,
    ]


def test_a_file_that_is_not_there_is_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--config", str(tmp_path / "none.yaml")]) == 3
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "path_in_file"),
    [(DEMO_KEY, "identity.keys[0]"), (ANONYMOUS, "identity.anonymous")],
    ids=["demo key", "anonymous"],
)
def test_an_open_address_with_published_keys_or_none_is_refused(
    text: str, path_in_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidegate.yaml"
    path.write_text(text)
    assert run(["serve", "--config", str(path)]) == 3
    assert f": {path_in_file}" in capsys.readouterr().err


def test_the_demo_world_is_not_served_to_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TIDEGATE_CONFIG", raising=False)
    assert run(["serve", "--host", "::"]) == 3
    assert "demo key" in capsys.readouterr().err


def test_several_workers_need_a_store_that_they_can_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidegate.yaml"
    path.write_text("store: { url: 'memory:' }\n")
    assert run(["serve", "--config", str(path), "--workers", "2"]) == 3
    said = capsys.readouterr().err
    assert "2 workers cannot share a store in memory" in said
    assert "use sqlite:///PATH" in said


@pytest.mark.parametrize("workers", ["0", "257", "two"])
def test_a_number_of_workers_that_is_none_is_wrong_usage(
    workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--workers", workers]) == 2
    assert "--workers" in capsys.readouterr().err
