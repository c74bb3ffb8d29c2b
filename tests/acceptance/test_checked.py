"""Do `check` and `schema` say the right thing about the files that we ship?"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.acceptance.processes import tidegate
from tidegate.cli import run

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
NAMES = ("ACME_KEY", "PRIMARY_KEY", "BACKUP_KEY", "BACKEND_TOKEN", "ADMIN_TOKEN", "REDIS_PASSWORD")
# Long enough for a key, and found again if one of them were shown.
ENVIRON = {name: f"{name.lower()}-{'x' * 32}" for name in NAMES}


@pytest.fixture
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_secrets")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_is_valid(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--config", str(path)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[-1].startswith(f"{path}: valid, revision ")
    assert "warning" not in said.out
    assert "not in effect" not in said.out


@pytest.mark.full
def test_the_full_example_shown_is_a_file_of_its_own_without_any_secret(tmp_path: Path) -> None:
    (full,) = [path for path in EXAMPLES if path.stem == "full"]
    shown = tidegate(tmp_path, "check", "--config", str(full), "--show", environ=ENVIRON)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert not any(secret in shown.stdout for secret in ENVIRON.values())
    assert "${env:PRIMARY_KEY}" in shown.stdout
    (tmp_path / "shown.yaml").write_text(shown.stdout)
    again = tidegate(tmp_path, "check", "--config", "shown.yaml", "--json", environ=ENVIRON)
    assert again.returncode == 0
    first = shown.stdout.partition("valid, revision ")[2].splitlines()[0]
    assert json.loads(again.stdout)["revision"] == first


@pytest.mark.full
def test_a_file_whose_secrets_are_missing_names_each_of_them(tmp_path: Path) -> None:
    (full,) = [path for path in EXAMPLES if path.stem == "full"]
    done = tidegate(tmp_path, "check", "--config", str(full))
    assert done.returncode == 3
    text = full.read_text()
    assert all((name in done.stderr) is (name in text) for name in NAMES)
    assert all(line.startswith(f"{full}:") for line in done.stderr.splitlines())


def test_the_schema_takes_the_examples_and_refuses_what_check_refuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for path in EXAMPLES:
        assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) == [], path.stem
    wrong: list[Any] = [
        {"routs": []},
        {"server": {"prt": 1}},
        {"server": {"port": "x"}},
        {"limits": [{"name": "x"}]},
        {"mcp": {"errors": "other"}},
    ]
    for tree in wrong:
        assert list(validator.iter_errors(tree)), tree
