"""How is a third-party server on stdio run so that only messages reach its client?

Lives here: the three streams and the ends: whoever leaves first, everybody is gone within two
seconds. Does not live here: which line may pass (sorting), the process (child).
"""

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from tidegate.bridges.child import WrappedServer
from tidegate.bridges.junk import Junk
from tidegate.bridges.pipes import ClientEnd, lines_of, signals_of_an_end
from tidegate.bridges.sorting import Sorter, Step
from tidegate.clock import Clock, SystemClock
from tidegate.tools.stdio import Wire, note

_POLITE_S: Final = 1.0
"""From the end of stdin to SIGTERM."""
_FIRM_S: Final = 1.5
"""From SIGTERM to SIGKILL, if the signal was the first thing it was told."""
_LAST_S: Final = 0.5
"""From SIGTERM to SIGKILL, if its stdin had ended before; for what its stdout still holds."""


def run_wrapped(
    command: Sequence[str],
    wire: Wire,
    *,
    client_line_bytes: int,
    server_line_bytes: int,
) -> int:
    """Runs `command` until it or its client leaves; returns its exit code.

    Raises OSError if it cannot be started.
    """

    async def run() -> int:
        client = ClientEnd(wire, client_line_bytes)
        wrapped = _Wrapped(WrappedServer(command), client, Sorter(client_line_bytes), SystemClock())
        return await wrapped.run(server_line_bytes)

    return asyncio.run(run())


class _Wrapped:
    """One server, one client, and what goes on between them."""

    def __init__(
        self, child: WrappedServer, client: ClientEnd, sorter: Sorter, clock: Clock
    ) -> None:
        self._child, self._client, self._sorter, self._clock = child, client, sorter, clock
        self._junk = Junk()
        self._stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, server_line_bytes: int) -> int:
        loop = asyncio.get_running_loop()
        for number in signals_of_an_end():
            loop.add_signal_handler(number, self._stopped, number)
        client = _task(self._from_client())
        server = _task(self._from_server(server_line_bytes))
        exited: asyncio.Task[int] = loop.create_task(self._child.ended())
        try:
            await _first(client, server, exited, self._stop)
            code = await self._end(client, exited)
            # Its helpers may hold its stdout open for longer than it lived.
            await asyncio.wait({server}, timeout=_LAST_S)
        finally:
            self._child.leave()
            client.cancel()
            server.cancel()
        for task in (client, server):
            # Neither ends in an exception but for a fault of ours, which must be seen.
            if task.done() and not task.cancelled():
                task.result()
        last = _task(self._client.send(self._sorter.server_ended()))
        await asyncio.wait({last}, timeout=_LAST_S)
        note(self._junk.summary() or "")
        return code

    async def _end(self, client: "asyncio.Task[None]", exited: "asyncio.Task[int]") -> int:
        """From the first sign of an end to that of the child."""
        patience_s = _LAST_S
        if exited.done():
            return exited.result()
        if self._stop.done():
            patience_s = _FIRM_S
        else:
            if client.done():
                self._child.close_stdin()
            if not self._client.gone:
                await _first(exited, self._stop, timeout_s=_POLITE_S)
        if not exited.done():
            self._child.signal(self._stop.result() if self._stop.done() else signal.SIGTERM)
            await asyncio.wait({exited}, timeout=patience_s)
        if not exited.done():
            note("the server did not end by itself and was killed")
            self._child.signal(signal.SIGKILL)
        return await exited

    def _stopped(self, number: int) -> None:
        if not self._stop.done():
            self._stop.set_result(number)

    async def _from_client(self) -> None:
        async for line in self._client.lines():
            await self._apply(self._sorter.from_client(line))
            if self._client.gone:
                return

    async def _from_server(self, max_line_bytes: int) -> None:
        async for line in lines_of(self._child.reader, self._child.stdout_fd, max_line_bytes):
            await self._apply(self._sorter.from_server(line))
            if self._client.gone:
                return
        await self._client.send(self._sorter.server_ended())

    async def _apply(self, step: Step) -> None:
        if step.junk:
            note(self._junk.take(step.junk, self._clock.monotonic_s()) or "")
        note(step.note)
        await self._client.send(step.to_client)
        await self._child.send(step.to_server)


async def _first(*awaited: "asyncio.Future[Any]", timeout_s: float | None = None) -> None:
    await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


def _task(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    return asyncio.get_running_loop().create_task(work)


__all__ = ["run_wrapped"]
