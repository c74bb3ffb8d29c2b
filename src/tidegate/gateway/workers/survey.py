"""What do the workers say, those that answer in time?

Lives here: one question to several workers, and the wait for their answers. Does not live here:
what is made of the answers (health, totals).
"""

import asyncio
from collections.abc import Callable, Iterable

from tidegate.gateway.workers.words import About, Ask, Told


class Survey:
    """Questions that wait for answers. `send` hands a message to the worker `run`."""

    def __init__(self, send: Callable[[int, Ask], None], *, wait_s: float) -> None:
        self._send, self._wait_s = send, wait_s
        self._number = 0
        self._waiting: dict[tuple[int, int], asyncio.Future[Told]] = {}

    async def ask(self, runs: Iterable[int], about: About) -> dict[int, Told]:
        """The answers of those that gave one within `wait_s`."""
        self._number += 1
        number, loop = self._number, asyncio.get_running_loop()
        asked = {run: loop.create_future() for run in runs}
        for run, answer in asked.items():
            self._waiting[run, number] = answer
            self._send(run, Ask(number, about))
        try:
            if asked:
                await asyncio.wait(asked.values(), timeout=self._wait_s)
        finally:
            for run in asked:
                self._waiting.pop((run, number), None)
        return {
            run: answer.result()
            for run, answer in asked.items()
            if answer.done() and not answer.cancelled()
        }

    def heard(self, run: int, told: Told) -> None:
        """An answer came; one that nobody waits for any more means nothing."""
        answer = self._waiting.pop((run, told.number), None)
        if answer is not None and not answer.done():
            answer.set_result(told)

    def gone(self, run: int) -> None:
        """The worker has ended and answers nothing any more."""
        for key in [key for key in self._waiting if key[0] == run]:
            self._waiting.pop(key).cancel()


__all__ = ["Survey"]
