"""How does real time pass where a case asks for it?"""

import asyncio


async def passing(seconds: float) -> None:
    """Real time passes: for the cases that ask for it."""
    try:
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    except TimeoutError:
        return
