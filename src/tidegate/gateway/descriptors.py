"""How many files and sockets may this process have open?

Lives here: asking the operating system for as many as the configured caps need. Many systems
start a process with 1,024 and let it have more; without room a connection to a healthy provider
fails, and the provider would be blamed. Does not live here: the caps (config).
"""

import resource
from contextlib import suppress


def make_room(wanted: int) -> int:
    """Raise the soft limit to `wanted`, as far as the hard one allows; what may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):  # some systems have one more limit behind the hard one
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


__all__ = ["make_room"]
