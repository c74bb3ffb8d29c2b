"""How do waiting records get to the disk?

Lives here: the one thread that owns the database of a process. It takes everything that waits,
writes it in one transaction and only then answers those who wait for it; between two batches it
prunes a little and waits for the disk. And two short ways: whoever may not go on before his intent
is on disk puts it there (journal), and it follows with the rest; what is little is written at the
`flush`, since to wake a thread costs more. Does not live here: the queue's bound and the awaiting
side (store).
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tidegate.clock import Clock
from tidegate.records.database import Database, UnknownSchema
from tidegate.records.entries import Snapshot
from tidegate.records.journal import Journal, Journaled, boots_with_any, discard, left_behind
from tidegate.records.liveness import LifeLock, forget, is_running
from tidegate.records.rows import Draft, OpenRequest
from tidegate.records.step_texts import StepTexts
from tidegate.sqlite_words import meaning_of

_FAILURES = (sqlite3.Error, OSError, UnknownSchema)
_BATCH = 512
# Twice a batch, or a busy gateway would write faster than it prunes.
_PRUNE_ROWS = 2 * _BATCH
_PRUNE_EVERY_ENTRIES = _BATCH
_PRUNE_EVERY_S = 60.0
_RETRY_S = 0.5
# About a thousand pages of the log, which is what SQLite itself would let it grow to.
_CHECKPOINT_EVERY_COMMITS = 256
# What a caller writes by itself has to be little, and on a disk that is quick.
_FEW, _FEW_STEPS, _CROWD = 32, 64, 2 * _BATCH
_SLOW_S, _LEFT_TO_THE_THREAD_S = 0.1, 1.0

Answer = Callable[[str], None]
"""Called from whoever writes: "" when it is on disk, else what is wrong. The first
call counts."""

Append = Callable[[Sequence[Draft], Sequence[OpenRequest], Sequence[str]], bool]
"""One transaction; False if it was not begun."""


class Waiting(Struct, frozen=True):
    """One thing to write. `answer` belongs to those who wait for it; `journaled`: it is on disk.

    `body` is its text, where that is known already.
    """

    kind: Literal["begin", "intent", "end"]
    snapshot: Snapshot
    at_ms: int
    answer: Answer | None = None
    body: str = ""
    journaled: bool = False


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where the records are, how long they are kept, how long a write may take.

    `linger_s` is how long what nobody waits for may wait for company, until the `flush`: a
    request that begins and ends within it costs one row instead of three writes, and is what
    kill -9 can erase.
    """

    path: Path
    keep_days: int = 7
    max_bytes: int = 1_073_741_824
    wait_s: float = 5.0
    linger_s: float = 0.01


class Writer:
    """A thread from `start` to `stop`. All other methods are safe from any thread."""

    def __init__(self, keeping: Keeping, clock: Clock, *, boot: str, hash_key: bytes) -> None:
        self._keeping = keeping
        self._clock = clock
        self._boot = boot
        self._texts = StepTexts(hash_key)
        self._queue: deque[Waiting] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._pen = threading.Lock()  # whoever holds it takes from the queue, and writes
        self._database: Database | None = None
        self._journal: Journal | None = None
        self._quick_from_s = 0.0
        self._uncopied = 0
        self._forgotten: deque[str] = deque()
        self._open: set[str] = set()
        self._ended: set[str] = set()  # forgotten, and its beginning not yet met
        self._unpruned = 0
        self._prune_due_s = 0.0
        self._thread: threading.Thread | None = None
        self.failing = False
        self.written = 0
        self.lost = 0
        self.discarded = 0

    def __len__(self) -> int:
        return len(self._queue)

    def start(self, opened: Answer, stopped: Answer) -> None:
        """Open the file in the thread; it calls `opened` once that is done, and `stopped`."""
        self._thread = threading.Thread(
            target=self._run, args=(opened, stopped), name="tidegate-records", daemon=True
        )
        self._thread.start()

    def put(self, waiting: Waiting) -> None:
        """Queue one thing; what somebody waits for is written at once, the rest at the `flush`."""
        self._queue.append(waiting)
        # After a failure the thread has its own pace.
        if waiting.answer is not None or (len(self._queue) >= _BATCH and not self.failing):
            self._awake()

    def _awake(self) -> None:
        # The thread clears the event before it takes the queue, so what was appended is seen.
        if not self._wake.is_set():
            self._wake.set()

    def intent_at_once(self, intent: Waiting) -> bool:
        """Put it on disk in this call, and on its way into the database.

        False, and nothing is done, where that might take long or the database fails: `put` it.
        """
        journal, begun_s = self._journal, self._clock.monotonic_s()
        if journal is None or not self._may_hurry(begun_s):
            return False
        if len(intent.snapshot.steps) > _FEW_STEPS or len(self._queue) > _CROWD:
            return False  # who comes faster than the database is filled waits for it
        body = self._body(intent)
        try:
            if not journal.append(Journaled(intent.at_ms, intent.snapshot.request_id, body)):
                return False
        except OSError:
            return False  # whatever it is, the database will meet and report it
        self._queue.append(replace(intent, body=body, journaled=True))
        self._note_pace(begun_s)
        return True

    def _may_hurry(self, now_s: float) -> bool:
        """The disk was quick and the database good, as far as is known."""
        return not (self.failing or self._stopping) and now_s >= self._quick_from_s

    def _note_pace(self, begun_s: float) -> float:
        now_s = self._clock.monotonic_s()
        if now_s - begun_s > _SLOW_S:
            self._quick_from_s = now_s + _LEFT_TO_THE_THREAD_S
        return now_s

    def flush(self) -> None:
        """What nobody waits for is to be written: here if it is little, else by the thread."""
        if self._queue:
            self._at_once()
        # After a failure the thread has its own pace.
        if self._queue and not self.failing:
            self._awake()

    def _at_once(self) -> None:
        begun_s = self._clock.monotonic_s()
        if not self._may_hurry(begun_s) or len(self._queue) > _FEW:
            return
        if not self._pen.acquire(blocking=False):
            return
        try:
            if (database := self._database) is None:
                return
            waiting = _taken(self._queue, len(self._queue))
            failure = self._write(database.at_once, waiting)
            if failure != "":
                self._queue.extendleft(w for w in reversed(waiting) if not (failure and w.answer))
        finally:
            self._pen.release()
        if self._is_upkeep_due(self._note_pace(begun_s)):
            self._awake()

    def forget(self, request_id: str) -> None:
        """Its end will not be written, but it has ended: it must not be found lost."""
        self._forgotten.append(request_id)

    def stop(self) -> None:
        """Write what waits, then end."""
        self._stopping = True
        self._wake.set()

    def _run(self, opened: Answer, stopped: Answer) -> None:
        why = "writer stopped"
        try:
            why = self._work(opened)
        finally:
            # Also after a bug: nobody may wait for a thread that is gone.
            self.failing = self.failing or bool(why)
            for waiting in _taken(self._queue, len(self._queue)):
                self.discarded += waiting.kind == "end"
                if waiting.answer is not None:
                    waiting.answer(why or "writer stopped")
            opened(why)  # in case it was not told: an answer counts once
            stopped(why)

    def _work(self, opened: Answer) -> str:
        keeping = self._keeping
        try:
            life = LifeLock(keeping.path, self._boot)
        except OSError as error:
            opened(_kind(error))
            return _kind(error)
        try:
            database = Database(keeping.path, self._boot, busy_s=keeping.wait_s)
            try:
                self._recover(database)
                self._journal = Journal(keeping.path, self._boot)
                self._database = database
                opened("")
                self._loop(database)
            finally:
                with self._pen:
                    self._database = None
                is_whole = self._journal is None or self._journal.close()
                database.close(self._now_ms(), is_whole=is_whole)
        except _FAILURES as error:
            opened(_kind(error))
            return _kind(error)
        finally:
            life.release()
        return ""

    def _recover(self, database: Database) -> None:
        """What dead processes have left, and what they have left open."""
        path = self._keeping.path
        runs, left = partial(is_running, path), partial(left_behind, path)
        gone = [boot for boot in boots_with_any(path) if not runs(boot)]
        dead = database.begin_boot(self._now_ms(), runs, left, gone)
        self.lost = sum(dead.values())
        for boot in {*dead, *gone}:
            discard(path, boot)
            forget(path, boot)

    def _loop(self, database: Database) -> None:
        more_to_prune, more_to_write = True, False
        while True:
            if self.failing and not self._stopping:
                # An idle process that failed has to find out by itself that the disk is back.
                self._wake.wait(_RETRY_S)
            elif not (self._stopping or more_to_prune or more_to_write):
                self._wake.wait(_PRUNE_EVERY_S)
            self._wake.clear()
            with self._pen:
                batch = _taken(self._queue, _BATCH)
                more_to_write = len(batch) == _BATCH
                if batch or self.failing:
                    failed = bool(self._write(database.append, batch))
                    if failed:
                        self._queue.extendleft(w for w in reversed(batch) if w.answer is None)
                    if failed and self._stopping:
                        return
            if self._stopping and not self._queue:
                return
            if not self.failing:
                with self._pen:
                    self._copy(database)
                    more_to_prune = self._prune(database)

    def _write(self, append: Append, batch: Sequence[Waiting]) -> str | None:
        """What is wrong, "" for nothing; None: nothing is done, `append` would have had to wait.
        Who waits is told; what nobody waits for and is not written is the caller's to keep."""
        failure = ""
        drafts, opened, closed = self._sorted(batch)
        try:
            if not append(drafts, opened, closed):
                return None
        except _FAILURES as error:
            failure = _kind(error)
        else:
            self._open.difference_update(closed)
            self._ended.difference_update(closed, (w.snapshot.request_id for w in batch))
            self._open.update(o.request_id for o in opened)
            self.written += len(drafts)
            self._unpruned += len(drafts)
            self._uncopied += 1
            journaled = sum(waiting.journaled for waiting in batch)
            if journaled and self._journal is not None:
                self._journal.written(journaled)
        self.failing = bool(failure)
        for waiting in batch:
            if waiting.answer is not None:
                waiting.answer(failure)
        return failure

    def _sorted(self, batch: Sequence[Waiting]) -> tuple[list[Draft], list[OpenRequest], list[str]]:
        """Entries to add, requests that are open after this batch, and those no longer open."""
        drafts: list[Draft] = []
        opened: dict[str, Waiting] = {}
        closed: list[str] = []
        bodies: dict[str, str] = {}
        for waiting in batch:
            request_id = waiting.snapshot.request_id
            if waiting.kind != "begin":
                body = bodies[request_id] = self._body(waiting)
                drafts.append(Draft(waiting.kind, request_id, waiting.at_ms, body))
            if waiting.kind != "end":
                opened[request_id] = waiting
                continue
            opened.pop(request_id, None)
            if request_id in self._open:
                closed.append(request_id)
        while self._forgotten:
            self._ended.add(self._forgotten.popleft())
        closed += self._ended & self._open
        still_open = [
            OpenRequest(
                request_id,
                waiting.at_ms,
                "begun" if waiting.kind == "begin" else "intent",
                bodies.get(request_id) or self._body(waiting),
            )
            for request_id, waiting in opened.items()
            if request_id not in self._ended
        ]
        return drafts, still_open, closed

    def _body(self, waiting: Waiting) -> str:
        return waiting.body or self._texts.body(waiting.snapshot)

    def _is_upkeep_due(self, now_s: float) -> bool:
        return self._uncopied >= _CHECKPOINT_EVERY_COMMITS or self._is_pruning_due(now_s)

    def _is_pruning_due(self, now_s: float) -> bool:
        return self._unpruned >= _PRUNE_EVERY_ENTRIES or now_s >= self._prune_due_s

    def _copy(self, database: Database) -> None:
        if self._uncopied < _CHECKPOINT_EVERY_COMMITS:
            return
        self._uncopied = 0
        # Whatever it is, the next write will meet and report it.
        with suppress(*_FAILURES):
            database.checkpoint()

    def _prune(self, database: Database) -> bool:
        """One bounded step if it is time for one; whether the next one should follow at once."""
        now_s = self._clock.monotonic_s()
        if not self._is_pruning_due(now_s):
            return False
        day_ms = 86_400_000
        try:
            more = database.prune(
                older_than_ms=self._now_ms() - self._keeping.keep_days * day_ms,
                max_bytes=self._keeping.max_bytes,
                limit=_PRUNE_ROWS,
            )
        except _FAILURES:
            more = False  # whatever it is, the next write will meet and report it
        if not more:
            self._unpruned = 0
            self._prune_due_s = now_s + _PRUNE_EVERY_S
        return more

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


def _taken(queue: deque[Waiting], limit: int) -> list[Waiting]:
    return [queue.popleft() for _ in range(min(limit, len(queue)))]


def _kind(error: Exception) -> str:
    if isinstance(error, UnknownSchema):
        return f"UnknownSchema ({error})"
    return meaning_of(error)


def answer_in(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[str]") -> Answer:
    """An Answer that settles `future` in its own loop; without effect once that is closed."""

    def settle(failure: str) -> None:
        if not future.done():
            future.set_result(failure)

    def answer(failure: str) -> None:
        try:
            loop.call_soon_threadsafe(settle, failure)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    return answer


__all__ = ["Answer", "Keeping", "Waiting", "Writer", "answer_in"]
