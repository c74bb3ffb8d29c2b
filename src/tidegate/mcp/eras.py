"""Which revision of MCP is this message, and do its headers say the same as its body?

Lives here: the era, always taken from the body; the header rules of 2026-07-28 and the general
rule that a header which contradicts the body is never honest; the headers we send upstream,
computed from the body alone. Does not live here: who may send it (authorize), HTTP itself.

Sources: MCP 2026-07-28, basic/transports (request headers) and basic/versioning; RFC 9110.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.jsonrpc import Batch, Call, Code, Message, Request, Response, Tree
from tidegate.mcp.header_values import VISIBLE, all_repeat, decode_value, encode_value, moved
from tidegate.mcp.meta_keys import CAPABILITIES_KEY, VERSION_KEY

MODERN: Final = "2026-07-28"
BATCHING: Final = "2025-03-26"
LEGACY: Final = ("2025-11-25", "2025-06-18", BATCHING)
SUPPORTED: Final = (MODERN, *LEGACY)

_PARAM_PREFIX: Final = "mcp-param-"
_MAX_PARAMS: Final = 64
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

NAME_MEMBER: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of params that Mcp-Name repeats."""

LISTEN: Final = "subscriptions/listen"
"""The one request that may last for ever. Before 2026-07-28 there is none, and in a batch nobody
would hear what it brings."""
ADDED: Final = frozenset({"server/discover", LISTEN})
"""Requests that only 2026-07-28 has."""

REMOVED: Final = frozenset({"initialize", "resources/subscribe", "resources/unsubscribe"})
"""Requests of older revisions that leave something behind; 2026-07-28 has no state to leave it in.
A server answers -32601 with HTTP 404 to each (2026-07-28, basic/transports)."""


@dataclass(frozen=True, slots=True)
class McpHeaders:
    """The headers of a request that MCP gives a meaning; `flaw` if they are bad by themselves."""

    version: str | None = None
    method: str | None = None
    name: str | None = None
    session: str | None = None
    accept: str = ""
    traceparent: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """`version` is None when neither body, header nor session names one: the oldest clients."""

    version: str | None = None

    @property
    def modern(self) -> bool:
        """Whether the message is stateless and carries its own envelope."""
        return self.version == MODERN


@dataclass(frozen=True, slots=True)
class Rejection:
    """Refused before anyone asks who sent it. Always HTTP 400."""

    code: Code
    message: str
    data: Tree | None = field(default=None)


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> McpHeaders:
    """Pick the headers of MCP out of raw (name, value) pairs; names in any case."""
    found: dict[str, str] = {}
    flaw = None
    accepted: list[str] = []
    for raw_name, raw_value in headers:
        lower = raw_name.lower()
        if lower == b"accept":
            accepted.append(raw_value.decode("latin-1").strip(" \t"))
        if not lower.startswith(b"mcp-") and lower != b"traceparent":
            continue
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        if name in found:
            flaw = "a header of MCP is there twice"
        elif name != "traceparent" and VISIBLE.fullmatch(value) is None:
            flaw = "a header of MCP holds a character that is not allowed"
        found[name] = value
    params = tuple((name, value) for name, value in found.items() if name.startswith(_PARAM_PREFIX))
    if len(params) > _MAX_PARAMS:
        flaw = "there are too many Mcp-Param headers"
    trace = found.get("traceparent", "")
    return McpHeaders(
        version=found.get("mcp-protocol-version"),
        method=found.get("mcp-method"),
        name=found.get("mcp-name"),
        session=found.get("mcp-session-id"),
        accept=",".join(accepted).lower(),
        traceparent=trace if _TRACEPARENT.fullmatch(trace) else None,
        params=params,
        flaw=flaw,
    )


def settle(
    message: Message | Batch, headers: McpHeaders, *, session_version: str | None = None
) -> Revision | Rejection:
    """The revision of `message`, or why its headers refuse it.

    `session_version` is what the session negotiated; it stands in for a missing header. A
    message with the envelope of 2026-07-28 needs the headers of 2026-07-28, whatever version
    the header names: a header cannot talk the gateway or the upstream out of the check.
    """
    if headers.flaw is not None:
        return Rejection(Code.HEADER_MISMATCH, f"Header mismatch: {headers.flaw}")
    if isinstance(message, Batch):
        return _settle_batch(message, headers, session_version)
    if isinstance(message, Response):
        return _settle_response(headers, session_version)
    settled = _contradiction(message, headers) or _version(message, headers, session_version)
    if isinstance(settled, Revision) and settled.modern and headers.params:
        return _unfounded(message, headers) or settled
    return settled


def upstream_headers(call: Call, revision: Revision, headers: McpHeaders) -> list[tuple[str, str]]:
    """The MCP headers of our own request: from the body, apart from Mcp-Param-* and traceparent.

    An intermediary that does not know a tool's schema passes on what Mcp-Param-* are there. That
    each says what an argument does was settled; that it is the right one, and that none is
    missing, the upstream sees.
    """
    own: list[tuple[str, str]] = []
    if revision.version is not None and call.method != "initialize":
        own.append(("MCP-Protocol-Version", revision.version))
    if revision.modern:
        own.append(("Mcp-Method", encode_value(call.method)))
        if (name := named_by(call)) is not None:
            own.append(("Mcp-Name", encode_value(name)))
        if call.method == "tools/call":
            own.extend(headers.params)
    if headers.traceparent is not None:
        own.append(("traceparent", headers.traceparent))
    return own


def with_arguments(headers: McpHeaders, old: object, new: object) -> McpHeaders:
    """`headers` of a call whose arguments `old` have become `new`, of the same shape.

    A header that repeats an argument goes with it, however it spells it; one whose argument is
    none any more is left out.
    """
    values = moved([value for _, value in headers.params], old, new)
    pairs = zip(headers.params, values, strict=True)
    return replace(
        headers, params=tuple((n, value) for (n, _), value in pairs if value is not None)
    )


def named_by(call: Call) -> str | None:
    """The value that Mcp-Name has to repeat; None if the body names nothing."""
    member = NAME_MEMBER.get(call.method)
    value = None if member is None else (call.params or {}).get(member)
    return value if isinstance(value, str) else None


def accepts_events(headers: McpHeaders, *, named: bool) -> bool:
    """Whether the client takes an event stream; `named`: only if it says so by name."""
    types = [part.split(";", 1)[0].strip() for part in headers.accept.split(",")]
    if "text/event-stream" in types:
        return True
    return not named and (not headers.accept or "*/*" in types or "text/*" in types)


def prefers_events(headers: McpHeaders) -> bool:
    """Whether the client names the event stream first, before JSON."""
    events, plain = (
        headers.accept.find("text/event-stream"),
        headers.accept.find("application/json"),
    )
    return events >= 0 and (plain < 0 or events < plain)


def _claimed(call: Call) -> object:
    """What the envelope in the body says its version is; None without one, False for a null."""
    meta = (call.params or {}).get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    return False if meta[VERSION_KEY] is None else meta[VERSION_KEY]


def _contradiction(call: Call, headers: McpHeaders) -> Rejection | None:
    """The first header that is missing or says something else than the body."""
    claimed = _claimed(call)
    if claimed is not None and headers.version != claimed:
        return _mismatch("MCP-Protocol-Version is not what the body says")
    required = isinstance(call, Request) and headers.version == MODERN
    if headers.method != call.method and (required or headers.method is not None):
        return _mismatch("Mcp-Method is not the method of the body")
    name = named_by(call)
    if headers.name is None:
        return _mismatch("Mcp-Name is missing") if required and name is not None else None
    if name is None or decode_value(headers.name) != name:
        return _mismatch("Mcp-Name is not what the body names")
    return None


def _unfounded(call: Call, headers: McpHeaders) -> Rejection | None:
    """Refused for an Mcp-Param header that says what no argument does.

    What is authorized, masked and blocked are the arguments; a header that has a life of its own
    would pass all of that by, and whoever routes by it would be lied to. Before 2026-07-28 such
    headers mean nothing, and none is sent on.
    """
    values = [value for _, value in headers.params]
    if all_repeat(values, (call.params or {}).get("arguments")):
        return None
    return _mismatch("an Mcp-Param header says what no argument does")


def _version(call: Call, headers: McpHeaders, session_version: str | None) -> Revision | Rejection:
    # What the body claims, if it claims something, is what the header says: that was checked.
    claimed, version = _claimed(call), headers.version
    if version is None:
        return Revision(session_version)
    if version not in SUPPORTED or (claimed is not None and version != MODERN):
        return _unsupported(version)
    if version == MODERN and isinstance(call, Request):
        meta = (call.params or {}).get("_meta")
        if claimed is None or not isinstance(meta, dict) or CAPABILITIES_KEY not in meta:
            return Rejection(
                Code.INVALID_PARAMS,
                f"params._meta must hold {VERSION_KEY} and {CAPABILITIES_KEY}",
            )
    return Revision(version)


def _settle_batch(
    batch: Batch, headers: McpHeaders, session_version: str | None
) -> Revision | Rejection:
    version = headers.version or session_version
    if version is not None and version not in SUPPORTED:
        return _unsupported(version)
    if headers.method is not None or headers.name is not None or headers.params:
        return _mismatch("Mcp-Method and Mcp-Name cannot describe a batch")
    envelopes = any(
        not isinstance(message, Response) and _claimed(message) is not None
        for message in batch.messages
    )
    if envelopes or version not in (None, BATCHING):
        return Rejection(Code.INVALID_REQUEST, "This protocol version has no batches")
    return Revision(version)


def _settle_response(headers: McpHeaders, session_version: str | None) -> Revision | Rejection:
    version = headers.version or session_version
    if version == MODERN:
        return Rejection(Code.INVALID_REQUEST, "A client does not post answers")
    if version is not None and version not in SUPPORTED:
        return _unsupported(version)
    return Revision(version)


def _mismatch(what: str) -> Rejection:
    return Rejection(Code.HEADER_MISMATCH, f"Header mismatch: {what}")


def _unsupported(version: str) -> Rejection:
    data: Tree = {"supported": list(SUPPORTED), "requested": version[:64]}
    return Rejection(Code.UNSUPPORTED_VERSION, "Unsupported protocol version", data)


__all__ = [
    "ADDED",
    "BATCHING",
    "LEGACY",
    "LISTEN",
    "MODERN",
    "NAME_MEMBER",
    "REMOVED",
    "SUPPORTED",
    "McpHeaders",
    "Rejection",
    "Revision",
    "accepts_events",
    "named_by",
    "prefers_events",
    "read_headers",
    "settle",
    "upstream_headers",
    "with_arguments",
]
