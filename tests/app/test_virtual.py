"""Does the loop of the tests let time pass only when nobody works?"""

import asyncio
import threading

import pytest

from tests.app.virtual import run_timeless


def test_time_stands_still_while_a_thread_works_and_jumps_when_all_wait() -> None:
    async def body() -> None:
        loop, go = asyncio.get_running_loop(), threading.Event()
        began_s = loop.time()
        async with asyncio.timeout(10.0):
            working = asyncio.ensure_future(asyncio.to_thread(go.wait, 30.0))
            # Released by another thread, which no turn of this loop hurries.
            threading.Timer(0.05, go.set).start()
            assert await working
        assert loop.time() - began_s < 1.0
        await asyncio.wait((loop.create_future(),), timeout=100.0)
        assert 100.0 <= loop.time() - began_s < 101.0

    run_timeless(body())


def test_what_never_happens_is_said() -> None:
    async def body() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(AssertionError, match="never happens"):
        run_timeless(body())
