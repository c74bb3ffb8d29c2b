"""What the file watch says, look by look."""

from pathlib import Path

import pytest

from tidegate.gateway.filewatch import FileWatch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tidegate.yaml"
    path.write_text("{}")
    return path


def looks(watch: FileWatch, times: int) -> list[str | None]:
    return [watch.look() for _ in range(times)]


def test_a_change_is_said_once_and_only_when_the_file_rests(path: Path) -> None:
    watch = FileWatch(path)
    assert looks(watch, 2) == [None, None]
    for length in range(1, 4):
        path.write_text("#" * length + "still being written")
        assert watch.look() is None
    assert looks(watch, 3) == ["changed", None, None]


def test_a_file_that_is_gone_is_said_once_until_it_is_back(path: Path) -> None:
    watch = FileWatch(path)
    path.unlink()
    assert looks(watch, 4) == [None, "missing", None, None]
    path.write_text("{ demo: true }")
    assert looks(watch, 3) == [None, "changed", None]
    path.unlink()
    assert looks(watch, 3) == [None, "missing", None]


def test_a_file_that_is_replaced_was_never_missing(path: Path) -> None:
    watch = FileWatch(path)
    path.unlink()
    assert watch.look() is None
    path.write_text("{ demo: true }")
    assert looks(watch, 3) == [None, "changed", None]


def test_a_file_that_comes_back_as_it_was_is_no_change(path: Path) -> None:
    watch = FileWatch(path)
    aside = path.rename(path.with_name("aside"))
    assert looks(watch, 2) == [None, "missing"]
    aside.rename(path)
    assert looks(watch, 3) == [None, None, None]
