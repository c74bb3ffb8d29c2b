"""How is the model's name replaced without touching anything else?

Lives here: the position of one top-level member in a JSON object. Does not live here: whether
the document is sound (strictjson has judged it before).
"""

import re

import msgspec

# Strings are skipped whole, so brackets, colons and keys inside text are never seen. The
# possessive groups keep the scan linear and without a stack, whatever the length.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_SCALAR = re.compile(rb"[^ \t\r\n,}\]]+")
_SPACE = re.compile(rb"[ \t\r\n]*")


def replace_model(body: bytes, model: str) -> bytes:
    """`body` with the value of its top-level "model" replaced by `model`; all else untouched.

    `body` is a valid JSON object in UTF-8 without duplicate keys. Without the member it is
    added in front. Cost: one scan of the bytes before the member. Raises ValueError for a body
    that is not an object.
    """
    value = msgspec.json.encode(model)
    start = _SPACE.match(body).end()  # type: ignore[union-attr]  # matches the empty string
    if body[start : start + 1] != b"{":
        raise ValueError("not a JSON object")
    span = member_span(body, "model")
    if span is not None:
        return b"".join((body[: span[0]], value, body[span[1] :]))
    start += 1
    rest = _SPACE.match(body, start).end()  # type: ignore[union-attr]  # as above
    comma = b"" if body[rest : rest + 1] == b"}" else b","
    return b"".join((body[:start], b'"model":', value, comma, body[start:]))


def member_span(body: bytes, name: str) -> tuple[int, int] | None:
    """Where the value of the top-level member `name` lies, as [start, end); None if absent."""
    depth = 0
    position = 0
    while (token := _TOKEN.search(body, position)) is not None:
        position = token.end()
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and (colon := _COLON.match(body, position)) is not None:
            end = _value_end(body, colon.end())
            if _is(mark, name):
                return colon.end(), end
            position = end
    return None


def _is(key: bytes, name: str) -> bool:
    if b"\\" not in key:
        return key[1:-1] == name.encode()
    return bool(msgspec.json.decode(key) == name)


def _value_end(body: bytes, start: int) -> int:
    if body[start : start + 1] not in (b'"', b"{", b"["):
        scalar = _SCALAR.match(body, start)
        return start if scalar is None else scalar.end()
    depth = 0
    position = start
    while (token := _TOKEN.search(body, position)) is not None:
        position = token.end()
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return position
    raise ValueError("cut JSON")


__all__ = ["member_span", "replace_model"]
