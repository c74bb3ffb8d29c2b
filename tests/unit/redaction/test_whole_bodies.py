import copy
import json
from typing import Any

import pytest

from tests.unit.redaction.chat import content, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, MASKED, SECRET, SSN, VISA, key
from tidegate.redaction import (
    BlockedContent,
    RedactionPolicy,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")
SOUND = "4111111111111111" * 4
PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "I am jane@example.com"},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
    {"type": "text", "text": f"card {VISA}"},
]


def test_message_parts_stay_in_order_and_only_texts_change() -> None:
    body: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": PARTS}],
    }
    before = copy.deepcopy(body)
    new, counts = redact_chat_request(body, POLICY)
    assert body == before
    shown = copy.deepcopy(PARTS)
    shown[0]["text"], shown[3]["text"] = f"I am {EMAIL}", f"card {CARD}"
    assert new == {"model": "m", "messages": [{"role": "user", "content": shown}]}
    assert counts == {"email": 1, "credit_card": 1}


@pytest.mark.parametrize(
    "body",
    [
        {
            "model": "m",
            "max_completion_tokens": 50,
            "reasoning_effort": "low",
            "parallel_tool_calls": False,
            "x_future": {"a": [1]},
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": ""},
            ],
            "tools": [
                {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
            ],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        },
        {
            "messages": [
                {
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": "data:image/png;base64,iVBORw0KGgo/4111111111111111/AI"
                                "zaSyA123456789012345678901234567890123+QUJD"
                            },
                        }
                    ]
                }
            ]
        },
    ],
)
def test_a_request_without_findings_is_the_same_object(body: dict[str, object]) -> None:
    new, counts = redact_chat_request(body, POLICY)
    assert new is body
    assert counts == {}


def test_every_text_of_a_request_is_read() -> None:
    leak = "x jane@example.com"
    body: dict[str, Any] = {
        "model": leak,
        "messages": [
            {"role": "system", "content": leak},
            {"role": "user", "name": "536-90-4399", "content": [{"type": "text", "text": leak}]},
            {"role": "tool", "tool_call_id": leak, "content": leak},
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": leak, "arguments": '{"a":"a\\u0040b.co"}'}}],
                "function_call": {"name": "f", "arguments": "a@b.co"},
            },
        ],
        "tools": [{"function": {"name": "f", "description": leak, "parameters": {"x": leak}}}],
        "metadata": {"password": "hunter2!x", "k": leak},
        "user": leak,
        "stop": [leak],
        "x_unknown": {"deep": [[leak]]},
    }
    new, counts = redact_chat_request(body, POLICY)
    text = json.dumps(new)
    assert "jane@example.com" not in text
    assert new["messages"][3]["tool_calls"][0]["function"]["arguments"] == f'{{"a":"{EMAIL}"}}'  # type: ignore[index]
    assert new["messages"][3]["function_call"]["arguments"] == EMAIL  # type: ignore[index]
    assert new["messages"][1]["name"] == SSN  # type: ignore[index]
    assert new["metadata"] == {"password": SECRET, "k": f"x {EMAIL}"}
    assert counts == {"email": 14, "ssn": 1, "api_key": 1}


def test_a_blocked_request_names_the_family() -> None:
    policy = POLICY.with_actions({"card": "block"})
    with pytest.raises(BlockedContent, match="card"):
        redact_chat_request({"messages": [{"content": VISA}]}, policy)


@pytest.mark.parametrize("text", [*(text for _, text, _ in MASKED), "//u:p@h.org", ": hunter2!x"])
def test_stream_and_whole_answer_agree(text: str) -> None:
    body: dict[str, object] = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]
    }
    new, counts = redact_chat_completion(body, POLICY)
    cuts = range(0, len(text), max(1, len(text) // 40))
    pieces = [text[i : i + (cuts.step or 1)] for i in cuts]
    client, redactor = run([*(content(piece) for piece in pieces), finish()])
    assert new["choices"][0]["message"]["content"] == client.texts[0]  # type: ignore[index]
    assert counts == redactor.counts


def test_every_choice_of_an_answer_is_read_and_log_probabilities_go() -> None:
    body: dict[str, Any] = {
        "id": "536-90-4399",
        "choices": [
            {"message": {"content": "a@b.co", "refusal": "c@d.co"}, "logprobs": {"content": []}},
            {
                "message": {
                    "reasoning_content": VISA,
                    "audio": {"data": "4111", "transcript": "a@b.co"},
                }
            },
            "a@b.co",
        ],
        "usage": {"total_tokens": 12},
    }
    new, counts = redact_chat_completion(body, POLICY)
    assert new == {
        "id": "536-90-4399",
        "choices": [
            {"message": {"content": EMAIL, "refusal": EMAIL}, "logprobs": None},
            {
                "message": {
                    "reasoning_content": CARD,
                    "audio": {"data": "", "transcript": EMAIL},
                }
            },
            EMAIL,
        ],
        "usage": {"total_tokens": 12},
    }
    assert counts == {"email": 4, "credit_card": 1}
    with pytest.raises(BlockedContent):
        redact_chat_completion(body, POLICY, logprobs="refuse")


def test_a_clean_answer_is_the_same_object() -> None:
    body: dict[str, Any]
    for body in ({"choices": [{"message": {"content": "hi"}, "logprobs": None}]}, {"error": "x"}):
        assert redact_chat_completion(dict(body), POLICY)[0] == body
    empty: dict[str, object] = {"choices": []}
    assert redact_chat_completion(empty, POLICY)[0] is empty


def test_arguments_of_an_answer_may_pass() -> None:
    arguments = '{"to":"jane@example.com"}'
    body: dict[str, Any] = {
        "choices": [{"message": {"tool_calls": [{"function": {"arguments": arguments}}]}}]
    }
    assert redact_chat_completion(body, POLICY, tool_arguments=False) == (body, {})
    assert redact_chat_completion(body, POLICY, tool_arguments="detect") == (body, {"email": 1})
    assert EMAIL in json.dumps(redact_chat_completion(body, POLICY)[0])


def test_a_tree_is_redacted_leaf_by_leaf() -> None:
    tree = {
        "jsonrpc": "2.0",
        "id": "536-90-4399",
        "result": {
            "content": [
                {"type": "text", "text": "to jane@example.com"},
                {"type": "image", "data": SOUND, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "x:1", "blob": SOUND}},
            ],
            "structuredContent": {
                "id": "536-90-4399",
                "n": 4111111111111112,
                "token": "abcd1234ef",
            },
            "nextCursor": "536-90-4399",
        },
    }
    new, counts = redact_tree(tree, POLICY)
    assert counts == {"email": 1, "ssn": 1, "api_key": 1}
    assert isinstance(new, dict)
    assert (new["id"], new["result"]["nextCursor"]) == ("536-90-4399", "536-90-4399")
    assert new["result"]["structuredContent"] == {
        "id": SSN,
        "n": 4111111111111112,
        "token": SECRET,
    }
    assert new["result"]["content"][1] is tree["result"]["content"][1]  # type: ignore[index]
    error, _ = redact_tree({"error": {"message": "a@b.co", "data": "c@d.co"}}, POLICY)
    assert error == {"error": {"message": EMAIL, "data": EMAIL}}


@pytest.mark.parametrize("value", [None, 1, 0.1, True, "text", [], {}, {"a": [{"b": "c"}]}])
def test_a_clean_tree_is_the_same_object(value: object) -> None:
    new, counts = redact_tree(value, POLICY)
    assert new is value
    assert counts == {}


def test_a_tree_that_is_one_string_is_redacted() -> None:
    assert redact_tree("a@b.co", POLICY) == (EMAIL, {"email": 1})


def test_depth_of_a_tree_is_bounded() -> None:
    deep: object = "a@b.co"
    for _ in range(130):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        redact_tree(deep, POLICY)


@pytest.mark.parametrize(
    "holder",
    [
        {"content": "X"},
        {"reasoning_content": "X"},
        {"refusal": "X"},
        {"content": [{"type": "text", "text": "X"}]},
        {"content": ["X"]},
        {"note": "X"},
    ],
)
def test_a_text_that_looks_like_a_data_url_is_read_as_text(holder: dict[str, Any]) -> None:
    text = json.dumps(holder).replace("X", "data:text/plain;base64,4111111111111111")
    shown = json.loads(text.replace("4111111111111111", CARD))
    message = {"role": "user", **json.loads(text)}
    expected = {"role": "user", **shown}
    assert redact_chat_request({"messages": [message]}, POLICY)[0] == {"messages": [expected]}
    choice: dict[str, object] = {"choices": [{"message": message}]}
    assert redact_chat_completion(choice, POLICY)[0] == {"choices": [{"message": expected}]}
    assert redact_tree(message, POLICY)[0] == expected


@pytest.mark.parametrize(
    "holder",
    [
        {"image_url": {"url": "X"}},
        {"image_url": "X"},
        {"images": ["X"]},
        {"file": {"file_data": "X", "filename": "a.pdf"}},
        {"input_audio": {"data": "X", "format": "wav"}},
        {"b64_json": "X"},
        {"resource": {"uri": "X"}},
        {"icons": [{"src": "X"}]},
    ],
)
def test_a_data_url_where_one_belongs_passes(holder: dict[str, Any]) -> None:
    part = json.loads(json.dumps(holder).replace("X", f"data:image/png;base64,{SOUND}"))
    body: dict[str, object] = {"messages": [{"content": [part]}]}
    assert redact_chat_request(body, POLICY) == (body, {})
    assert redact_tree(body, POLICY) == (body, {})


@pytest.mark.parametrize(
    "holder",
    [
        {"resource": {"uri": "x:1", "blob": "X"}},
        {"input_audio": {"data": "X", "format": "wav"}},
        {"image_url": {"url": "data:image/png;base64,X"}},
        {"image_url": {"url": "data:text/plain;n=X;base64," + "QUJD" * 16}},
        {"image_url": {"url": "data:a/X;base64," + "QUJD" * 16}},
        {"b64_json": "X"},
        {"signature": "X"},
    ],
)
@pytest.mark.parametrize("value", ["4111111111111111", "536-90-4399", key("ghp_", 36)])
def test_what_is_too_short_for_base64_is_read_as_text(holder: dict[str, Any], value: str) -> None:
    part = json.loads(json.dumps(holder).replace("X", value))
    body: dict[str, object] = {"messages": [{"content": [part]}]}
    new, counts = redact_chat_request(body, POLICY)
    assert value not in json.dumps(new)
    assert sum(counts.values()) == 1


def test_text_in_the_place_of_base64_and_other_values_are_read() -> None:
    tree = {"blob": "to a@b.co" + " " * 70, "result": SOUND, "data": SOUND, "n": 12345678.5}
    new, counts = redact_tree({**tree, "odd": (1, 2)}, POLICY)
    assert new == {**tree, "blob": f"to {EMAIL}" + " " * 70, "odd": (1, 2)}
    assert (counts, counts.passed) == ({"email": 1}, {})


def test_a_document_of_text_is_no_base64_whatever_it_looks_like() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "4111111111111111/" + "A" * 60}
    new, _ = redact_tree({"source": source}, POLICY)
    assert new == {"source": {**source, "data": f"{CARD}/" + "A" * 60}}
