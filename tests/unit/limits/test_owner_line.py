"""What does a worker say of an owner that is silent, and of one that speaks again?"""

import asyncio
import socket

import pytest

from tests.logged import logged
from tidegate.errors import StoreUnavailable
from tidegate.limits import owner_frames as frames
from tidegate.limits.owner_line import Line

WAIT_S = 0.05


def test_an_outage_is_one_line_and_its_end_another(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        ours, theirs = socket.socketpair()
        line = Line(ours, wait_s=WAIT_S, lost=lambda calls: None)
        asked = [line.submit(frames.Walk(())) for _ in range(3)]
        for one in asked:
            with pytest.raises(StoreUnavailable, match="in time"):
                await one
        assert line.degraded
        again = line.submit(frames.Walk(()))
        answers = (frames.Walked(()),) * 4
        theirs.sendall(frames.encode(frames.Answers(False, 0.0, answers)))
        await asyncio.wait((again,), timeout=5.0)
        assert not line.degraded
        line.close()
        theirs.close()

    asyncio.run(body())
    assert logged(caplog, "tidegate.limits.owner_line") == [
        "ledger_owner_silent",
        "ledger_owner_answers_again",
    ]
