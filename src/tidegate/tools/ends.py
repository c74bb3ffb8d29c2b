"""When must this process be over, whatever still runs in it?

Lives here: the last resort of a server whose client has gone: a thread that ends the process
when a tool blocks the event loop or a thread that cannot be left. Does not live here: the
ordinary end (lines.py). Code that blocks inside of C and keeps the interpreter's lock stops this
thread, too; a signal, which clients send next, ends that.
"""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread, Timer, current_thread, main_thread
from types import FrameType, TracebackType
from typing import Final, Self

HARD_END_S = 1.8
"""A client waits two seconds before it sends signals."""
_HALF_CLOSED: Final[int] = getattr(select, "POLLRDHUP", 0)


class HardEnd:
    """Once armed, ends the process after `after_s`, unless the block is left before.

    With `stays`, leaving the block changes nothing: the process has nothing else to do. `farewell`
    runs right before the end, in a thread of its own, and must not block. `leave` is how a process
    ends without waiting for anybody.
    """

    def __init__(
        self,
        *,
        stays: bool = False,
        after_s: float = HARD_END_S,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self.farewell: Callable[[], None] | None = None
        self._stays = stays
        self._after_s = after_s
        self._leave = leave
        self._lock = Lock()
        self._timer: Timer | None = None
        self._disarmed = False

    def arm(self, code: int = 0) -> None:
        """Start counting; from any thread, and only the first time."""
        with self._lock:
            if self._timer is not None or self._disarmed:
                return
            self._timer = Timer(self._after_s, self._end, (code,))
            self._timer.daemon = True
            self._timer.start()

    def watch(self, fd: int) -> None:
        """Arms it once whoever writes to `fd`, a pipe or a socket, has closed the other end.

        Also when nobody reads any more, because the loop is blocked or broken.
        """
        Thread(target=self._wait_for_hangup, args=(fd,), name="hangup", daemon=True).start()

    def _wait_for_hangup(self, fd: int) -> None:
        poll = select.poll()
        # A socket that was shut down for writing does not hang up; a file never does.
        poll.register(fd, _HALF_CLOSED)
        if any(events & (_HALF_CLOSED | select.POLLHUP) for _, events in poll.poll()):
            self.arm()

    @contextmanager
    def armed_by_interrupt(self, code: int = 130) -> Iterator[None]:
        """A block in which Ctrl-C arms it, too, and then does what it did before.

        Changes nothing in other threads than the main one, and where Ctrl-C is left to the system.
        """
        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or not callable(before):
            yield
            return
        handle = before

        def both(number: int, frame: FrameType | None) -> None:
            self.arm(code)
            handle(number, frame)

        # A handler in Python waits for the main thread, which a tool may block a moment after the
        # signal has come. The interpreter writes its number to the pipe at once.
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        watch = Thread(target=self._wait_for_interrupt, args=(reading, code), daemon=True)
        watch.start()
        woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, both)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(woken)
            os.close(writing)

    def _wait_for_interrupt(self, reading: int, code: int) -> None:
        while numbers := os.read(reading, 64):
            if signal.SIGINT in numbers:
                self.arm(code)
        os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.farewell = None
        if self._stays:
            return
        with self._lock:
            self._disarmed = True
            if self._timer is not None:
                self._timer.cancel()

    def _end(self, code: int) -> None:
        if self._disarmed:
            return
        farewell = self.farewell
        if farewell is not None:
            with suppress(OSError):
                farewell()
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        self._leave(code)


__all__ = ["HARD_END_S", "HardEnd"]
