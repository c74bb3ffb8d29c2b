"""How is a tool server served over HTTP from the command line?

Lives here: the address, who may ask (a token, unless only this machine can), signals and the
drain. Does not live here: the protocol (tools.http), connections (gateway.listener).
"""

import asyncio
import re
import signal
import socket
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from tidegate.tools import ToolServer
    from tidegate.tools.http import HttpApp

_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):([0-9]{1,5})")
_BEARABLE: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")  # RFC 6750 2.1
_DRAIN_S, _FIRST_REQUEST_S = 10.0, 0.25


def read_address(text: str) -> tuple[str, int]:
    """HOST and PORT of HOST:PORT, IPv6 without its brackets. Raises click.BadParameter."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65535:
        raise click.BadParameter(
            f"'{text}' is not HOST:PORT, as 127.0.0.1:9000 or [::1]:9000", param_hint="'--http'"
        )
    return found[1].strip("[]"), int(found[2])


def serve_http(server: "ToolServer", address: str, token: str | None) -> int:
    """Serves until SIGTERM or Ctrl-C; returns the exit code."""
    from tidegate.gateway.process import loop_factory  # noqa: PLC0415 - only when it serves
    from tidegate.tools.doors import is_loopback  # noqa: PLC0415

    host, port = read_address(address)
    if not token and not is_loopback(host.lower()):
        raise click.UsageError(
            f"{host} can be reached from other machines: set TIDEGATE_TOKEN to the token that "
            "callers must bear, or listen on 127.0.0.1"
        )
    if token and _BEARABLE.fullmatch(token) is None:
        raise click.UsageError(
            "TIDEGATE_TOKEN cannot be sent in a header: use letters, digits and -._~+/="
        )
    sock = _bind(host, port)
    app = server.http_app(token=token or None, allowed_hosts=_own_names(host))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(app, sock))


def _own_names(host: str) -> tuple[str, ...]:
    """A name that the operator listens on is a name of this server."""
    return (host,) if re.search("[A-Za-z]", host) and ":" not in host else ()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise click.ClickException(f"cannot listen on {host}:{port}: {problem}") from error


async def _serve(app: "HttpApp", sock: socket.socket) -> int:
    from tidegate.gateway.listener import Listener, WireCaps  # noqa: PLC0415
    from tidegate.jsonrpc import error_of  # noqa: PLC0415

    asked, forced = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (forced if asked.is_set() else asked).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    listener = Listener(app, WireCaps(), error_body=error_of)
    async with app.running():
        await listener.open(sock)
        host, port = sock.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"tidegate mcp: http://{shown}:{port}{app.path}\n")
        sys.stderr.flush()
        await asked.wait()
        listener.stop()
        app.let_go()
        await _unless(forced, listener.met(), _FIRST_REQUEST_S)
        await _unless(forced, listener.quiet(), _DRAIN_S)
    await listener.close()
    return 130 if forced.is_set() else 0


async def _unless(forced: asyncio.Event, work: Awaitable[None], seconds: float) -> None:
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(forced.wait())]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


__all__ = ["read_address", "serve_http"]
