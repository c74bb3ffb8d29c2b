"""Whole answers of the Responses and the Messages API."""

import json
from typing import Any

import pytest

from tests.unit.redaction import messages, responses
from tests.unit.redaction.samples import CARD, EMAIL, MASKED, SECRET, VISA
from tidegate.redaction import BlockedContent, RedactionPolicy, redact_message, redact_response
from tidegate.testing.splits import split_at

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")
ARGUMENTS = '{"to":"jane\\u0040example.com"}'


@pytest.mark.parametrize("text", [*(text for _, text, _ in MASKED), "//u:p@h.org", ": hunter2!x"])
def test_stream_and_whole_answer_agree(text: str) -> None:
    cuts = list(range(0, len(text), max(1, len(text) // 40)))
    pieces = split_at(text, cuts)
    upstream = responses.Upstream()
    upstream.message(pieces)
    client, _ = responses.run(upstream.completed())
    part = {"type": "output_text", "text": text, "annotations": []}
    output: list[Any] = [{"type": "message", "content": [part]}]
    new, _ = redact_response({"output": output}, POLICY)
    assert new["output"][0]["content"][0]["text"] == client.texts()[0]  # type: ignore[index]
    other = messages.Upstream()
    other.text(pieces)
    reader, _ = messages.run(other.stopped())
    answer, _ = redact_message({"content": [{"type": "text", "text": text}]}, POLICY)
    assert answer["content"][0]["text"] == reader.texts()[0] == client.texts()[0]  # type: ignore[index]


def test_every_item_of_a_response_is_read() -> None:
    spelled = [{"token": "jane", "logprob": -0.1}]
    body: dict[str, Any] = {
        "id": "resp_1",
        "created_at": 4111111111111111,
        "status": "completed",
        "instructions": "for jane@example.com",
        "output": [
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": VISA}],
             "encrypted_content": "QUJD" * 16},
            {"type": "message", "id": "m", "content": [
                {"type": "output_text", "text": "a@b.co", "logprobs": spelled, "annotations": [
                    {"type": "url_citation", "url": "https://u:p@e.org", "title": "c@d.co"}]},
                {"type": "refusal", "refusal": "not for a@b.co"},
                {"type": "output_audio", "data": "UklG", "transcript": "a@b.co"},
            ]},
            {"type": "function_call", "name": "f", "call_id": "c", "arguments": ARGUMENTS},
            {"type": "image_generation_call", "id": "i", "result": "QUJD" * 99},
            {"type": "code_interpreter_call", "code": "a@b.co", "outputs": [
                {"type": "logs", "logs": "a@b.co"}]},
            {"type": "future_call", "x": ["a@b.co", 4111111111111111]},
        ],
        "metadata": {"id": "a@b.co"},
    }  # fmt: skip
    new, counts = redact_response(body, POLICY)
    text = json.dumps(body).replace(json.dumps(spelled), "[]").replace("UklG", "")
    text = text.replace(json.dumps(ARGUMENTS), json.dumps(f'{{"to":"{EMAIL}"}}'))
    text = text.replace("for jane@example.com", f"for {EMAIL}").replace(VISA, CARD)
    text = text.replace("a@b.co", EMAIL).replace("c@d.co", EMAIL).replace("u:p@", f"{SECRET}@")
    text = text.replace('", 4111111111111111]', f'", "{CARD}"]')
    assert new == json.loads(text)
    assert counts.passed == {"sealed": 1, "base64": 1}
    for refused in ({"logprobs": "refuse"}, {"audio": "refuse"}):
        with pytest.raises(BlockedContent):
            redact_response(body, POLICY, **refused)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mode", "found"), [(False, {}), ("detect", {"email": 1})])
def test_arguments_may_pass_or_be_counted_only(mode: Any, found: dict[str, int]) -> None:
    body: dict[str, object] = {"output": [{"type": "function_call", "arguments": ARGUMENTS}]}
    new, counts = redact_response(body, POLICY, tool_arguments=mode)
    assert (new is body, counts) == (True, found)
    tool = {"type": "tool_use", "name": "f", "input": {"to": "jane@example.com", "n": 1}}
    answer: dict[str, object] = {"content": [tool]}
    new, counts = redact_message(answer, POLICY, tool_arguments=mode)
    assert (new is answer, counts) == (True, found)


@pytest.mark.parametrize(
    ("thinking", "kept"),
    [
        ("mask", [(f"is {EMAIL}", ""), ("fine", "c2ln"), (None, None)]),
        ("drop", []),
        ("pass", [("is a@b.co", "c2ln"), ("fine", "c2ln"), (None, None)]),
    ],
)
def test_thinking_is_masked_dropped_or_passed(thinking: Any, kept: list[Any]) -> None:
    blocks = [
        {"type": "thinking", "thinking": "is a@b.co", "signature": "c2ln"},
        {"type": "thinking", "thinking": "fine", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "QUJD"},
        {"type": "text", "text": "to c@d.co"},
    ]
    body: dict[str, object] = {"content": blocks, "stop_reason": "end_turn"}
    new, counts = redact_message(body, POLICY, thinking=thinking)
    shown: Any = new["content"]
    assert [(b.get("thinking"), b.get("signature")) for b in shown[:-1]] == kept
    assert shown[-1] == {"type": "text", "text": f"to {EMAIL}"}
    assert counts == {"email": 2}


@pytest.mark.parametrize(
    "body", [{"content": "odd"}, {"content": []}, {"error": {"message": "x"}}, {"output": None}]
)
def test_an_answer_without_findings_is_the_same_object(body: dict[str, Any]) -> None:
    assert redact_message(body, POLICY)[0] is body
    assert redact_response(body, POLICY)[0] is body
