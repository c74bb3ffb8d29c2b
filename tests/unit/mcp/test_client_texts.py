"""Are all texts of a client found, and do only texts change?"""

from typing import Any

import pytest

from tidegate.jsonrpc import Message, Notification, Request, Response
from tidegate.mcp.client_texts import texts_of, with_texts

FORM = {"action": "accept", "content": {"type": "text", "mail": "accept", "n": {"role": "user"}}}
SAMPLED = {
    "role": "assistant",
    "model": "m",
    "stopReason": "endTurn",
    "content": [{"type": "text", "text": "t"}, {"type": "tool_result", "toolUseId": "i"}],
}


def starred(value: Any) -> Any:
    """Every text replaced."""
    if isinstance(value, dict):
        return {key: starred(each) for key, each in value.items()}
    if isinstance(value, list):
        return [starred(each) for each in value]
    return "*" if isinstance(value, str) else value


def masked(message: Message) -> Any:
    told = with_texts(message, starred(texts_of(message)))
    assert type(told) is type(message)
    return told.value if isinstance(told, Response) else told.params


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ({"name": "n", "arguments": {"type": "text"}}, {"name": "n", "arguments": {"type": "*"}}),
        (
            {"ref": {"name": "n"}, "argument": {"name": "a", "value": "v"}},
            {"ref": {"name": "n"}, "argument": {"name": "a", "value": "*"}},
        ),
        ({"context": {"arguments": {"a": "v"}}}, {"context": {"arguments": {"a": "*"}}}),
        ({"requestId": "r", "reason": "because"}, {"requestId": "r", "reason": "*"}),
        ({"progressToken": "p", "message": "half"}, {"progressToken": "p", "message": "*"}),
        (
            {"name": "n", "requestState": "s", "inputResponses": {"q": FORM, "p": SAMPLED}},
            {
                "name": "n",
                "requestState": "s",
                "inputResponses": {
                    "q": {
                        "action": "accept",
                        "content": {"type": "*", "mail": "*", "n": {"role": "*"}},
                    },
                    "p": {
                        "role": "assistant",
                        "model": "*",
                        "stopReason": "endTurn",
                        "content": [
                            {"type": "text", "text": "*"},
                            {"type": "tool_result", "toolUseId": "i"},
                        ],
                    },
                },
            },
        ),
        ({"action": "x", "uri": "u"}, {"action": "x", "uri": "u"}),
    ],
)
def test_texts_change_and_nothing_else_does(params: Any, left: Any) -> None:
    assert masked(Request(1, "m", params)) == left
    assert masked(Notification("m", params)) == left


def test_an_answer_keeps_its_id_and_the_words_of_the_protocol() -> None:
    whole = {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept", "content": {"a": "b"}}}
    left = {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept", "content": {"a": "*"}}}
    assert masked(Response("q", whole)) == left
    refused = {"jsonrpc": "2.0", "id": "q", "error": {"code": 1, "message": "m", "data": ["d"]}}
    shown = {"jsonrpc": "2.0", "id": "q", "error": {"code": 1, "message": "*", "data": ["*"]}}
    assert masked(Response("q", refused)) == shown


def test_what_only_looks_like_a_word_of_the_protocol_is_text() -> None:
    whole = {"jsonrpc": "2.0", "id": 1, "result": {"action": "write", "role": "root", "type": 1}}
    assert masked(Response(1, whole))["result"] == {"action": "*", "role": "*", "type": 1}


def test_a_message_without_params_has_no_texts() -> None:
    assert texts_of(Request(1, "ping")) == {}
    assert texts_of(Notification("n")) == {}
