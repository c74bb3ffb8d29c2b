"""On which addresses do the listeners stand, and how is that said?

Lives here: binding the two sockets, and the lines that tell where they are. Does not live here:
who accepts on them (listener), when (supervise, workers).
"""

import logging
import socket
import sys
from collections.abc import Callable

from tidegate.gateway.settings import Ready, Settings

logger = logging.getLogger(__name__)

BACKLOG = 2048
"""How many connections may wait to be accepted."""


def bind(listener: str, host: str, port: int) -> socket.socket:
    """A bound socket that queues connections. Raises OSError, after logging it."""
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=kind, backlog=BACKLOG)
    except OSError as error:
        logger.error(  # noqa: TRY400 - the trace says nothing more
            "cannot_listen",
            extra={
                "listener": listener,
                "host": host,
                "port": port,
                "problem": error.strerror or type(error).__name__,
            },
        )
        raise


def announce(
    main: socket.socket, admin: socket.socket, settings: Settings, stop: Callable[[], None]
) -> Ready:
    """Say in the log, and if wanted in a line for people, where both listeners accept."""
    host, port = main.getsockname()[:2]
    admin_host, admin_port = admin.getsockname()[:2]
    logger.info("ready", extra={"listener": "main", "host": host, "port": port})
    logger.info("ready", extra={"listener": "admin", "host": admin_host, "port": admin_port})
    if settings.line:
        line = f"tidegate ready: {_url(host, port)} admin: {_url(admin_host, admin_port)}\n"
        sys.stderr.write(line)
        sys.stderr.flush()
    return Ready(host, port, admin_host, admin_port, stop)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


__all__ = ["BACKLOG", "announce", "bind"]
