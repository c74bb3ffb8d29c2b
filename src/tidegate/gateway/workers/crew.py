"""Which worker processes are there, and how are they reached?

Lives here: starting them, sending them messages, noticing that one is gone and with which exit
code. Does not live here: any decision about them (plan), what they say (words).
"""

import asyncio
import logging
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.gateway.workers.channel import Channel
from tidegate.gateway.workers.seats import Table
from tidegate.gateway.workers.starting import Inherited, Start
from tidegate.gateway.workers.words import ToParent, ToWorker, for_parent

logger = logging.getLogger(__name__)

_EXIT_S = 20.0
"""For a process that has closed its channel to end: long, on a busy machine."""
_NOT_STARTED = 1


@dataclass(slots=True)
class _Hand:
    slot: int
    process: "subprocess.Popen[bytes]"
    channel: "Channel[ToParent]"


class Crew:
    """The processes of one gateway. `heard` and `ended` are called with the run number."""

    def __init__(
        self,
        inherited: Inherited,
        start: Start,
        *,
        heard: Callable[[int, ToParent], None],
        ended: Callable[[int, int], None],
    ) -> None:
        self._inherited, self._start = inherited, start
        self._heard, self._ended = heard, ended
        self._table = Table(inherited.seats)
        self._hands: dict[int, _Hand] = {}
        self._reaping: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self, slot: int, run: int) -> None:
        """Start a process as `run`; one that cannot be started has ended at once."""
        if self._closed:
            return
        try:
            started = self._start(slot, self._inherited)
        except OSError as error:
            problem = error.strerror or type(error).__name__
            logger.error(  # noqa: TRY400 - the trace says nothing more
                "worker_not_started", extra={"worker": slot, "problem": problem}
            )
            asyncio.get_running_loop().call_soon(self._ended, run, _NOT_STARTED)
            return
        logger.info("worker_spawned", extra={"worker": slot, "pid": started.process.pid})
        channel = Channel(
            started.ends,
            for_parent,
            heard=lambda message: self._heard(run, message),
            lost=lambda: self._lost(run),
        )
        self._hands[run] = _Hand(slot, started.process, channel)

    def send(self, run: int, message: ToWorker) -> None:
        """Send it, unless the process is known to be gone."""
        if (hand := self._hands.get(run)) is not None:
            hand.channel.send(message)

    def kill(self, run: int) -> None:
        """End the process at once."""
        if (hand := self._hands.get(run)) is not None:
            hand.process.kill()

    async def close(self) -> None:
        """End whatever still runs, and wait for it; nothing is started any more."""
        self._closed = True
        for run in list(self._hands):
            self.kill(run)
        while self._reaping or self._hands:
            for run in list(self._hands):
                self._lost(run)
            await asyncio.wait(list(self._reaping))
        self._table.close()

    def _lost(self, run: int) -> None:
        hand = self._hands.pop(run)
        hand.channel.close()
        task = asyncio.create_task(self._reap(run, hand))
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)

    async def _reap(self, run: int, hand: _Hand) -> None:
        code = await asyncio.to_thread(_exit_code, hand.process)
        if not any(other.slot == hand.slot for other in self._hands.values()):
            # It could not say so itself, and the others would wait for it at each connection.
            self._table.vacate(hand.slot)
        self._ended(run, code)


def _exit_code(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(_EXIT_S)
    except subprocess.TimeoutExpired:
        process.kill()  # it has closed its channel, so nobody can tell it anything
        return process.wait()


__all__ = ["Crew"]
