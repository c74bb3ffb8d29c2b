"""How do messages get to the other process, and how is its end noticed?

Lives here: one end of the two pipes between a parent and one worker. Nothing on it ever waits:
what the other does not read yet is kept. Does not live here: what is said (words), what follows
from it (plan, duty).

Two pipes and not one socket: when the other has left, the next write fails, and on a socket that
takes along what it had said before. Its end is the end of the pipe that is read, and only that.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate.frames import Frames, Malformed
from tidegate.gateway.workers.words import ToParent, ToWorker, encode

_READ_BYTES = 262_144

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Ends:
    """The descriptors of one end: where it reads, where it writes."""

    read: int
    write: int

    def close(self) -> None:
        """Close both."""
        os.close(self.read)
        os.close(self.write)


def make_ends() -> tuple[Ends, Ends]:
    """Both ends of a new pair of pipes."""
    first, second = os.pipe(), os.pipe()
    return Ends(first[0], second[1]), Ends(second[0], first[1])


class Channel(Generic[M]):
    """Calls `heard` with each message and, once, `lost` when the other is gone or talks nonsense.

    Takes over the descriptors; for the running loop.
    """

    def __init__(
        self,
        ends: Ends,
        decode: Callable[[bytes], M],
        *,
        heard: Callable[[M], None],
        lost: Callable[[], None],
    ) -> None:
        self._ends, self._decode = ends, decode
        self._heard, self._lost = heard, lost
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._unsent = bytearray()
        self._is_deaf = self._closed = False
        self._sent = asyncio.Event()
        for fd in (ends.read, ends.write):
            os.set_blocking(fd, False)
        self._loop.add_reader(ends.read, self._readable)

    def send(self, message: ToWorker | ToParent) -> None:
        """Send it as soon as the other reads; nothing happens once it is gone."""
        if self._is_deaf or self._closed:
            return
        was_empty = not self._unsent
        self._unsent += encode(message)
        if was_empty:
            self._sent.clear()
            self._write()
            if self._unsent:
                self._loop.add_writer(self._ends.write, self._writable)

    def close(self) -> None:
        """Send and hear no more; `lost` is not called."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._ends.read)
            self._loop.remove_writer(self._ends.write)
            self._ends.close()

    async def closed(self, *, within_s: float) -> None:
        """Close when the other has what was sent, or does not want it; it gets `within_s`."""
        if self._unsent and not self._closed:
            waiting = asyncio.ensure_future(self._sent.wait())
            await asyncio.wait((waiting,), timeout=within_s)
            waiting.cancel()
        self.close()

    def _readable(self) -> None:
        try:
            data = os.read(self._ends.read, _READ_BYTES)
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
        if not (data or self._closed):
            self.close()
            self._lost()

    def _writable(self) -> None:
        self._write()
        if not self._unsent:
            self._loop.remove_writer(self._ends.write)

    def _write(self) -> None:
        try:
            sent = os.write(self._ends.write, self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._is_deaf = True  # it has left; what it said before is still to be read
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._sent.set()


__all__ = ["Channel", "Ends", "make_ends"]
