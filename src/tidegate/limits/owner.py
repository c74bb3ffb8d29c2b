"""How does one process keep the ledger for its workers?

Lives here: the sockets of the workers, read and answered by the thread that writes the file, and
the owner that its parent starts and ends. Does not live here: that thread (group_commit), what a
call does (owner_calls), the other end (owned).

All calls that wait are decided in one transaction, and no answer leaves before its commit.
Sockets come in pairs, made before a worker is started: there is no name in the file system that
anybody else could connect to.
"""

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.clock import Clock
from tidegate.frames import Frames, Malformed
from tidegate.limits import owner_calls
from tidegate.limits import owner_frames as frames
from tidegate.limits.books import Rows
from tidegate.limits.group_commit import MAX_BATCH, GroupCommit

if TYPE_CHECKING:
    from tidegate.limits.ledger import Limit

_READ_BYTES = 65_536  # more would be mapped anew for each read, which costs ten times as much
_UNSENT_BYTES = 67_108_864
"""A worker that reads nothing while this much waits for it is given up."""

_SMALL_BATCH = 32
"""So many calls are not worth dividing: a transaction costs as much as ten of them. Of more, a
half is decided at a time: some workers go on with their answers while those of the others are
decided. All at once, they and this thread would take turns, and one of two cores would idle."""

_WAKE = b"."


class Peer:
    """One worker, seen from the owner; used by its thread only."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.cutter = Frames()
        self.limits: list[Limit] = []
        self.unsent = bytearray()
        self.is_full = False
        self.said: tuple[bool, float] | None = None  # of the store, the last time


class Asked:
    """One call of a worker; see group_commit.Work."""

    only_reads = False  # a look at the books forgets what has left its window

    __slots__ = (
        "_late_s",
        "_now_s",
        "about",
        "answered",
        "call",
        "is_money",
        "must_happen",
        "peer",
    )

    def __init__(
        self, peer: Peer, call: frames.Call, late_s: float, now_s: Callable[[], float]
    ) -> None:
        self.peer, self.call = peer, call
        self._late_s, self._now_s = late_s, now_s
        self.answered = self.must_happen = self.is_money = False
        self.about: str | None = None
        if isinstance(call, frames.Reserve):
            self.about, self.is_money = call.reservation_id, call.is_money
        elif isinstance(call, frames.Settle | frames.Release):
            self.about, self.must_happen = call.reservation_id, True
            need = call.need if isinstance(call, frames.Settle) else None
            self.is_money = need is not None and need.money_micros > 0

    @property
    def is_withdrawn(self) -> bool:
        """Whoever asked has given up by now."""
        return self._now_s() >= self._late_s

    def begin(self) -> bool:
        """It runs: a worker that gives up says so by a call that comes behind this one."""
        return True

    def run(self, rows: Rows, now_us: int) -> frames.Answer:
        """See owner_calls."""
        return owner_calls.perform(self.call, self.peer.limits, rows, now_us)


class Inbox:
    """The sockets of all workers; see group_commit.Inbox. `news` is how the store is."""

    def __init__(
        self, wait_s: float, now_s: Callable[[], float], news: Callable[[], tuple[bool, float]]
    ) -> None:
        self._wait_s, self._now_s, self._news = wait_s, now_s, news
        self._waiting: deque[list[Asked]] = deque()  # by frames
        self._count = 0  # of the calls in them
        self._coming: deque[Peer] = deque()
        self._peers: set[Peer] = set()
        self._selector = selectors.DefaultSelector()
        self._wakes, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._lock = threading.Lock()
        self._ends = self._closed = False

    # For the process.

    def add(self, line: socket.socket) -> None:
        """Serve the worker at the other end of `line`, which is taken over."""
        line.setblocking(False)
        with self._lock:
            if self._closed:
                line.close()
                return
            self._coming.append(Peer(line))
            self._wakes.send(_WAKE)

    def end(self) -> None:
        """The thread ends when nothing waits any more."""
        with self._lock:
            self._ends = True
            if not self._closed:
                self._wakes.send(_WAKE)

    # For the thread.

    def next_batch(self, timeout_s: float | None) -> list[Asked] | None:
        """Whole frames, so that a worker hears of all that it sent at once; see _SMALL_BATCH."""
        if self._count < MAX_BATCH:
            self._read(0 if self._waiting or self._ends else timeout_s)
        if not self._waiting:
            return None if self._ends and not self._read(0) else []
        wanted = max(_SMALL_BATCH, self._count // 2)
        batch = self._waiting.popleft()
        while self._waiting and len(batch) < wanted:
            if len(batch) + len(self._waiting[0]) > MAX_BATCH:
                break
            batch += self._waiting.popleft()
        self._count -= len(batch)
        return batch

    def answer(self, results: Sequence[tuple[Asked, object]]) -> None:
        """One frame for each worker that has an answer, or has not heard how the store is."""
        by_peer: dict[Peer, list[frames.Answer]] = {}
        for job, result in results:
            if not job.answered:
                job.answered = True
                by_peer.setdefault(job.peer, []).append(owner_calls.said(result))
        news = self._news()
        everybody = any(peer.said != news for peer in self._peers)
        for peer in list(self._peers if everybody else by_peer):
            peer.said = news
            self._send(peer, frames.encode(frames.Answers(*news, tuple(by_peer.get(peer, ())))))

    def close(self) -> list[Asked]:
        """Let go of all workers: they see that nobody answers any more."""
        with self._lock:
            self._closed = True
            self._peers.update(self._coming)
        for peer in list(self._peers):
            self._flush(peer)
            peer.line.close()
        self._selector.close()
        self._wakes.close()
        self._woken.close()
        left = [job for batch in self._waiting for job in batch]
        self._waiting.clear()
        self._peers.clear()
        return left

    def _read(self, timeout_s: float | None) -> bool:
        """Whether anything happened."""
        events = self._selector.select(timeout_s)
        for key, mask in events:
            peer = key.data
            if peer is None:
                self._welcome()
                continue
            if mask & selectors.EVENT_WRITE:
                self._flush(peer)
            if mask & selectors.EVENT_READ:
                self._hear(peer)
        return bool(events)

    def _welcome(self) -> None:
        self._woken.recv(_READ_BYTES)
        while self._coming:
            peer = self._coming.popleft()
            self._peers.add(peer)
            self._selector.register(peer.line, selectors.EVENT_READ, peer)

    def _hear(self, peer: Peer) -> None:
        try:
            data = peer.line.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            heard = [frames.calls_in(body) for body in peer.cutter.feed(data)]
        except Malformed:
            heard, data = [], b""
        late_s = self._now_s() + self._wait_s
        for one in heard:
            peer.limits += [term.limit() for term in one.terms]
            asked = [Asked(peer, call, late_s, self._now_s) for call in one.calls]
            self._count += len(asked)
            for first in range(0, len(asked), MAX_BATCH):
                self._waiting.append(asked[first : first + MAX_BATCH])
        if not data:
            # What it asked before it died is done: it may have been told of nothing.
            self._lose(peer)

    def _send(self, peer: Peer, data: bytes) -> None:
        if peer not in self._peers:
            return
        peer.unsent += data
        self._flush(peer)
        if len(peer.unsent) > _UNSENT_BYTES:
            self._lose(peer)

    def _flush(self, peer: Peer) -> None:
        try:
            while peer.unsent:
                del peer.unsent[: peer.line.send(peer.unsent)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            peer.unsent.clear()
        is_full = bool(peer.unsent)
        if is_full is not peer.is_full and peer in self._peers:
            peer.is_full = is_full
            write = selectors.EVENT_WRITE if is_full else 0
            self._selector.modify(peer.line, selectors.EVENT_READ | write, peer)

    def _lose(self, peer: Peer) -> None:
        self._peers.discard(peer)
        self._selector.unregister(peer.line)
        peer.line.close()


class Owner:
    """Keeps the ledger on the file `path` for workers; `wait_s` is how long they wait.

    The other arguments are those of SQLiteLedger. The file is opened for the first call.
    """

    def __init__(
        self, path: str | Path, clock: Clock, wait_s: float = 5.0, *, boot: int = 0
    ) -> None:
        self._inbox = Inbox(wait_s, clock.monotonic_s, self._news)
        self._writer = GroupCommit(Path(path), clock, self._inbox, boot=boot)
        self._wait_s = wait_s

    def start(self) -> None:
        """Start its thread."""
        self._writer.start()

    def connect(self) -> socket.socket:
        """The end of a worker that is about to be started; whoever calls closes it."""
        ours, theirs = socket.socketpair()
        self._inbox.add(ours)
        return theirs

    def stop(self) -> bool:
        """Commit what was accepted and end; blocks up to `wait_s`. Whether it came that far."""
        self._inbox.end()
        if self._writer.wait_stopped(self._wait_s):
            return True
        self._writer.give_up()
        return False

    def _news(self) -> tuple[bool, float]:
        return self._writer.degraded, self._writer.clock_ahead_s


__all__ = ["Owner"]
