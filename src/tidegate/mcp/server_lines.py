"""Where in a line that is no message of its own does a message stand, or which call does it answer?

Servers print beside their messages, and not always with a line end. Lives here: what can be said
of a line that cannot be read as a whole. Does not live here: where lines end (tidegate.lines).
"""

import json
import re
from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import Id, typed
from tidegate.lines import LineTooLong

SERVER_DEPTH: Final = 128
"""Results nest deeper than requests; a schema in a list of tools does."""
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

FROM_CLIENTS: Final = frozenset(
    {
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    }
)
"""What no server sends: from one it is an echo of its input, not a message."""

Key = tuple[bool, Id]
"""An id under which 1 and "1" differ."""


def starts(line: bytes) -> list[int]:
    """Where in a line that is no message one may begin, at most 16 places."""
    most = _MOST_STARTS if len(line) <= _LONG_BYTES else _MOST_IN_LONG
    return [found.start() for found, _ in zip(_START.finditer(line), range(most), strict=False)]


def documents(data: bytes) -> list[bytes]:
    """The JSON documents that `data` consists of; empty if it is anything else.

    Where one ends is all that is looked at here: each must still be read strictly.
    """
    parts: list[bytes] = []
    try:
        text, at = data.decode(), 0
        while at < len(text):
            _, end = _DECODE(text, at)
            parts.append(text[at:end].encode())
            at = end + len(text[end:]) - len(text[end:].lstrip(" \t\r"))
    except (ValueError, RecursionError):
        return []
    return parts


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


__all__ = ["FROM_CLIENTS", "SERVER_DEPTH", "Key", "claimed_key", "documents", "starts"]
