"""What does a gateway process do to its records before it is killed?

Run as a script: FILE MODE. Says "ready" on stdout when what the test waits for is on disk, then
holds still until it is killed or its stdin ends.
"""

import asyncio
import fcntl
import resource
import signal
import sys
from pathlib import Path

from tests.unit.records.traffic import begun, called, finish
from tests.wire.recorded import written
from tidegate.clock import SystemClock
from tidegate.errors import StoreUnavailable
from tidegate.records import Recorder


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def traffic(recorder: Recorder, path: Path) -> None:
    """Requests in every state: ended, intended, begun."""
    finish(recorder, begun(recorder, 1))
    finish(recorder, await called(recorder, 2))
    begun(recorder, 3)
    await called(recorder, 4)
    await written(recorder, path)
    say("ready")
    await asyncio.to_thread(sys.stdin.read)


async def sudden(recorder: Recorder, path: Path) -> None:
    """Intents that are on disk and not in the database when the end comes."""
    finish(recorder, await called(recorder, 1))
    await written(recorder, path)
    with path.with_name(path.name + ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await called(recorder, 4)
        finish(recorder, await called(recorder, 5))
        say("ready")
        await asyncio.to_thread(sys.stdin.read)


async def full_disk(recorder: Recorder) -> None:
    """Calls until the disk is full, then with room again."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
    number = 0
    try:
        while True:
            number += 1
            finish(recorder, await called(recorder, number))
    except StoreUnavailable:
        say(f"refused {number} {recorder.degraded}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    finish(recorder, await called(recorder, 9999))
    say(f"again {recorder.degraded}")


async def main(path: Path, mode: str) -> None:
    """Opens the records and does one of these."""
    recorder = Recorder(path, SystemClock())
    await recorder.open()
    match mode:
        case "traffic":
            await traffic(recorder, path)
        case "sudden":
            await sudden(recorder, path)
        case _:
            await full_disk(recorder)
    await recorder.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
