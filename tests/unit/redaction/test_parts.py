"""A value that is cut over two parts of one content list."""

import json
from typing import Any

import pytest

from tests.unit.redaction.chat import chunk, finish, run
from tests.unit.redaction.samples import CARD, EMAIL, IBAN, SECRET, SSN, VISA, jwt, key
from tidegate.redaction import (
    BlockedContent,
    RedactionPolicy,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)
from tidegate.testing.splits import split_at

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")

VALUES = [
    ("jane.doe@mail.example.com", EMAIL),
    ("4111 1111 1111 1111", CARD),
    ("4111111111111111", CARD),
    ("536-90-4399", SSN),
    ("GB82 WEST 1234 5698 7654 32", IBAN),
    (key("ghp_", 36), SECRET),
    (jwt(60), SECRET),
]


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def tool_block(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": text}


def listed_block(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": [text_part(text)]}


def resource(text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "file:///a", "text": text}}


def texts_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    if isinstance(value, dict):
        found = [value[name] for name in ("text", "content", "resource") if name in value]
        return [text for inner in found for text in texts_of(inner)]
    return []


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape_of(inner) for inner in value]
    return "text" if isinstance(value, str) else value


def message(parts: list[Any]) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize(("value", "placeholder"), VALUES)
@pytest.mark.parametrize("part", [text_part, str, tool_block, listed_block, resource])
def test_a_value_cut_over_two_parts_is_masked_in_both(
    value: str, placeholder: str, part: Any
) -> None:
    text = f"So {value}, ok"
    for cut in range(4, 3 + len(value)):
        body = message([part(piece) for piece in split_at(text, [cut])])
        new, _ = redact_chat_request(body, POLICY)
        assert shape_of(new) == shape_of(body)
        joined = "".join(texts_of(new["messages"][0]["content"]))  # type: ignore[index]
        if placeholder == EMAIL and joined != f"So {EMAIL}, ok":
            # One of the parts is an address by itself; that comes first.
            assert "@" not in joined
            assert EMAIL in joined
        else:
            assert joined == f"So {placeholder}, ok"


@pytest.mark.parametrize(("value", "placeholder"), VALUES[1:])
def test_a_value_in_three_parts_with_others_between_is_masked(value: str, placeholder: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    first, second, third = split_at(value, [len(value) // 3, 2 * len(value) // 3])
    parts = [text_part("a " + first), image, text_part(second), text_part(""), text_part(third)]
    new, counts = redact_chat_request(message(parts), POLICY)
    shown = new["messages"][0]["content"]  # type: ignore[index]
    assert [part.get("text") for part in shown] == [f"a {placeholder}", None, "", "", ""]
    assert list(counts.values()) == [1]


def test_what_a_part_shows_by_itself_is_masked_whatever_stands_before_it() -> None:
    parts = [text_part("id 1"), text_part("536-90-4399"), text_part("8 and a@b.co")]
    new, counts = redact_chat_request(message(parts), POLICY)
    assert texts_of(new["messages"][0]["content"]) == [  # type: ignore[index]
        "id 1",
        SSN,
        f"8 and {EMAIL}",
    ]
    assert counts == {"ssn": 1, "email": 1}


def test_the_word_before_a_whole_address_stays() -> None:
    parts = [text_part("Summarize"), text_part("jane@example.com"), text_part("Thanks")]
    new, counts = redact_chat_request(message(parts), POLICY)
    assert texts_of(new["messages"][0]["content"]) == [  # type: ignore[index]
        "Summarize",
        EMAIL,
        "Thanks",
    ]
    assert counts == {"email": 1}


def test_other_findings_in_the_parts_of_a_cut_value_are_masked_too() -> None:
    parts = [text_part(f"a@b.co and {VISA[:9]}"), text_part(f"{VISA[9:]}, c@d.co, 536-90-4399")]
    new, counts = redact_chat_request(message(parts), POLICY)
    assert texts_of(new["messages"][0]["content"]) == [  # type: ignore[index]
        f"{EMAIL} and {CARD}",
        f", {EMAIL}, {SSN}",
    ]
    assert counts == {"credit_card": 1, "email": 2, "ssn": 1}


@pytest.mark.parametrize(
    "parts",
    [
        [text_part("4111 1111 "), text_part("and 1111 1111")],
        [text_part("nothing"), text_part(" here")],
        [text_part("one")],
        [],
        ["4111", {"type": "image_url"}],
    ],
)
def test_parts_without_a_cut_value_are_the_same_object(parts: list[Any]) -> None:
    body = message(parts)
    assert redact_chat_request(body, POLICY)[0] is body


def test_lists_that_are_no_content_are_not_joined() -> None:
    body: dict[str, object] = {"stop": ["4111 1111 ", "1111 1111"], "x": [text_part("4111 1111 ")]}
    assert redact_chat_request(body, POLICY)[0] is body


def test_a_cut_value_can_be_reported_or_blocked() -> None:
    parts = [text_part(f"a {VISA[:9]}"), text_part(VISA[9:])]
    body = message(parts)
    assert redact_chat_request(body, POLICY.observing())[0] is body
    with pytest.raises(BlockedContent, match="card"):
        redact_chat_request(body, POLICY.with_actions({"card": "block"}))
    partial, _ = redact_chat_request(body, POLICY.with_actions({"card": "partial"}))
    assert texts_of(partial["messages"][0]["content"]) == [  # type: ignore[index]
        "a [REDACTED_CARD_1111]",
        "",
    ]


@pytest.mark.parametrize("where", ["result", "answer"])
def test_results_of_tools_and_answers_are_joined_too(where: str) -> None:
    parts = [text_part(f"a {VISA[:9]}"), text_part(VISA[9:])]
    new: Any
    if where == "result":
        new, _ = redact_tree({"jsonrpc": "2.0", "id": 1, "result": {"content": parts}}, POLICY)
        content = new["result"]["content"]
    else:
        new, _ = redact_chat_completion({"choices": [{"message": {"content": parts}}]}, POLICY)
        content = new["choices"][0]["message"]["content"]
    assert texts_of(content) == [f"a {CARD}", ""]


def test_lists_of_several_messages_are_each_joined_by_themselves() -> None:
    parts = [text_part(f"a {VISA[:9]}"), text_part(VISA[9:])]
    body: dict[str, object] = {
        "messages": [{"content": parts}, {"content": parts}, {"content": [text_part(VISA[9:])]}]
    }
    new, counts = redact_chat_request(body, POLICY)
    shown = [texts_of(one["content"]) for one in new["messages"]]  # type: ignore[attr-defined]
    assert shown == [[f"a {CARD}", ""], [f"a {CARD}", ""], [VISA[9:]]]
    assert counts == {"credit_card": 2}


@pytest.mark.parametrize("cut", range(1, len(VISA)))
def test_parts_of_one_streamed_event_are_pieces_of_one_text(cut: int) -> None:
    pieces = split_at(VISA, [cut])
    event = chunk({"content": [text_part(piece) for piece in pieces]})
    client, redactor = run([event, chunk({"content": [text_part(", ok")]}), finish()])
    assert client.joined(0) == f"{CARD}, ok"
    assert redactor.counts == {"credit_card": 1}
    client, _ = run([chunk({"content": pieces[0]}), chunk({"content": [text_part(pieces[1])]})])
    shown = json.dumps(client.frames)
    assert "1111" not in shown
    assert CARD in shown


def test_streamed_parts_with_an_index_are_texts_of_their_own() -> None:
    details = [{"index": i, "text": text} for i, text in enumerate(("4111 1111 ", "1111 1111"))]
    client, _ = run([chunk({"reasoning_details": details}), finish()])
    texts = {0: "", 1: ""}
    for frame in client.frames:
        for choice in frame["choices"]:
            for item in choice["delta"].get("reasoning_details", ()):
                texts[item["index"]] += item["text"]
    assert texts == {0: "4111 1111 ", 1: "1111 1111"}


def test_several_cut_values_go_each_in_its_place() -> None:
    parts = [
        text_part(f"a {VISA[:9]}"),
        text_part(f"{VISA[9:]}, b 536-"),
        7,
        {"type": "image_url"},
        text_part("90-4399 c "),
        text_part("untouched"),
    ]
    new, counts = redact_chat_request(message(parts), POLICY)
    shown = new["messages"][0]["content"]  # type: ignore[index]
    assert texts_of(shown) == [f"a {CARD}", f", b {SSN}", " c ", "untouched"]
    assert counts == {"credit_card": 1, "ssn": 1}


def test_cut_values_that_touch_each_other_leave_nothing_between() -> None:
    secret = key("ghp_", 36)
    parts = [
        text_part(f"x {secret[:30]}"),
        text_part(secret[30:] + "@example"),
        text_part(".com y"),
    ]
    new, _ = redact_chat_request(message(parts), POLICY)
    joined = "".join(texts_of(new["messages"][0]["content"]))  # type: ignore[index]
    assert secret[4:30] not in joined
    assert joined.startswith("x [REDACTED_")
    assert joined.endswith(" y")


def test_tool_results_nested_without_end_are_read_but_not_joined() -> None:
    deep: Any = [text_part("536-90-4399")]
    for _ in range(8):
        deep = [{"type": "tool_result", "content": deep}]
    new, _ = redact_chat_request(message(deep), POLICY)
    assert SSN in json.dumps(new)
