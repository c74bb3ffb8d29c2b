"""Which message is this line, strictly read, and how does it go on as one line?

Lives here: what wrap and connect share about lines of either side. Does not live here: where
lines come from (pipes), which of them may pass (sorting, turns).
"""

from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import (
    Batch,
    Code,
    Malformed,
    Message,
    Tree,
    classify,
    error_body,
    has_oversized_integer,
    typed,
)
from tidegate.lines import LineTooLong
from tidegate.mcp.server_lines import SERVER_DEPTH, Key, claimed_key, documents, starts
from tidegate.tools.stdio import BadLine, size

_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


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


def sequence(data: bytes) -> list[tuple[Message, bytes]]:
    """The messages that `data` consists of, each with its bytes; empty if it is anything else."""
    messages: list[tuple[Message, bytes]] = []
    for part in documents(data):
        try:
            message = read(part, max_depth=SERVER_DEPTH)
        except BadLine:
            return []
        if isinstance(message, Malformed | Batch):
            return []
        messages.append((message, part))
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
