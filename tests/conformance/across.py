"""Do clients pass the harness of their own revision in front of servers that are not as they are?

Lives here: the fixture cut down to one era, or as a process, the gateway that bridges to it, and
what of each run cannot pass: whatever a server would have to ask of its client. Does not live
here: single-era runs (__main__).
"""

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.fixture import fixture
from tests.conformance.gateway import gateway
from tests.conformance.harness import ROOT, RUNS, checks_of
from tests.wire.one_era import only
from tidegate.demo.listener import bind, listening

ASKING = frozenset(
    {
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "tools-call-elicitation",
        "tools-call-sampling",
    }
)
"""Scenarios in which a server asks its client."""
_ROUNDS = "input-required-result-"
_SERVE = ("-m", "tidegate", "mcp", "serve", "tests.conformance.fixture:server", "--errors", "spec")
_STREAMED = "sep-2575-http-server-no-independent-requests-on-stream"
"""Looks at a tool that asks."""


@dataclass(frozen=True)
class Across:
    """One run of the harness; `total` checks succeed.

    `era`: the server speaks that alone; `stdio`: both, as a process of the gateway's.
    """

    run: str
    era: str
    total: int


ACROSS = (
    Across("2025-03-26", "modern", 3),
    Across("2025-06-18", "modern", 54),
    Across("2025-11-25", "modern", 68),
    Across("0.1.16", "modern", 27),
    Across("2026-07-28", "legacy", 129),
    Across("2025-11-25", "stdio", 68),
    Across("2026-07-28", "stdio", 152),
)


@asynccontextmanager
async def behind(era: str) -> AsyncIterator[str]:
    """The URL of the gateway in front of the fixture."""
    if era == "stdio":
        # A process has next to nothing of our environment.
        process = {"command": [sys.executable, *_SERVE], "env": {"PYTHONPATH": str(ROOT)}}
        async with gateway(process) as front:
            yield front
        return
    app = fixture().http_app()
    async with (
        app.running(),
        listening(only(app, era), bind(0)) as port,
        gateway(f"http://127.0.0.1:{port}/mcp") as front,
    ):
        yield front


async def across(one: Across) -> tuple[str, list[str]]:
    """A line that says how it went, and what is wrong with it."""
    run = next(run for run in RUNS if run.name == one.run)
    async with behind(one.era) as front:
        with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
            checks = await checks_of(run, front, Path(folder))
    good = sum(check.status == "SUCCESS" for check in checks)
    name = f"{one.run} in front of a server ({one.era})"
    wrong = [
        f"{name}: {check.scenario} {check.id}: {check.message}"
        for check in checks
        if check.status == "FAILURE" and not _asks(check.scenario, check.id)
    ]
    if good != one.total:
        wrong.append(f"{name}: {good} checks passed instead of {one.total}")
    return f"{name}: {good}/{one.total}", wrong


def _asks(scenario: str, check_id: str) -> bool:
    return scenario in ASKING or scenario.startswith(_ROUNDS) or check_id == _STREAMED
