"""How is one member of a JSON object changed without touching anything else?

Lives here: the position of one top-level member in a JSON object. Does not live here: whether
the document is sound (whoever calls has decoded it before).
"""

import re
from collections.abc import Mapping

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
    return in_front(body, b'"model":' + value)


def with_members(body: bytes, members: Mapping[str, bytes]) -> bytes:
    """`body` whose top-level `members` have these values (JSON each); all else untouched.

    A member that is there keeps its place, the others come in front in their order. The same
    demands and errors as `replace_model`. Cost: one scan and one copy, however many they are.
    """
    position = _inside(body)
    left = dict(members)
    pieces: list[bytes] = []
    copied = 0
    while left and (key := _KEY.match(body, position)) is not None:
        position = _value_end(body, key.end())
        name = next((name for name in left if _is(key[1], name)), None)
        if name is not None:
            pieces += (body[copied : key.end()], left.pop(name))
            copied = position
    changed = b"".join((*pieces, body[copied:]))
    added = b",".join(b"%b:%b" % (msgspec.json.encode(name), left[name]) for name in left)
    return in_front(changed, added) if added else changed


def in_front(body: bytes, member: bytes) -> bytes:
    """`body` with `member` (`"name":value`) before its first member; no scan, one copy."""
    start = _inside(body)
    comma = b"" if body.startswith(b"}", _after_space(body, start)) else b","
    return b"".join((body[:start], member, comma, body[start:]))


def without_member(body: bytes, name: str) -> bytes:
    """`body` without its top-level members called `name`, each with one comma beside it.

    What is left are the bytes of a document that never had them: a member that is not the first
    goes with the comma (and the space around it) before it, the first with the one after it.
    The same demands and errors as `replace_model`.
    """
    start = position = _inside(body)
    while (key := _KEY.match(body, position)) is not None:
        end = _value_end(body, key.end())
        if not _is(key[1], name):
            position = end
        elif position > start:
            body = body[:position] + body[end:]
        else:
            following = _KEY.match(body, end)
            body = body[:start] + body[following.start(1) if following else end :]
    return body


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


__all__ = ["in_front", "member_span", "replace_model", "with_members", "without_member"]
