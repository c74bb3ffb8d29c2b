"""How does a process of somebody else live no longer than we do?

Lives here: a child with pipes in a process group of its own, and its guard: a small shell that
waits for us to end in whatever way (kill -9 too) and then ends the whole group. Does not live
here: when it has to end, what goes through its pipes (bridges, gateway).
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import IO

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
    """The running process of `command`. Raises OSError if it cannot be started.

    It gets pipes for stdin and stdout, and with `pipes_stderr` one for stderr, which is ours
    otherwise. `env` is all of its environment; None is ours. Starting takes milliseconds and
    blocks; any thread may do it. At the end call `leave`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        pipes_stderr: bool = False,
    ) -> None:
        self._guard = _start_guard()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if pipes_stderr else None,
                env=env,
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._tell_guard(b"0\nnothing\n")
            self._let_guard_go()
            raise
        self._tell_guard(b"%d\n" % self._process.pid)

    @property
    def pid(self) -> int:
        """The number of the process and of its group."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        """Where lines go."""
        return _there(self._process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        """Where its lines come from."""
        return _there(self._process.stdout)

    @property
    def stderr(self) -> IO[bytes]:
        """What it says beside, if that is piped."""
        return _there(self._process.stderr)

    def wait(self) -> int:
        """Blocks until it has ended; its exit code, or 128 and the number of the signal."""
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """A signal to its whole group; nothing happens if that is gone."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def leave(self) -> None:
        """Leave what is left of its group to the guard, which ends it within a second."""
        if self._guard is None:
            self.signal(signal.SIGKILL)
            return
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            # The number may soon be somebody else's.
            self._tell_guard(b"nothing\n")
        except PermissionError:
            pass
        self._let_guard_go()

    def _tell_guard(self, words: bytes) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.write(words)

    def _let_guard_go(self) -> None:
        guard = self._guard
        if guard is None or guard.stdin is None or guard.stdin.closed:
            return
        guard.stdin.close()
        # Somebody has to hear of its end, or it stays in the table of processes.
        Thread(target=guard.wait, name="guard", daemon=True).start()


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("this stream is not piped")
    return pipe


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
