"""Tools that write to stdout in every way there is, and such that do not end; for `mcp serve`.

Every piece of junk is "junk: <way>;" so that a test can count the ways.
"""

import asyncio
import atexit
import ctypes
import faulthandler
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any

from anyio import to_thread

from tidegate.tools import StrictInput, ToolServer, strict_tool

LIBC = ctypes.CDLL(None)
PYTHON_LIBC = ctypes.PyDLL(None)

WAYS = (
    "print at import",
    "os.write at import",
    "C puts at import",
    "print",
    "print on the first stdout",
    "os.write",
    "os.system",
    "a child",
    "a copy of the descriptor",
    "the device",
    "C puts",
    "logging",
    "a process of multiprocessing",
    "a thread after the end",
    "atexit",
    "C puts at exit",
)


def junk(way: str) -> str:
    return f"junk: {way};"


def c_puts(way: str) -> None:
    LIBC.puts(junk(way).encode())


def after_the_end() -> None:
    threading.main_thread().join()
    sys.stdout.write(junk("a thread after the end"))


def another_process() -> None:
    os.write(1, junk("a process of multiprocessing").encode())


class Nothing(StrictInput):
    """No arguments."""


@strict_tool
async def noisy(call: Nothing) -> str:
    """Writes to stdout in every way."""
    sys.stdout.write(junk("print"))
    assert sys.__stdout__ is not None
    sys.__stdout__.write(junk("print on the first stdout"))
    os.write(1, junk("os.write").encode())
    os.system(f"cat; echo '{junk('os.system')}'")  # noqa: S605
    child = f"import sys; print({junk('a child')!r}, repr(sys.stdin.read()))"
    subprocess.run([sys.executable, "-S", "-c", child], check=True)
    os.write(os.dup(1), junk("a copy of the descriptor").encode())
    with open("/dev/stdout", "w") as device:
        device.write(junk("the device"))
    c_puts("C puts")
    logging.getLogger("noisy").warning(junk("logging"))
    process = multiprocessing.get_context("fork").Process(target=another_process)
    process.start()
    process.join()
    faulthandler.dump_traceback(file=1)
    threading.Thread(target=after_the_end).start()
    return repr(sys.stdin.read())


def begun() -> None:
    os.write(2, b"begun\n")


@strict_tool
async def blocks_the_loop(call: Nothing) -> str:
    """Never gives the event loop back."""
    begun()
    time.sleep(600)
    return ""


@strict_tool
async def blocks_in_c(call: Nothing) -> str:
    """Waits in C, without the interpreter's lock."""
    begun()
    LIBC.sleep(600)
    return ""


@strict_tool
async def blocks_in_c_with_the_lock(call: Nothing) -> str:
    """Waits in C and keeps the interpreter's lock."""
    begun()
    PYTHON_LIBC.sleep(600)
    return ""


@strict_tool
async def blocks_a_thread(call: Nothing) -> str:
    """Waits for a thread that cannot be left."""
    begun()
    await to_thread.run_sync(time.sleep, 600)
    return ""


@strict_tool
async def blocks_a_thread_of_the_pool(call: Nothing) -> str:
    """Waits for a thread that can be left, but not at the end of the loop."""
    begun()
    await asyncio.to_thread(time.sleep, 600)
    return ""


@strict_tool
async def will_not_be_cancelled(call: Nothing) -> str:
    """Goes on whatever it is told."""
    begun()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())})


@strict_tool
async def leaves_a_thread(call: Nothing) -> str:
    """Answers, and a thread of it goes on for ever."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "left"


@strict_tool
async def leaves_a_process(call: Nothing) -> str:
    """Answers with the number of a forked process that goes on for ever."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    return str(pid)


@strict_tool
async def breaks_the_loop(call: Nothing) -> str:
    """Forks a process that tidies up the loop, whose descriptors it shares with ours."""
    loop: Any = asyncio.get_running_loop()
    pid = os.fork()
    if pid == 0:
        loop._remove_reader(loop._ssock)
        os._exit(0)
    os.waitpid(pid, 0)
    begun()
    return ""


@strict_tool
async def comes_back_twice(call: Nothing) -> str:
    """Forks a process that goes on as if it were the server."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return f"{pid > 0}"


def noise_at_import() -> None:
    faulthandler.enable(file=sys.stderr)
    logging.getLogger("noisy").addHandler(logging.StreamHandler(sys.stdout))
    sys.stdout.write(junk("print at import"))
    os.write(1, junk("os.write at import").encode())
    c_puts("C puts at import")
    atexit.register(print, junk("atexit"))
    atexit.register(c_puts, "C puts at exit")


tools = ToolServer(
    [
        noisy,
        blocks_the_loop,
        blocks_in_c,
        blocks_in_c_with_the_lock,
        blocks_a_thread,
        blocks_a_thread_of_the_pool,
        will_not_be_cancelled,
        leaves_a_thread,
        leaves_a_process,
        breaks_the_loop,
        comes_back_twice,
    ]
)
if multiprocessing.parent_process() is None and "pytest" not in sys.modules:
    noise_at_import()
