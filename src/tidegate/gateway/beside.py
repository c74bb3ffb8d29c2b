"""Is this so much work that other requests would notice?

Lives here: the one bound, and the one way to work beside the loop. Does not live here: the work.
"""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 65_536
"""Searching so much text for secrets takes 5 to 100 ms; a thread costs a tenth of one."""


async def beside_the_loop(
    size_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The result of `work` on `size_bytes` bytes; from a thread if those are many.

    Work that was begun in a thread goes on to its end when the caller is cancelled: it must not
    write to anything that others hold.
    """
    if size_bytes <= LARGE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


__all__ = ["LARGE_BYTES", "beside_the_loop"]
