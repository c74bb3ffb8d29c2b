"""Does the last resort end the process once, with its farewell, and only when it was armed?"""

import os
import socket
from functools import partial
from threading import Event

import pytest

from tidegate.tools.ends import HardEnd

SOON_S = 0.001
WAIT_S = 5.0


class Process:
    """What the last resort ends."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.over = Event()

    def leave(self, code: int) -> None:
        self.codes.append(code)
        self.over.set()


def test_once_armed_it_says_farewell_and_ends_the_process_with_the_first_code() -> None:
    process, said = Process(), []
    with HardEnd(after_s=SOON_S, leave=process.leave) as end:
        end.farewell = lambda: said.append(list(process.codes))
        end.arm(7)
        end.arm(8)
        assert process.over.wait(WAIT_S)
    assert process.codes == [7]
    assert said == [[]]


def test_a_farewell_that_cannot_be_said_ends_it_all_the_same() -> None:
    def broken() -> None:
        raise BrokenPipeError

    process = Process()
    with HardEnd(after_s=SOON_S, leave=process.leave) as end:
        end.farewell = broken
        end.arm()
        assert process.over.wait(WAIT_S)


def test_when_the_block_is_left_in_time_nothing_ends() -> None:
    process = Process()
    with HardEnd(after_s=WAIT_S, leave=process.leave) as end:
        end.arm()
    end.arm()
    assert not process.over.is_set()
    with HardEnd(after_s=SOON_S, leave=process.leave):
        pass
    assert process.codes == []


def test_one_that_stays_does_not_care_that_the_block_was_left() -> None:
    process, said = Process(), []
    with HardEnd(stays=True, after_s=SOON_S, leave=process.leave) as end:
        end.farewell = lambda: said.append(1)
    end.arm()
    assert process.over.wait(WAIT_S)
    # Whom the farewell was for has got everything.
    assert said == []


@pytest.mark.parametrize("how", ["a pipe", "a socket", "half a socket"])
def test_it_is_armed_when_the_other_end_is_closed_although_nobody_reads(how: str) -> None:
    process = Process()
    if how == "a pipe":
        reading, writing = os.pipe()
        close = partial(os.close, writing)
    else:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"not read")
        reading = ours.detach()
        close = theirs.close if how == "a socket" else partial(theirs.shutdown, socket.SHUT_WR)
    with HardEnd(after_s=SOON_S, leave=process.leave) as end:
        end.watch(reading)
        assert not process.over.is_set()
        close()
        assert process.over.wait(WAIT_S)
    os.close(reading)
    if how == "half a socket":
        theirs.close()
