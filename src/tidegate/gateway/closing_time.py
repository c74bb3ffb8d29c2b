"""How does a listening socket take nobody new and lose nobody who is there?

Closing it resets whoever the kernel has connected and nobody has accepted yet, and as long as it
is open there may be one more. So first the kernel is told to let no one begin; those who had
begun are accepted; then it can be closed. Lives here: that. Does not live here: when (listener
for one process, workers.parent for several).

Linux only; elsewhere a connection made in the instant of closing is reset. So is, everywhere,
one whose handshake takes longer than that instant: it is told that it stands one round trip
before we are.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Iterator

_SO_ATTACH_FILTER = 26
# A program of the kernel's packet filter; it sees a segment from its TCP header on.
_PROGRAM = (
    (0x30, 0, 0, 13),  # load the byte with the flags
    (0x45, 0, 1, 0x02),  # SYN?
    (0x06, 0, 0, 0),  # drop it: whoever asks again in a second is refused, or finds who follows us
    (0x06, 0, 0, 0xFFFFFFFF),
)


def let_no_one_begin(listening: socket.socket) -> None:
    """From now on nobody's handshake begins, in whichever process accepts on this socket."""
    if sys.platform != "linux":
        return
    lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _PROGRAM))
    program = struct.pack("HP", len(_PROGRAM), ctypes.addressof(lines))
    try:
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except OSError:
        return  # a system that forbids it is one that does not have it


def those_who_wait(listening: socket.socket) -> Iterator[socket.socket]:
    """Accept everybody whom the kernel has connected; the socket must not block."""
    while True:
        try:
            accepted, _ = listening.accept()
        except (ConnectionAbortedError, InterruptedError):
            continue
        except OSError:
            return
        accepted.setblocking(False)
        yield accepted


__all__ = ["let_no_one_begin", "those_who_wait"]
