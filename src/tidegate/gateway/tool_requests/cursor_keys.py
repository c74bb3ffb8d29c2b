"""How does every process of a gateway know the cursors that the others gave?

Lives here: when the key of this process is laid into the shared store and when another's is taken
out of it. Does not live here: what a key is for (mcp.cursors), the stores (mcp.shelf).

A process reads the key of another once, when a cursor of it comes, and a list without a cursor
asks the store nothing. The keys lie there as they are: who reads the store and may list can make
up cursors for itself, which is what every client of a server without a gateway can do.
"""

import asyncio
from contextlib import suppress
from typing import Final

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.mcp.cursors import Cursors
from tidegate.mcp.session_papers import CURSOR_KEYS
from tidegate.mcp.shelf import Shelf

TOLD_S: Final = 300.0
"""How long the store is trusted to know a key. After that it is told again, if it is used."""


class CursorKeys:
    """The keys that `cursors` knows, and the store with those of all processes."""

    def __init__(self, cursors: Cursors, clock: Clock, shelf: Shelf) -> None:
        self._cursors = cursors
        self._clock = clock
        self._shelf = shelf
        self._told_s = float("-inf")
        self._turn = asyncio.Lock()

    async def bring(self, given: object) -> None:
        """Before a cursor is taken: have the key known that it was given under, if there is one.

        Raises StoreUnavailable.
        """
        key_id = self._cursors.unknown_key(given)
        if key_id is None:
            return
        self._shelf.start()
        key = await self._shelf.get(CURSOR_KEYS, key_id)
        if key is not None:
            self._cursors.learn(key)

    async def tell(self) -> None:
        """Before a client gets a cursor: have every process know the key it was given under.

        Not raised if the store is away: the page is there, and this process knows its own key.
        """
        if self._is_told():
            return
        async with self._turn:
            self._shelf.start()
            if self._is_told() or self._shelf.degraded:
                return
            now_s, key = self._clock.monotonic_s(), self._cursors.key
            with suppress(StoreUnavailable):
                await self._shelf.put(CURSOR_KEYS, self._cursors.key_id, key, CURSOR_KEYS.name)
                self._told_s = now_s

    def _is_told(self) -> bool:
        return self._clock.monotonic_s() - self._told_s < TOLD_S


__all__ = ["TOLD_S", "CursorKeys"]
