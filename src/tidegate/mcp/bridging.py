"""What does a message become for a server of another era, and who answers what it cannot say?

Lives here: the course of every method between a client and a server of any two revisions, and
the params of what is carried: the envelope of 2026-07-28 put on or taken off. Does not live here:
what comes back (bridged_results), who introduces itself how (introductions), sessions and streams
(gateway.servers.bridge).

Sources: MCP 2026-07-28, basic (per-request fields), basic/versioning and server/utilities; MCP
2025-11-25, 2025-06-18 and 2025-03-26, basic/lifecycle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tidegate.jsonrpc import Call, Code, Id, Notification, Request, Tree
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.meta_keys import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, PREFIX, VERSION_KEY

OLDEST: Final = LEGACY[-1]
"""What a message counts as that names no revision."""

LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""Levels of log messages, the most talkative first."""


class Course(Enum):
    """What becomes of a message."""

    FORWARD = "forward"
    INTRODUCE = "introduce"
    """Answered with what the server says of itself."""
    PONG = "pong"
    """Answered: we are here, and whether the server is shows with the next call."""
    LEVEL = "level"
    """From which level on the client wants to be told."""
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LISTEN = "listen"
    """A stream of 2026-07-28 for what changes."""
    CANCEL = "cancel"
    DROP = "drop"
    """Of a notification: this server has no use for it."""
    UNKNOWN = "unknown"
    """Of a request: the client's own revision has no such method, or it cannot be bridged."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The message is answered with an error."""

    code: int
    message: str
    data: Tree | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is ours in a message to the server.

    `client` is how we name ourselves. `level` is from which level on a server of 2026-07-28 shall
    tell of this request, None for not at all. `progress` stands in for the client's progress
    token, where it gave one: several clients share a session.
    """

    client: Tree
    level: str | None = None
    progress: Id | None = None


_CARRIED: Final = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "tools/call",
        "tools/list",
    }
)
"""Requests that every revision has."""
_TASKS: Final = frozenset({"tasks/cancel", "tasks/get", "tasks/list", "tasks/result"})
_TASK_ERA: Final = LEGACY[0]
_OF_LEGACY: Final[Mapping[str, Course]] = {
    "initialize": Course.INTRODUCE,
    "ping": Course.PONG,
    "logging/setLevel": Course.LEVEL,
    "resources/subscribe": Course.SUBSCRIBE,
    "resources/unsubscribe": Course.UNSUBSCRIBE,
}
_OF_MODERN: Final[Mapping[str, Course]] = {
    "server/discover": Course.INTRODUCE,
    "subscriptions/listen": Course.LISTEN,
}


def course(call: Call, client: str | None, server: str) -> Course:
    """What becomes of `call`, written in revision `client`, on the way to one of `server`.

    Total. None is a client that names no revision. Between two of 2026-07-28 everything is
    forwarded: nothing has to be translated.
    """
    modern = client == MODERN
    if isinstance(call, Notification):
        if call.method == "notifications/cancelled":
            return Course.CANCEL
        return Course.FORWARD if modern and server == MODERN else Course.DROP
    if modern and server == MODERN:
        return Course.FORWARD
    own = (_OF_MODERN if modern else _OF_LEGACY).get(call.method)
    if own is not None:
        return own
    if call.method in _CARRIED or (call.method in _TASKS and client == server == _TASK_ERA):
        return Course.FORWARD
    return Course.UNKNOWN


def to_server(
    call: Request, client: str | None, server: str, envelope: Envelope
) -> Request | Refused:
    """The request as a server of revision `server` reads it; its course is FORWARD.

    The client's own fields of 2026-07-28 end here, also its capabilities: what a server would ask
    of it cannot be carried to it yet.
    """
    params = dict(call.params or {})
    if client == MODERN and server == MODERN:
        return Request(call.id, call.method, _with_progress(params, envelope.progress))
    if client == MODERN:
        if "requestState" in params:
            return Refused(Code.INVALID_PARAMS, NO_ROUNDS)
        params.pop("inputResponses", None)
        params = _without_envelope(params)
    elif server != client:
        # Without a capability for tasks on either side, asking for one means nothing.
        params.pop("task", None)
    params = _with_progress(params, envelope.progress)
    if server == MODERN:
        params = _with_envelope(params, envelope)
    return Request(call.id, call.method, params or None)


def own_request(id: Id, method: str, params: Tree, server: str, envelope: Envelope) -> Request:  # noqa: A002
    """A request of the gateway's own, as a server of revision `server` reads it."""
    whole = _with_envelope(params, envelope) if server == MODERN else params
    return Request(id, method, whole or None)


def progress_token(params: Tree | None) -> Id | None:
    """Under which token a client wants to hear of progress; None if it does not."""
    meta = (params or {}).get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def level_wanted(params: Tree | None) -> str | None:
    """From which level on a request of 2026-07-28 wants to be told; None for not at all."""
    meta = (params or {}).get("_meta")
    level = meta.get(LEVEL_KEY) if isinstance(meta, dict) else None
    return level if level in LEVELS else None


def is_told(level: object, wanted: str | None) -> bool:
    """Whether a log message of `level` reaches who wants those from `wanted` on."""
    if wanted is None or level not in LEVELS:
        return False
    return LEVELS.index(str(level)) >= LEVELS.index(wanted)


def refusal_of_ask(method: str) -> Refused | None:
    """What a server hears that asks the client for something; None: a ping, answered with {}."""
    if method == "ping":
        return None
    return Refused(
        Code.METHOD_NOT_FOUND,
        "This gateway does not carry requests of a server to its clients across revisions.",
    )


def _with_progress(params: Tree, token: Id | None) -> Tree:
    meta = params.get("_meta")
    if token is None or not isinstance(meta, dict) or "progressToken" not in meta:
        return params
    return {**params, "_meta": {**meta, "progressToken": token}}


def _without_envelope(params: Tree) -> Tree:
    meta = params.pop("_meta", None)
    kept = _foreign(meta)
    return {**params, "_meta": kept} if kept else params


def _with_envelope(params: Tree, envelope: Envelope) -> Tree:
    meta: Tree = {
        **_foreign(params.get("_meta")),
        VERSION_KEY: MODERN,
        CAPABILITIES_KEY: {},
        CLIENT_KEY: envelope.client,
    }
    if envelope.level is not None:
        meta[LEVEL_KEY] = envelope.level
    return {**params, "_meta": meta}


def _foreign(meta: object) -> Tree:
    """What of `_meta` is not the protocol's own."""
    held = meta if isinstance(meta, dict) else {}
    return {key: value for key, value in held.items() if not key.startswith(PREFIX)}


NO_ROUNDS: Final = (
    "The server behind the gateway speaks a revision of MCP that has no further rounds: it gave "
    "out no requestState."
)

__all__ = [
    "LEVELS",
    "NO_ROUNDS",
    "OLDEST",
    "Course",
    "Envelope",
    "Refused",
    "course",
    "is_told",
    "level_wanted",
    "own_request",
    "progress_token",
    "refusal_of_ask",
    "to_server",
]
