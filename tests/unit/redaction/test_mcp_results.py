"""What of a tool's answer may a client see? Every string leaf of every kind of message."""

import copy
import json
from typing import Any

import pytest

from tests.unit.redaction.samples import CARD, EMAIL, SECRET, SSN, VISA, key
from tidegate.redaction import BlockedContent, RedactionPolicy, redact_tree

POLICY = RedactionPolicy.preset("default")
LEAK = "to jane@example.com"
SAFE = f"to {EMAIL}"
PIXELS = "iVBORw0KGgo/4111111111111111" * 3


def reply(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "result": result}


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shape_of(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape_of(inner) for inner in value]
    return type(value).__name__


CONTENT = [
    ({"type": "text", "text": LEAK}, {"type": "text", "text": SAFE}),
    (
        {"type": "text", "text": LEAK, "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "text", "text": SAFE, "annotations": {"audience": ["user"], "priority": 0.5}},
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "text": LEAK}},
        {"type": "resource", "resource": {"uri": "file:///a", "text": SAFE}},
    ),
    (
        {"type": "resource_link", "uri": "https://u:p@h.org/a", "name": LEAK},
        {"type": "resource_link", "uri": f"https://{SECRET}@h.org/a", "name": SAFE},
    ),
    (
        {"type": "future", "x": {"deep": [LEAK]}, "_meta": {"note": LEAK}},
        {"type": "future", "x": {"deep": [SAFE]}, "_meta": {"note": SAFE}},
    ),
]  # fmt: skip
BLOBS = [
    {"type": "image", "data": PIXELS, "mimeType": "image/png"},
    {"type": "audio", "data": PIXELS, "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": PIXELS}},
]


@pytest.mark.parametrize(("part", "shown"), CONTENT)
def test_every_text_of_content_is_redacted(part: Any, shown: Any) -> None:
    new, counts = redact_tree(reply({"content": [part], "isError": True}), POLICY)
    assert new == reply({"content": [shown], "isError": True})
    assert sum(counts.values()) >= 1


@pytest.mark.parametrize("part", BLOBS)
def test_a_blob_passes_untouched_and_is_counted(part: Any) -> None:
    message = reply({"content": [part]})
    new, counts = redact_tree(message, POLICY)
    assert new is message
    assert (counts, counts.passed, counts.unscanned) == ({}, {"base64": 1}, 1)


@pytest.mark.parametrize("part", BLOBS)
def test_text_in_the_place_of_a_blob_is_redacted(part: Any) -> None:
    new, _ = redact_tree(
        reply({"content": [json.loads(json.dumps(part).replace(PIXELS, LEAK))]}), POLICY
    )
    assert SAFE in json.dumps(new)


def test_structured_content_keeps_its_shape_and_its_types() -> None:
    value = {
        "customer": {"mail": "jane@example.com", "id": "536-90-4399", "active": True, "n": 12.5},
        "rows": [["a", 1, None], [VISA, 2, False]],
        "api_key": key("sk-", 30),
        "empty": {},
    }
    message = reply({"content": [], "structuredContent": value})
    before = copy.deepcopy(message)
    new, counts = redact_tree(message, POLICY)
    assert message == before
    assert shape_of(new) == shape_of(message)
    assert new["result"]["structuredContent"] == {  # type: ignore[index]
        "customer": {"mail": EMAIL, "id": SSN, "active": True, "n": 12.5},
        "rows": [["a", 1, None], [CARD, 2, False]],
        "api_key": SECRET,
        "empty": {},
    }
    assert counts == {"email": 1, "ssn": 1, "credit_card": 1, "api_key": 1}


@pytest.mark.parametrize("bare", [True, False])
def test_a_number_that_is_a_card_refuses_structured_content(bare: bool) -> None:  # noqa: FBT001
    result = {"structuredContent": {"rows": [{"card": 4111111111111111}]}}
    with pytest.raises(BlockedContent, match="card"):
        redact_tree(result if bare else reply(result), POLICY)
    counted = POLICY.with_numbers("count")
    new, counts = redact_tree(result, counted)
    assert (new is result, counts.passed) == (True, {"number": 1})
    assert redact_tree(result, POLICY.observing())[0] is result


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            {"jsonrpc": "2.0", "id": "a", "error": {"code": -32602, "message": LEAK,
                                                    "data": {"x": [LEAK], "n": 4111111111111111}}},
            {"jsonrpc": "2.0", "id": "a", "error": {"code": -32602, "message": SAFE,
                                                    "data": {"x": [SAFE], "n": CARD}}},
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": LEAK, "data": LEAK}},
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": SAFE, "data": SAFE}},
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": "536-90-4399", "progress": 1, "total": 2, "message": LEAK}},
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": "536-90-4399", "progress": 1, "total": 2, "message": SAFE}},
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {
                "level": "info", "logger": LEAK, "data": {"text": LEAK, "list": [LEAK]}}},
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {
                "level": "info", "logger": SAFE, "data": {"text": SAFE, "list": [SAFE]}}},
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/message",
             "params": {"level": "info", "data": LEAK}},
            {"jsonrpc": "2.0", "method": "notifications/message",
             "params": {"level": "info", "data": SAFE}},
        ),
        (
            {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {
                "message": LEAK, "requestedSchema": {"properties": {"a": {"default": LEAK}}}}},
            {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {
                "message": SAFE, "requestedSchema": {"properties": {"a": {"default": SAFE}}}}},
        ),
        (
            {"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {
                "systemPrompt": LEAK, "messages": [
                    {"role": "user", "content": {"type": "text", "text": LEAK}}]}},
            {"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {
                "systemPrompt": SAFE, "messages": [
                    {"role": "user", "content": {"type": "text", "text": SAFE}}]}},
        ),
        (
            reply({"contents": [{"uri": "file:///a", "text": LEAK}], "nextCursor": "536-90-4399"}),
            reply({"contents": [{"uri": "file:///a", "text": SAFE}], "nextCursor": "536-90-4399"}),
        ),
        (
            reply({"description": LEAK, "messages": [
                {"role": "user", "content": {"type": "text", "text": LEAK}}]}),
            reply({"description": SAFE, "messages": [
                {"role": "user", "content": {"type": "text", "text": SAFE}}]}),
        ),
        (
            reply({"tools": [{"name": "f", "description": LEAK, "inputSchema": {"title": LEAK}}]}),
            reply({"tools": [{"name": "f", "description": SAFE, "inputSchema": {"title": SAFE}}]}),
        ),
    ],
)  # fmt: skip
def test_every_text_of_every_message_is_redacted(message: Any, shown: Any) -> None:
    assert redact_tree(message, POLICY)[0] == shown
    for member in ("result", "params", "error"):
        if member in message and "progressToken" not in message[member]:
            inner = {k: v for k, v in message[member].items() if k != "nextCursor"}
            expected = {k: v for k, v in shown[member].items() if k != "nextCursor"}
            assert redact_tree(inner, POLICY)[0] == expected
