"""What comes of each way in which the primary can fail, for a stream and for a plain answer?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.wire.faults_expected import ROWS, Row
from tests.wire.faults_world import (
    MESSAGES,
    PATIENT,
    SHORT,
    FaultWorld,
    Got,
    counted,
    estimated_prompt,
    fault_world,
)
from tidegate.demo.faults import FAULTS
from tidegate.demo.faults_act import USAGE

pytestmark = pytest.mark.full

# The fast tier keeps one of each kind.
FAST = {
    ("ok", True),
    ("400", False),
    ("429", True),
    ("500", False),
    ("malformed", True),
    ("error-first", True),
    ("created-then-error", True),
    ("bad-chunk", True),
    ("cut", True),
    ("reset", False),
}
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
CELLS = [
    pytest.param(
        name,
        stream,
        loop,
        id=f"{name}-{'stream' if stream else 'plain'}-{loop}",
        marks=() if (name, stream) in FAST and loop == "asyncio" else pytest.mark.full,
    )
    for name in ROWS
    for stream in (True, False)
    for loop in LOOPS
]


def check_answer(got: Got, row: Row, *, stream: bool) -> None:
    seen = row.seen(stream=stream)
    code = got.error["code"] if got.error else None
    assert (got.status, got.headers.get("x-tidegate-attempts"), code) == (
        seen.status,
        seen.attempts,
        seen.code,
    )
    whole = {
        name: f"Hello from {name}. How may I help you today?" for name in ("primary", "backup")
    }
    if seen.text in whole:
        assert got.text == whole[seen.text]
        assert got.headers["x-tidegate-provider"] == seen.text
        assert got.is_done == stream
    elif seen.text == "half":
        # Words of one provider, none of the other, no made-up end.
        assert got.text.startswith("Hello from")
        assert "today" not in got.text
        assert (got.finishes, got.is_done) == ([], False)
        assert b"[DONE]" not in got.body
    else:
        assert got.text == ""
        assert "x-tidegate-provider" not in got.headers
        assert not got.is_stream
    if got.error is not None:
        assert set(got.error) == {"type", "code", "message", "request_id"}
        assert got.error["request_id"] == got.headers["x-request-id"]


async def check_traces(world: FaultWorld, got: Got, row: Row, *, stream: bool) -> None:
    seen = row.seen(stream=stream)
    assert world.calls == seen.calls
    books = await world.books()
    owed = {
        "": 0,
        "usage": USAGE["total_tokens"],
        "counted": estimated_prompt() + counted(got.text),
    }
    assert (books.used, books.reserved) == (owed[seen.charged], 0)
    assert world.verdict("primary") == seen.verdict
    assert world.verdict("backup") == ("good" if seen.text == "backup" else "")
    assert len(world.served.app._inboxes) == 0
    assert world.served.app.in_flight == 0


@pytest.mark.parametrize(("name", "stream", "loop"), CELLS)
def test_a_failure_of_the_primary_has_one_outcome(
    tmp_path: Path, name: str, loop: str, *, stream: bool
) -> None:
    row = ROWS[name]

    async def body() -> None:
        options: dict[str, Any] = dict(row.options)
        async with fault_world(tmp_path, deadlines=SHORT if row.waits else PATIENT) as world:
            await world.behave("primary", name, **options)
            got = await world.ask(stream=stream, messages=MESSAGES)
            check_answer(got, row, stream=stream)
            await check_traces(world, got, row, stream=stream)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(body())


def test_every_behavior_of_the_providers_has_a_row() -> None:
    assert list(ROWS) == list(FAULTS)
