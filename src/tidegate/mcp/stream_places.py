"""Where in which stream does a client of the handshake era go on, and is that stream its own?

Lives here: the ids that our events carry: each names the stream of ours and the place the
upstream knows, and holds in one session alone. Upstreams keep the events of all their sessions in
one store, so an id of theirs that anybody may send is a key to other people's messages. Does not
live here: who listens (gateway.tool_requests.streams), sessions.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from tidegate.mcp.answers import Incoming

STANDING: Final = "s"
"""The stream of what a server says by itself; calls are numbered."""

PRIMED: Final = "2025-11-25"
"""The one revision in which an event may have an id and nothing else."""

LEAST_RETRY_MS, MOST_RETRY_MS = 100, 30_000
"""Whoever comes back sooner costs more than the stream that was saved; whoever comes later may
find that its call was given up."""

_UPSTREAM: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?")
_OURS: Final = re.compile(r"(s|[0-9a-f]{1,8})-([0-9a-f]{32})-(.{1,512})")
_MAC_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Mark:
    """What an event tells its client about coming back; `id` is one of ours."""

    id: str | None = None
    retry_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a stream of ours, and the upstream's own word for it."""

    stream: str
    upstream_id: str


UNMARKED: Final = Mark()


def makes_place(incoming: Incoming) -> bool:
    """Whether an event has an id that could come back in a header as it is."""
    theirs = incoming.event_id
    return theirs is not None and _UPSTREAM.fullmatch(theirs) is not None


def mark(secret: bytes, stream: str, incoming: Incoming) -> Mark:
    """The mark of one event of `stream`, for the client of the session that `secret` belongs to."""
    theirs, retry_ms = incoming.event_id, incoming.retry_ms
    if retry_ms is not None:
        retry_ms = min(max(retry_ms, LEAST_RETRY_MS), MOST_RETRY_MS)
    if theirs is None or not makes_place(incoming):
        return UNMARKED if retry_ms is None else Mark(None, retry_ms)
    return Mark(f"{stream}-{_mac(secret, stream, theirs)}-{theirs}", retry_ms)


def place(secret: bytes, event_id: str) -> Place | None:
    """The place an id stands for; None for one that was never given out in this session."""
    found = _OURS.fullmatch(event_id)
    if found is None:
        return None
    stream, mac, theirs = found.groups()
    if not hmac.compare_digest(mac, _mac(secret, stream, theirs)):
        return None
    return Place(stream, theirs)


def _mac(secret: bytes, stream: str, upstream_id: str) -> str:
    text = f"{stream}-{upstream_id}".encode()
    return hmac.new(secret, text, hashlib.sha256).hexdigest()[:_MAC_CHARS]


__all__ = [
    "LEAST_RETRY_MS",
    "MOST_RETRY_MS",
    "PRIMED",
    "STANDING",
    "UNMARKED",
    "Mark",
    "Place",
    "makes_place",
    "mark",
    "place",
]
