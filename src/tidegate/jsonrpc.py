"""Is this JSON-RPC, and which messages does it hold?

Lives here: the shapes of JSON-RPC 2.0 as MCP narrows it (named params only; ids are strings or
integers), the refusal of whatever two readers could take for two things, error bodies and error
codes. Does not live here: bytes (strictjson), what a method means or who may call it
(mcp.authorize), which revision allows a batch (mcp.eras).
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from msgspec import Struct

from tidegate.errors import TidegateError, Unauthenticated

Id = str | int
Tree = dict[str, object]

_MAX_ID_CHARS: Final = 1024
_MAX_ID_DIGITS: Final = 64
_MAX_ID: Final = 10**_MAX_ID_DIGITS
_NO_ID: Final = (
    f"an id must be a string of at most {_MAX_ID_CHARS} characters "
    f"or an integer of at most {_MAX_ID_DIGITS} digits"
)
_MAX_INTEGER: Final = 10**308
_LONG_NUMBER: Final = b"0" * 309
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_VERSION: Final = ("jsonrpc", "2.0")
_CALL_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_REPLY_MEMBERS: Final = frozenset({"jsonrpc", "id", "result", "error"})

# Every member of params, of its _meta and of the objects that name something, that any revision
# of MCP gives a meaning. A reader that folds case would take a variant for the member itself.
RESERVED: Final = frozenset(
    {
        "_meta",
        "argument",
        "arguments",
        "capabilities",
        "clientInfo",
        "context",
        "cursor",
        "inputResponses",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/subscriptionId",
        "level",
        "name",
        "notifications",
        "progressToken",
        "promptsListChanged",
        "protocolVersion",
        "ref",
        "requestId",
        "requestState",
        "resourceSubscriptions",
        "resourcesListChanged",
        "task",
        "taskId",
        "toolsListChanged",
        "type",
        "uri",
    }
)


class Code(IntEnum):
    """Error codes. The specification owns -32768 to -32000; ours are outside of that range."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    UNAUTHENTICATED = -32000
    """Sent with HTTP 401; the same number as the SDKs' own "connection closed"."""
    UNAUTHORIZED = -32001
    """A denied call in profile `brief`; the same number as the SDKs' own "request timed out"."""
    HEADER_MISMATCH = -32020
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022
    RATE_LIMITED = -31000
    EXCEEDS_LIMIT = -31001
    UNAVAILABLE = -31002
    FORBIDDEN = -31003
    """A denied call in profile `spec`."""
    BLOCKED = -31004


class Request(Struct, frozen=True):
    """A call that wants an answer. `id` keeps its type: 1 and "1" are two ids."""

    id: Id
    method: str
    params: Tree | None = None

    def encode(self, *, id: Id | None = None) -> Tree:  # noqa: A002 - the member's own name
        """The message as a JSON value, with another id if one is given."""
        return _message({"id": self.id if id is None else id}, self.method, self.params)


class Notification(Struct, frozen=True):
    """A call that wants none."""

    method: str
    params: Tree | None = None

    def encode(self) -> Tree:
        """The message as a JSON value."""
        return _message({}, self.method, self.params)


class Response(Struct, frozen=True):
    """An answer: exactly one of `result` and `error` is a member of `value`."""

    id: Id
    value: Tree


class Batch(Struct, frozen=True):
    """Several messages in one array, in their order; never empty."""

    messages: tuple[Request | Notification | Response, ...]


@dataclass(frozen=True, slots=True)
class Malformed:
    """Not JSON-RPC, or ambiguous. `reason` is a constant phrase; `id` is set if it was readable."""

    reason: str
    id: Id | None = None


Call = Request | Notification
Message = Request | Notification | Response


def classify(value: object) -> Message | Batch | Malformed:
    """What the strictly parsed `value` is. Cost: linear in its members and those of params.

    Refused: members that are not of JSON-RPC, result beside method, ids that are null, floats,
    booleans or overlong, params that are not an object, and any member that differs from a
    reserved one only by case or by Unicode form ("Name" beside or instead of "name"). One
    refused element refuses its whole batch.
    """
    if not isinstance(value, list):
        return _single(value)
    if not value:
        return Malformed("a batch must not be empty")
    messages: list[Message] = []
    for element in value:
        message = _single(element)
        if isinstance(message, Malformed):
            return Malformed(message.reason)
        messages.append(message)
    return Batch(tuple(messages))


def has_oversized_integer(data: bytes, value: object) -> bool:
    """Whether an integer in `value`, parsed from `data`, has more than 308 digits.

    Readers without big integers turn it into infinity. Cost: one scan of `data`; the tree is
    walked only if that finds a run of digits.
    """
    if _LONG_NUMBER not in data.translate(_DIGITS):
        return False
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, int) and not -_MAX_INTEGER < node < _MAX_INTEGER:
            return True
    return False


def typed(id: Id) -> tuple[bool, Id]:  # noqa: A002 - the member's own name
    """A key under which 1 and "1" differ."""
    return isinstance(id, str), id


def result_body(id: Id, result: object) -> Tree:  # noqa: A002
    """A successful answer."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_body(
    id: Id | None,  # noqa: A002
    code: int,
    message: str,
    data: object = None,
) -> Tree:
    """An error answer; `data` is left out when it is None."""
    error: Tree = {"code": int(code), "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def error_of(error: TidegateError, request_id: str, *, id: Id | None = None) -> Tree:  # noqa: A002
    """`error` as a JSON-RPC error; `data` names the request, and when a retry would help."""
    data: Tree = {"request_id": request_id, "reason": error.code}
    if error.retry_after_s is not None:
        data["retryAfterMs"] = max(1, round(error.retry_after_s * 1000))
    return error_body(id, _code_of(error), error.message, data)


def _code_of(error: TidegateError) -> int:
    if isinstance(error, Unauthenticated):
        return Code.UNAUTHENTICATED
    return _BY_STATUS.get(error.code, Code.INTERNAL_ERROR)


_BY_STATUS: Final[Mapping[str, int]] = {
    "gateway.invalid_request": Code.INVALID_REQUEST,
    "gateway.unsupported_media_type": Code.INVALID_REQUEST,
    "gateway.body_too_large": Code.INVALID_REQUEST,
    "gateway.header_too_large": Code.INVALID_REQUEST,
    "gateway.not_found": Code.INVALID_REQUEST,
    "gateway.method_not_allowed": Code.INVALID_REQUEST,
    "gateway.forbidden": Code.FORBIDDEN,
    "gateway.rate_limited": Code.RATE_LIMITED,
    "gateway.request_exceeds_limit": Code.EXCEEDS_LIMIT,
    "gateway.store_unavailable": Code.UNAVAILABLE,
    "gateway.identity_unavailable": Code.UNAVAILABLE,
    "gateway.overloaded": Code.UNAVAILABLE,
    "gateway.content_blocked": Code.BLOCKED,
}


def _message(head: Tree, method: str, params: Tree | None) -> Tree:
    message: Tree = {"jsonrpc": "2.0", **head, "method": method}
    if params is not None:
        message["params"] = params
    return message


def _single(value: object) -> Message | Malformed:
    if not isinstance(value, dict):
        return Malformed("a message must be an object")
    id = value.get("id")  # noqa: A001
    readable = id if _is_id(id) else None
    if value.get(_VERSION[0]) != _VERSION[1]:
        return Malformed('the member "jsonrpc" must be "2.0"', readable)
    if "id" in value and readable is None:
        return Malformed(_NO_ID)
    if "method" in value:
        return _call(value, readable)
    return _reply(value, readable)


def _call(value: Tree, id: Id | None) -> Call | Malformed:  # noqa: A002
    if not value.keys() <= _CALL_MEMBERS:
        return Malformed("a call has a member that is not of JSON-RPC", id)
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return Malformed('the member "method" must be a string', id)
    if "params" in value and not isinstance(params, dict):
        return Malformed('the member "params" must be an object', id)
    named = params if isinstance(params, dict) else None
    if named is not None and _has_disguise(named):
        return Malformed("a member of params differs from a reserved one only by its spelling", id)
    return Notification(method, named) if id is None else Request(id, method, named)


def _reply(value: Tree, id: Id | None) -> Response | Malformed:  # noqa: A002
    if not value.keys() <= _REPLY_MEMBERS:
        return Malformed("a message has a member that is not of JSON-RPC", id)
    if ("result" in value) == ("error" in value):
        return Malformed("a message must have a method, a result or an error", id)
    if id is None:
        return Malformed("an answer must have an id")
    return Response(id, value)


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool) and -_MAX_ID < value < _MAX_ID


def _has_disguise(params: Tree) -> bool:
    """Whether a member would be read as a reserved one by a reader that folds case or form.

    Looks at params itself and at the three objects in it whose members name something.
    `arguments` belong to the tool; rules that read them look out for themselves.
    """
    if any(map(_is_disguise, params)):
        return True
    nested = (params.get("_meta"), params.get("ref"), params.get("notifications"))
    return any(isinstance(node, dict) and any(map(_is_disguise, node)) for node in nested)


def _is_disguise(member: str) -> bool:
    # What ends as ASCII was never longer. The bound keeps this cheap: normalizing sorts runs of
    # combining marks by insertion.
    if member in RESERVED or len(member) > _LONGEST:
        return False
    return unicodedata.normalize("NFKC", member).casefold() in _FOLDED


_FOLDED: Final = frozenset(member.casefold() for member in RESERVED)
_LONGEST: Final = max(map(len, RESERVED))

__all__ = [
    "RESERVED",
    "Batch",
    "Call",
    "Code",
    "Id",
    "Malformed",
    "Message",
    "Notification",
    "Request",
    "Response",
    "Tree",
    "classify",
    "error_body",
    "error_of",
    "has_oversized_integer",
    "result_body",
    "typed",
]
