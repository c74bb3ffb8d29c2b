"""How is a worker process started?

As a fresh interpreter. A fork of this one would share what must not be shared: an event loop, the
threads of the stores with the locks they hold, connections of SQLite. Lives here: its command
line and what it inherits. Does not live here: when (plan), what it does then (worker).
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.gateway.workers.channel import Ends, make_ends
from tidegate.limits.owner import Owner

_MODULE = "tidegate.gateway.workers"
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""A worker begins with these blocked, so that none can hit it before it knows what to do."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """What every worker gets: the listening socket, the table of seats, and the ledger's keeper.

    `owner` is None when each worker reaches the store by itself.
    """

    listening: socket.socket
    seats: int
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A worker process and our end of the channel to it."""

    process: "subprocess.Popen[bytes]"
    ends: Ends


Start = Callable[[int, Inherited], Started]


def start(slot: int, inherited: Inherited, *, command: Sequence[str] | None = None) -> Started:
    """Start the worker of place `slot`. Raises OSError when the system has no room for it.

    `command` is ours, unless another program is to play the worker.
    """
    ours, theirs = make_ends()
    fds = [theirs.read, theirs.write, inherited.listening.fileno(), inherited.seats]
    line = None if inherited.owner is None else inherited.owner.connect()
    if line is not None:
        fds.append(line.fileno())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [*(command or own_command()), str(slot), *map(str, fds)],
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
        )
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        if line is not None:
            line.close()
    return Started(process, ours)


def own_command() -> list[str]:
    """The interpreter and module of a worker, as this process was started."""
    flags = sys.flags
    options = {"-I": flags.isolated, "-E": flags.ignore_environment, "-s": flags.no_user_site}
    # Our own folder comes first on the path only if it did so for us: `python -m` puts it there,
    # the console script does not, and a file called json.py must not become a module.
    options["-P"] = not sys.path or sys.path[0] not in ("", os.getcwd())
    given = [option for option, is_set in options.items() if is_set]
    warned = [part for option in sys.warnoptions for part in ("-W", option)]
    return [sys.executable, *given, *warned, "-m", _MODULE]


__all__ = ["SIGNALS", "Inherited", "Start", "Started", "own_command", "start"]
