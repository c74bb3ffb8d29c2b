"""A file that the gateway shall write, in a directory that is not there."""

import os
from pathlib import Path

import pytest

from tidegate.config import Config, folder_fault, load_config_text

AGAIN = "create it, or name another file"


def warnings(config: Config) -> list[str]:
    return [str(warning) for warning in config.warnings if warning.path != "identity"]


def test_directories_that_do_not_exist_are_warned_of_where_the_file_names_them() -> None:
    config = load_config_text(
        "store: { url: sqlite:////nowhere/at/all/t.db }\nrecords: { path: nowhere/r.db }\n",
        {},
        name="f",
    )
    assert warnings(config) == [
        f"f:1:15: store.url: the directory /nowhere/at/all does not exist: {AGAIN}",
        f"f:2:18: records.path: the directory nowhere does not exist: {AGAIN}",
    ]


def test_directories_that_are_there_are_silent(tmp_path: Path) -> None:
    text = f"store: {{ url: sqlite:///{tmp_path}/t.db }}\nrecords: {{ path: {tmp_path}/r.db }}\n"
    assert warnings(load_config_text(text, {})) == []
    assert warnings(load_config_text("store: { url: 'memory:' }\n", {})) == []
    assert warnings(load_config_text("store: { url: 'redis://nowhere/0' }\n", {})) == []


def test_what_came_by_reference_is_not_repeated() -> None:
    environ = {"WHERE": "/nowhere/private/r.db"}
    config = load_config_text("records: { path: '${env:WHERE}' }\n", environ, name="f")
    assert warnings(config) == [
        f"f:1:18: records.path: the directory of this file does not exist: {AGAIN}"
    ]


def test_a_file_in_the_place_of_the_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    fault = folder_fault(str(tmp_path / "plain" / "r.db"))
    assert fault is not None
    assert fault.wrong == "is not a directory"


def test_a_directory_that_may_not_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the answer of the system is given here.
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    config = load_config_text(
        f"records: {{ path: {tmp_path}/r.db }}\nstore: {{ url: 'memory:' }}", {}
    )
    (warning,) = warnings(config)
    assert f"the directory {tmp_path} cannot be written: make it writable" in warning
