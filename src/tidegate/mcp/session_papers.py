"""How does a session lie in a store that others may read?

Lives here: what is written of a session, a question and the tool behind a task, and under which
keys. Does not live here: the stores (shelf), when they are asked (gateway.tool_requests.sessions).

The id of a session is known to its client and to nobody else: what lies in the store is found by
a hash of it and opened with a key made of it. So whoever reads the store, or a copy of it, learns
neither our ids nor the upstream's, and cannot use a session.
"""

import hashlib
import json
from typing import Final

import msgspec

from tidegate.jsonrpc import Id, typed
from tidegate.mcp.sessions import Owner, Session
from tidegate.mcp.shelf import Kind

IDLE_S: Final = 3600.0
TOUCH_S: Final = 60.0
"""So seldom is the store told that a session was used."""

_MOST: Final = 10_000
_DAY_S: Final = 86_400.0
_WEEK_S: Final = 7 * _DAY_S
SESSIONS: Final = Kind("sessions", IDLE_S + 2 * TOUCH_S, _MOST, 100)
QUESTIONS: Final = Kind("questions", IDLE_S, _MOST, 1_024)
TASKS: Final = Kind("tasks", _WEEK_S, _MOST, 1_000)
CURSORS: Final = Kind("cursors", _DAY_S, _MOST, 1_000)

NONCE_BYTES: Final = 12
_ID_CHARS: Final = 32


class _Written(msgspec.Struct, array_like=True, frozen=True):
    owner: Owner
    server: str
    upstream_id: str
    version: str | None
    secret: bytes


class _Begun(msgspec.Struct, array_like=True, frozen=True):
    owner: str
    tool: str


def is_session_id(text: str) -> bool:
    """Whether this could be an id of ours; others need not be looked for."""
    return len(text) == _ID_CHARS and text.isascii() and text.isalnum()


def session_key(session_id: str) -> str:
    """Where the session lies."""
    return _digest("session", session_id)


def group_of(owner: tuple[str, ...]) -> str:
    """The group of everything that belongs to an owner."""
    return _digest("owner", *owner)


def sealed(session: Session, nonce: bytes) -> bytes:
    """What is written of a session; `nonce` are 12 random bytes that were never used before."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - slow to load

    written = _Written(
        session.owner, session.server, session.upstream_id, session.version, session.secret
    )
    plain = msgspec.json.encode(written)
    return nonce + AESGCM(_seal_key(session.id)).encrypt(nonce, plain, None)


def unsealed(session_id: str, document: bytes) -> Session | None:
    """The session that lies there; None for what `sealed` has not written for this id."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - slow to load
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    nonce, rest = document[:NONCE_BYTES], document[NONCE_BYTES:]
    try:
        plain = AESGCM(_seal_key(session_id)).decrypt(nonce, rest, None)
        written = msgspec.json.decode(plain, type=_Written)
    except (InvalidTag, ValueError):
        return None
    found = Session(session_id, written.owner, written.server, written.upstream_id)
    found.version, found.secret = written.version, written.secret
    return found


def question_key(session_id: str, question: Id) -> str:
    """Where an open question to the client of a session lies; there is nothing to write of it."""
    return _digest("question", session_id, *map(str, typed(question)))


def task_key(server: str, task_id: str) -> str:
    """Where it lies who began a task."""
    return _digest("task", server, task_id)


def begun(owner: Owner, tool: str) -> bytes:
    """What is written of a task."""
    return msgspec.json.encode(_Begun(group_of(owner), tool))


def tool_begun(document: bytes, owner: Owner) -> str | None:
    """The tool that began a task, if this owner began it."""
    try:
        written = msgspec.json.decode(document, type=_Begun)
    except ValueError:
        return None
    return written.tool if written.owner == group_of(owner) else None


def _seal_key(session_id: str) -> bytes:
    return hashlib.sha256(b"tidegate seal of a session\0" + session_id.encode()).digest()


def _digest(what: str, *parts: str) -> str:
    return hashlib.sha256(json.dumps([f"tidegate {what}", *parts]).encode()).hexdigest()


__all__ = [
    "CURSORS",
    "IDLE_S",
    "NONCE_BYTES",
    "QUESTIONS",
    "SESSIONS",
    "TASKS",
    "TOUCH_S",
    "begun",
    "group_of",
    "is_session_id",
    "question_key",
    "sealed",
    "session_key",
    "task_key",
    "tool_begun",
    "unsealed",
]
