"""Do exactly the annotated arguments of a call go into its headers?"""

from typing import Any

import pytest

from tidegate.mcp.param_headers import ParamHeaders


def tool(name: str, schema: object) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


def learned(*tools: object) -> ParamHeaders:
    headers = ParamHeaders()
    result = {"tools": list(tools), "nextCursor": "x"}
    assert headers.learn(result, first_page=True) == (result, 0)
    return headers


def marked(kind: object = "string", name: object = "Region") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


NESTED = {
    "properties": {
        "region": marked(),
        "count": marked("integer", "Count"),
        "dry": marked("boolean", "Dry-Run"),
        "where": {"type": "object", "properties": {"zone": marked(name="Zone")}},
        "plain": {"type": "string", "default": {"x-mcp-header": "data, not a schema"}},
    }
}


def test_values_are_written_as_the_specification_has_them() -> None:
    headers = learned(tool("t", NESTED))
    arguments = {"region": "eu", "count": 42, "dry": False, "where": {"zone": "z"}, "plain": "p"}
    assert headers.of({"name": "t", "arguments": arguments}) == [
        ("Mcp-Param-Region", "eu"),
        ("Mcp-Param-Count", "42"),
        ("Mcp-Param-Dry-Run", "false"),
        ("Mcp-Param-Zone", "z"),
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [("ü", "=?base64?w7w=?="), (" a", "=?base64?IGE=?="), ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?=")],
)
def test_what_no_header_can_hold_is_encoded(value: str, written: str) -> None:
    headers = learned(tool("t", NESTED))
    arguments = {"region": value}
    assert headers.of({"name": "t", "arguments": arguments}) == [("Mcp-Param-Region", written)]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"name": "t"},
        {"name": "other", "arguments": {"region": "eu"}},
        {"name": 1, "arguments": {"region": "eu"}},
        {"name": "t", "arguments": ["eu"]},
        {"name": "t", "arguments": {"region": None, "where": "z", "count": [1]}},
    ],
)
def test_what_is_not_there_has_no_header(params: dict[str, Any] | None) -> None:
    assert learned(tool("t", NESTED)).of(params) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": marked("number")}},
        {"properties": {"a": marked(["string"])}},
        {"properties": {"a": marked("object")}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": marked(name="")}},
        {"properties": {"a": marked(name="a b")}},
        {"properties": {"a": marked(name="A\r\nX")}},
        {"properties": {"a": marked(name=1)}},
        {"properties": {"a": marked(name="A"), "b": marked(name="a")}},
        {"properties": {"a": {"type": "array", "items": marked()}}},
        {"properties": {"a": {"anyOf": [marked()]}}},
        {"$defs": {"a": marked()}},
        {"type": "string", "x-mcp-header": "Root"},
    ],
)
def test_a_tool_that_breaks_the_rules_is_left_out_and_the_others_stay(schema: object) -> None:
    headers = ParamHeaders()
    good = tool("good", NESTED)
    result = {"tools": [tool("bad", schema), good], "ttlMs": 5}
    assert headers.learn(result, first_page=True) == ({"tools": [good], "ttlMs": 5}, 1)
    assert headers.of({"name": "bad", "arguments": {"a": "x"}}) == []
    assert headers.of({"name": "good", "arguments": {"region": "eu"}}) != []


def test_a_further_page_adds_and_a_new_list_replaces() -> None:
    headers = learned(tool("a", NESTED))
    call = {"name": "a", "arguments": {"region": "eu"}}
    headers.learn({"tools": [tool("b", NESTED)]}, first_page=False)
    assert headers.of(call)
    assert headers.of({**call, "name": "b"})
    headers.learn({"tools": []}, first_page=True)
    assert headers.of(call) == []


@pytest.mark.parametrize("result", [None, 1, [], {}, {"tools": 1}, {"tools": [1, {}, {"name": 1}]}])
def test_a_result_that_is_no_list_passes(result: object) -> None:
    assert ParamHeaders().learn(result, first_page=True) == (result, 0)


HEADERS = [
    ({"region": "x", "count": 42}, {"Region": "x", "Count": "42"}, None),
    ({"region": "x", "count": 42}, {"region": "x", "COUNT": "42.0"}, None),
    ({"region": "ü"}, {"Region": "=?base64?w7w=?="}, None),
    ({"region": "ü"}, {"Region": "=?base64?w7w?="}, "mcp-param-region"),
    ({"region": "x"}, {"Region": "X"}, "mcp-param-region"),
    ({"region": "x"}, {}, "mcp-param-region"),
    ({}, {"Region": "x"}, "mcp-param-region"),
    ({"region": None}, {"Region": "null"}, "mcp-param-region"),
    ({"count": 42}, {"Count": "42.5"}, "mcp-param-count"),
    ({"count": 42}, {"Count": "4.2e1"}, "mcp-param-count"),
    ({"dry": True}, {"Dry-Run": "true"}, None),
    ({"dry": True}, {"Dry-Run": "True"}, "mcp-param-dry-run"),
    ({"where": {"zone": "z"}}, {"Zone": "z"}, None),
    ({}, {"Unknown": "x"}, None),
    ({}, {}, None),
]


@pytest.mark.parametrize(("arguments", "given", "lie"), HEADERS)
def test_a_header_says_what_the_arguments_say_or_is_named(
    arguments: Any, given: dict[str, str], lie: str | None
) -> None:
    headers = learned(tool("t", NESTED))
    pairs = [(f"Mcp-Param-{token}", value) for token, value in given.items()]
    assert headers.contradiction({"name": "t", "arguments": arguments}, pairs) == lie
    assert headers.contradiction({"name": "another", "arguments": arguments}, pairs) is None
    assert headers.contradiction(None, pairs) is None
