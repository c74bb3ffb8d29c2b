"""How do calls travel to the owner of the ledger, and how long do they wait?

Lives here: the worker's end of the socket: calls of one turn of the loop in one frame, answers
in their order, one timer for all that wait. Does not live here: what is said (owner_frames),
what follows from an answer or from the end of the owner (owned).
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from tidegate.errors import StoreUnavailable
from tidegate.frames import Frames, Malformed
from tidegate.limits import owner_frames as frames
from tidegate.limits.group_commit import MAX_QUEUED

logger = logging.getLogger(__name__)

_READ_BYTES = 65_536  # more would be mapped anew for each read, which costs ten times as much

_MUST_HAPPEN = (frames.Settle, frames.Release)
_Waiting = asyncio.Future[frames.Answer]


class Unsaid(StoreUnavailable):
    """Nothing of the call is in the books, nor will it be unless it must happen."""


class Line:
    """For the running loop. `lost` is called once, with what was never answered, when it ends."""

    def __init__(
        self,
        line: socket.socket,
        *,
        wait_s: float,
        lost: Callable[[Sequence[frames.Call]], None],
    ) -> None:
        line.setblocking(False)
        self._line, self._wait_s, self._lost = line, wait_s, lost
        self._loop = asyncio.get_running_loop()
        self._cutter = Frames()
        self._terms: list[frames.Term] = []
        self._fresh: list[tuple[frames.Call, _Waiting]] = []  # of this turn, not sent yet
        self._sent: deque[tuple[frames.Call, _Waiting]] = deque()
        self._due: deque[tuple[float, int]] = deque()  # until when, for the sent up to this one
        self._count_sent = self._count_answered = 0
        self._unsent = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._is_late = self._closed = False
        self._news = (False, 0.0)
        self._loop.add_reader(line, self._readable)

    @property
    def degraded(self) -> bool:
        """Whether the owner said so, or somebody waited in vain since it said anything."""
        return self._is_late or self._news[0]

    @property
    def clock_ahead_s(self) -> float:
        """What the owner said last."""
        return self._news[1]

    def introduce(self, term: frames.Term) -> None:
        """Tell the owner of a limit before the next call."""
        self._terms.append(term)

    def submit(self, call: frames.Call) -> _Waiting:
        """Send it with the others of this turn; the future raises StoreUnavailable, ValueError."""
        if len(self._sent) + len(self._fresh) >= MAX_QUEUED and not isinstance(call, _MUST_HAPPEN):
            raise Unsaid("ledger queue full")
        if not self._fresh:
            self._loop.call_soon(self._flush)
        waiting: _Waiting = self._loop.create_future()
        self._fresh.append((call, waiting))
        return waiting

    def withdraw(self, call: frames.Call) -> bool:
        """Whether the owner will never hear of it; False once it may have."""
        for place, (one, _) in enumerate(self._fresh):
            if one is call:
                del self._fresh[place]
                return True
        return False

    async def answered(self, within_s: float) -> bool:
        """Wait until nothing waits for an answer; False if that takes longer."""
        if self._fresh or self._sent:
            self._idle.clear()
            waiting = asyncio.ensure_future(self._idle.wait())
            await asyncio.wait((waiting,), timeout=within_s)
            waiting.cancel()
        return not (self._fresh or self._sent)

    def close(self) -> None:
        """Hang up; `lost` is not called."""
        if not self._closed:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._loop.remove_reader(self._line)
            self._loop.remove_writer(self._line)
            self._line.close()

    def _flush(self) -> None:
        fresh, self._fresh = self._fresh, []
        terms, self._terms = self._terms, []
        if not fresh or self._closed:
            self._terms = terms
            return
        try:
            data = frames.encode(frames.Calls(tuple(terms), tuple([call for call, _ in fresh])))
        except (ValueError, OverflowError):
            # One that cannot be said must not take the others with it.
            fresh = [one for one in fresh if _can_be_said(*one)]
            data = frames.encode(frames.Calls(tuple(terms), tuple([call for call, _ in fresh])))
        self._sent += fresh
        self._count_sent += len(fresh)
        self._due.append((self._loop.time() + self._wait_s, self._count_sent))
        if self._timer is None:
            self._timer = self._loop.call_at(self._due[0][0], self._tick)
        was_empty = not self._unsent
        self._unsent += data
        if was_empty:
            self._write()
            if self._unsent:
                self._loop.add_writer(self._line, self._writable)

    def _writable(self) -> None:
        self._write()
        if not self._unsent:
            self._loop.remove_writer(self._line)

    def _write(self) -> None:
        try:
            sent = self._line.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            sent = len(self._unsent)  # it is gone; reading will say so
        del self._unsent[:sent]

    def _readable(self) -> None:
        try:
            data = self._line.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            for body in self._cutter.feed(data):
                self._heard(frames.answers_in(body))
        except Malformed:
            data = b""
        if not data:
            self._end()

    def _heard(self, said: frames.Answers) -> None:
        self._news = (said.degraded, said.clock_ahead_s)
        if self._is_late:
            self._is_late = False
            logger.warning("ledger_owner_answers_again")
        if len(said.answers) > len(self._sent):
            raise Malformed
        self._count_answered += len(said.answers)
        for answer in said.answers:
            _, waiting = self._sent.popleft()
            if waiting.done():
                continue
            if isinstance(answer, frames.Failed):
                waiting.set_exception(Unsaid(answer.why))
            elif isinstance(answer, frames.Bad):
                waiting.set_exception(ValueError(answer.why))
            else:
                waiting.set_result(answer)
        while self._due and self._due[0][1] <= self._count_answered:
            self._due.popleft()
        if not (self._sent or self._fresh):
            self._idle.set()

    def _tick(self) -> None:
        """The oldest may have waited long enough: one timer for all, set again when it is over."""
        self._timer = None
        now_s = self._loop.time()
        while self._due and self._due[0][0] <= now_s:
            _, until = self._due.popleft()
            for _, waiting in islice(self._sent, max(0, until - self._count_answered)):
                if not waiting.done():
                    self._note_late()
                    waiting.set_exception(StoreUnavailable("no answer from the ledger in time"))
        if self._due:
            self._timer = self._loop.call_at(self._due[0][0], self._tick)

    def _note_late(self) -> None:
        """One line for the outage, however many wait in vain."""
        if not self._is_late:
            self._is_late = True
            logger.warning("ledger_owner_silent", extra={"seconds": self._wait_s})

    def _end(self) -> None:
        if self._closed:
            return
        self.close()
        unanswered = [*self._sent, *self._fresh]
        self._sent.clear()
        self._fresh.clear()
        self._idle.set()
        self._lost([call for call, _ in unanswered])
        for _, waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(StoreUnavailable("the owner of the ledger is gone"))


def _can_be_said(call: frames.Call, waiting: _Waiting) -> bool:
    try:
        frames.encode(frames.Calls((), (call,)))
    except (ValueError, OverflowError) as error:
        if not waiting.done():
            waiting.set_exception(error if isinstance(error, ValueError) else ValueError())
        return False
    return True


__all__ = ["Line", "Unsaid"]
