"""How does a request wait a moment without holding anybody up?"""

import asyncio


async def pause(seconds: float) -> None:
    """Return after `seconds`; at once for 0 or less. Cancelling it leaves no timer behind."""
    if seconds <= 0.0:
        return
    over = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


__all__ = ["pause"]
