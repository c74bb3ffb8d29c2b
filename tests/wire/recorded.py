"""When has everything that was handed in reached the database?"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from tidegate.records import Recorder


def until(true: Callable[[], bool]) -> None:
    """Wait, within a bound, for what another thread or process does."""
    for _turn in range(6_000):
        if true():
            return
        threading.Event().wait(0.01)
    raise TimeoutError


async def written(recorder: Recorder, path: Path) -> None:
    """Nothing waits, and no intent stands in a file of its own any more."""

    def is_written() -> bool:
        journals = path.parent.glob("*.intents")
        return recorder.waiting == 0 and all(each.stat().st_size == 0 for each in journals)

    await asyncio.to_thread(until, is_written)
