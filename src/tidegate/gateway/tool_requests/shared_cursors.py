"""How does every process of a gateway know the cursors that the others gave?

Lives here: when a cursor is noted in the shared store, and when one is looked for there. Does not
live here: whose a cursor is (mcp.cursors), the stores (mcp.shelf).

The store holds a hash of each cursor with the client it was given to, and nothing else.
"""

from contextlib import suppress
from typing import Final

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.mcp.cursors import Cursors, Whose, is_cursor, mark_of
from tidegate.mcp.session_papers import CURSORS, group_of
from tidegate.mcp.sessions import Recent
from tidegate.mcp.shelf import Shelf

TOLD_S: Final = 300.0
"""How long the store is trusted to know a cursor. After that it is told again, if it is given."""
_MOST_TOLD: Final = 10_000


class SharedCursors:
    """The cursors that `cursors` knows, and the store with those of all processes."""

    def __init__(self, cursors: Cursors, clock: Clock, shelf: Shelf) -> None:
        self._cursors = cursors
        self._clock = clock
        self._shelf = shelf
        self._told_s: Recent[float] = Recent(_MOST_TOLD)

    async def bring(self, cursor: object, whose: Whose) -> None:
        """Before a cursor is judged: have it known if any process gave it to this one.

        Asks nobody about one that is known here. Raises StoreUnavailable.
        """
        if not is_cursor(cursor) or self._cursors.was_given(cursor, whose):
            return
        self._shelf.start()
        if await self._shelf.get(CURSORS, mark_of(cursor, whose)) is not None:
            self._cursors.give(cursor, whose)

    async def tell(self, cursor: object, whose: Whose) -> None:
        """Before a client gets a cursor: have every process know of it.

        Not raised if the store is away: the page is there, and this process knows the cursor.
        """
        if not is_cursor(cursor):
            return
        mark, now_s = mark_of(cursor, whose), self._clock.monotonic_s()
        told_s = self._told_s.get(mark)
        if told_s is not None and now_s - told_s < TOLD_S:
            return
        self._shelf.start()
        if self._shelf.degraded:
            return
        with suppress(StoreUnavailable):
            await self._shelf.put(CURSORS, mark, b"", group_of(whose.owner))
            self._told_s.put(mark, now_s)


__all__ = ["TOLD_S", "SharedCursors"]
