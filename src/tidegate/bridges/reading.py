"""Which message is this line, strictly read, and how does it go on as one line?

Lives here: what wrap and connect share about lines of either side. Does not live here: where
lines come from (pipes), which of them may pass (sorting, turns).
"""

import json
import re
from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import (
    Batch,
    Code,
    Id,
    Malformed,
    Message,
    Tree,
    classify,
    error_body,
    has_oversized_integer,
    typed,
)
from tidegate.tools.stdio import BadLine, LineTooLong, size

SERVER_DEPTH: Final = 128
"""Results nest deeper than requests; a schema in a list of tools does."""
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
_ID: Final = rb'(-?(?:0|[1-9][0-9]{0,18})|"[^"\\\x00-\x1f]{0,200}")'
_HEAD: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*'
    + _ID
    + rb'(?:\s*,\s*"id"\s*:\s*[^,{}\[\]]{1,200})*\s*,\s*"(?:result|error)"'
)
_START: Final = re.compile(rb'\{\s*"')
_MOST_STARTS, _MOST_IN_LONG, _LONG_BYTES = 16, 2, 1 << 20
_DECODE: Final = json.JSONDecoder().raw_decode
_ANSWER: Final = re.compile(rb'\s*\{\s*"(?:result|error)"')
_TAIL: Final = re.compile(rb'"id"\s*:\s*' + _ID + rb"\s*\}\s*\Z")

Key = tuple[bool, Id]
"""An id under which 1 and "1" differ."""


def read(line: bytes, *, max_depth: int = 64) -> Message | Batch | Malformed:
    """What `line` says. Raises BadLine if it is not one unambiguous document."""
    try:
        value = strictjson.loads(line, max_depth=max_depth)
    except strictjson.StrictJSONError as error:
        code = Code.PARSE_ERROR if error.kind == "syntax" else Code.INVALID_REQUEST
        raise BadLine(code, error.reason) from None
    if has_oversized_integer(line, value):
        raise BadLine(Code.PARSE_ERROR, "a number is too large")
    return classify(value)


def read_client(line: bytes | LineTooLong, max_line_bytes: int) -> Message:
    """The one message in a line of the client. Raises BadLine, which quotes nothing of it."""
    if isinstance(line, LineTooLong):
        raise BadLine(Code.INVALID_REQUEST, f"the line is longer than {size(max_line_bytes)}")
    message = read(line)
    if isinstance(message, Malformed):
        raise BadLine(Code.INVALID_REQUEST, message.reason)
    if isinstance(message, Batch):
        raise BadLine(Code.INVALID_REQUEST, "a line holds one message, not a batch")
    return message


def one_line(document: bytes) -> bytes:
    """A strictly read document with a line end; in JSON a CR or LF can only be white space."""
    return document.translate(_ONE_LINE).strip() + b"\n"


def line_of(value: Tree) -> bytes:
    """A message as a line."""
    return strictjson.dumps(value) + b"\n"


def failed(key: Key, message: str, data: object = None, code: int = Code.INTERNAL_ERROR) -> bytes:
    """The line with an error for one call."""
    return line_of(error_body(key[1], code, message, data))


def starts(line: bytes) -> list[int]:
    """Where in a line that is no message one may begin, at most 16 places."""
    most = _MOST_STARTS if len(line) <= _LONG_BYTES else _MOST_IN_LONG
    return [found.start() for found, _ in zip(_START.finditer(line), range(most), strict=False)]


def sequence(data: bytes) -> list[tuple[Message, bytes]]:
    """The messages that `data` consists of, each with its bytes; empty if it is anything else."""
    messages: list[tuple[Message, bytes]] = []
    try:
        text, at = data.decode(), 0
        while at < len(text):
            _, end = _DECODE(text, at)
            part = text[at:end].encode()
            message = read(part, max_depth=SERVER_DEPTH)
            if isinstance(message, Malformed | Batch):
                return []
            messages.append((message, part))
            at = end + len(text[end:]) - len(text[end:].lstrip(" \t\r"))
    except (ValueError, RecursionError):  # BadLine is one
        return []
    return messages


def is_fit(answer: Tree) -> bool:
    """Whether an answer has what MCP says: a result that is an object, or an error of three."""
    if "result" in answer:
        return isinstance(answer["result"], dict)
    error = answer.get("error")
    if not isinstance(error, dict) or not error.keys() <= {"code", "message", "data"}:
        return False
    code = error.get("code")
    is_code = isinstance(code, int) and not isinstance(code, bool)
    return is_code and isinstance(error.get("message"), str)


def cancelled_key(params: Tree | None) -> Key | None:
    """Which call a notifications/cancelled is about."""
    identifier = (params or {}).get("requestId")
    if isinstance(identifier, bool) or not isinstance(identifier, int | str):
        return None
    return typed(identifier)


def claimed_key(line: bytes | LineTooLong) -> Key | None:
    """The call that a line answers which cannot be read as a whole, if its ends show it.

    Looks for the id where the writers of JSON-RPC put it: before or after the result.
    """
    head, tail = (line.head, line.tail) if isinstance(line, LineTooLong) else (line, line)
    found = _HEAD.match(head)
    if found is None and _ANSWER.match(head):
        found = _TAIL.search(tail[-256:])
    if found is None:
        return None
    identifier = strictjson.loads(found.group(1)) if found.group(1).isascii() else None
    return typed(identifier) if isinstance(identifier, int | str) else None


__all__ = [
    "SERVER_DEPTH",
    "Key",
    "cancelled_key",
    "claimed_key",
    "failed",
    "is_fit",
    "line_of",
    "one_line",
    "read",
    "read_client",
    "sequence",
    "starts",
]
