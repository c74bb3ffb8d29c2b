"""How do the answers of several servers become one?

Lives here: one page out of many lists, one set of capabilities, one acknowledgment of several
subscriptions, and how a client learns who is missing. Does not live here: asking the servers
(gateway.tool_requests.federation), what each of them may show (listing), their names (federation).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.jsonrpc import Tree
from tidegate.mcp.authorize import LISTED_MEMBER
from tidegate.mcp.changes import LISTS
from tidegate.mcp.eras import LEGACY, SUPPORTED
from tidegate.mcp.meta_keys import SERVER_KEY

UNAVAILABLE: Final = "tidegate/unavailable"
"""The member of `_meta` that names the servers whose part is missing."""

_OFFERS: Final = ("tools", "prompts", "resources", "completions", "logging")
_PUSHED: Final = frozenset({"listChanged", "subscribe"})
_TASKS: Final = "io.modelcontextprotocol/tasks"
_MOST_CHARS: Final = 4096
_MOST_INSTRUCTIONS_CHARS: Final = 32_768


@dataclass(frozen=True, slots=True)
class Part:
    """What one server contributes to a list: all its pages, or None if it did not answer.

    `ttl_ms` is the least that its pages name, 0 if one names none.
    """

    server: str
    items: Sequence[object] | None
    ttl_ms: float = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """What one server says of itself; `described` is None if it did not answer."""

    server: str
    described: Mapping[str, object] | None = field(default=None)


def merged_list(method: str, parts: Sequence[Part], *, modern: bool) -> Tree | None:
    """One page with everything, in the order of the parts; None if no server answered.

    No cursor: nothing comes after it. The servers that are missing are named in `_meta`, and
    then the page must not be kept (ttlMs 0). What it shows went through an authorization, so it
    is private.
    """
    answered = [part for part in parts if part.items is not None]
    if not answered:
        return None
    missing = [part.server for part in parts if part.items is None]
    result: Tree = {LISTED_MEMBER[method]: [item for part in answered for item in part.items or ()]}
    if modern:
        ttl_ms = 0 if missing else min(part.ttl_ms for part in answered)
        result |= {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}
    return with_missing(result, missing)


def with_missing(result: Tree, missing: Sequence[str]) -> Tree:
    """`result` with the names of the servers whose part is missing; the same object for none."""
    if not missing:
        return result
    meta = result.get("_meta")
    kept = meta if isinstance(meta, dict) else {}
    return {**result, "_meta": {**kept, UNAVAILABLE: list(missing)}}


def described(
    offers: Sequence[Offer], *, version: str | None, own: Mapping[str, object]
) -> Tree | None:
    """What the gateway says of itself on behalf of the servers; None if all of them are silent.

    `version`: of the session that an initialize opens, None for a server/discover. `own` is
    our name and version.
    """
    found = [offer for offer in offers if offer.described is not None]
    if offers and not found:
        return None
    each = [offer.described or {} for offer in found]
    capabilities = _union([described.get("capabilities") for described in each])
    if version is None:
        result: Tree = {
            "supportedVersions": list(SUPPORTED),
            "capabilities": capabilities,
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {SERVER_KEY: dict(own)},
        }
    else:
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": dict(own)}
    if instructions := _joined(found):
        result["instructions"] = instructions
    return with_missing(result, [offer.server for offer in offers if offer.described is None])


def negotiated(params: Mapping[str, object]) -> str | None:
    """The version an initialize comes to: the client's, or our newest; None if it asks for none."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        return None
    return wanted if wanted in LEGACY else LEGACY[0]


def _union(capabilities: Iterable[object]) -> Tree:
    """What some server offers. What nobody here could keep (experimental) is left out."""
    union: dict[str, Tree] = {}
    tasks: Tree | None = None
    extension: Tree | None = None
    for offered in capabilities:
        if not isinstance(offered, dict):
            continue
        for name in _OFFERS:
            if isinstance(offered.get(name), dict):
                flags = union.setdefault(name, {})
                flags |= {key: True for key in sorted(_PUSHED) if offered[name].get(key) is True}
        if isinstance(offered.get("tasks"), dict):
            tasks = _deep({} if tasks is None else tasks, offered["tasks"])
        extensions = offered.get("extensions")
        if isinstance(extensions, dict) and isinstance(extensions.get(_TASKS), dict):
            extension = _deep({} if extension is None else extension, extensions[_TASKS])
    result: Tree = {name: union[name] for name in _OFFERS if name in union}
    if tasks is not None:
        result["tasks"] = tasks
    if extension is not None:
        result["extensions"] = {_TASKS: extension}
    return result


def _deep(one: Tree, two: Mapping[str, object]) -> Tree:
    """Both, member by member; what is not an object is the first one's."""
    result = dict(one)
    for key, value in two.items():
        held = result.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            result[key] = _deep(held, value)
        else:
            result.setdefault(key, value)
    return result


def _joined(offers: Sequence[Offer]) -> str:
    """The instructions of all servers, each under the name of its server; bounded."""
    texts = []
    for offer in offers:
        text = (offer.described or {}).get("instructions")
        if isinstance(text, str) and text.strip():
            texts.append(f"# {offer.server}\n\n{text.strip()[:_MOST_CHARS]}")
    return "\n\n".join(texts)[:_MOST_INSTRUCTIONS_CHARS]


def acknowledged(wanted: Mapping[str, object], acks: Iterable[Mapping[str, object]]) -> Tree:
    """What is heard of all that was asked for: by some server, in the order of the question.

    `wanted` are the notifications of the client, `acks` those of the servers, in its words.
    """
    heard = list(acks)
    result: Tree = {
        flag: True
        for flag in LISTS
        if wanted.get(flag) is True and any(ack.get(flag) is True for ack in heard)
    }
    granted = set[object]()
    for ack in heard:
        uris = ack.get("resourceSubscriptions")
        granted |= (
            {uri for uri in uris if isinstance(uri, str)} if isinstance(uris, list) else set()
        )
    asked = wanted.get("resourceSubscriptions")
    uris = [uri for uri in asked if uri in granted] if isinstance(asked, list) else []
    return {**result, "resourceSubscriptions": uris} if uris else result


__all__ = [
    "UNAVAILABLE",
    "Offer",
    "Part",
    "acknowledged",
    "described",
    "merged_list",
    "negotiated",
    "with_missing",
]
