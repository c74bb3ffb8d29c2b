"""Values that stand where no text can be put in their place."""

import json
from typing import Any

import pytest

from tests.unit.redaction.samples import CARD, EMAIL, SECRET, SSN, VISA, key
from tidegate.redaction import (
    BlockedContent,
    ChatStreamRedactor,
    RedactionPolicy,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)

POLICY = RedactionPolicy.preset("default")
NUMBER = 4111111111111111


def test_an_object_key_that_is_a_value_stays_and_is_counted() -> None:
    body: dict[str, object] = {"metadata": {"jane@example.com": "x", "a": {"536-90-4399": 1}}}
    new, counts = redact_chat_request(body, POLICY)
    assert new is body
    assert (counts, counts.unscanned, counts.passed) == ({}, 2, {"key": 2})


def test_an_object_key_is_refused_where_its_family_refuses() -> None:
    for document in ({"jane@example.com": "x"}, {"a": [{"jane@example.com": None}]}):
        with pytest.raises(BlockedContent, match="email"):
            redact_tree(document, POLICY.with_actions({"email": "block"}))


@pytest.mark.parametrize("holder", ["args", "metadata", "x"])
@pytest.mark.parametrize("number", [NUMBER, float(NUMBER), 378282246310005])
def test_a_number_that_is_a_card_becomes_a_quoted_placeholder(holder: str, number: float) -> None:
    body: dict[str, object] = {holder: {"card": number, "n": [number, 5]}}
    new, counts = redact_chat_request(body, POLICY)
    assert new == {holder: {"card": CARD, "n": [CARD, 5]}}
    assert counts == {"credit_card": 2}


def test_the_rule_for_numbers_is_part_of_the_policy() -> None:
    body: dict[str, object] = {"x": {"card": NUMBER}}
    new, counts = redact_chat_request(body, POLICY.with_numbers("count"))
    assert (new is body, counts, counts.passed) == (True, {}, {"number": 1})
    new, counts = redact_chat_request(body, POLICY.observing())
    assert (new is body, counts.passed) == (True, {"number": 1})
    with pytest.raises(BlockedContent, match="card"):
        redact_chat_request(body, POLICY.with_numbers("block"))
    for numbers in ("mask", "block", "count"):
        with pytest.raises(BlockedContent, match="card"):
            redact_tree(body, POLICY.with_actions({"card": "block"}).with_numbers(numbers))


@pytest.mark.parametrize(
    "number",
    [
        0,
        1.5,
        -1,
        True,
        12345678,
        NUMBER + 1,
        1764500000005,
        123456789012345678901234567890,
        3.14159265358979323846,
        1e300,
        float(NUMBER) / 2,
        123456789012.5,
    ],
)
def test_other_numbers_are_never_touched(number: object) -> None:
    body: dict[str, object] = {"x": number}
    new, counts = redact_chat_request(body, POLICY)
    assert (new is body, counts.unscanned) == (True, 0)


def test_times_and_seeds_are_no_values() -> None:
    body: dict[str, object] = {"created": NUMBER, "seed": NUMBER, "choices": []}
    assert redact_chat_request(body, POLICY)[0] is body
    event = json.dumps(body).encode()
    assert ChatStreamRedactor(POLICY).feed(event) == [event]


def test_structured_content_never_becomes_another_type() -> None:
    for result in ({"structuredContent": {"card": NUMBER}}, {"structuredContent": NUMBER}):
        for value in (result, {"jsonrpc": "2.0", "id": 1, "result": result}):
            with pytest.raises(BlockedContent, match="card"):
                redact_tree(value, POLICY)
            same, counts = redact_tree(value, POLICY.with_numbers("count"))
            assert (same is value, counts.passed) == (True, {"number": 1})


def test_an_id_is_only_passed_by_the_envelope_that_compares_it() -> None:
    message = {
        "jsonrpc": "2.0",
        "id": NUMBER,
        "params": {"progressToken": "536-90-4399", "_meta": {"progressToken": NUMBER}},
    }
    assert redact_tree(message, POLICY)[0] is message
    arguments = {"id": "jane@example.com", "nextCursor": "536-90-4399", "progressToken": NUMBER}
    assert redact_tree(arguments, POLICY)[0] == {
        "id": EMAIL,
        "nextCursor": SSN,
        "progressToken": CARD,
    }
    inner: Any = {"jsonrpc": "2.0", "id": "a@b.co", "result": {"content": [{"id": "a@b.co"}]}}
    assert redact_tree(inner, POLICY)[0] == {**inner, "result": {"content": [{"id": EMAIL}]}}


def test_a_structural_field_with_a_finding_stays_and_is_counted() -> None:
    secret = key("sk-", 30)
    body: dict[str, object] = {
        "id": secret,
        "model": "jane@example.com",
        "choices": [{"message": {"tool_calls": [{"function": {"name": secret}}]}}],
    }
    new, counts = redact_chat_completion(body, POLICY)
    assert (new is body, counts, counts.passed) == (True, {}, {"structural": 3})
    redact_chat_completion(body, POLICY.with_actions({"key": "block", "email": "block"}))


@pytest.mark.parametrize("field", ["id", "model", "system_fingerprint", "tool_call_id"])
def test_a_text_is_no_id(field: str) -> None:
    new, counts = redact_chat_completion({field: "to jane@example.com", "choices": []}, POLICY)
    assert (new[field], counts) == (f"to {EMAIL}", {"email": 1})


@pytest.mark.parametrize("field", ["role", "type", "object", "service_tier", "finish_reason"])
def test_a_word_of_a_list_looks_like_a_word(field: str) -> None:
    for text, shown in (("jane@example.com", EMAIL), (VISA, CARD), ("web_search_20250305", None)):
        body: dict[str, object] = {"choices": [{field: text}]}
        new, counts = redact_chat_completion(body, POLICY)
        assert new == {"choices": [{field: shown or text}]}
        assert counts.unscanned == 0


def test_the_name_of_a_function_looks_like_one() -> None:
    body: dict[str, object] = {"tools": [{"function": {"name": "jane@example.com"}}]}
    assert redact_chat_request(body, POLICY)[0] == {"tools": [{"function": {"name": EMAIL}}]}


def test_nothing_is_structural_where_callers_write_what_they_like() -> None:
    body: dict[str, object] = {"metadata": {"id": "a@b.co", "model": "c@d.co", "role": "e@f.co"}}
    new, _ = redact_chat_request(body, POLICY)
    assert new == {"metadata": {"id": EMAIL, "model": EMAIL, "role": EMAIL}}


def test_a_signature_passes_only_if_it_looks_like_one() -> None:
    sealed = "c2lnbmF0dXJl/4111111111111111+" * 40
    blocks = [{"type": "thinking", "signature": sealed}, {"signature": "to jane@example.com"}]
    body: dict[str, object] = {"choices": [{"message": {"thinking_blocks": blocks}}]}
    new, counts = redact_chat_completion(body, POLICY)
    shown = new["choices"][0]["message"]["thinking_blocks"]  # type: ignore[index]
    assert [block["signature"] for block in shown] == [sealed, f"to {EMAIL}"]
    assert (counts, counts.passed) == ({"email": 1}, {"sealed": 1})


def test_counts_of_several_documents_add_up() -> None:
    _, counts = redact_tree({"a@b.co": "c@d.co", "blob": "QUJD" * 16}, POLICY)
    _, more = redact_tree({"x": "536-90-4399", "a@b.co": "c@d.co"}, POLICY)
    counts.add(more)
    assert counts == {"email": 2, "ssn": 1}
    assert (counts.unscanned, counts.passed, counts.unknown) == (3, {"key": 2, "base64": 1}, 0)


@pytest.mark.parametrize("value", ["536904399", 536904399])
@pytest.mark.parametrize(
    "name", ["ssn", "social security number", "social_security_number", "socialSecurityNumber"]
)
def test_the_name_of_a_field_says_what_the_digits_in_it_are(name: str, value: object) -> None:
    assert redact_tree({name: value, "id": value}, POLICY)[0] == {name: SSN, "id": value}
    raw = json.dumps({name: value, "id": value})
    call = {"function": {"arguments": raw}}
    new, _ = redact_chat_completion({"choices": [{"message": {"tool_calls": [call]}}]}, POLICY)
    arguments = new["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]  # type: ignore[index]
    assert json.loads(arguments) == {name: SSN, "id": value}


@pytest.mark.parametrize(("mode", "found"), [(False, {}), ("detect", {"email": 2}), (True, None)])
def test_arguments_that_come_as_an_object_are_arguments(mode: Any, found: Any) -> None:
    arguments = {"id": "a@b.co", "content": ["c@d.co", "4111 1111 ", "1111 1111"]}
    call = {"index": 0, "function": {"name": "f", "arguments": arguments}}
    body: dict[str, object] = {"choices": [{"index": 0, "message": {"tool_calls": [call]}}]}
    new, counts = redact_chat_completion(body, POLICY, tool_arguments=mode)
    event = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode()
    redactor = ChatStreamRedactor(POLICY, tool_arguments=mode)
    (data,) = redactor.feed(event)
    if found is None:
        assert "@" not in json.dumps(new)
        assert b"@" not in data
    else:
        assert (new is body, counts, data, redactor.counts) == (True, found, event, found)


def test_the_name_of_a_list_says_what_is_in_it() -> None:
    tree: Any = {
        "ssn": ["536904399", 536904399, "x"],
        "secret": [["hunter2!x"]],
        "n": ["536904399"],
    }
    masked = {"ssn": [SSN, SSN, "x"], "secret": [[SECRET]], "n": ["536904399"]}
    assert redact_tree(tree, POLICY)[0] == masked
    call = {"function": {"arguments": json.dumps(tree)}}
    new, _ = redact_chat_completion({"choices": [{"message": {"tool_calls": [call]}}]}, POLICY)
    arguments = new["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]  # type: ignore[index]
    assert json.loads(arguments) == masked


def test_a_short_number_that_its_field_calls_a_secret_is_one() -> None:
    tree = {"password": 12345678, "max_tokens": 4096, "token": 5, "n": 12345678}
    assert redact_tree(tree, POLICY)[0] == {**tree, "password": SECRET}
