from pathlib import Path

import pytest

from tests.unit.config.corpus import BROKEN, ENVIRON, VALID, expected, load, messages
from tidegate.config import Config, ConfigInvalid

pytestmark = pytest.mark.full


def names(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", BROKEN, ids=names)
def test_a_broken_file_is_refused_with_exactly_these_messages(path: Path) -> None:
    assert messages(path) == expected(path).read_text(encoding="utf-8")
    with pytest.raises(ConfigInvalid):
        load(path)


@pytest.mark.parametrize("path", VALID, ids=names)
def test_a_valid_file_loads_with_exactly_these_remarks(path: Path) -> None:
    assert isinstance(load(path), Config)
    assert messages(path) == expected(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*BROKEN, *VALID], ids=names)
def test_no_message_holds_a_value_from_the_environment(path: Path) -> None:
    said = messages(path)
    assert [value for value in ENVIRON.values() if len(value) > 8 and value in said] == []


@pytest.mark.parametrize("path", BROKEN, ids=names)
def test_every_message_has_a_place_and_says_what_would_be_right(path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(path)
    lines = path.read_bytes().count(b"\n") + 1
    for problem in caught.value.problems:
        assert 1 <= problem.line <= lines
        assert problem.col >= 1
        assert problem.wrong
        assert problem.right


def test_the_corpus_is_large_and_every_file_in_it_has_its_messages() -> None:
    assert len(BROKEN) >= 150
    assert [path.stem for path in (*BROKEN, *VALID) if not expected(path).exists()] == []
    kept = {path.stem for path in (*BROKEN, *VALID)}
    folders = {BROKEN[0].parent, VALID[0].parent}
    orphans = [p for folder in folders for p in folder.glob("*.expected") if p.stem not in kept]
    assert orphans == []
