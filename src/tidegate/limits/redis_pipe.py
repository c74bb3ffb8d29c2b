"""How do many callers share one connection to Redis, and what if it does not answer?

Lives here: commands in one pipeline, the deadline, the owed, and the way back. Does not live
here: what is said (redis_script), the connection itself (redis_line), what an answer means
(redis).

What is asked for in one turn of the loop leaves in few writes; nobody waits for the answers of
the batch before. One late answer means that the store is away: everybody who waits is told so,
the connection is dropped, and from then on nobody waits at all; one task asks until the store
serves again. Then first comes what is owed: ends that were accepted, and the undoing of
reservations of which nobody knows whether they were made.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from tidegate.errors import StoreUnavailable
from tidegate.limits.redis_line import ErrorReply, Line, LineLost

logger = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""More unanswered or owed commands than this are refused: a dead store must not eat the memory."""

_BATCH = 32
"""So many need not wait for the end of the turn: the server works on them while others come."""

_OWED_AT_ONCE = 512
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_LINE_LASTS_S, _MOST_POOR_LINES = 1.0, 2
"""A connection is poor that is lost so soon and has answered nothing. After some of them in a row
the next one is not dialed at once."""

_GRACE_S = 0.01
"""A loop that was held up itself finds answers waiting: it must read them before it judges."""

_OF_ONE_COMMAND = frozenset({"ERR", "WRONGTYPE"})
"""Refusals that say nothing about the store as a whole."""

Dial = Callable[[], Awaitable[Line]]


class Job:
    """One command and whoever waits for its reply.

    `must_happen`: said again as soon as the store serves, even when nobody waits any more.
    `undo` makes what takes it back when it may have been heard and nobody knows the answer.
    """

    __slots__ = ("command", "due_s", "future", "is_repeated", "is_sent", "must_happen", "undo")

    def __init__(
        self,
        command: bytes,
        *,
        must_happen: bool = False,
        undo: Callable[[], bytes] | None = None,
    ) -> None:
        self.command = command
        self.must_happen = must_happen
        self.undo = undo
        self.future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.due_s = 0.0
        self.is_sent = False
        self.is_repeated = False


class Pipe:
    """Commands to one server, from one event loop.

    `dial` makes a connection that is ready to serve. `load` are the commands that make the
    scripts known, for a server that has lost them. `name` is what the log calls this use of it.
    """

    def __init__(
        self, dial: Dial, load: Sequence[bytes], *, deadline_s: float, name: str = "ledger"
    ) -> None:
        self._events = (f"{name}_store_failed", f"{name}_store_serves_again")
        self._dial = dial
        self._load = load
        self._deadline_s = deadline_s
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._unanswered: deque[Job] = deque()
        self._owed: deque[bytes] = deque(maxlen=MAX_QUEUED)
        self._first: Line | None = None
        self._line: Line | None = None
        self._loading: Job | None = None
        self._is_flushing = False
        self._has_served = False
        self._poor_lines = 0
        self._watch: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._accepts = True
        self.is_away = False

    def start(self, line: Line | None = None) -> None:
        """Serve on `line`, if there is one yet, then on the connections that `dial` makes."""
        self._first = line
        self._task = self._loop.create_task(self._run(line))

    def submit(self, job: Job) -> None:
        """Send it; its future has the reply, or StoreUnavailable, within the deadline.

        Raises StoreUnavailable at once when the store is away, the queue full, or all is closed.
        A job that must happen is owed even then, unless all is closed.
        """
        if not self._accepts:
            raise StoreUnavailable("store closed", retry_after_s=None)
        if self.is_away:
            if job.must_happen:
                self._owed.append(job.command)
            raise StoreUnavailable("the store is away")
        if len(self._waiting) + len(self._unanswered) >= MAX_QUEUED and not job.must_happen:
            raise StoreUnavailable("store queue full")
        job.due_s = self._loop.time() + self._deadline_s
        self._waiting.append(job)
        if self._watch is None:
            self._watch = self._loop.call_at(job.due_s, self._look)
        self._flush_soon()

    async def reply(self, job: Job) -> object:
        """What is answered to it; see `submit`. Who leaves takes back what need not happen."""
        self.submit(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if not job.must_happen:
                self.withdraw(job)
            raise

    def drop(self, kind: str) -> None:
        """The store answers, and not as it may: it is away until a new connection serves."""
        self._go_away(kind)

    def withdraw(self, job: Job) -> None:
        """Nobody wants it any more: it is not sent, or it is taken back."""
        if job in self._waiting and not job.is_sent:
            self._waiting.remove(job)
        elif job.undo is not None and self._accepts:
            undo = Job(job.undo(), must_happen=True)
            with suppress(StoreUnavailable):
                self.submit(undo)
            undo.future.cancel()

    async def close(self) -> None:
        """Hear the answers that are still due, then hang up. Idempotent."""
        self._accepts = False
        late = [job.future for job in (*self._waiting, *self._unanswered) if not job.future.done()]
        if late:
            await asyncio.wait(late, timeout=2 * self._deadline_s)
        if self._owed:
            logger.warning("ledger_ends_unsaid", extra={"count": len(self._owed)})
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        if self._first is not None:
            # A task that is cancelled before its first step cleans nothing up.
            self._first.abort()
        if self._watch is not None:
            self._watch.cancel()
        self._give_up("closed")

    async def _run(self, line: Line | None) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = self._loop.time()
            try:
                if line is None:
                    line = await self._dial()
                await self._say_owed(line)
                self._come_back()
                pause_s = _FIRST_PAUSE_S
                await self._converse(line)
            except LineLost as lost:
                if self._has_served or self._loop.time() - began_s > _LINE_LASTS_S:
                    self._poor_lines = 0
                self._poor_lines += 1
                if self.is_away or line is None or self._poor_lines > _MOST_POOR_LINES:
                    self._go_away(lost.kind)
            finally:
                if line is not None:
                    line.abort()
                self._line = line = None
            if self.is_away:
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _pause(self, seconds: float) -> None:
        over = asyncio.Event()
        self._loop.call_later(seconds, over.set)
        await over.wait()

    async def _say_owed(self, line: Line) -> None:
        """What is owed, in order; raises LineLost if it is not heard in time."""
        while self._owed:
            commands = [*self._owed][:_OWED_AT_ONCE]
            for reply in await ask(line, commands, self._deadline_s):
                if isinstance(reply, ErrorReply):
                    if reply.kind not in _OF_ONE_COMMAND:
                        raise LineLost(reply.kind)
                    logger.warning("ledger_end_failed", extra={"error": reply.kind})
            for _ in commands:
                self._owed.popleft()

    async def _converse(self, line: Line) -> None:
        # What was asked over a lost connection is asked again: every command may be repeated.
        self._waiting.extendleft(reversed(self._unanswered))
        self._unanswered.clear()
        self._line = line
        self._has_served = False
        self._flush_soon()
        while True:
            for reply in await line.hear():
                self._take(reply)

    def _flush_soon(self) -> None:
        if len(self._waiting) >= _BATCH:
            self._flush()
        elif not self._is_flushing and self._line is not None:
            self._is_flushing = True
            self._loop.call_soon(self._flush_in_turn)

    def _flush_in_turn(self) -> None:
        self._is_flushing = False
        self._flush()

    def _flush(self) -> None:
        if self._line is None or not self._waiting:
            return
        for job in self._waiting:
            job.is_sent = True
        self._line.send(b"".join([job.command for job in self._waiting]))
        self._unanswered.extend(self._waiting)
        self._waiting.clear()

    def _take(self, reply: object) -> None:
        if not self._unanswered:
            raise LineLost("UnaskedReply")
        job = self._unanswered.popleft()
        if isinstance(reply, ErrorReply):
            self._take_error(job, reply.kind)
            return
        self._has_served = True
        if not job.future.done():
            job.future.set_result(reply)

    def _take_error(self, job: Job, kind: str) -> None:
        if kind == "NOSCRIPT" and not job.is_repeated:
            self._repeat(job)
            return
        # It answered, and did nothing: there is nothing to take back.
        is_away = kind not in _OF_ONE_COMMAND
        if is_away and job.must_happen:
            self._owed.append(job.command)
        _fail(job, kind)
        if is_away:
            self._go_away(kind)

    def _repeat(self, job: Job) -> None:
        """The server has restarted and forgotten the scripts: tell it again, then ask again."""
        job.is_repeated = True
        if self._loading is None or self._loading.future.done():
            for command in self._load:
                self._loading = Job(command)
                self._loading.is_repeated = True
                self._loading.due_s = job.due_s
                self._waiting.append(self._loading)
        self._waiting.append(job)
        self._flush_soon()

    def _look(self, *, again: bool = False) -> None:
        """Is anybody's answer late?"""
        self._watch = None
        due_s = min((job.due_s for job in (*self._unanswered, *self._waiting)), default=None)
        if due_s is None:
            return
        if due_s > self._loop.time():
            self._watch = self._loop.call_at(due_s, self._look)
        elif not again:
            self._watch = self._loop.call_later(_GRACE_S, partial(self._look, again=True))
        else:
            self._go_away("TimeoutError")

    def _go_away(self, kind: str) -> None:
        if not self.is_away:
            self.is_away = True
            logger.warning(self._events[0], extra={"error": kind})
        self._give_up(kind)
        if self._line is not None:
            self._line.abort()

    def _give_up(self, kind: str) -> None:
        for job in (*self._unanswered, *self._waiting):
            if job.must_happen:
                self._owed.append(job.command)
            elif job.is_sent and job.undo is not None:
                self._owed.append(job.undo())
            _fail(job, kind)
        self._unanswered.clear()
        self._waiting.clear()

    def _come_back(self) -> None:
        if self.is_away:
            self.is_away = False
            logger.warning(self._events[1])


def _fail(job: Job, kind: str) -> None:
    if not job.future.done():
        job.future.set_exception(StoreUnavailable(kind))
        # Some have nobody who waits for them.
        job.future.exception()


async def ask(line: Line, commands: Sequence[bytes], timeout_s: float) -> list[object]:
    """One reply for each command, over a line that nobody else uses; raises LineLost."""
    replies = list[object]()
    try:
        async with asyncio.timeout(timeout_s):
            line.send(b"".join(commands))
            while len(replies) < len(commands):
                replies += await line.hear()
    except TimeoutError:
        raise LineLost("TimeoutError") from None
    return replies


__all__ = ["MAX_QUEUED", "Job", "Pipe", "ask"]
