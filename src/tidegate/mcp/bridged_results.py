"""What does a client of one revision see of what a server of another one says?

Lives here: results, errors and notifications rewritten for the client's revision: what
2026-07-28 demands of every result, what older revisions have no word for, which error code means
what, which HTTP status goes with it. Does not live here: the way to the server (bridging), what
of it the client may see (gateway.tool_requests.answer).

Sources: MCP 2026-07-28, schema (ResultType, CacheableResult) and server/utilities/caching; MCP
2025-06-18, changelog (structured output, resource links); MCP 2025-03-26, schema (content); MCP
2025-11-25, server/resources.
"""

from collections.abc import Callable, Mapping
from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import Code, Tree
from tidegate.mcp.answers import says_unknown
from tidegate.mcp.authorize import Subject
from tidegate.mcp.bridging import OLDEST, Refused
from tidegate.mcp.eras import BATCHING, MODERN
from tidegate.mcp.meta_keys import PREFIX

CACHED: Final = frozenset(
    {
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)
"""Methods whose results must say how long and by whom they may be kept."""

RESOURCE_NOT_FOUND: Final = -32002
"""Until 2025-11-25; later revisions say -32602."""
_OLDEST_BLOCKS: Final = frozenset({"audio", "image", "resource", "text"})
"""Kinds of content until 2025-03-26."""
_URL_ELICITATION: Final = -32042
_MODERN_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
_STATUS: Final[Mapping[int, int]] = {
    Code.PARSE_ERROR: 400,
    Code.INVALID_REQUEST: 400,
    Code.METHOD_NOT_FOUND: 404,
    Code.INVALID_PARAMS: 400,
    Code.HEADER_MISMATCH: 400,
    Code.MISSING_CAPABILITY: 400,
    Code.UNSUPPORTED_VERSION: 400,
}

NEEDS_INPUT: Final = (
    "The server asks for input of the client (sampling, elicitation or roots), which this gateway "
    "does not carry between these two revisions of MCP."
)
NEEDS_TASKS: Final = (
    "The server answers with a task, which this gateway does not carry between these two "
    "revisions of MCP."
)
ODD_RESULT: Final = "The server answers with a kind of result that this revision does not know."


def result_for(
    method: str, result: object, client: str | None, server: str, shown: Callable[[str], str] = str
) -> Tree | Refused:
    """The result of `method` as a client of revision `client` reads it.

    None is a client that names no revision. `shown` is what the client calls a resource that a
    link of the server leads to: where the link becomes a text nobody finds it again. Pure. Cost:
    linear in the number of tools and of content blocks; what is not touched is shared with
    `result`.
    """
    if not isinstance(result, dict):
        return Refused(Code.INTERNAL_ERROR, "not an object")
    if server == MODERN and client != MODERN:
        refused = _refused_kind(result)
        if refused is not None:
            return refused
        result = _without_modern(result)
    if client == MODERN:
        return result if server == MODERN else _with_modern(method, result)
    return _told_to_older(method, result, client or OLDEST, shown)


def error_for(method: str, error: object, client: str | None, server: str) -> Tree:
    """The error of an answer as a client of revision `client` reads it."""
    if not isinstance(error, dict) or client == server:
        return error if isinstance(error, dict) else _error(Code.INTERNAL_ERROR, "not an object")
    code = error.get("code")
    if code == _URL_ELICITATION:
        return _error(Code.INVALID_REQUEST, NEEDS_INPUT)
    if client == MODERN:
        is_missing = code == RESOURCE_NOT_FOUND
        return {**error, "code": int(Code.INVALID_PARAMS)} if is_missing else error
    return _older_error(method, error) if server == MODERN else error


def _older_error(method: str, error: Tree) -> Tree:
    """An error of 2026-07-28 for a client of a revision before it."""
    code = error.get("code")
    if code == Code.MISSING_CAPABILITY:
        return _error(Code.INVALID_REQUEST, NEEDS_INPUT, error.get("data"))
    if code in (Code.HEADER_MISMATCH, Code.UNSUPPORTED_VERSION):
        # About what we wrote, and no word that the client's revision knows.
        return _error(Code.INTERNAL_ERROR, "refused")
    if method == "resources/read" and code == Code.INVALID_PARAMS and _is_about_nothing(error):
        return {**error, "code": RESOURCE_NOT_FOUND}
    return error


def status_for(message: Tree, client: str | None) -> int:
    """The HTTP status of an answer: in 2026-07-28 errors have one, before everything is 200."""
    error = message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if client != MODERN or not isinstance(code, int):
        return 200
    return _STATUS.get(code, 200)


def params_for(params: object, client: str | None) -> object:
    """The params of a notification: the protocol's own fields of 2026-07-28 are not for others."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    if client == MODERN or not isinstance(params, dict) or not isinstance(meta, dict):
        return params
    return _without_own_meta(params)


def _refused_kind(result: Tree) -> Refused | None:
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return None
    if kind == "input_required":
        return Refused(Code.INVALID_REQUEST, NEEDS_INPUT)
    return Refused(Code.INVALID_REQUEST, NEEDS_TASKS if kind == "task" else ODD_RESULT)


def _without_modern(result: Tree) -> Tree:
    kept = {key: value for key, value in result.items() if key not in _MODERN_MEMBERS}
    return _without_own_meta(kept)


def _without_own_meta(holder: Tree) -> Tree:
    meta = holder.get("_meta")
    if not isinstance(meta, dict):
        return holder
    kept = {key: value for key, value in meta.items() if not key.startswith(PREFIX)}
    if len(kept) == len(meta):
        return holder
    rest = {key: value for key, value in holder.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def _with_modern(method: str, result: Tree) -> Tree:
    whole: Tree = {**result, "resultType": "complete"}
    if method in CACHED:
        # What an older server says is not said to be good for any time, nor for anybody else.
        whole.update(ttlMs=0, cacheScope="private")
    return whole


def _told_to_older(method: str, result: Tree, client: str, shown: Callable[[str], str]) -> Tree:
    """`result` in the words of a revision before 2026-07-28."""
    is_oldest = client <= BATCHING
    if method == "tools/list":
        return _with_each(result, "tools", lambda tool: _older_tool(tool, is_oldest=is_oldest))
    if method == "tools/call":
        result = _older_structure(result, is_oldest=is_oldest)
        if is_oldest:
            return _with_each(result, "content", lambda block: _oldest_block(block, shown))
    if method == "prompts/get" and is_oldest:
        return _with_each(result, "messages", lambda message: _oldest_message(message, shown))
    return result


def _with_each(result: Tree, member: str, change: Callable[[object], object]) -> Tree:
    items = result.get(member)
    if not isinstance(items, list):
        return result
    changed = [change(item) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return result
    return {**result, member: changed}


def _older_tool(tool: object, *, is_oldest: bool) -> object:
    """Before 2025-06-18 a tool promises no structure, and until 2025-11-25 only an object."""
    if not isinstance(tool, dict) or "outputSchema" not in tool:
        return tool
    schema = tool["outputSchema"]
    if not is_oldest and isinstance(schema, dict) and schema.get("type") == "object":
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def _older_structure(result: Tree, *, is_oldest: bool) -> Tree:
    if "structuredContent" not in result:
        return result
    value = result["structuredContent"]
    if not is_oldest and isinstance(value, dict):
        return result
    kept = {key: each for key, each in result.items() if key != "structuredContent"}
    if not kept.get("content"):
        kept["content"] = [{"type": "text", "text": strictjson.dumps(value).decode()}]
    return kept


def _oldest_block(block: object, shown: Callable[[str], str]) -> object:
    """A link to a resource as text, for those who know no links, and so whatever came later."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or kind in _OLDEST_BLOCKS:
        return block
    uri = block.get("uri")
    names = [block.get("title") or block.get("name"), shown(uri) if isinstance(uri, str) else None]
    text = ": ".join(name for name in names if isinstance(name, str) and name)
    kept = {key: block[key] for key in ("annotations", "_meta") if key in block}
    if not text and kind != "resource_link":
        text = strictjson.dumps({key: block[key] for key in block if key not in kept}).decode()
    return {"type": "text", "text": text, **kept}


def _oldest_message(message: object, shown: Callable[[str], str]) -> object:
    if not isinstance(message, dict):
        return message
    content = _oldest_block(message.get("content"), shown)
    return message if content is message.get("content") else {**message, "content": content}


def _is_about_nothing(error: Tree) -> bool:
    return says_unknown({"error": error}, Subject("resources", ""))


def _error(code: Code, message: str, data: object = None) -> Tree:
    error: Tree = {"code": int(code), "message": message}
    return error if data is None else {**error, "data": data}


__all__ = [
    "CACHED",
    "NEEDS_INPUT",
    "NEEDS_TASKS",
    "ODD_RESULT",
    "RESOURCE_NOT_FOUND",
    "error_for",
    "params_for",
    "result_for",
    "status_for",
]
