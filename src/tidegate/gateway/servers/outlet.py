"""How is a server written to that may not read?

Lives here: the stdin of its process: what waits is bounded, and nobody waits for it but whoever
sent it. Does not live here: lines (mcp.stdio_upstream), the process (child).
"""

import asyncio
from typing import Final

from tidegate.gateway.servers.upstream import ServerFailed

_MOST_UNSENT_BYTES: Final = 8_388_608


class Outlet(asyncio.BaseProtocol):
    """The stdin of one process. `lost` is done once it reads no more, for `stall_s` or for good."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._stall: asyncio.TimerHandle | None = None
        self._written = self._read = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.empty = asyncio.Event()
        self.empty.set()
        self._transport: asyncio.WriteTransport | None = None
        self._is_closed = False

    def connection_made(self, transport: asyncio.WriteTransport) -> None:  # type: ignore[override]
        """The pipe is ours."""
        transport.set_write_buffer_limits(high=0)
        self._transport = transport

    def pause_writing(self) -> None:
        """Not all that was written has left."""
        self.empty.clear()
        self._look_later()

    def resume_writing(self) -> None:
        """It has."""
        self.empty.set()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody reads it any more."""
        self._transport = None
        self.empty.set()
        self._stop_looking()
        self._lose()

    def write(self, line: bytes) -> None:
        """Send, or keep for later if there is room. Raises ServerFailed."""
        transport = self._transport
        if transport is None or self._is_closed:
            raise ServerFailed("crashed")
        unsent = transport.get_write_buffer_size()
        if unsent and unsent + len(line) > _MOST_UNSENT_BYTES:
            raise ServerFailed("busy")
        self._written += len(line)
        transport.write(line)

    def close(self) -> None:
        """Nothing more comes; what was written still leaves."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Let go of it."""
        if self._transport is not None:
            self._transport.abort()

    def _look_later(self) -> None:
        self._stop_looking()
        self._stall = asyncio.get_running_loop().call_later(self._stall_s, self._look)

    def _stop_looking(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _look(self) -> None:
        """Whether anything of what waits was read since the last look."""
        if self._transport is None:
            return
        read = self._written - self._transport.get_write_buffer_size()
        if read == self._read:
            self._lose()
            return
        self._read = read
        self._look_later()

    def _lose(self) -> None:
        if not self._is_closed and not self.lost.done():
            self.lost.set_result(None)


__all__ = ["Outlet"]
