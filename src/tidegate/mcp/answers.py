"""What of an upstream's answer may a client see?

Lives here: which message is the answer to our request, which error codes pass and which become
one generic error, and when an error says "unknown tool". Does not live here: framing
(http_upstream), what is filtered out of lists (listing), what is masked (redaction).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeGuard

from tidegate import strictjson
from tidegate.jsonrpc import Code, Id, Tree, error_body, typed
from tidegate.mcp.authorize import Subject
from tidegate.mcp.meta_keys import PREFIX

GENERIC_MESSAGE: Final = "The MCP server behind the gateway failed."
_MAX_DEPTH: Final = 128
_MAX_MESSAGE_CHARS: Final = 1000

_NOT_FOUND: Final = -32002
"""Resource not found, until 2025-11-25."""
PASSING_CODES: Final = frozenset(
    {
        Code.INVALID_REQUEST,
        Code.METHOD_NOT_FOUND,
        Code.INVALID_PARAMS,
        Code.HEADER_MISMATCH,
        Code.MISSING_CAPABILITY,
        Code.UNSUPPORTED_VERSION,
        _NOT_FOUND,
        -32042,  # URL elicitation required, 2025-11-25: a client acts on its data
    }
)
"""Codes the specification defines for what a client did. Any other may carry the text of an
exception, so only these keep their message."""

_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_UNKNOWN: Final = {
    f"{noun}s": re.compile(
        r"(?:mcp error -?[0-9]+: *)?(?:the )?(?:"
        r"(?:unknown|no such|invalid|unrecognized|unsupported|nonexistent)"
        rf" {noun}\b(?!s? arguments?| input| call).*"
        rf"|{noun}\b.{{0,2200}}?\b(?:not found|not known|unknown|not exist|not available"
        r"|not registered|not be found).*)",
        re.IGNORECASE | re.DOTALL,
    )
    for noun in ("tool", "prompt", "resource")
}
READABLE: Final = (400, 404)
"""Refusing statuses whose body may say why."""
_OF_SESSIONS: Final = (-32000, Code.INVALID_REQUEST)
_SESSION: Final = re.compile(r"\bsession|\bnot initiali[sz]ed\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One JSON value from an upstream and the bytes it came in, if they may be sent on as they are.

    `raw` is None when the bytes hold more than this value or were mended. `event_id` is where a
    lost stream can be taken up again behind this value; one that stands without any message comes
    with the value None. `retry_ms` is how long a client should wait before it does. `given` is the
    result as the server gave it, where `value` is how a client of another revision reads it.
    `came_in`: how many bytes it came in, where `raw` does not say so.
    """

    value: object
    raw: bytes | None = None
    event_id: str | None = None
    retry_ms: int | None = None
    given: object = None
    came_in: int = field(default=0, compare=False)

    @property
    def size_bytes(self) -> int:
        """How much work it is, about: of an array that of all of it."""
        return self.came_in if self.raw is None else len(self.raw)

    def about(self, id: Id) -> "Incoming":  # noqa: A002 - the member's own name
        """The same message, an object, as one about the request `id`."""
        held = self.value if isinstance(self.value, dict) else {}
        return replace(self, value={**held, "id": id}, raw=None, came_in=self.size_bytes)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the request we sent. `message` has exactly a result or an error.

    `given` is the result as the server gave it, None where `message` has it.
    """

    message: Tree
    raw: bytes | None
    given: object = None

    @property
    def original(self) -> object:
        """The result in the server's own words; None for an error."""
        return self.message.get("result") if self.given is None else self.given


@dataclass(frozen=True, slots=True)
class Note:
    """A notification."""

    message: Tree
    method: str
    raw: bytes | None


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of the upstream to the client (sampling, elicitation, roots, ping)."""

    message: Tree
    method: str
    id: Id
    raw: bytes | None


def parse(data: bytes) -> list[Incoming]:
    """The JSON values in one body or event; empty if it is not one unambiguous document.

    Stricter than MCP asks for: with duplicate keys the client could read something else than
    was filtered. Half a surrogate pair (a string cut by its author) becomes U+FFFD.
    """
    try:
        value, raw = strictjson.loads(data, max_depth=_MAX_DEPTH), data
    except strictjson.StrictJSONError:
        mended = _mend_surrogates(data)
        if mended is None:
            return []
        try:
            value, raw = strictjson.loads(mended, max_depth=_MAX_DEPTH), mended
        except strictjson.StrictJSONError:
            return []
    if isinstance(value, list):
        return [Incoming(element, came_in=len(raw)) for element in value]
    return [Incoming(value, raw)]


def sort(incoming: Incoming, sent_id: Id | None) -> Reply | Note | Ask | None:
    """What a message is to the request `sent_id`; None for what must go nowhere.

    An answer with another id, or with the same id in another type, is not ours: it is dropped,
    never delivered; so is every answer in a stream that no call of ours opened (None). Members
    that are not of JSON-RPC are left out: nobody filters or masks them.
    """
    message = incoming.value
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    method, id = message.get("method"), message.get("id")  # noqa: A001 - the member's name
    if method is None:
        return _reply(message, incoming, sent_id)
    if not isinstance(method, str) or "result" in message or "error" in message:
        return None
    shown, raw = _with_only(("jsonrpc", "id", "method", "params"), message, incoming.raw)
    if "id" not in message:
        return Note(shown, method, raw)
    return Ask(shown, method, id, raw) if is_id(id) else None


def about(incoming: Incoming, sent_id: Id, status: int) -> Incoming:
    """An error in an answer with a refusing status is about the one message that was sent.

    Whatever its id: there may be none, and some servers write a word of their own, "server-error".
    """
    value = incoming.value
    if status not in READABLE or not isinstance(value, dict) or "error" not in value:
        return incoming
    return incoming.about(sent_id)


def _reply(message: Tree, incoming: Incoming, sent_id: Id | None) -> Reply | None:
    id = message.get("id")  # noqa: A001 - the member's name
    if sent_id is None or not is_id(id) or typed(id) != typed(sent_id):
        return None
    if ("result" in message) == ("error" in message):
        return None
    shown, raw = _with_only(("jsonrpc", "id", "result", "error"), message, incoming.raw)
    return Reply(shown, raw, incoming.given)


def _with_only(
    members: tuple[str, ...], message: Tree, raw: bytes | None
) -> tuple[Tree, bytes | None]:
    """The message without any other member; its bytes only if it had none."""
    if message.keys() <= set(members):
        return message, raw
    return {key: message[key] for key in members if key in message}, None


def is_id(value: object) -> TypeGuard[Id]:
    """Whether this may be the id of a message."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def clean(reply: Reply, request_id: str) -> Reply:
    """The reply without texts of an exception; the same object if there is nothing to hide."""
    if "result" in reply.message:
        return reply
    error = reply.message["error"]
    if isinstance(error, dict) and set(error) <= {"code", "message", "data"}:
        code, message = error.get("code"), error.get("message")
        is_code = isinstance(code, int) and not isinstance(code, bool)
        if is_code and code in PASSING_CODES and isinstance(message, str):
            if len(message) <= _MAX_MESSAGE_CHARS:
                return reply
            shown = {**error, "message": message[:_MAX_MESSAGE_CHARS]}
            return Reply({**reply.message, "error": shown}, None)
    return Reply(generic(None, request_id), None)


def restored(original: object, masked: object, *, lists: bool = False, uri: bool = False) -> object:
    """`masked` with the members put back that are not text but how the protocol works.

    Cursors, ids, versions and the state of a retry come back to the server as they were, and
    what a list names must still be callable; a mask would break them. Both values have the same
    shape: the result of a message, or the params of one that came from the server. `lists`: it
    answers a request for a list. `uri`: a `uri` at its top names a resource.
    """
    if not isinstance(original, dict) or not isinstance(masked, dict):
        return masked
    members = (*_PROTOCOL_MEMBERS, "uri") if uri else _PROTOCOL_MEMBERS
    whole = {**masked, **{key: original[key] for key in members if key in original}}
    meta, masked_meta = original.get("_meta"), masked.get("_meta")
    if isinstance(meta, dict) and isinstance(masked_meta, dict):
        kept = {key: value for key, value in meta.items() if key.startswith(PREFIX)}
        whole["_meta"] = {**masked_meta, **kept}
    for member, handles in _HANDLES.items() if lists else ():
        items, masked_items = original.get(member), masked.get(member)
        if isinstance(items, list) and isinstance(masked_items, list):
            pairs = zip(items, masked_items, strict=True)
            whole[member] = [_restored_item(item, shown, handles) for item, shown in pairs]
    return whole


def _restored_item(item: object, masked: object, handles: tuple[str, ...]) -> object:
    if not isinstance(item, dict) or not isinstance(masked, dict):
        return masked
    return {**masked, **{key: item[key] for key in handles if key in item}}


_PROTOCOL_MEMBERS: Final = (
    "cacheScope",
    "cursor",
    "nextCursor",
    "progressToken",
    "protocolVersion",
    "requestId",
    "requestState",
    "resultType",
    "supportedVersions",
    "taskId",
)
_HANDLES: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("name", "inputSchema", "outputSchema"),
    "prompts": ("name",),
    "resources": ("uri",),
    "resourceTemplates": ("uriTemplate",),
    "tasks": ("taskId",),
}
"""Lists, and by which members a client uses what is in them."""


def generic(id: Id | None, request_id: str) -> Tree:  # noqa: A002 - the member's own name
    """The one error for whatever went wrong behind us."""
    return error_body(id, Code.INTERNAL_ERROR, GENERIC_MESSAGE, {"request_id": request_id})


def says_unknown(message: Tree, subject: Subject) -> bool:
    """Whether an answer to a request for `subject`, as its server names it, says that there is no
    such thing.

    Servers do it in four ways: an error -32601, -32002 for what is no tool, an error -32602 or
    -32002 whose text says so, or a result with isError and one such text. A text counts only if it
    begins that way, with the word for the kind. A tool has texts of its own for what it did not
    find when it ran, so one about a tool must name it.
    """
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        code, text = error.get("code"), error.get("message")
        if code == Code.METHOD_NOT_FOUND or (code == _NOT_FOUND and subject.kind != "tools"):
            return True
        return code in (Code.INVALID_PARAMS, _NOT_FOUND) and _is_unknown(text, subject)
    if not isinstance(result, dict) or result.get("isError") is not True:
        return False
    content = result.get("content")
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return False
    return _is_unknown(content[0].get("text"), subject)


def asks_for_session(message: Tree, status: int) -> bool:
    """Whether an answer to a request without a session refuses it for that.

    MCP, 2025-11-25, basic/transports: with HTTP 400. The code, one of two in the field, and the
    text are what tells it from other refusals.
    """
    error = message.get("error")
    if status != 400 or not isinstance(error, dict) or error.get("code") not in _OF_SESSIONS:
        return False
    text = error.get("message")
    return isinstance(text, str) and _SESSION.search(text) is not None


def _is_unknown(text: object, subject: Subject) -> bool:
    if not isinstance(text, str) or (subject.kind == "tools" and subject.name not in text):
        return False
    return _UNKNOWN[subject.kind].fullmatch(text.strip()) is not None


def _mend_surrogates(data: bytes) -> bytes | None:
    """`data` with every escape that is half a pair replaced; None if there is none."""
    tokens = [(m.start(), m.end(), int(m[1], 16) if m[1] else 0) for m in _ESCAPE.finditer(data)]
    mended, at, changed = [], 0, False
    index = 0
    while index < len(tokens):
        start, end, unit = tokens[index]
        index += 1
        if not 0xD800 <= unit <= 0xDFFF:
            continue
        follower = tokens[index] if index < len(tokens) else (0, 0, 0)
        if unit < 0xDC00 and follower[0] == end and 0xDC00 <= follower[2] <= 0xDFFF:
            index += 1
            continue
        mended += [data[at:start], b"\\ufffd"]
        at, changed = end, True
    return b"".join([*mended, data[at:]]) if changed else None


__all__ = [
    "GENERIC_MESSAGE",
    "PASSING_CODES",
    "READABLE",
    "Ask",
    "Incoming",
    "Note",
    "Reply",
    "about",
    "asks_for_session",
    "clean",
    "generic",
    "is_id",
    "parse",
    "restored",
    "says_unknown",
    "sort",
]
