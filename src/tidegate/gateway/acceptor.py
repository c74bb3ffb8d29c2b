"""Which of the processes on one listening socket takes the next connection?

Left alone, the first that wakes takes a whole burst of them, and long streams stay where they
were accepted. So each looks at how many connections the others hold: who holds more than the
least of them steps back for a moment, and takes the next one only if nobody else did. A process
that hangs or has died is in nobody's way for longer than that moment, and what waits in the
socket's queue waits for all. Lives here: that, and accepting. Does not live here: connections
(listener), where the numbers of the others come from (workers.seats).
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Protocol

logger = logging.getLogger(__name__)

HEAD_START = 1
"""How many connections more than the least of the others are no reason to step back."""

_STEP_BACK_S = 0.001
_NO_ROOM_S = 1.0


class Seats(Protocol):
    """How many connections each of the processes holds."""

    def hold(self, connections: int) -> None:
        """We hold so many."""

    def least_of_others(self) -> int | None:
        """The fewest that another accepting process holds; None if there is none."""

    def leave(self) -> None:
        """We accept no more."""


class Acceptor:
    """Accepts on `sock` from `open` to `close`, one connection a turn of the loop.

    `connect` makes a connection of an accepted socket; `held` is how many there are.
    """

    def __init__(
        self,
        sock: socket.socket,
        seats: Seats,
        *,
        connect: Callable[[socket.socket], Coroutine[object, object, object]],
        held: Callable[[], int],
    ) -> None:
        self._sock, self._seats = sock, seats
        self._connect, self._held = connect, held
        self._loop = asyncio.get_running_loop()
        self._coming: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def coming(self) -> int:
        """Accepted, and not yet one of those that `held` counts."""
        return len(self._coming)

    def open(self) -> None:
        """Begin to accept."""
        self._sock.setblocking(False)
        self.count()
        self._loop.add_reader(self._sock, self._readable)

    def count(self) -> None:
        """Let the others know how many connections are ours."""
        if not self._closed:
            self._seats.hold(self._held() + len(self._coming))

    def close(self) -> None:
        """Take what waits in the queue, and no more after that."""
        if self._closed:
            return
        self._closed = True
        self._pause(None)
        # Whoever waits there has been told by the kernel that the connection stands.
        while self._accept():
            pass
        self._sock.close()
        self._seats.leave()

    def _readable(self) -> None:
        least = self._seats.least_of_others()
        if least is not None and self._held() + len(self._coming) > least + HEAD_START:
            self._pause(_STEP_BACK_S)
        else:
            self._accept()

    def _pause(self, seconds: float | None) -> None:
        self._loop.remove_reader(self._sock)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._sock, self._readable)
        self._accept()

    def _accept(self) -> bool:
        try:
            accepted, _ = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            # No descriptor or no memory left: what waits would wake us again and again.
            logger.warning("accept_failed", extra={"problem": error.strerror or "unknown"})
            if not self._closed:
                self._pause(_NO_ROOM_S)
            return False
        accepted.setblocking(False)
        task = self._loop.create_task(self._connect(accepted))
        self._coming.add(task)
        task.add_done_callback(self._came)
        self.count()
        return True

    def _came(self, task: "asyncio.Task[object]") -> None:
        self._coming.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # It was reset between our accepting and our first look at it.
            logger.debug("connection_not_made", extra={"error": type(error).__name__})
        self.count()


__all__ = ["HEAD_START", "Acceptor", "Seats"]
