"""Does a client hear of exactly the changes that it wants to, and that the server tells?"""

import itertools

import pytest

from tidegate.mcp.changes import ALL, Wanted, changed_list, wanted_of, wish_of
from tidegate.mcp.eras import MODERN
from tidegate.mcp.introductions import Introduction

LISTS = {
    "notifications/tools/list_changed": ("toolsListChanged", "tools"),
    "notifications/prompts/list_changed": ("promptsListChanged", "prompts"),
    "notifications/resources/list_changed": ("resourcesListChanged", "resources"),
}
MEMBERS = [member for member, _ in LISTS.values()]
SUBSETS = [s for n in range(4) for s in itertools.combinations(MEMBERS, n)]


@pytest.mark.parametrize("subset", SUBSETS)
def test_a_wish_is_heard_and_told_as_it_was_written(subset: tuple[str, ...]) -> None:
    wish = dict.fromkeys(sorted(subset), True)
    wanted = wanted_of({"notifications": {**wish, "x": True}})
    assert wanted.encode() == wish
    for method, (member, _) in LISTS.items():
        assert wanted.hears(method, None) == (member in subset)
    assert not wanted.hears("notifications/message", {})
    assert not wanted.hears("notifications/resources/updated", {"uri": "a"})


def test_news_of_a_list_name_the_method_that_asks_for_it() -> None:
    for method, (_, kind) in LISTS.items():
        assert changed_list(method) == f"{kind}/list"
    assert changed_list("notifications/resources/updated") is None


@pytest.mark.parametrize("subset", SUBSETS)
def test_a_server_grants_what_it_promises(subset: tuple[str, ...]) -> None:
    promised = {kind: {"listChanged": member in subset} for member, kind in LISTS.values()}
    granted = ALL.granted(Introduction(MODERN, promised))
    assert granted.lists == frozenset(subset)
    assert ALL.granted(Introduction(MODERN)).lists == frozenset()


def test_resources_are_heard_of_by_their_uri() -> None:
    wanted = wanted_of({"notifications": {"resourceSubscriptions": ["b", "a", 3]}})
    assert wanted.encode() == {"resourceSubscriptions": ["a", "b"]}
    updated = "notifications/resources/updated"
    heard = [wanted.hears(updated, {"uri": uri}) for uri in ("a", "b", "c", None, 3)]
    assert heard == [True, True, False, False, False]
    assert not wanted.hears(updated, None)
    assert wanted.with_uris({"c"}).hears(updated, {"uri": "c"})
    assert wanted.granted(Introduction(MODERN)).uris == {"a", "b"}


@pytest.mark.parametrize(
    ("uris", "has_room"),
    [
        ([f"db:{number}" for number in range(1_000)], True),
        ([f"db:{number}" for number in range(1_001)], False),
        (["db:" + "a" * 1_000] * 200, True),
        (["db:" + "a" * 1_000] * 300, False),
        (["file:///My%20Files/a"] * 1_000, True),
        (["db:" + "%20" * 333] * 60, True),
        (["db:" + "%20" * 333] * 70, False),
        (["db:" + "a;b" * 333] * 70, False),
        (["https://a@h/" + "a" * 1_000] * 70, False),
        (["db:" + "\u00e9" * 1_000] * 70, False),
    ],
)
def test_a_wish_names_no_more_than_can_be_judged(uris: list[str], *, has_room: bool) -> None:
    wish = {"resourceSubscriptions": uris}
    assert wish_of({"notifications": wish}) == ((wish, uris) if has_room else None)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": 1, "resourceSubscriptions": "a"}},
        {"notifications": {"toolsListChanged": "true", "promptsListChanged": None}},
    ],
)
def test_what_is_no_wish_is_none(odd: dict[str, object] | None) -> None:
    assert wanted_of(odd) == Wanted()


def test_a_wish_has_an_end() -> None:
    uris = [f"test://{number}" for number in range(5000)]
    assert len(wanted_of({"notifications": {"resourceSubscriptions": uris}}).uris) == 1000
