"""Which ports can a test name before anybody listens there?

Below those that the system hands out of itself: a port that somebody lets go of up there may
belong to any connection or listener of a test beside this one a moment later.
"""

import random
import socket
from contextlib import ExitStack

_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """So many different ports of loopback on which nobody listens, and nobody will by chance."""
    with ExitStack() as held:
        return [_taken(held) for _ in range(count)]


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def _taken(held: ExitStack) -> int:
    while True:
        probe = held.enter_context(socket.socket())
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
