"""What is a client on stdio told when HTTP, or what is under it, has failed?

Lives here: constant sentences and codes for statuses and lost connections, and when an error of
the server itself passes. Does not live here: which call it is for (turns).
"""

import re
from collections.abc import Mapping
from typing import Final

from tidegate import strictjson
from tidegate.bridges.reading import is_fit
from tidegate.jsonrpc import Code, Tree

NO_ANSWER: Final = "The server ended its answer without a result."
UNFIT: Final = "The answer of the server was not what MCP calls one."
TOO_LARGE: Final = "The answer of the server was too long."
UNREACHABLE: Final = "The server cannot be reached."
BROKEN: Final = "The connection to the server broke before the answer."
ENDED: Final = "The bridge ended before the server answered."
TOO_MANY: Final = "Too many calls are open at once."

_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_VISIBLE: Final = re.compile(r"[\x20-\x7e]{1,64}")
_SENTENCES: Final[Mapping[int, tuple[Code, str, str]]] = {
    403: (Code.FORBIDDEN, "forbidden", "The server does not permit this."),
    413: (Code.EXCEEDS_LIMIT, "too_large", "The message is larger than the server takes."),
    429: (Code.RATE_LIMITED, "rate_limited", "The server takes no more calls for a while."),
}


def refusal(status: int, *, with_token: bool, in_session: bool) -> Tree:
    """The JSON-RPC error for a status that came without one. `data` names reason and status."""
    if status == 401:
        sentence = (
            "The server does not accept TIDEGATE_TOKEN."
            if with_token
            else "The server wants a token: set TIDEGATE_TOKEN."
        )
        return _error(Code.FORBIDDEN, sentence, "unauthenticated", status)
    if status == 404 and in_session:
        sentence = "The server has ended the session: start this client again."
        return _error(Code.UNAVAILABLE, sentence, "session_ended", status)
    if status in _SENTENCES:
        code, reason, sentence = _SENTENCES[status]
        return _error(code, sentence, reason, status)
    if 300 <= status < 400:
        sentence = "The server sent a redirect, which is not followed: use its final address."
        return _error(Code.UNAVAILABLE, sentence, "redirect", status)
    if status in (404, 405):
        return _error(Code.UNAVAILABLE, "There is no MCP endpoint there.", "no_endpoint", status)
    if status >= 500:
        return _error(Code.UNAVAILABLE, "The server failed.", "server_failed", status)
    if status < 300:
        return _error(Code.INTERNAL_ERROR, NO_ANSWER, "no_answer", status)
    return _error(Code.INTERNAL_ERROR, "The server refused the message.", "refused", status)


def own_error(body: bytes) -> Tree | None:
    """The error in a JSON-RPC body; None if the body is none. Its id may be missing or null."""
    try:
        value = strictjson.loads(body, max_depth=128)
    except strictjson.StrictJSONError:
        return None
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0" or "result" in value:
        return None
    error = value.get("error")
    return error if isinstance(error, dict) and is_fit(value) else None


def with_wait(error: Tree, retry_after: str | None) -> Tree:
    """`error` with what Retry-After says in its data, if there is room for it."""
    data = error.get("data", {})
    if retry_after is None or not isinstance(data, dict) or "retryAfterMs" in data:
        return error
    if _SECONDS.fullmatch(retry_after):
        return {**error, "data": {**data, "retryAfterMs": int(retry_after) * 1000}}
    if _VISIBLE.fullmatch(retry_after):
        return {**error, "data": {**data, "retryAfter": retry_after}}
    return error


def broken(sentence: str) -> Tree:
    """The error for a call whose connection, or answer, was lost."""
    reason = {
        UNREACHABLE: "unreachable",
        TOO_LARGE: "too_large",
        ENDED: "ended",
        UNFIT: "no_answer",
    }
    code = Code.UNAVAILABLE if sentence in (UNREACHABLE, BROKEN) else Code.INTERNAL_ERROR
    data: Tree = {"reason": reason.get(sentence, "broken")}
    return {"code": int(code), "message": sentence, "data": data}


def _error(code: Code, sentence: str, reason: str, status: int) -> Tree:
    return {"code": int(code), "message": sentence, "data": {"reason": reason, "status": status}}


__all__ = [
    "BROKEN",
    "ENDED",
    "NO_ANSWER",
    "TOO_LARGE",
    "TOO_MANY",
    "UNFIT",
    "UNREACHABLE",
    "broken",
    "own_error",
    "refusal",
    "with_wait",
]
