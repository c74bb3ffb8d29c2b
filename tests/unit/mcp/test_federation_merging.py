"""Does the answer of the gateway say what its servers said, and who is missing?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.mcp.eras import LEGACY, SUPPORTED
from tidegate.mcp.federation_merging import (
    UNAVAILABLE,
    Offer,
    Part,
    acknowledged,
    described,
    merged_list,
    negotiated,
    with_missing,
)

OWN = {"name": "tidegate", "version": "0"}
ITEMS = st.none() | st.lists(st.integers(), max_size=4)
PARTS = st.lists(st.tuples(ITEMS, st.integers(0, 9)), max_size=5)


def parts_of(drawn: list[tuple[list[int] | None, int]]) -> list[Part]:
    return [Part(f"s{n}", items, ttl) for n, (items, ttl) in enumerate(drawn)]


@pytest.mark.full
@given(method=st.sampled_from(sorted(LISTED_MEMBER)), drawn=PARTS, modern=st.booleans())
def test_a_merged_list_holds_each_servers_items_in_order_and_names_who_is_missing(
    *, method: str, drawn: list[tuple[list[int] | None, int]], modern: bool
) -> None:
    parts = parts_of(drawn)
    merged = merged_list(method, parts, modern=modern)
    answered = [part for part in parts if part.items is not None]
    if not answered:
        assert merged is None
        return
    assert merged is not None
    assert merged[LISTED_MEMBER[method]] == [item for part in answered for item in part.items or ()]
    assert "nextCursor" not in merged
    missing = [part.server for part in parts if part.items is None]
    meta: Any = merged.get("_meta", {})
    assert meta.get(UNAVAILABLE, []) == missing
    assert ("_meta" in merged) is bool(missing)
    if modern:
        least = min(part.ttl_ms for part in answered)
        assert merged["ttlMs"] == (0 if missing else least)
        assert (merged["cacheScope"], merged["resultType"]) == ("private", "complete")
    else:
        assert merged.keys() <= {LISTED_MEMBER[method], "_meta"}


@pytest.mark.full
@given(PARTS, st.integers(-20, 20))
def test_filtering_before_or_after_the_merge_makes_no_difference(
    drawn: list[tuple[list[int] | None, int]], bound: int
) -> None:
    filtered = [
        (None if items is None else [item for item in items if item > bound], ttl)
        for items, ttl in drawn
    ]
    one: Any = merged_list("tools/list", parts_of(drawn), modern=True)
    two: Any = merged_list("tools/list", parts_of(filtered), modern=True)
    if one is not None:
        one = {**one, "tools": [item for item in one["tools"] if item > bound]}
    assert one == two


@pytest.mark.full
@given(PARTS)
def test_merging_what_was_merged_changes_nothing(
    drawn: list[tuple[list[int] | None, int]],
) -> None:
    one: Any = merged_list(
        "tools/list", parts_of([d for d in drawn if d[0] is not None]), modern=True
    )
    if one is not None:
        again = merged_list("tools/list", [Part("all", one["tools"], one["ttlMs"])], modern=True)
        assert again == one


def test_what_a_result_says_besides_stays_when_servers_are_missing() -> None:
    result: dict[str, object] = {"tools": [], "_meta": {"k": 1}}
    assert with_missing(result, ["a"]) == {"tools": [], "_meta": {"k": 1, UNAVAILABLE: ["a"]}}
    assert with_missing(result, []) is result
    assert with_missing({"_meta": 7}, ["a"]) == {"_meta": {UNAVAILABLE: ["a"]}}


TOOLS = {"capabilities": {"tools": {"listChanged": True}}, "instructions": " use x \n"}
REST = {
    "capabilities": {
        "tools": {},
        "prompts": {"listChanged": False},
        "resources": {"subscribe": True, "listChanged": "yes"},
        "logging": {},
        "completions": [],
        "experimental": {"x": {}},
        "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
        "extensions": {"io.modelcontextprotocol/tasks": {"a": 1}, "vendor/x": {}},
    },
    "instructions": 7,
}
MORE = {
    "capabilities": {
        "tasks": {"cancel": {}, "requests": {"tools": {"call": {"x": 1}}}, "list": 1},
        "extensions": {"io.modelcontextprotocol/tasks": {"a": 2, "b": 3}},
    }
}


def test_a_discovery_offers_what_some_server_offers() -> None:
    found = described(
        [Offer("a", TOOLS), Offer("dead"), Offer("b", REST), Offer("c", MORE)],
        version=None,
        own=OWN,
    )
    assert found == {
        "supportedVersions": list(SUPPORTED),
        "capabilities": {
            "tools": {"listChanged": True},
            "prompts": {},
            "resources": {"subscribe": True},
            "logging": {},
            "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {"x": 1}}}},
            "extensions": {"io.modelcontextprotocol/tasks": {"a": 1, "b": 3}},
        },
        "instructions": "# a\n\nuse x",
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": OWN, UNAVAILABLE: ["dead"]},
    }


def test_an_initialize_is_answered_in_its_own_form() -> None:
    found = described([Offer("a", TOOLS)], version=LEGACY[0], own=OWN)
    assert found == {
        "protocolVersion": LEGACY[0],
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": OWN,
        "instructions": "# a\n\nuse x",
    }


def test_without_any_server_there_is_nothing_and_without_any_answer_no_description() -> None:
    assert described([Offer("a"), Offer("b")], version=None, own=OWN) is None
    nothing: Any = described([], version="2025-06-18", own=OWN)
    assert nothing == {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": OWN}
    odd: Any = described([Offer("a", {"capabilities": []})], version=None, own=OWN)
    assert odd["capabilities"] == {}


def test_instructions_are_bounded_one_by_one_and_together() -> None:
    many = [Offer(f"s{n}", {"instructions": "x" * 100_000}) for n in range(20)]
    found: Any = described(many, version=None, own=OWN)
    assert len(found["instructions"]) == 32_768
    one: Any = described(many[:1], version=None, own=OWN)
    assert one["instructions"] == "# s0\n\n" + "x" * 4096


@pytest.mark.parametrize(
    ("params", "version"),
    [
        ({"protocolVersion": "2025-06-18"}, "2025-06-18"),
        ({"protocolVersion": "2026-07-28"}, "2025-11-25"),
        ({"protocolVersion": "1999-01-01"}, "2025-11-25"),
        ({"protocolVersion": 1}, None),
        ({}, None),
    ],
)
def test_an_initialize_comes_to_a_version_we_speak(params: Any, version: str | None) -> None:
    assert negotiated(params) == version


@pytest.mark.parametrize(
    ("wanted", "acks", "heard"),
    [
        ({"toolsListChanged": True}, [{"toolsListChanged": True}, {}], {"toolsListChanged": True}),
        ({"toolsListChanged": True}, [{}], {}),
        ({"toolsListChanged": False}, [{"toolsListChanged": True}], {}),
        ({}, [{"promptsListChanged": True, "resourceSubscriptions": ["a+x:y"]}], {}),
        (
            {"resourceSubscriptions": ["b+x:y", "a+x:y", "a+x:z"]},
            [{"resourceSubscriptions": ["a+x:y", 1]}, {"resourceSubscriptions": ["b+x:y"]}],
            {"resourceSubscriptions": ["b+x:y", "a+x:y"]},
        ),
        ({"resourceSubscriptions": "a"}, [{"resourceSubscriptions": "a"}], {}),
        ({"toolsListChanged": True}, [], {}),
    ],
)
def test_a_subscription_hears_what_was_asked_for_and_granted(
    wanted: Any, acks: Any, heard: Any
) -> None:
    assert acknowledged(wanted, acks) == heard
