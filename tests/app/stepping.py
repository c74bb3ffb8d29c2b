"""How does a test cancel a request at exactly its n-th suspension?"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class _Stepped:
    """Awaits a coroutine and cancels its own task where the coroutine suspends the n-th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], wanted: range) -> None:
        self._coroutine = coroutine
        self._wanted = wanted
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        resume, value = self._coroutine.send, None
        while True:
            try:
                future = resume(value)
            except StopIteration as done:
                return done.value
            self.suspensions += 1
            if self.suspensions in self._wanted:
                # The task runs: the cancellation hits the future that is yielded next.
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                value = yield future
            except BaseException as error:  # noqa: BLE001 - passed on
                resume, value = self._coroutine.throw, error  # type: ignore[assignment]
            else:
                resume = self._coroutine.send


async def cancel_at(coroutine: Coroutine[Any, Any, Any], at: int, *, times: int = 1) -> bool:
    """Run `coroutine` as a task, cancelled at its `at`-th suspension (1 is the first).

    `times` cancels at that many suspensions in a row. False if it ended before it got there.
    """
    stepped = _Stepped(coroutine, range(at, at + times))

    async def run() -> None:
        await stepped

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return stepped.suspensions >= at
