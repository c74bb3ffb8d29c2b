"""Is a list read to its end, and given up where it has none?"""

import pytest

from tidegate.mcp.page_walk import PageWalk


def test_each_page_names_the_next_and_the_last_one_none() -> None:
    walk = PageWalk("tools")
    assert walk.cursor is None
    assert walk.items({"tools": [1], "nextCursor": "a"}) == [1]
    assert walk.cursor == "a"
    assert walk.items({"tools": [], "nextCursor": ""}) == []
    assert walk.cursor == ""
    assert walk.items({"tools": [2], "nextCursor": None}) == [2]
    assert walk.cursor is None


@pytest.mark.parametrize("circle", [["a", "a"], ["a", "b", "a"], ["", ""]])
def test_a_page_that_leads_back_is_none(circle: list[str]) -> None:
    walk = PageWalk("prompts")
    *others, last = circle
    for cursor in others:
        assert walk.items({"prompts": [], "nextCursor": cursor}) == []
    assert walk.items({"prompts": [1], "nextCursor": last}) is None


@pytest.mark.parametrize("result", [None, [], "x", {}, {"tools": None}, {"prompts": []}])
def test_what_has_no_such_list_is_no_page(result: object) -> None:
    assert PageWalk("tools").items(result) is None
