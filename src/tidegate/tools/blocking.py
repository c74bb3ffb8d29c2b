"""How may a call that blocks be given up?

Nothing can watch every kind of descriptor, so pipes are read and written in threads. Lives here: a
thread that the end of the process does not wait for, unlike those of a pool: a read that waits
for a client, or a write that nobody takes, must not keep a server alive that was told to end.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
_Job = Callable[[], None]


class BlockingThread:
    """Runs one call after the other; made inside of a running loop, for that loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """What `call` returns or raises. A cancelled caller leaves it running."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(partial(self._do, partial(call, *args), answer))
        return await answer

    def _work(self) -> None:
        while True:
            self._jobs.get()()

    def _do(self, call: Callable[[], T], answer: "asyncio.Future[T]") -> None:
        try:
            tell: Callable[[], None] = partial(answer.set_result, call())
        except (OSError, ValueError) as error:
            tell = partial(answer.set_exception, error)
        try:
            self._loop.call_soon_threadsafe(_unless_left, answer, tell)
        except RuntimeError:
            return  # the loop is closed: nobody waits for it any more


def _unless_left(answer: "asyncio.Future[Any]", tell: Callable[[], None]) -> None:
    if not answer.done():
        tell()


__all__ = ["BlockingThread"]
