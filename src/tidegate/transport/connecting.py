"""Who closes the descriptor of a connection that is given up while it is being made?

Lives here: the answer, for sockets that are made in Python and then handed to an event loop. The
loops of asyncio close the socket they were given. uvloop up to 0.22 closes the descriptor and
leaves the socket object believing that it owns it: when that object is collected, it closes the
number a second time, by then perhaps the connection of somebody else (MagicStack/uvloop #738).
Does not live here: the pool (pool), the attempts (aiohttp_client).
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aiohttp.connector import AddrInfoType

_opened: ContextVar[list[socket.socket] | None] = ContextVar("opened", default=None)
"""The sockets made for the connection under way. A context, because several addresses of one host
are tried in tasks of their own."""


def make_socket(address: AddrInfoType) -> socket.socket:
    """A socket for one address; inside of `connecting` it is remembered."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    opened = _opened.get()
    if opened is not None:
        opened.append(made)
    return made


@contextmanager
def connecting(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """A block that makes one connection on `loop`, with sockets of `make_socket` only.

    When it fails or is cancelled, no socket object is left that closes a descriptor which the
    loop has closed. What was closed already stays as it is.
    """
    opened: list[socket.socket] = []
    before = _opened.set(opened)
    try:
        yield
    except BaseException:
        if not isinstance(loop, asyncio.BaseEventLoop):
            for made in opened:
                made.detach()
        raise
    finally:
        _opened.reset(before)


__all__ = ["connecting", "make_socket"]
