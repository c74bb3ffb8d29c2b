"""How are lines moved to and from a wrapped server without waiting for it?

Lives here: threads for the calls that block on the pipes and the end of a child. Does not live
here: the process itself (transport.child), when it has to end (wrap).
"""

from collections.abc import Sequence
from contextlib import suppress

from tidegate.tools.blocking import BlockingThread
from tidegate.tools.stdio import write_all
from tidegate.transport.child import Child


class WrappedServer:
    """The running server of `command`. Raises OSError if it cannot be started.

    It gets our environment and stderr, and pipes for stdin and stdout. Made inside of a running
    loop; at the end call `leave`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._child = Child(command)
        self.signal, self.leave = self._child.signal, self._child.leave
        self._writer, self._waiter = BlockingThread("to the server"), BlockingThread("server")
        self.reader = BlockingThread("from the server")

    @property
    def stdout_fd(self) -> int:
        """Where its lines come from."""
        return self._child.stdout.fileno()

    async def send(self, lines: bytes) -> None:
        """Whole lines to its stdin; nothing happens if it does not read any more."""
        if lines and not self._child.stdin.closed:
            with suppress(OSError):
                await self._writer.run(write_all, self._child.stdin.fileno(), lines)

    def close_stdin(self) -> None:
        """Tell it that nothing more comes; not while something is being sent."""
        with suppress(OSError):
            self._child.stdin.close()

    async def ended(self) -> int:
        """Its exit code once it has ended; of one that a signal ended, 128 and the signal."""
        return await self._waiter.run(self._child.wait)


__all__ = ["WrappedServer"]
