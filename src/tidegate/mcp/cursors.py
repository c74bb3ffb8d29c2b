"""Whose is this cursor, and of which list?

Lives here: what is put in front of a server's cursor on its way to a client, and whether one that
comes back was given to this caller, by this server, for this list. Does not live here: which
process knows which key (gateway.tool_requests.cursor_keys), when a cursor is looked at
(gateway.tool_requests.pages).

A server gives all its clients cursors of one kind, for it sees one client: the gateway. Every
page is filtered for whoever asks, so a foreign cursor shows nothing that is hidden; but it may
say what its owner has searched, and a server that believes its own cursors can be told anything
by one that was made up. So the server's cursor goes out behind a tag, by which we know it again
without remembering it.

Source: MCP 2025-11-25 and 2026-07-28, server/utilities/pagination.
"""

import hashlib
import hmac
import json
import re
from typing import Final, NamedTuple, TypeGuard

from tidegate.jsonrpc import Tree

KEY_BYTES: Final = 32
MOST_CHARS: Final = 65_536
"""Of a server's own cursor. Enough for a whole state in it; a longer one is no place in a list."""

_MOST_KEYS: Final = 256
_ID_CHARS: Final = 16
_MAC_CHARS: Final = 32
_OURS: Final = re.compile(rf"([0-9a-f]{{{_ID_CHARS}}})-([0-9a-f]{{{_MAC_CHARS}}})-(.+)", re.DOTALL)
_MOST_GIVEN: Final = _ID_CHARS + 1 + _MAC_CHARS + 1 + MOST_CHARS


class Whose(NamedTuple):
    """To whom a cursor was given, by which server (its key), for which method."""

    owner: tuple[str, ...]
    server: str
    method: str


class Cursors:
    """Gives cursors under `key`, and takes those that it or a holder of a known key has given.

    `key` are KEY_BYTES random bytes that nobody else has. Of others' keys the last 256 are kept.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.key_id = id_of(key)
        self._others: dict[str, bytes] = {}

    def given(self, cursor: str, whose: Whose) -> str:
        """What this one gets in place of the server's `cursor`, of up to MOST_CHARS.

        Always the same for the same, so that a client sees when a list goes round in circles.
        """
        return f"{self.key_id}-{_mac(self.key, cursor, whose)}-{cursor}"

    def taken(self, given: object, whose: Whose) -> str | None:
        """The server's cursor; None unless it was given to this one, under a key that is known."""
        found = _parts(given)
        if found is None:
            return None
        key_id, mac, cursor = found
        key = self.key if key_id == self.key_id else self._others.get(key_id)
        if key is None or not hmac.compare_digest(mac, _mac(key, cursor, whose)):
            return None
        return cursor

    def unknown_key(self, given: object) -> str | None:
        """The id of the key that would say more about a cursor; None if none would."""
        found = _parts(given)
        if found is None or found[0] == self.key_id or found[0] in self._others:
            return None
        return found[0]

    def learn(self, key: bytes) -> None:
        """Take what others gave under `key`."""
        if len(self._others) >= _MOST_KEYS:
            del self._others[next(iter(self._others))]
        self._others[id_of(key)] = key


def id_of(key: bytes) -> str:
    """How cursors name the key; it says nothing about it."""
    return hashlib.sha256(b"tidegate cursor key\0" + key).hexdigest()[:_ID_CHARS]


def key_of(secret: bytes) -> bytes:
    """The key of all who share `secret`, which cannot be found out from it."""
    return hmac.digest(secret, b"tidegate cursors", "sha256")


def names_next(result: object) -> TypeGuard[Tree]:
    """Whether a list says that there is another page, in a way that could be somebody's.

    An empty cursor is none: it is the same for everybody, and to many clients it means the end.
    """
    return isinstance(result, dict) and result.get("nextCursor") not in (None, "")


def _parts(given: object) -> tuple[str, str, str] | None:
    if not isinstance(given, str) or len(given) > _MOST_GIVEN:
        return None
    found = _OURS.fullmatch(given)
    return None if found is None else (found[1], found[2], found[3])


def _mac(key: bytes, cursor: str, whose: Whose) -> str:
    text = json.dumps([*whose.owner, whose.server, whose.method, cursor]).encode()
    return hmac.digest(key, text, "sha256").hex()[:_MAC_CHARS]


__all__ = ["KEY_BYTES", "MOST_CHARS", "Cursors", "Whose", "id_of", "key_of", "names_next"]
