"""How does a process of somebody else live no longer than we do?

Lives here: a child with pipes in a process group of its own, and its guard: a small shell that
waits for us to end in whatever way (kill -9 too) and then ends the whole group. Does not live
here: when it has to end (wrap).
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from tidegate.tools.blocking import BlockingThread
from tidegate.tools.stdio import write_all

# The pipe on its stdin has one writer, this process. A word before its end means that there is
# nothing to do any more.
_GUARD = """
trap '' INT TERM HUP
read group || exit 0
read word && exit 0
kill -s TERM -- "-$group" || exit 0
sleep 1
kill -s KILL -- "-$group"
"""


class Child:
    """The running server of `command`. Raises OSError if it cannot be started.

    It gets our environment and stderr, and pipes for stdin and stdout. Made inside of a running
    loop; at the end call `leave`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._guard = _start_guard()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._tell_guard(b"0\nnothing\n")
            raise
        self._tell_guard(b"%d\n" % self._process.pid)
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._writer, self._waiter = BlockingThread("to the server"), BlockingThread("server")
        self.reader = BlockingThread("from the server")

    @property
    def stdout_fd(self) -> int:
        """Where its lines come from."""
        return self._stdout.fileno() if self._stdout is not None else -1

    async def send(self, lines: bytes) -> None:
        """Whole lines to its stdin; nothing happens if it does not read any more."""
        if lines and self._stdin is not None and not self._stdin.closed:
            with suppress(OSError):
                await self._writer.run(write_all, self._stdin.fileno(), lines)

    def close_stdin(self) -> None:
        """Tell it that nothing more comes; not while something is being sent."""
        if self._stdin is not None:
            with suppress(OSError):
                self._stdin.close()

    async def ended(self) -> int:
        """Its exit code once it has ended; of one that a signal ended, 128 and the signal."""
        code = await self._waiter.run(self._process.wait)
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """A signal to its whole group; nothing happens if that is gone."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def leave(self) -> None:
        """Leave what is left of its group to the guard, which ends it within a second."""
        if self._guard is None or self._guard.stdin is None:
            self.signal(signal.SIGKILL)
            return
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            # The number may soon be somebody else's.
            self._tell_guard(b"nothing\n")
        except PermissionError:
            pass
        self._guard.stdin.close()

    def _tell_guard(self, words: bytes) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.write(words)


def _start_guard() -> "subprocess.Popen[bytes] | None":
    """None where there is no shell: then the end of its stdin is all that a child is told."""
    try:
        return subprocess.Popen(  # noqa: S603 - a constant
            ["/bin/sh", "-c", _GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
    except OSError:
        return None


__all__ = ["Child"]
