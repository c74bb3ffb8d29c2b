"""How is the model's name replaced without touching anything else?

Lives here: the position of one top-level member in a JSON object. Does not live here: whether
the document is sound (strictjson has judged it before).
"""

import re

import msgspec

# Strings are skipped whole, so brackets, colons and keys inside text are never seen. The
# possessive groups keep the scan linear and without a stack, whatever the length.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY = re.compile(rb"[ \t\r\n,]*(" + _STRING + rb")[ \t\r\n]*:[ \t\r\n]*", re.DOTALL)
_TOKEN = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_SCALAR_END = re.compile(rb"[ \t\r\n,}]")
_SPACE = re.compile(rb"[ \t\r\n]*")


def replace_model(body: bytes, model: str) -> bytes:
    """`body` with the value of its top-level "model" replaced by `model`; all else untouched.

    `body` is a valid JSON object in UTF-8 without duplicate keys. Without the member it is
    added in front. Cost: one scan of the bytes before the end of the member. Raises ValueError
    for a body that is not an object.
    """
    value = msgspec.json.encode(model)
    span = member_span(body, "model")
    if span is not None:
        return b"".join((body[: span[0]], value, body[span[1] :]))
    start = _inside(body)
    comma = b"" if body.startswith(b"}", _after_space(body, start)) else b","
    return b"".join((body[:start], b'"model":', value, comma, body[start:]))


def member_span(body: bytes, name: str) -> tuple[int, int] | None:
    """Where the value of the top-level member `name` lies, as [start, end); None if absent.

    The same demands and errors as `replace_model`.
    """
    position = _inside(body)
    while (key := _KEY.match(body, position)) is not None:
        position = _value_end(body, key.end())
        if _is(key[1], name):
            return key.end(), position
    return None


def _after_space(body: bytes, start: int) -> int:
    return next(_SPACE.finditer(body, start)).end()


def _inside(body: bytes) -> int:
    start = _after_space(body, 0)
    if body[start : start + 1] != b"{":
        raise ValueError("not a JSON object")
    return start + 1


def _is(key: bytes, name: str) -> bool:
    if b"\\" not in key:
        return key[1:-1] == name.encode()
    return bool(msgspec.json.decode(key) == name)


def _value_end(body: bytes, start: int) -> int:
    if body[start : start + 1] not in (b'"', b"{", b"["):
        end = _SCALAR_END.search(body, start)
        if end is None:
            raise ValueError("cut JSON")
        return end.start()
    depth = 0
    for token in _TOKEN.finditer(body, start):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return token.end()
    raise ValueError("cut JSON")


__all__ = ["member_span", "replace_model"]
