"""What of a request may a provider see? The bodies of three dialects."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.redaction.samples import CARD, EMAIL, SECRET, SSN, VISA
from tidegate.redaction import (
    BlockedContent,
    RedactionPolicy,
    redact_chat_request,
    redact_messages_request,
    redact_responses_request,
)

POLICY = RedactionPolicy.preset("default")
LEAK = "x jane@example.com"
SAFE = f"x {EMAIL}"
PIXELS = "iVBORw0KGgo/4111111111111111/AIzaSyA123456789012345678901234567890123+QUJD"
URL = f"data:image/png;base64,{PIXELS}"
ARGUMENTS = '{"id":"jane\\u0040example.com","n":1}'
TOOL = {"name": "f", "description": LEAK, "parameters": {"properties": {"to": {"default": LEAK}}}}

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": LEAK},
        {"role": "developer", "content": [{"type": "text", "text": LEAK}]},
        {"role": "user", "name": "536-90-4399", "content": [
            {"type": "text", "text": LEAK},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": PIXELS, "format": "wav"}},
            {"type": "file", "file": {"filename": "jane@example.com.pdf", "file_data": URL}},
        ]},
        {"role": "assistant", "content": None, "refusal": LEAK, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}},
            {"id": "call_2", "type": "custom", "custom": {"name": "g", "input": LEAK}},
        ]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": ARGUMENTS}},
        {"role": "tool", "tool_call_id": "call_1", "content": LEAK},
        {"role": "function", "name": "f", "content": LEAK},
    ],
    "tools": [{"type": "function", "function": TOOL}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "description": LEAK}},
    "prediction": {"type": "content", "content": LEAK},
    "metadata": {"id": "jane@example.com", "password": "hunter2!x"},
    "stop": [LEAK],
    "user": LEAK,
    "seed": 4111111111111111,
    "x_future": {"deep": [[LEAK, 4111111111111111]]},
}  # fmt: skip

RESPONSES = {
    "model": "m",
    "instructions": LEAK,
    "input": [
        {"role": "user", "content": LEAK},
        {"type": "message", "role": "developer", "content": [
            {"type": "input_text", "text": LEAK},
            {"type": "input_image", "image_url": URL, "detail": "auto"},
            {"type": "input_file", "filename": "jane@example.com.pdf", "file_data": URL},
        ]},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": LEAK, "annotations": [], "logprobs": []},
        ]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c", "output": LEAK},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_text", "text": LEAK}, {"type": "input_image", "image_url": URL},
        ]},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": PIXELS, "summary": [
            {"type": "summary_text", "text": LEAK},
        ]},
        {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": LEAK},
        {"type": "mcp_call", "id": "m", "name": "h", "server_label": "s", "arguments": ARGUMENTS,
         "output": LEAK},
        {"type": "item_reference", "id": "msg_0"},
    ],
    "tools": [{"type": "function", **TOOL}, {"type": "mcp", "headers": {"x": LEAK}}],
    "prompt": {"id": "pmpt_1", "variables": {"id": "jane@example.com"}},
    "metadata": {"id": "jane@example.com", "password": "hunter2!x"},
    "user": LEAK,
    "x_future": {"deep": [[LEAK, 4111111111111111]]},
}  # fmt: skip

MESSAGES = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": LEAK, "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": LEAK},
        {"role": "user", "content": [
            {"type": "text", "text": LEAK},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                         "data": PIXELS}},
            {"type": "document", "title": LEAK, "context": LEAK, "source": {
                "type": "text", "media_type": "text/plain", "data": "4111111111111111"}},
            {"type": "document", "source": {"type": "url", "url": "https://u:p@example.org/a"}},
            {"type": "document", "source": {"type": "content", "content": [
                {"type": "text", "text": LEAK}]}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "clean", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": PIXELS},
            {"type": "text", "text": LEAK},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {
                "id": "jane@example.com", "card": 4111111111111111, "deep": [LEAK]}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": LEAK},
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": [
                {"type": "text", "text": LEAK}]},
        ]},
    ],
    "tools": [{"name": "f", "description": LEAK, "input_schema": {"default": LEAK}}],
    "tool_choice": {"type": "tool", "name": "f"},
    "metadata": {"user_id": "jane@example.com"},
    "stop_sequences": [LEAK],
    "x_future": {"deep": [[LEAK, 4111111111111111]]},
}  # fmt: skip

DIALECTS: list[tuple[Callable[..., Any], dict[str, Any], list[str]]] = [
    (redact_chat_request, CHAT, [URL, PIXELS, URL]),
    (redact_responses_request, RESPONSES, [URL, URL, URL, PIXELS]),
    (redact_messages_request, MESSAGES, [PIXELS, PIXELS]),
]


def masked(value: Any, key: str = "") -> Any:
    """What every text of the bodies above has to become."""
    if isinstance(value, dict):
        inner = {name: masked(text, name) for name, text in value.items()}
        is_text = value.get("type") == "text" and "media_type" in value
        return {**inner, "data": CARD} if is_text else inner
    if isinstance(value, list):
        return [masked(item, key) for item in value]
    if value == 4111111111111111 and key != "seed":
        return CARD
    if not isinstance(value, str) or value.startswith("data:") or value == PIXELS:
        return value
    if value == ARGUMENTS:
        return ARGUMENTS.replace("jane\\u0040example.com", EMAIL)
    value = value.replace("jane@example.com.pdf", EMAIL)
    value = value.replace("jane@example.com", EMAIL).replace("536-90-4399", SSN)
    return value.replace("u:p@", f"{SECRET}@").replace("hunter2!x", SECRET)


@pytest.mark.parametrize(("redact", "body", "passed"), DIALECTS)
def test_every_text_of_a_request_is_read(redact: Any, body: Any, passed: list[str]) -> None:
    before = copy.deepcopy(body)
    new, counts = redact(body, POLICY)
    assert body == before
    assert new == masked(body)
    assert "jane@" not in json.dumps(new)
    assert counts.unscanned == len(passed)
    again, found = redact(new, POLICY)
    assert (again is new, found) == (True, {})


@pytest.mark.parametrize(("redact", "body", "_"), DIALECTS)
def test_a_request_that_is_only_observed_is_the_same_object(redact: Any, body: Any, _: Any) -> None:
    new, counts = redact(body, POLICY.observing())
    assert new is body
    assert counts["email"] > 10


@pytest.mark.parametrize(("redact", "body", "_"), DIALECTS)
def test_a_request_may_be_refused(redact: Any, body: Any, _: Any) -> None:
    with pytest.raises(BlockedContent, match="email"):
        redact(body, POLICY.with_actions({"email": "block"}))


@pytest.mark.parametrize(
    ("redact", "body"),
    [
        (redact_responses_request, {"model": "m", "input": f"to {VISA}"}),
        (redact_messages_request, {"model": "m", "system": f"to {VISA}", "messages": []}),
        (redact_chat_request, {"prompt": [f"to {VISA}"]}),
    ],
)
def test_the_short_forms_are_read_too(redact: Any, body: dict[str, Any]) -> None:
    assert redact(body, POLICY)[0] == json.loads(json.dumps(body).replace(VISA, CARD))


@pytest.mark.parametrize(
    ("redact", "body"),
    [
        (redact_responses_request, {"input": "hi", "x_future": {"a": [1]}, "store": False}),
        (redact_messages_request, {"messages": [{"role": "user", "content": "hi"}, 5], "x": None}),
        (redact_messages_request, {"messages": "odd"}),
    ],
)
def test_a_request_without_findings_is_the_same_object(redact: Any, body: Any) -> None:
    assert redact(body, POLICY)[0] is body


def test_thinking_that_no_longer_fits_its_signature_is_left_out() -> None:
    blocks = [
        {"type": "thinking", "thinking": "about jane@example.com", "signature": "c2ln"},
        {"type": "thinking", "thinking": "ours, unsigned", "signature": ""},
        {"type": "thinking", "thinking": "fine", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "QUJD"},
        {"type": "text", "text": "ok"},
    ]
    body: dict[str, Any] = {
        "messages": [{"role": "assistant", "content": blocks}, {"role": "user"}]
    }
    new, counts = redact_messages_request(body, POLICY)
    assert new == {"messages": [{"role": "assistant", "content": blocks[2:]}, {"role": "user"}]}
    assert counts == {"email": 1}
