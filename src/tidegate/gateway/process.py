"""What does every process of the gateway do around its listeners?

Lives here: signals, the event loop, room for sockets, memory that stays, what runs beside the
serving. Does not live here: the order in which a process comes up (supervise for one, workers for
several).
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Protocol

from tidegate.clock import SystemClock
from tidegate.config import Config
from tidegate.errors import TidegateError
from tidegate.gateway.descriptors import make_room
from tidegate.gateway.ending import Ending
from tidegate.gateway.logs import RefusalLog
from tidegate.gateway.reloads import Reloads
from tidegate.gateway.settings import OnReady, Ready, Settings

logger = logging.getLogger(__name__)

_OWN_FILES = 256


class Counters(Protocol):
    """What is counted of requests that no handler saw."""

    def refused(self, *, code: str) -> None:
        """One was refused."""


async def attend(
    ready: Ready,
    ending: Ending,
    reloads: Reloads,
    on_ready: OnReady | None,
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Serve until the end is asked for, with the reloads and `on_ready` beside; then `drain`."""
    keep_what_is_there()
    beside = [ending.beside(reloads.attend()), ending.beside(reloads.look_at_file())]
    shown = None if on_ready is None else ending.beside(_awaited(on_ready(ready)))
    if shown is not None:
        beside.append(shown)
    try:
        await ending.asked.wait()
        # Not after the drain: what it asks of a gateway that ends would fail.
        if shown is not None:
            shown.cancel()
        await drain()
    finally:
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)


def refusals(metrics: Counters) -> Callable[[TidegateError, str], None]:
    """What a listener tells of requests that no handler saw: counted, and in the log."""
    lines = RefusalLog(logger, SystemClock())

    def refused(error: TidegateError, request_id: str) -> None:
        metrics.refused(code=error.code)
        lines.refused(error.code, status=error.status, request_id=request_id)

    return refused


def keep_what_is_there() -> None:
    """What start-up made lives as long as the process: the collector need not look at it again.

    A full collection with it stops every request for some 50 ms.
    """
    gc.freeze()


def listen_to_signals(
    stack: AsyncExitStack, *, stop: Callable[[], None], reload: Callable[[], None]
) -> None:
    """React to signals until `stack` is left."""
    loop = asyncio.get_running_loop()
    for number, react in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, reload)):
        loop.add_signal_handler(number, react)
        stack.callback(loop.remove_signal_handler, number)


def have_room(config: Config, settings: Settings) -> None:
    """Make sure that as many sockets and files can be open as the caps allow, or say so."""
    # Both listeners, an upstream for each request, and what the process itself has open.
    wanted = 2 * settings.caps.connections + config.server.caps.requests_in_flight + _OWN_FILES
    if (room := make_room(wanted)) < wanted:
        logger.warning("few_open_files", extra={"count": room})


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop of this platform."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _awaited(work: Awaitable[None]) -> None:
    await work


__all__ = [
    "Counters",
    "attend",
    "have_room",
    "keep_what_is_there",
    "listen_to_signals",
    "loop_factory",
    "refusals",
]
