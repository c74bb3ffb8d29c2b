"""How do messages get to the other process, and how is its end noticed?

Lives here: one end of the socket pair between a parent and one worker. Nothing on it ever waits:
what the other does not read yet is kept. Does not live here: what is said (words), what follows
from it (plan, duty).
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar

from tidegate.gateway.workers.words import Frames, Malformed, ToParent, ToWorker, encode

_READ_BYTES = 262_144

M = TypeVar("M")


class Channel(Generic[M]):
    """Calls `heard` with each message and, once, `lost` when the other is gone or talks nonsense.

    Takes over `sock`; for the running loop.
    """

    def __init__(
        self,
        sock: socket.socket,
        decode: Callable[[bytes], M],
        *,
        heard: Callable[[M], None],
        lost: Callable[[], None],
    ) -> None:
        self._sock, self._decode = sock, decode
        self._heard, self._lost = heard, lost
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._unsent = bytearray()
        self._closed = False
        sock.setblocking(False)
        self._loop.add_reader(sock, self._readable)

    def send(self, message: ToWorker | ToParent) -> None:
        """Send it as soon as the other reads; nothing happens once it is gone."""
        if self._closed:
            return
        was_empty = not self._unsent
        self._unsent += encode(message)
        if was_empty:
            self._write()
            if self._unsent and not self._closed:
                self._loop.add_writer(self._sock, self._writable)

    def close(self) -> None:
        """Send and hear no more; `lost` is not called."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()

    def _readable(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            messages = [self._decode(body) for body in self._frames.feed(data)]
        except Malformed:
            messages, data = [], b""
        for message in messages:
            if not self._closed:
                self._heard(message)
        if not data:
            self._end()

    def _writable(self) -> None:
        self._write()
        if not (self._unsent or self._closed):
            self._loop.remove_writer(self._sock)

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # What it said before it left is still to be read; reading meets the end.
            self._unsent.clear()
            return
        del self._unsent[:sent]

    def _end(self) -> None:
        if not self._closed:
            self.close()
            self._lost()


__all__ = ["Channel"]
