"""A key is shown once, and the file gets what cannot be turned back into it."""

import hashlib
import json
import re

import pytest
import yaml

from tidegate.cli import run
from tidegate.config import load_config_text, values
from tidegate.errors import Unauthenticated

VERA = ["keys", "new", "--principal", "vera", "--tenant", "acme"]


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """The key and its line."""
    assert run([*VERA, *arguments]) == 0
    key, line = capsys.readouterr().out.splitlines()
    return key, line


def test_a_key_is_256_random_bits_and_its_line_lets_it_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    key, line = made(capsys, "--roles", "viewer, ops")
    assert re.fullmatch(r"tg-[0-9a-f]{64}", key)
    assert key not in line
    config = load_config_text(f"identity:\n  keys:\n{line}\n", {})
    table = values.key_table(config)
    principal = table.find([b"Bearer " + key.encode()])
    assert (principal.name, principal.tenant, principal.roles) == (
        "vera",
        "acme",
        ("viewer", "ops"),
    )
    assert principal.key_id == hashlib.sha256(key.encode()).hexdigest()[:8]
    for wrong in (key[:-1], key + "0", key.upper(), line.split('"')[1]):
        with pytest.raises(Unauthenticated):
            table.find([b"Bearer " + wrong.encode()])


def test_no_two_keys_are_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({made(capsys)[0] for _ in range(20)}) == 20


def test_as_json_it_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*VERA, "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert shown.err == ""
    assert found["sha256"] == hashlib.sha256(found["key"].encode()).hexdigest()
    assert (found["principal"], found["tenant"], found["roles"]) == ("vera", "acme", [])
    assert found["sha256"] in found["line"]


@pytest.mark.parametrize("name", ["vera", "true", "NULL", "7", "1e3", "a:b", "x@y.example", "on"])
def test_a_name_that_yaml_would_misread_is_quoted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keys", "new", "--principal", name, "--tenant", name, "--roles", name]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    (entry,) = yaml.safe_load(line)
    assert (entry["principal"], entry["tenant"], entry["roles"]) == (name, name, [name])
    load_config_text(f"identity:\n  keys:\n{line}\n", {})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--principal", "a b", "--tenant", "t"], "--principal"),
        (["--principal", "", "--tenant", "t"], "--principal"),
        (["--principal", "p", "--tenant", "t*"], "--tenant"),
        (["--principal", "p", "--tenant", "t", "--roles", "viewer,a b"], "--roles"),
        (["--tenant", "t"], "--principal"),
        (["--principal", "p"], "--tenant"),
    ],
)
def test_a_name_that_the_file_would_refuse_makes_no_key(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keys", "new", *arguments]) == 2
    shown = capsys.readouterr()
    assert named in shown.err
    assert shown.out == ""
