"""Which parts of a client's message are text that its server reads?

Lives here: where texts stand in requests, notifications and answers to questions of the server,
and the message with others in their place. Does not live here: how texts are masked (redaction).

Source: MCP 2025-11-25 and 2026-07-28, schema: CallToolRequest, CompleteRequest,
CancelledNotification, ProgressNotification, ElicitResult, CreateMessageResult.
"""

from collections.abc import Mapping
from typing import Final

from tidegate.jsonrpc import Message, Notification, Request, Response

_OF_PARAMS: Final = ("arguments", "inputResponses", "argument", "context", "reason", "message")
_OF_ANSWER: Final = ("result", "error")
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "action": frozenset({"accept", "decline", "cancel"}),
    "role": frozenset({"user", "assistant"}),
    "stopReason": frozenset({"endTurn", "stopSequence", "maxTokens", "toolUse"}),
    "type": frozenset({"text", "image", "audio", "tool_use", "tool_result"}),
}
"""Members with a word of the protocol: it is put back, whatever a pattern makes of it."""

_IDS: Final = frozenset({"requestState", "taskId", "toolUseId", "code"})


def texts_of(message: Message) -> dict[str, object]:
    """The members that hold texts, by name; their values are JSON."""
    if isinstance(message, Response):
        return {name: message.value[name] for name in _OF_ANSWER if name in message.value}
    params = message.params or {}
    return {name: params[name] for name in _OF_PARAMS if name in params}


def with_texts(message: Message, masked: Mapping[str, object]) -> Message:
    """`message` with `masked` in place of what `texts_of` gave for it.

    Both have the same shape. Of answers and of the argument of a completion, what is not text but
    how the protocol works stays as it was.
    """
    told = {name: _kept(name, old, masked[name]) for name, old in texts_of(message).items()}
    if isinstance(message, Response):
        return Response(message.id, {**message.value, **told})
    params = {**(message.params or {}), **told}
    if isinstance(message, Request):
        return Request(message.id, message.method, params)
    return Notification(message.method, params)


def _kept(name: str, old: object, new: object) -> object:
    if name == "argument" and isinstance(old, dict) and isinstance(new, dict) and "name" in old:
        return {**new, "name": old["name"]}
    return _of_answer(old, new) if name in ("inputResponses", *_OF_ANSWER) else new


def _of_answer(old: object, new: object) -> object:
    """What a client answers: of its form (`content` of an elicitation) every member is text."""
    if isinstance(old, list) and isinstance(new, list):
        return [_of_answer(*pair) for pair in zip(old, new, strict=True)]
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    is_form = old.get("action") in _WORDS["action"]
    return {key: _member(key, old[key], new[key], is_form=is_form) for key in new}


def _member(key: str, old: object, new: object, *, is_form: bool) -> object:
    if key in _IDS or (isinstance(old, str) and old in _WORDS.get(key, ())):
        return old
    return new if is_form and key == "content" else _of_answer(old, new)


__all__ = ["texts_of", "with_texts"]
