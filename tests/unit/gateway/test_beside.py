"""Large work leaves the loop to others; small work is done at once."""

import asyncio
import threading

import pytest

from tidegate.gateway.beside import LARGE_BYTES, beside_the_loop


@pytest.mark.parametrize(("size", "is_aside"), [(LARGE_BYTES, False), (LARGE_BYTES + 1, True)])
def test_only_what_is_large_is_done_in_a_thread(size: int, *, is_aside: bool) -> None:
    async def body() -> None:
        there = await beside_the_loop(size, threading.get_ident)
        assert (there != threading.get_ident()) == is_aside

    asyncio.run(body())


@pytest.mark.parametrize("size", [0, LARGE_BYTES + 1])
def test_what_the_work_raises_is_raised_here(size: int) -> None:
    async def body() -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await beside_the_loop(size, int, "x", base=10)

    asyncio.run(body())
