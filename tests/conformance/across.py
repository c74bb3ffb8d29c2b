"""Does a client of one era pass the harness of its own revision in front of a server of the other?

Lives here: the fixture cut down to one era, the gateway that bridges to it, and what of each run
cannot pass: whatever a server would have to ask of its client. Does not live here: single-era runs
(__main__).
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.fixture import fixture
from tests.conformance.gateway import gateway
from tests.conformance.harness import RUNS, checks_of
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
_STREAMED = "sep-2575-http-server-no-independent-requests-on-stream"
"""Looks at a tool that asks."""


@dataclass(frozen=True)
class Across:
    """One run of the harness in front of a server of `era` alone; `total` checks succeed."""

    run: str
    era: str
    total: int


ACROSS = (
    Across("2025-03-26", "modern", 3),
    Across("2025-06-18", "modern", 54),
    Across("2025-11-25", "modern", 68),
    Across("0.1.16", "modern", 27),
    Across("2026-07-28", "legacy", 129),
)


async def across(one: Across) -> tuple[str, list[str]]:
    """A line that says how it went, and what is wrong with it."""
    run = next(run for run in RUNS if run.name == one.run)
    app = fixture().http_app()
    async with (
        app.running(),
        listening(only(app, one.era), bind(0)) as port,
        gateway(f"http://127.0.0.1:{port}/mcp") as front,
    ):
        with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
            checks = await checks_of(run, front, Path(folder))
    good = sum(check.status == "SUCCESS" for check in checks)
    name = f"{one.run} in front of a {one.era} server"
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
