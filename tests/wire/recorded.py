"""When has everything that was handed in reached the database?"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from tests.unit.records.traffic import begun
from tidegate.records import Recorder, Trail


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


def left_to_the_thread(recorder: Recorder, number: int) -> Trail:
    """A call of so many steps that its intent waits for the writer's thread."""
    trail = begun(recorder, number, "mcp")
    for _step in range(100):
        trail.step("authorize", "allow", tool="echo")
    return trail
