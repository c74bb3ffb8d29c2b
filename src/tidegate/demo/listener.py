"""How does a demo upstream get a socket of its own inside the gateway's process?

Lives here: uvicorn's protocol class on a listening socket, without uvicorn's own server loop,
which would take the signals that belong to the gateway; and the socket itself, for an upstream
that breaks HTTP on purpose. Does not live here: what is served.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tidegate.demo.exchange import WIRE

HOST = "127.0.0.1"


class _Wire:
    """One connection below HTTP (exchange.Wire)."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            # To linger for no time makes a reset of what would be an orderly end.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


class _Quiet(HttpToolsProtocol):
    """Cuts a connection without a word in the log: the demo upstreams do it on purpose.

    Its scopes have the extension WIRE.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("tidegate.demo.upstream")
        self.logger.setLevel(logging.CRITICAL + 1)

    def on_message_begin(self) -> None:
        """Of the parser: a request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {WIRE: _Wire(self.transport)}  # type: ignore[dict-item]


def bind(port: int, *, fall_back: bool = False, backlog: int = 256) -> socket.socket:
    """A listening socket on loopback; a free port if `port` is 0, or taken and `fall_back`.

    `backlog` connections may wait to be accepted. Raises OSError when the port is taken and there
    is nothing to fall back to.
    """
    # With the protocol spelled out asyncio turns Nagle's algorithm off on what is accepted; with
    # the default 0 it does not, and every small write waits 40 ms for an acknowledgement.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError:
        if not fall_back:
            sock.close()
            raise
        sock.bind((HOST, 0))
    sock.listen(backlog)
    sock.setblocking(False)
    return sock


def port_of(sock: socket.socket) -> int:
    """The port a socket is bound to."""
    port: int = sock.getsockname()[1]
    return port


@asynccontextmanager
async def listening(app: Any, sock: socket.socket) -> AsyncIterator[int]:
    """Serves the ASGI application `app` on `sock` for the length of the block; gives the port.

    On the way out the socket closes, running requests are cancelled and their tasks awaited.
    """
    config = Config(app, http=_Quiet, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    state = ServerState()

    def protocol() -> asyncio.Protocol:
        return _Quiet(config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(protocol, sock=sock)
    try:
        yield port_of(sock)
    finally:
        server.close()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()
        if tasks:
            await asyncio.wait(tasks)
