"""Is this process to end, and how do its running requests end first?

Asked once: accept no more, let what runs end for `drain_s`, then end what still streams
honestly. Asked twice: at once. Lives here: that, and the work beside it whose failure ends the
process. Does not live here: who asks (supervise, workers).
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Protocol

from tidegate.gateway.listener import Listener
from tidegate.gateway.settings import Settings

logger = logging.getLogger(__name__)

FAILED, INTERRUPTED = 1, 130
"""Exit codes: something went wrong at run time; ended at once."""

_FIRST_REQUEST_S = 0.25


class Cut(Protocol):
    """What ends answers."""

    def let_go(self) -> None:
        """A drain begins: end what would never end by itself."""

    def cut(self) -> None:
        """End every answer that still runs."""


class Ending:
    """Whether and how one process ends; `code` is its exit code so far."""

    def __init__(self) -> None:
        self.asked, self.forced = asyncio.Event(), asyncio.Event()
        self.code = 0

    def ask(self) -> None:
        """As SIGTERM: drain and leave; called again: leave at once."""
        if self.asked.is_set():
            self.force()
        self.asked.set()

    def force(self) -> None:
        """Leave at once."""
        self.forced.set()
        self.code = INTERRUPTED
        self.asked.set()

    def fail(self) -> None:
        """Something is wrong that waiting does not mend: drain and leave with 1."""
        self.code = FAILED
        self.asked.set()

    def beside(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run `work` beside everything else; if it raises, the process ends with 1."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._beside_ended)
        return task

    async def drain(self, listener: Listener, cut: Cut, settings: Settings) -> None:
        """Take `listener` out of service; returns when its answers have ended, or must."""
        listener.stop()
        cut.let_go()
        logger.info("draining", extra={"running": listener.running})
        # Who was accepted in the last moment has not asked yet, and would not ask again.
        await self._unless_forced(listener.met(), _FIRST_REQUEST_S)
        if await self._unless_forced(listener.quiet(), settings.drain_s) or self.forced.is_set():
            return
        logger.warning("drain_limit_reached", extra={"running": listener.running})
        cut.cut()
        await self._unless_forced(listener.quiet(), settings.cut_s)

    async def _unless_forced(self, work: Coroutine[object, object, None], seconds: float) -> bool:
        """Whether `work` came to its end in time; false at once when we are to leave at once."""
        done = asyncio.create_task(work)
        forced = asyncio.create_task(self.forced.wait())
        await asyncio.wait((done, forced), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (done, forced):
            task.cancel()
        return done.done() and not done.cancelled()

    def _beside_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error("task_failed", exc_info=bug)
            self.fail()


__all__ = ["FAILED", "INTERRUPTED", "Ending"]
