"""Who asks the writer thread of an SQLite file, and how do they hear its answer?

Lives here: the queue between one event loop and that thread. Does not live here: the thread
(group_commit), what the work is (books).
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from tidegate.errors import StoreUnavailable
from tidegate.limits.group_commit import MAX_BATCH, MAX_QUEUED

R = TypeVar("R")
T = TypeVar("T")


class Job(Generic[R, T]):
    """One piece of work for the writer thread. Its result arrives in `future`.

    `must_happen`: applied as soon as the file allows, even when nobody waits for it any more.
    Any other job either begins or is withdrawn, never both. `about` is the reservation that it
    will ask for; `is_money`: once answered it survives the loss of power, too. `only_reads`: it
    writes nothing.
    """

    __slots__ = (
        "_first",
        "about",
        "future",
        "is_money",
        "is_withdrawn",
        "loop",
        "must_happen",
        "only_reads",
        "run",
    )

    def __init__(
        self,
        run: Callable[[R, int], T],
        *,
        must_happen: bool = False,
        about: str | None = None,
        is_money: bool = False,
        only_reads: bool = False,
    ) -> None:
        self.run = run
        self.only_reads = only_reads
        self.must_happen = must_happen
        self.about = about
        self.is_money = is_money
        self.is_withdrawn = False
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self._first = threading.Lock()

    def begin(self) -> bool:
        """For the writer: whether to run it."""
        return self.must_happen or self._first.acquire(blocking=False)

    def withdraw(self) -> bool:
        """For the caller who gives up: True if the job will never run; False if it may have."""
        if not self.must_happen and self._first.acquire(blocking=False):
            self.is_withdrawn = True
        return self.is_withdrawn

    @property
    def has_failed(self) -> bool:
        """Whether the writer answered that nothing of it was committed."""
        return (
            self.future.done()
            and not self.future.cancelled()
            and self.future.exception() is not None
        )


class JobQueue:
    """The inbox of a GroupCommit, for the callers of one event loop."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Job[Any, object] | None] = queue.SimpleQueue()
        self.accepts = True

    def submit(self, job: Job[R, T]) -> None:
        """Queue the job; raises StoreUnavailable when closed, or full and it need not happen."""
        if not self.accepts:
            raise StoreUnavailable("store closed", retry_after_s=None)
        if not job.must_happen and self._queue.qsize() >= MAX_QUEUED:
            raise StoreUnavailable("store queue full")
        self._queue.put(cast("Job[Any, object]", job))

    def end(self) -> None:
        """Accept nothing more; the thread ends when the queue is done."""
        if self.accepts:
            self.accepts = False
            self._queue.put(None)

    # For the thread; see group_commit.Inbox.

    def next_batch(self, timeout_s: float | None) -> list[Job[Any, object]] | None:
        """See there."""
        try:
            first = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return []
        if first is None:
            return None
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                self._queue.put(None)
                break
            batch.append(following)
        return batch

    def close(self) -> list[Job[Any, object]]:
        """See there."""
        self.accepts = False
        left = []
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if job is not None:
                left.append(job)
        return left

    def answer(self, results: Sequence[tuple[Job[Any, object], object]]) -> None:
        """See there."""
        if not results:
            return
        try:
            results[0][0].loop.call_soon_threadsafe(_resolve, results)
        except RuntimeError:
            # The loop is closed: nobody is left to hear it.
            return


def _resolve(pairs: Sequence[tuple[Job[Any, object], object]]) -> None:
    for job, result in pairs:
        if job.future.done():
            continue
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


__all__ = ["Job", "JobQueue"]
