"""What the file watch says, look by look."""

import asyncio
from pathlib import Path

import pytest

from tidegate.config import load_config
from tidegate.gateway.filewatch import FileWatch, ListWatch


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


def test_what_was_taken_is_no_change_and_what_is_written_after_is(path: Path) -> None:
    watch = FileWatch(path)
    path.write_text("{ demo: true }")
    watch.take()
    assert looks(watch, 3) == [None, None, None]
    path.write_text("{ demo: false }")
    assert looks(watch, 3) == [None, "changed", None]
    aside = path.rename(path.with_name("aside"))
    watch.take()
    aside.rename(path)
    assert looks(watch, 3) == [None, None, None]


def test_a_deny_list_that_changed_is_said_once_and_only_when_it_rests(path: Path) -> None:
    async def looks(times: int) -> list[bool]:
        return [await watch.changed() for _ in range(times)]

    (path.parent / "of-a.txt").write_text("Jane")
    path.write_text("redaction: { deny_list: ['of-{tenant}.txt'] }")
    watch = ListWatch(load_config(path, {}))
    assert asyncio.run(looks(3)) == [False] * 3
    (path.parent / "of-b.txt").write_text("Max")
    assert asyncio.run(looks(3)) == [False, True, False]
    (path.parent / "of-a.txt").write_text("Jane Doe")
    assert asyncio.run(looks(1)) == [False]
    (path.parent / "of-a.txt").unlink()
    assert asyncio.run(looks(3)) == [False, True, False]


def test_without_deny_lists_there_is_nothing_to_look_at() -> None:
    for config in (None, load_config(None, {})):
        assert asyncio.run(ListWatch(config).changed()) is False
