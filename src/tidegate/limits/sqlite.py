"""How do reservations survive a restart, and how do processes share them?

Lives here: the ledger on an SQLite file as seen from the event loop: it hands work to the
writer of the file. Does not live here: any decision (books), the waiting (file_calls), the thread
(group_commit) and its queue (job_queue), the tables (sqlite_rows).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import books
from tidegate.limits.books import Rows
from tidegate.limits.file_calls import FileCalls
from tidegate.limits.ledger import Charge, Granted, Limit, Need, NeverFits, Refused, Usage
from tidegate.limits.sqlite_rows import SQLiteRows


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
        self._file = FileCalls(Path(path), clock, wait_s, tables=SQLiteRows, boot=boot)

    @property
    def degraded(self) -> bool:
        """Whether the file failed us last, or is not open; it is asked again by itself."""
        return self._file.degraded

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s."""
        return self._file.clock_ahead_s

    async def open(self) -> None:
        """Create the file if need be and start the writer; raises StoreUnavailable."""
        await self._file.open()

    async def close(self) -> None:
        """Commit what was accepted and close the file, within about `wait_s`."""
        await self._file.close()

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
        job = self._file.submit(run, about=reservation_id, is_money=is_money)
        try:
            return await self._file.answer(job)
        except (asyncio.CancelledError, StoreUnavailable):
            if not job.withdraw() and not job.has_failed:
                # It is being granted while we give up. The queue is in order: this comes after.
                self._file.leave(lambda rows, _: books.release(rows, reservation_id, owner))
            raise

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return await self._file.answer(
            self._file.submit(
                lambda rows, _: books.settle(rows, reservation_id, owner, need),
                must_happen=True,
                about=reservation_id,
                is_money=need is not None and need.money_micros > 0,
            )
        )

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return await self._file.answer(
            self._file.submit(
                lambda rows, _: books.release(rows, reservation_id, owner),
                must_happen=True,
                about=reservation_id,
            )
        )

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        return await self._file.answer(
            self._file.submit(
                lambda rows, now_us: books.usage(rows, limit, scope_key, now_us=now_us)
            )
        )

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""
        return await self._file.answer(
            self._file.submit(lambda rows, _: books.scopes(rows.keys(), limits))
        )


__all__ = ["SQLiteLedger"]
