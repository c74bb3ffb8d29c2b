"""Does every result and every error read like one of the client's own revision?"""

import itertools
from typing import Any

import pytest

from tidegate.jsonrpc import Code
from tidegate.mcp.bridged_results import (
    CACHED,
    NEEDS_INPUT,
    NEEDS_TASKS,
    ODD_RESULT,
    error_for,
    params_for,
    result_for,
    status_for,
)
from tidegate.mcp.bridging import Refused
from tidegate.mcp.eras import LEGACY, MODERN

PREFIX = "io.modelcontextprotocol/"
CLIENTS = (MODERN, *LEGACY, None)
SERVERS = (MODERN, *LEGACY, "2024-11-05")
METHODS = (*sorted(CACHED), "tools/call", "prompts/get", "completion/complete")
OF_OLD = ("2025-03-26", None)
STAMP = {f"{PREFIX}serverInfo": {"name": "s"}}


@pytest.mark.parametrize("method", METHODS)
def test_a_modern_client_gets_what_its_revision_demands_of_every_result(method: str) -> None:
    for server in SERVERS[1:]:
        result = result_for(method, {"x": 1, "ttlMs": "odd"}, MODERN, server)
        more = {"ttlMs": 0, "cacheScope": "private"} if method in CACHED else {"ttlMs": "odd"}
        assert result == {"x": 1, "resultType": "complete", **more}
    given = {"x": 1, "resultType": "input_required", "_meta": STAMP}
    assert result_for(method, given, MODERN, MODERN) is given


@pytest.mark.parametrize("method", METHODS)
def test_a_legacy_client_gets_nothing_of_2026(method: str) -> None:
    modern = {"resultType": "complete", "ttlMs": 5, "cacheScope": "public"}
    for client in CLIENTS[1:]:
        given = {"x": 1, **modern, "_meta": {**STAMP, "mine": 1}}
        assert result_for(method, given, client, MODERN) == {"x": 1, "_meta": {"mine": 1}}
        assert result_for(method, {"x": 1, "_meta": STAMP}, client, MODERN) == {"x": 1}
        assert given["_meta"] == {**STAMP, "mine": 1}


@pytest.mark.parametrize("method", METHODS)
def test_there_and_back_a_result_is_what_it_was(method: str) -> None:
    plain = {"x": 1, "nextCursor": "c", "_meta": {"y": 2}}
    for old in LEGACY:
        there: Any = result_for(method, plain, MODERN, old)
        assert result_for(method, there, old, MODERN) == plain


@pytest.mark.parametrize("kind", ["input_required", "task", "of-tomorrow", None, 3])
def test_a_result_that_is_none_yet_is_an_error_for_a_legacy_client(kind: object) -> None:
    for client in CLIENTS[1:]:
        refused = result_for("tools/call", {"resultType": kind}, client, MODERN)
        assert isinstance(refused, Refused)
        assert refused.code == Code.INVALID_REQUEST
        assert not isinstance(
            result_for("tools/call", {"resultType": kind}, client, LEGACY[0]), Refused
        )


@pytest.mark.parametrize("odd", [None, [], "text", 3, True])
def test_what_is_no_object_is_no_result(odd: object) -> None:
    for client, server in itertools.product(CLIENTS, SERVERS):
        refused = result_for("tools/list", odd, client, server)
        assert isinstance(refused, Refused)
        assert refused.code == Code.INTERNAL_ERROR


def tool(schema: object) -> dict[str, Any]:
    return {"name": "t", "title": "T", "icons": [], "inputSchema": {}, "outputSchema": schema}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_tools_promise_the_structure_that_the_client_s_revision_has(
    client: str | None, server: str
) -> None:
    schemas = [{"type": "object"}, {"type": "array"}, {"anyOf": []}, True]
    given = {"tools": [*map(tool, schemas), "odd", {"name": "bare"}]}
    result: Any = result_for("tools/list", given, client, server)
    kept = [each.get("outputSchema") for each in result["tools"][:4]]
    if client == MODERN:
        assert kept == schemas
    elif client in OF_OLD:
        assert kept == [None] * 4
    else:
        assert kept == [{"type": "object"}, None, None, None]
    assert result["tools"][4:] == ["odd", {"name": "bare"}]
    assert all(each["title"] == "T" and each["icons"] == [] for each in result["tools"][:4])
    assert "outputSchema" in given["tools"][0]


@pytest.mark.parametrize("value", [{"a": 1}, [1], "text", 3, None, True])
@pytest.mark.parametrize("client", CLIENTS)
def test_structure_reaches_who_knows_it_and_text_everybody(
    client: str | None, value: object
) -> None:
    text = [{"type": "text", "text": "x"}]
    for server in SERVERS:
        bare: Any = result_for(
            "tools/call", {"content": [], "structuredContent": value}, client, server
        )
        full: Any = result_for(
            "tools/call", {"content": text, "structuredContent": value}, client, server
        )
        knows = client == MODERN or (client not in OF_OLD and isinstance(value, dict))
        assert full["content"] == text
        assert ("structuredContent" in full) == ("structuredContent" in bare) == knows
        if not knows:
            [block] = bare["content"]
            assert block["type"] == "text"
            assert block["text"]


@pytest.mark.parametrize("client", CLIENTS)
def test_links_are_text_for_who_knows_no_links(client: str | None) -> None:
    link = {
        "type": "resource_link",
        "uri": "test://a",
        "name": "a",
        "title": "The A",
        "annotations": {"priority": 1},
    }
    plain = {"type": "text", "text": "The A: test://a", "annotations": {"priority": 1}}
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    for server in SERVERS:
        called: Any = result_for("tools/call", {"content": [image, link, 3]}, client, server)
        message = {"role": "user", "content": link}
        asked: Any = result_for("prompts/get", {"messages": [message, "odd"]}, client, server)
        shown = plain if client in OF_OLD else link
        assert called["content"] == [image, shown, 3]
        assert asked["messages"] == [{"role": "user", "content": shown}, "odd"]


def test_a_link_without_a_name_is_its_uri() -> None:
    given = {"content": [{"type": "resource_link", "uri": "test://a"}, {"type": "resource_link"}]}
    result: Any = result_for("tools/call", given, None, LEGACY[0])
    assert [block["text"] for block in result["content"]] == ["test://a", ""]


def test_a_link_is_named_by_its_name_where_it_has_no_title() -> None:
    link = {"type": "resource_link", "uri": "test://a"}
    given = {"content": [{**link, "name": "a"}, {**link, "name": 3}, {**link, "name": ""}]}
    result: Any = result_for("tools/call", given, None, LEGACY[0])
    assert [block["text"] for block in result["content"]] == ["a: test://a", "test://a", "test://a"]


def test_a_text_in_place_of_a_link_names_what_the_client_can_read() -> None:
    link = {"type": "resource_link", "uri": "test://a", "name": "a"}
    message = {"role": "user", "content": link}
    for server in SERVERS:
        for client in CLIENTS:
            results = {"tools/call": {"content": [link]}, "prompts/get": {"messages": [message]}}
            shown: Any = {
                method: result_for(method, given, client, server, "b+{}".format)
                for method, given in results.items()
            }
            # What stays a link is renamed where all of them are.
            told = {"type": "text", "text": "a: b+test://a"} if client in OF_OLD else link
            assert shown["tools/call"]["content"] == [told]
            assert shown["prompts/get"]["messages"] == [{"role": "user", "content": told}]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "video", "uri": "test://v", "title": "V"}, "V: b+test://v"),
        ({"type": "table", "rows": [[1]]}, '{"type":"table","rows":[[1]]}'),
        ({"type": "text", "text": "t"}, None),
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, None),
        ({"type": "resource", "resource": {"uri": "test://r", "text": ""}}, None),
        ({"type": 3}, None),
    ],
)
def test_content_that_a_client_does_not_know_is_text(
    block: Any, text: str | None, client: str | None
) -> None:
    given = {"content": [{**block, "_meta": {"x": 1}}]}
    result: Any = result_for("tools/call", given, client, LEGACY[0], "b+{}".format)
    is_text = text is not None and client in OF_OLD
    shown = {"type": "text", "text": text} if is_text else block
    assert result["content"] == [{**shown, "_meta": {"x": 1}}]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("input_required", NEEDS_INPUT), ("task", NEEDS_TASKS), ("of-tomorrow", ODD_RESULT)],
)
def test_an_error_says_what_cannot_be_carried(kind: str, text: str) -> None:
    refused = result_for("tools/call", {"resultType": kind}, LEGACY[0], MODERN)
    assert isinstance(refused, Refused)
    assert refused.message == text


def test_only_what_a_read_is_refused_with_says_that_there_is_no_resource() -> None:
    for method, code in (("resources/read", -32601), ("tools/call", -32602)):
        assert error_for(method, error(code), LEGACY[0], MODERN)["code"] == code


def error(code: int, message: str = "Resource not found", **data: object) -> dict[str, Any]:
    return {"code": code, "message": message, **({"data": data} if data else {})}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_resource_that_is_not_there_has_the_code_of_the_client_s_revision(
    client: str | None, server: str
) -> None:
    theirs = -32602 if server == MODERN else -32002
    ours = -32602 if client == MODERN else -32002
    told = error_for("resources/read", error(theirs, uri="test://x"), client, server)
    assert told == error(ours, uri="test://x")


def test_other_errors_about_params_stay_what_they_are() -> None:
    for method, text in (
        ("resources/read", "uri must be a string"),
        ("tools/call", "Unknown tool"),
    ):
        for client in CLIENTS[1:]:
            assert error_for(method, error(-32602, text), client, MODERN) == error(-32602, text)


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603, -31000, 0, 7])
def test_codes_that_mean_the_same_everywhere_pass(code: int) -> None:
    given = error(code, "x", y=1)
    for client, server in itertools.product(CLIENTS, SERVERS):
        assert error_for("tools/call", given, client, server) == given


@pytest.mark.parametrize("client", CLIENTS[1:])
def test_codes_of_2026_are_not_for_legacy_clients(client: str | None) -> None:
    missing = error_for("tools/call", error(-32021, "x", requiredCapabilities={}), client, MODERN)
    assert (missing["code"], missing["data"]) == (-32600, {"requiredCapabilities": {}})
    for code in (-32020, -32022):
        assert error_for("tools/call", error(code, "x"), client, MODERN)["code"] == -32603


@pytest.mark.parametrize("server", LEGACY)
def test_a_page_to_be_opened_is_named_as_what_cannot_be_carried(server: str) -> None:
    for client in CLIENTS:
        told = error_for("tools/call", error(-32042, "open this", elicitations=[]), client, server)
        if client == server:
            assert told == error(-32042, "open this", elicitations=[])
        else:
            assert told["code"] == -32600
            assert "data" not in told


def test_an_error_that_is_none_is_a_fault_of_the_server() -> None:
    for client, server in itertools.product(CLIENTS, SERVERS):
        assert error_for("tools/call", "odd", client, server)["code"] == Code.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32021, 400),
        (-32603, 200),
        (5, 200),
    ],
)
def test_an_error_has_a_status_of_its_own_since_2026(code: int, status: int) -> None:
    assert status_for({"error": {"code": code}}, MODERN) == status
    for client in CLIENTS[1:]:
        assert status_for({"error": {"code": code}}, client) == 200
    for fine in ({"result": {}}, {"method": "x"}, {"error": {"code": "odd"}}, {"error": 1}):
        assert status_for(fine, MODERN) == 200


def test_notifications_lose_the_fields_of_2026_on_the_way_to_others() -> None:
    meta = {f"{PREFIX}subscriptionId": 1, "x": 2}
    assert params_for({"_meta": meta}, MODERN) == {"_meta": meta}
    for client in CLIENTS[1:]:
        assert params_for({"a": 1, "_meta": meta}, client) == {"a": 1, "_meta": {"x": 2}}
        assert params_for({"_meta": {f"{PREFIX}subscriptionId": 1}}, client) == {}
        for odd in (None, "odd", {"_meta": 3}, {"a": 1}):
            assert params_for(odd, client) is odd
