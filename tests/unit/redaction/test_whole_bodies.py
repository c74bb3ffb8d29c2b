import copy
import json
from typing import Any

import pytest

from tests.unit.redaction.chat import content, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, MASKED, SECRET, SSN, VISA
from tidegate.redaction import (
    BlockedContent,
    RedactionPolicy,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)
from tidegate.redaction.leaves import rewrite
from tidegate.redaction.splice import dump, load, rewritten
from tidegate.redaction.template import Template

POLICY = RedactionPolicy.preset("default")
PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "I am jane@example.com"},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "4111111111111111", "format": "wav"}},
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
    assert text.count("jane@example.com") == 3  # model, tool_call_id and the name of a function
    assert new["messages"][3]["tool_calls"][0]["function"]["arguments"] == f'{{"a":"{EMAIL}"}}'  # type: ignore[index]
    assert new["messages"][3]["function_call"]["arguments"] == EMAIL  # type: ignore[index]
    assert new["messages"][1]["name"] == SSN  # type: ignore[index]
    assert new["metadata"] == {"password": SECRET, "k": f"x {EMAIL}"}
    assert counts == {"email": 11, "ssn": 1, "api_key": 1}


def test_a_blocked_request_names_the_family() -> None:
    policy = POLICY.with_actions({"card": "block"})
    with pytest.raises(BlockedContent, match="card"):
        redact_chat_request({"messages": [{"content": VISA}]}, policy)


@pytest.mark.parametrize("text", [text for _, text, _ in MASKED])
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
                    "audio": {"data": "4111", "transcript": EMAIL},
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
                {"type": "image", "data": "4111111111111111", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "x:1", "blob": "4111111111111111"}},
            ],
            "structuredContent": {
                "id": "536-90-4399",
                "n": 4111111111111111,
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
        "n": 4111111111111111,
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
    ("data", "shown"),
    [
        ('{"a" : "x", "n":1.10}', '{"a" : "y", "n":1.10}'),
        ('["x","z",{"k":["x"]}]', '["y","z",{"k":["y"]}]'),
        ('{"x":"\\u0078","b":"\\"x\\""}', '{"x":"y","b":"\\"x\\""}'),
    ],
)
def test_only_changed_strings_are_written_anew(data: str, shown: str) -> None:
    old = load(data.encode())
    new = rewrite(old, lambda text, *_: "y" if text == "x" else text)
    assert rewritten(data.encode(), old, new).decode() == shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": "x"}, {"a": None}),
        ({"a": "x"}, {"b": "x"}),
        (["x"], ["x", "y"]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_other_differences_write_the_whole_text_anew(old: object, new: object) -> None:
    assert rewritten(dump(old), old, new) == dump(new)


def test_a_text_that_does_not_match_its_value_is_written_anew() -> None:
    assert rewritten(b'{"a":"x","a":"x"}', {"a": "x"}, {"a": "y"}) == b'{"a":"y"}'


def test_numbers_that_are_not_finite_are_not_written() -> None:
    with pytest.raises(ValueError, match=r".+"):
        rewritten(b'{"a":1e999,"b":1}', {"a": float("inf"), "b": 1}, {"a": float("inf"), "b": 2})


def made(data: bytes, value: str) -> Template | None:
    return Template.of(data, "content", value, str)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"content":"two","x":1}', "two"),
        (b'{"content":"t\\"w\\u00e9\\n","x":1}', 't"w\u00e9\n'),
        ('{"content":"\u00e9","x":1}'.encode(), "\u00e9"),
        (b'{"content":"","x":1}', ""),
        (b'{"content":"a","y":"b","x":1}', None),
        (b'{"content":"a\\","x":1}', None),
        (b'{"content":"a\nb","x":1}', None),
        (b'{"content":"\xff","x":1}', None),
        (b'{"content":"one","x":2}', None),
        (b'{"content":"', None),
        (b'{"content": "one","x":1}', None),
    ],
)
def test_an_event_fits_only_if_nothing_but_its_text_differs(data: bytes, text: str | None) -> None:
    template = made(b'{"content":"one","x":1}', "one")
    assert template is not None
    assert template.text_of(data) == text
    if text is not None:
        assert json.loads(template.event(data, "new \u00e9\n")) == {
            "content": "new \u00e9\n",
            "x": 1,
        }


def test_padding_may_differ_too() -> None:
    template = made(b'{"content":"one","obfuscation":"abc"}', "one")
    assert template is not None
    assert template.text_of(b'{"content":"two","obfuscation":"Xy12"}') == "two"
    assert template.event(b'{"content":"two","obfuscation":"Xy12"}', "z") == (
        b'{"content":"z","obfuscation":"Xy12"}'
    )
    for data in (
        b'{"content":"two","obfuscation":"a@b.co"}',
        b'{"content":"two","obfuscation":"abc","z":1}',
        b'{"content":"two","other":"abc"}',
    ):
        assert template.text_of(data) is None


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"content":"one","z":{"content":"two"}}', "one"),
        (b'{"other":"one"}', "one"),
        (b'["content","one"]', "one"),
        (b'{"content":"one"}', "other"),
        (b'{"content":null}', "one"),
    ],
)
def test_no_template_where_the_place_of_the_text_is_not_certain(data: bytes, value: str) -> None:
    assert made(data, value) is None


def test_the_short_way_and_the_long_way_agree() -> None:
    def padded(text: str, padding: str) -> bytes:
        return content(text)[:-1] + f',"obfuscation":"{padding}"}}'.encode()

    text = f'to jane@example.com, {VISA} \u00e9\u4f60 "q" \\ \n and 536-90-4399, done. '
    for size in (1, 3, 8):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        short, _ = run([content(piece) for piece in pieces])
        assert short.texts == {0: POLICY.redact(text).text}
        random_pads, _ = run([padded(piece, "ab1" * (len(piece) % 4)) for piece in pieces])
        assert random_pads.texts == short.texts
        changing = [content(piece).replace(b'"c1"', b'"c%d"' % i) for i, piece in enumerate(pieces)]
        long, _ = run(changing)
        assert long.texts == short.texts


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
    part = json.loads(json.dumps(holder).replace("X", "data:image/png;base64,4111111111111111"))
    body: dict[str, object] = {"messages": [{"content": [part]}]}
    assert redact_chat_request(body, POLICY) == (body, {})
    assert redact_tree(body, POLICY) == (body, {})
