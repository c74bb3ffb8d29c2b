"""What has the server said to this one call, and has it said its last word?

Lives here: the messages that wait for the reader of one call, bounded. Does not live here: whose
they are (mcp.stdio_upstream), deadlines (children).
"""

import asyncio
from typing import Final

from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.answers import Incoming

_MOST_BYTES: Final = 1_048_576
_MOST_MESSAGES: Final = 1_000


class Mailbox:
    """One reader at a time. What arrived before a failure is read before the failure is raised."""

    __slots__ = ("_bytes", "_is_over", "_reason", "_waiting", "_woken")

    def __init__(self) -> None:
        self._waiting: list[Incoming] = []
        self._bytes = 0
        self._is_over = False
        self._reason: str | None = None
        self._woken = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the answer has come, or none will."""
        return self._is_over

    def put(self, incoming: Incoming, size: int, *, last: bool, lossy: bool) -> None:
        """A message of `size` bytes. A reader that is too slow misses what is `lossy`.

        Anything else that it has no room for ends the call.
        """
        if self._is_over:
            return
        is_full = self._bytes + size > _MOST_BYTES or len(self._waiting) >= _MOST_MESSAGES
        if is_full and not last and self._waiting:
            if not lossy:
                self.fail("overrun")
            return
        self._waiting.append(incoming)
        self._bytes += size
        self._is_over = last
        self._woken.set()

    def fail(self, reason: str) -> None:
        """Nothing more will come."""
        if not self._is_over:
            self._is_over, self._reason = True, reason
            self._woken.set()

    async def take(self) -> list[Incoming] | None:
        """Everything that has arrived; None behind the answer. Raises ServerFailed."""
        while not self._waiting:
            if self._reason is not None:
                raise ServerFailed(self._reason)
            if self._is_over:
                return None
            self._woken.clear()
            await self._woken.wait()
        taken, self._waiting, self._bytes = self._waiting, [], 0
        return taken


__all__ = ["Mailbox"]
