"""Whose is this cursor, and of which list?

Lives here: what is remembered of the cursors that clients were given, and whether one that comes
back was given to this caller, by this server, for this list. Does not live here: what other
processes gave (gateway.tool_requests.shared_cursors), when a cursor is looked at
(gateway.tool_requests.pages).

A cursor is the server's and passes both ways as it is. But a server gives all its clients cursors
of one kind, for it sees one client: the gateway. Every page is filtered for whoever asks, so a
foreign cursor shows nothing that is hidden; yet it may say what its owner has searched, and a
server that believes its own cursors can be told anything by one that was made up.

Source: MCP 2025-11-25 and 2026-07-28, server/utilities/pagination.
"""

import hashlib
import json
from collections import OrderedDict
from typing import Final, NamedTuple, TypeGuard

from tidegate.jsonrpc import Tree

MOST_CHARS: Final = 65_536
"""Of a server's cursor. Enough for a whole state in it; a longer one is no place in a list."""

_MOST_OWNERS: Final = 1_000
_MOST_OF_OWNER: Final = 128


class Whose(NamedTuple):
    """To whom a cursor was given, by which server (its key), for which method."""

    owner: tuple[str, ...]
    server: str
    method: str


class Cursors:
    """The cursors that this process gave, or knows that others gave.

    Of each owner the last 128 are remembered, so that nobody can have those of others forgotten
    while there are at most a thousand owners. With more, who was given nothing for longest is
    forgotten: whoever has very many names (a token's subjects, say) can bring that about, and
    those others begin their lists anew. At most 128,000 hashes: some 25 MiB.
    """

    def __init__(self) -> None:
        self._given: OrderedDict[tuple[str, ...], OrderedDict[str, None]] = OrderedDict()

    def give(self, cursor: str, whose: Whose) -> None:
        """This one has got it, for this list."""
        given = self._given.setdefault(whose.owner, OrderedDict())
        self._given.move_to_end(whose.owner)
        if len(self._given) > _MOST_OWNERS:
            self._given.popitem(last=False)
        mark = mark_of(cursor, whose)
        given[mark] = None
        given.move_to_end(mark)
        if len(given) > _MOST_OF_OWNER:
            given.popitem(last=False)

    def was_given(self, cursor: object, whose: Whose) -> bool:
        """Whether this one got it, for this list, as far as is remembered."""
        given = self._given.get(whose.owner)
        return given is not None and is_cursor(cursor) and mark_of(cursor, whose) in given


def is_cursor(value: object) -> TypeGuard[str]:
    """Whether this could be a place in a list.

    An empty one is none: it is the same for everybody, and to many clients it means the end.
    """
    return isinstance(value, str) and 0 < len(value) <= MOST_CHARS


def names_next(result: object) -> TypeGuard[Tree]:
    """Whether a list says that there is another page, in whatever way."""
    return isinstance(result, dict) and result.get("nextCursor") not in (None, "")


def mark_of(cursor: str, whose: Whose) -> str:
    """What is remembered of a cursor: a hash, which says nothing of it."""
    text = json.dumps([*whose.owner, whose.server, whose.method, cursor])
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["MOST_CHARS", "Cursors", "Whose", "is_cursor", "mark_of", "names_next"]
