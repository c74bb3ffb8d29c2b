"""How do reservations survive a restart, and how do processes share them?

Lives here: the ledger on an SQLite file as seen from the event loop: it hands work to the
writer thread and waits for a bounded time. Does not live here: any decision (books), the thread
(group_commit) and its queue (job_queue), the tables (sqlite_rows).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import books
from tidegate.limits.books import Rows
from tidegate.limits.group_commit import GroupCommit
from tidegate.limits.job_queue import Job, JobQueue
from tidegate.limits.ledger import Charge, Granted, Limit, Need, NeverFits, Refused, Usage

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SQLiteLedger:
    """A Ledger on the file `path`, shared by any number of processes of one machine.

    Durable against the death of the process; what concerns money also against the loss of power
    (synchronous = FULL for those commits, else NORMAL). No call waits longer than `wait_s`: then
    StoreUnavailable. The event loop never touches the file.

    With `boot` (see clock.boot_number) a wall clock that was set while no process, or another
    one, had the file open gives no quota either.
    """

    def __init__(
        self, path: str | Path, clock: Clock, wait_s: float = 5.0, *, boot: int = 0
    ) -> None:
        self._boot = boot
        self._path = Path(path)
        self._clock = clock
        self._wait_s = wait_s
        self._queue = JobQueue()
        self._writer: GroupCommit[Job[object]] | None = None

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
        self._queue = JobQueue()
        self._writer = GroupCommit(self._path, self._clock, self._queue, boot=self._boot)
        self._writer.start()
        try:
            await self._answer(self._submit(_nothing))
        except StoreUnavailable:
            self._writer.give_up()
            await self.close()
            raise

    async def close(self) -> None:
        """Commit what was accepted and close the file, within about `wait_s`."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        self._queue.end()
        if not await asyncio.to_thread(writer.wait_stopped, self._wait_s):
            writer.give_up()
            logger.warning("ledger_close_late")

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        lease_us = round(lease_s * 1_000_000)

        def run(rows: Rows, now_us: int) -> Granted | Refused | NeverFits:
            return books.reserve(
                rows, (reservation_id, owner), charges, now_us=now_us, lease_us=lease_us
            )

        is_money = any(charge.limit.unit == "money_micros" for charge in charges)
        job = self._submit(run, about=reservation_id, is_money=is_money)
        try:
            return await self._answer(job)
        except (asyncio.CancelledError, StoreUnavailable):
            if not job.withdraw() and not job.has_failed:
                # It is being granted while we give up. The queue is in order: this comes after.
                self._undo(reservation_id, owner)
            raise

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return await self._answer(
            self._submit(
                lambda rows, _: books.settle(rows, reservation_id, owner, need),
                must_happen=True,
                about=reservation_id,
                is_money=need is not None and need.money_micros > 0,
            )
        )

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return await self._answer(
            self._submit(
                lambda rows, _: books.release(rows, reservation_id, owner),
                must_happen=True,
                about=reservation_id,
            )
        )

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        return await self._answer(
            self._submit(lambda rows, now_us: books.usage(rows, limit, scope_key, now_us=now_us))
        )

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""
        return await self._answer(self._submit(lambda rows, _: books.scopes(rows.keys(), limits)))

    def _submit(
        self,
        run: Callable[[Rows, int], T],
        *,
        must_happen: bool = False,
        about: str | None = None,
        is_money: bool = False,
    ) -> Job[T]:
        if self._writer is None:
            raise StoreUnavailable("ledger not open", retry_after_s=None)
        job = Job(run, must_happen=must_happen, about=about, is_money=is_money)
        self._queue.submit(job)
        return job

    async def _answer(self, job: Job[T]) -> T:
        try:
            async with asyncio.timeout(self._wait_s):
                return await job.future
        except TimeoutError:
            self._note_late()
            raise StoreUnavailable("no answer from the ledger in time") from None
        finally:
            job.withdraw()

    def _note_late(self) -> None:
        """The writer may be done by now: have it say so itself."""
        if self._writer is not None and not self._writer.degraded and self._queue.accepts:
            self._writer.note_late()
            self._submit(_nothing).future.cancel()

    def _undo(self, reservation_id: str, owner: str) -> None:
        if self._writer is not None and self._queue.accepts:
            job = self._submit(
                lambda rows, _: books.release(rows, reservation_id, owner), must_happen=True
            )
            # Nobody waits for it, so nobody would hear of its failure.
            job.future.cancel()


def _nothing(rows: Rows, now_us: int) -> None:
    """Whether the file serves is all that is asked; the first one opens it."""


__all__ = ["SQLiteLedger"]
