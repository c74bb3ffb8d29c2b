"""How does an event loop ask the writer of an SQLite file, and how long does it wait?

Lives here: the opening and closing of that thread, the bounded wait for its answer, and what a
caller who waited in vain leaves behind. Does not live here: what is asked (sqlite), the thread
(group_commit), its queue (job_queue).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits.group_commit import GroupCommit, Tables
from tidegate.limits.job_queue import Job, JobQueue

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Tables)
T = TypeVar("T")


class FileCalls(Generic[R]):
    """Work on the `tables` of the file `path`, for one event loop that never touches the file.

    No call waits longer than `wait_s`: then StoreUnavailable. `boot`: see SQLiteLedger. `name`
    is what the log calls this use of the file.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        wait_s: float,
        *,
        tables: Callable[[sqlite3.Connection], R],
        boot: int = 0,
        name: str = "ledger",
    ) -> None:
        self._path, self._clock, self._wait_s = path, clock, wait_s
        self._tables, self._boot, self._name = tables, boot, name
        self._queue = JobQueue()
        self._writer: GroupCommit[Job[R, object]] | None = None

    @property
    def degraded(self) -> bool:
        """Whether the file failed us last, or is not open; it is asked again by itself."""
        return self._writer is None or self._writer.degraded

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s."""
        return 0.0 if self._writer is None else self._writer.clock_ahead_s

    async def open(self) -> None:
        """Create the file if need be and start the writer; raises StoreUnavailable."""
        if self._writer is not None:
            return
        writer = self.start()
        try:
            await self.answer(self.submit(_nothing))
        except StoreUnavailable:
            writer.give_up()
            await self.close()
            raise

    def start(self) -> "GroupCommit[Job[R, object]]":
        """Start the writer, which opens the file for the first call, and again if need be."""
        if self._writer is not None:
            return self._writer
        self._queue = JobQueue()
        self._writer = GroupCommit(
            self._path,
            self._clock,
            self._queue,
            boot=self._boot,
            tables=self._tables,
            name=self._name,
        )
        self._writer.start()
        return self._writer

    async def close(self) -> None:
        """Commit what was accepted and close the file, within about `wait_s`."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        self._queue.end()
        if not await asyncio.to_thread(writer.wait_stopped, self._wait_s):
            writer.give_up()
            logger.warning(f"{self._name}_close_late")  # noqa: G004 - an event of a fixed set

    def submit(
        self,
        run: Callable[[R, int], T],
        *,
        must_happen: bool = False,
        about: str | None = None,
        is_money: bool = False,
        only_reads: bool = False,
    ) -> Job[R, T]:
        """Queue it; see Job. Raises StoreUnavailable."""
        if self._writer is None:
            raise StoreUnavailable(f"{self._name} not open", retry_after_s=None)
        job = Job(
            run,
            must_happen=must_happen,
            about=about,
            is_money=is_money,
            only_reads=only_reads,
        )
        self._queue.submit(job)
        return job

    async def answer(self, job: Job[R, T]) -> T:
        """What became of it; raises StoreUnavailable, and ValueError for a bad call."""
        try:
            async with asyncio.timeout(self._wait_s):
                return await job.future
        except TimeoutError:
            self._note_late()
            raise StoreUnavailable(f"no answer from the {self._name} in time") from None
        finally:
            job.withdraw()

    def leave(self, run: Callable[[R, int], object]) -> None:
        """Have it done without anybody who waits, as long as work is accepted at all."""
        if self._writer is not None and self._queue.accepts:
            # Nobody waits for it, so nobody would hear of its failure.
            self.submit(run, must_happen=True).future.cancel()

    def _note_late(self) -> None:
        """The writer may be done by now: have it say so itself."""
        if self._writer is not None and not self._writer.degraded and self._queue.accepts:
            self._writer.note_late()
            self.submit(_nothing).future.cancel()


def _nothing(rows: object, now_us: int) -> None:
    """Whether the file serves is all that is asked; the first one opens it."""


__all__ = ["FileCalls"]
