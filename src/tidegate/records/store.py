"""Is it on record before we act, and is everything that ended on record at all?

Lives here: the recorder that the gateway holds. An intent is on disk before its request goes
on, or the request is refused; beginnings and ends never wait, but their queue is bounded and
what it cannot take is counted. Does not live here: the file (database), the thread (writer).
"""

import asyncio
import secrets
from pathlib import Path

from msgspec.structs import replace

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.records.entries import Trail
from tidegate.records.writer import Keeping, Waiting, Writer, answer_in


class Recorder:
    """The decision record of this process, from `open` to `close`; for one event loop.

    `path` is made if it is not there. Strings of operands are hashed under `hash_key`, which is
    stored nowhere (a random one, if none is given): equal values show as equal where it is the
    same, and nobody can try out values against a file that was carried away.
    """

    def __init__(
        self,
        path: Path | str,
        clock: Clock,
        *,
        queue: int = 10_000,
        keep_days: int = 7,
        max_bytes: int = 1_073_741_824,
        wait_s: float = 5.0,
        hash_key: bytes | None = None,
    ) -> None:
        self.boot = secrets.token_hex(8)
        self._refused = 0
        self._clock = clock
        self._bound = queue
        self._wait_s = wait_s
        self._overflowed = False
        self._stopped: asyncio.Future[str] | None = None
        self._flushing: asyncio.TimerHandle | None = None
        keeping = Keeping(Path(path), keep_days, max_bytes, wait_s)
        self._linger_s = keeping.linger_s
        self._writer = Writer(
            keeping, clock, boot=self.boot, hash_key=hash_key or secrets.token_bytes(32)
        )

    @property
    def degraded(self) -> bool:
        """Whether records are not being kept right now: writes fail, or the queue is full."""
        if self._overflowed and len(self._writer) < self._bound:
            self._overflowed = False
        return self._writer.failing or self._overflowed

    @property
    def dropped(self) -> int:
        """How many ends were not recorded, because the queue was full or the writer gone."""
        return self._refused + self._writer.discarded

    @property
    def waiting(self) -> int:
        """How many beginnings, intents and ends are not yet in the database."""
        return len(self._writer)

    @property
    def written(self) -> int:
        """How many entries this process has committed, beside those of `lost`."""
        return self._writer.written

    @property
    def lost(self) -> int:
        """How many unfinished requests of dead processes `open` found and marked as lost."""
        return self._writer.lost

    async def open(self) -> None:
        """Make or recover the file; raises StoreUnavailable if that is not possible."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[str] = loop.create_future()
        self._stopped = loop.create_future()
        self._writer.start(answer_in(loop, opened), answer_in(loop, self._stopped))
        if failure := await opened:
            raise StoreUnavailable(f"records: {failure}")

    def begin(self, trail: Trail) -> None:
        """Note that a request has begun, so that it is found lost if this process dies. Cheap."""
        trail.began_s = self._clock.monotonic_s()
        if self._has_room():
            trail.tracked = True
            self._put(Waiting("begin", trail.snapshot(), self._now_ms()))

    async def intent(self, trail: Trail) -> None:
        """Put on disk what is about to be done; raises StoreUnavailable, and then it must not be.

        After a cancellation or a time-out it may still get there: the end will say that
        nothing followed. Costs about 20 us: one line in a file, from which the database is filled
        a moment later. Where that is not to be trusted (writes fail, the disk is slow) it costs a
        commit by the writer's thread. Once committed it is there: who asks again for the same
        request, before another thing it does, waits for nothing.
        """
        if trail.overflow:
            raise StoreUnavailable("records: more steps than one entry holds", retry_after_s=None)
        if trail.committed:
            return
        if not self._has_room():
            raise StoreUnavailable("records: not writing")
        trail.intended = True
        intent = Waiting("intent", trail.snapshot(), self._now_ms())
        if self._writer.intent_at_once(intent):
            self._flush_soon()
        elif failure := await self._committed(intent):
            raise StoreUnavailable(f"records: {failure}")
        trail.committed = True

    async def _committed(self, intent: Waiting) -> str:
        """What the writer's thread says of it."""
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[str] = loop.create_future()
        self._writer.put(replace(intent, answer=answer_in(loop, committed)))
        try:
            async with asyncio.timeout(self._wait_s):
                return await committed
        except TimeoutError:
            return "timeout"

    def end(self, trail: Trail) -> None:
        """Record how a request ended; only the first call for a trail counts. Never waits.

        With a full queue the entry is dropped and counted, unless an intent stands behind it:
        of those there are at most as many as requests in flight.
        """
        if trail.ended:
            return
        trail.ended = True
        if not (self._has_room() or (trail.intended and self._is_running())):
            self._refused += 1
            self._overflowed = self._is_running()
            if trail.tracked:
                self._writer.forget(trail.request_id)
            return
        snapshot = trail.snapshot(now_s=self._clock.monotonic_s())
        self._put(Waiting("end", snapshot, self._now_ms()))

    async def close(self) -> None:
        """Write what waits and end the thread, within the time one write may take."""
        if self._stopped is None:
            return
        if self._flushing is not None:
            self._flushing.cancel()
        self._writer.stop()
        try:
            async with asyncio.timeout(2 * self._wait_s):
                await asyncio.shield(self._stopped)
        except TimeoutError:
            return  # a disk that hangs must not hang the shutdown; the thread is a daemon

    def _put(self, waiting: Waiting) -> None:
        """Nobody waits for it: soon, with what comes meanwhile."""
        self._writer.put(waiting)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(self._linger_s, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._writer.flush()

    def _is_running(self) -> bool:
        return self._stopped is not None and not self._stopped.done()

    def _has_room(self) -> bool:
        return self._is_running() and len(self._writer) < self._bound

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


__all__ = ["Recorder"]
