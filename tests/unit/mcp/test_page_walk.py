"""Is a list read to its end, and given up where it has none?"""

import tracemalloc

import pytest

from tidegate.mcp.cursors import MOST_CHARS
from tidegate.mcp.page_walk import PageWalk


def test_each_page_names_the_next_and_the_last_one_none() -> None:
    walk = PageWalk("tools")
    assert walk.cursor is None
    assert walk.items({"tools": [1], "nextCursor": "a"}) == [1]
    assert walk.cursor == "a"
    assert walk.items({"tools": [], "nextCursor": "b"}) == []
    assert walk.cursor == "b"
    assert walk.items({"tools": [2]}) == [2]
    assert walk.cursor is None


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_cursor_is_the_end(nothing: object) -> None:
    walk = PageWalk("tools")
    assert walk.items({"tools": [1], "nextCursor": "a"}) == [1]
    for _ in range(2):
        assert walk.items({"tools": [2], "nextCursor": nothing}) == [2]
        assert walk.cursor is None


@pytest.mark.parametrize("odd", [0, 5, True, [], {}, "x" * (MOST_CHARS + 1)])
def test_a_page_with_a_cursor_that_is_none_is_no_page(odd: object) -> None:
    walk = PageWalk("tools")
    assert walk.items({"tools": [1], "nextCursor": odd}) is None
    assert walk.cursor is None


def test_of_cursors_only_hashes_are_kept() -> None:
    walk = PageWalk("tools")
    tracemalloc.start()
    try:
        for page in range(100):
            cursor = str(page) + "x" * 60_000
            assert walk.items({"tools": [], "nextCursor": cursor}) == []
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("circle", [["a", "a"], ["a", "b", "a"], ["\ud800", "\ud800"]])
def test_a_page_that_leads_back_is_none(circle: list[str]) -> None:
    walk = PageWalk("prompts")
    *others, last = circle
    for cursor in others:
        assert walk.items({"prompts": [], "nextCursor": cursor}) == []
    assert walk.items({"prompts": [1], "nextCursor": last}) is None


@pytest.mark.parametrize("result", [None, [], "x", {}, {"tools": None}, {"prompts": []}])
def test_what_has_no_such_list_is_no_page(result: object) -> None:
    assert PageWalk("tools").items(result) is None
