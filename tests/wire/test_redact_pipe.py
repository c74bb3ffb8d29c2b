"""Does `tidegate redact` behave in a pipe: cut bytes, flat memory, readers that leave, signals?"""

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate.redaction import RedactionPolicy

COMMAND = [sys.executable, "-m", "tidegate", "redact", "--preset", "default"]
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
WAIT_S = 60.0  # a whole process, on a machine that is busy with other tests
MB = 1 << 20
FOUND = (
    "It is a truth universally acknowledged, that a caf\u00e9 in want of customers must write to "
    "jane.doe@example.com, and whoever pays there with 4111 1111 1111 1111 is \U0001f600 happy.\n"
)
PLAIN = (
    "However little known the feelings or views of such a man may be on his first entering a "
    "neighborhood, this truth is so well fixed in the minds of the surrounding families, that he "
    "is considered the rightful property of some one or other of their daughters.\n"
)
TEXT = (FOUND + PLAIN * 3) * 20


@contextmanager
def started() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=BUFFERED,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def fed(child: "subprocess.Popen[bytes]", block: bytes, times: int) -> threading.Thread:
    """Writes `block` so many times from a thread of its own, then closes the pipe."""

    def write() -> None:
        assert child.stdin is not None
        with child.stdin as pipe:
            for _ in range(times):
                pipe.write(block)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@pytest.mark.full
def test_characters_that_are_cut_between_two_reads_stay_whole() -> None:
    data = TEXT.encode()
    expected = RedactionPolicy.preset("default").redact(TEXT).text.encode()
    with started() as child:
        assert child.stdin is not None
        for place in range(0, len(data), 4099):
            child.stdin.write(data[place : place + 4099])
            child.stdin.flush()
        out, err = child.communicate(timeout=WAIT_S)
    assert (out, err, child.returncode) == (expected, b"", 0)


def test_what_can_leave_leaves_before_the_input_ends() -> None:
    with started() as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"to jane@example.com, then\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"to [REDACTED_EMAIL], then\n"


@pytest.mark.full
def test_a_reader_that_leaves_is_no_news() -> None:
    with started() as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stdin is not None
        try:
            while True:
                child.stdin.write(TEXT.encode())
        except BrokenPipeError:
            pass
        assert child.stderr is not None
        assert (child.wait(WAIT_S), child.stderr.read()) == (1, b"")


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, -15, marks=pytest.mark.full)],
)
def test_an_interrupted_filter_shows_nothing_of_what_it_holds(number: int, code: int) -> None:
    with started() as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"known, jane.doe@exam")
        child.stdin.flush()
        assert child.stdout.read1(64) == b"known, "
        child.send_signal(number)
        out, err = child.communicate(timeout=WAIT_S)
    assert (out, child.returncode) == (b"", code)
    assert b"jane" not in err


@pytest.mark.full
def test_a_gigabyte_passes_in_flat_memory() -> None:
    """1 GB in blocks whose length is no multiple of what is read at once."""
    text = FOUND + PLAIN * 80 + "x"
    block = text.encode()
    once = RedactionPolicy.preset("default").redact(text).text.encode()
    times = (1 << 30) // len(block) + 1
    expected, received, size = hashlib.sha256(), hashlib.sha256(), 0
    early_kb = late_kb = 0
    with started() as child:
        writer = fed(child, block, times)
        assert child.stdout is not None
        while data := child.stdout.read1(MB):
            received.update(data)
            size += len(data)
            if early_kb == 0 and size > 64 * MB:
                early_kb = resident_kb(child.pid)
            if size > (times - 1000) * len(once) and late_kb == 0:
                late_kb = resident_kb(child.pid)
        writer.join(WAIT_S)
        assert child.wait(WAIT_S) == 0
    for _ in range(times):
        expected.update(once)
    assert (size, received.digest()) == (times * len(once), expected.digest())
    assert 0 < late_kb <= early_kb + 2048
