"""Run the conformance harness: `python -m tests.conformance [RUN ...] [--write]`.

`make conformance` installs the harness and calls this. Every run is against a server of its own
that `tidegate mcp serve` serves, once directly and once through the gateway, where every check has
to come out the same; or of a client behind `tidegate mcp connect`. Then something is broken on
purpose in each of them, and the harness has to notice. `--write` expects from here on what is seen
in direct runs that have only successes.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.conformance.across import ACROSS, across
from tests.conformance.fixture import broken_front
from tests.conformance.gateway import gateway, losing
from tests.conformance.harness import (
    CLIENT_RUNS,
    NODE,
    RUNS,
    ClientRun,
    Run,
    bridged_checks,
    checks_of,
    expected,
    write_expected,
)
from tests.conformance.judge import Check, Table, complaints, counted, total
from tests.conformance.serving import served
from tidegate.demo.listener import bind, listening

GOOD, BROKEN_TOOL = (f"tests.conformance.fixture:{name}" for name in ("server", "broken"))
ALL_RUNS = (*RUNS, *CLIENT_RUNS)
TEETH = {
    "a tool that answers something else": ("tools-call-image", "tools-call-image"),
    "a front that does not ask who calls": (
        "dns-rebinding-protection",
        "localhost-host-rebinding-rejected",
    ),
    "a gateway that denies one tool": ("tools-call-image", "tools-call-image"),
    "a hop that loses one member": ("tools-call-error", "tools-call-error"),
}
"""What is broken, and the scenario and the one check that have to notice."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def measured(run: Run, url: str) -> list[Check]:
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
        return await checks_of(run, url, Path(folder))


async def bridged(run: ClientRun) -> list[Check]:
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
        checks = await bridged_checks(run, Path(folder))
    # What a client of this era or without this capability has no occasion to do; what the table
    # has and is skipped is missed all the same.
    return [check for check in checks if check.status != "SKIPPED"]


async def whole(
    run: Run | ClientRun, table: Table, *, behind: bool = False
) -> tuple[list[Check], list[str]]:
    """All checks of one run, and what is wrong with them; `behind` the gateway, or directly."""
    began = time.monotonic()
    name = f"{run.name} through the gateway" if behind else run.name
    if isinstance(run, ClientRun):
        checks = await bridged(run)
    elif behind:
        async with served(GOOD) as url, gateway(url) as front:
            checks = await measured(run, front)
    else:
        async with served(GOOD) as url:
            checks = await measured(run, url)
    wrong = complaints(checks, table)
    good = sum(check.status == "SUCCESS" for check in checks)
    say(f"{name}: {good}/{run.total} in {time.monotonic() - began:.1f} s")
    if good != run.total or total(table) != run.total:
        wrong.append(f"{good} checks passed, {total(table)} are in the table")
    return checks, [f"{name}: {line}" for line in wrong]


@asynccontextmanager
async def broken(what: str) -> AsyncIterator[str]:
    match what.split()[1]:
        case "tool":
            async with served(BROKEN_TOOL) as url:
                yield url
        case "front":
            async with broken_front() as app, listening(app, bind(0)) as port:
                yield f"http://127.0.0.1:{port}/mcp"
        case "gateway":
            async with served(GOOD) as url, gateway(url, denied=["test_image_content"]) as front:
                yield front
        case _:
            async with losing("isError") as url, gateway(url) as front:
                yield front


async def tooth(what: str, scenario: str, check_id: str) -> list[str]:
    """Nothing, if the harness notices; else the complaint that it does not."""
    run = next(run for run in RUNS if run.name == "2025-11-25").only(scenario)
    async with broken(what) as url:
        failed = [check.id for check in await measured(run, url) if check.status == "FAILURE"]
    say(f"{what}: {', '.join(failed) or 'not noticed'}")
    return [] if failed == [check_id] else [f"{what}: {scenario} should fail in {check_id}"]


async def everything(names: list[str], *, write: bool) -> int:
    seen: dict[str, Table] = {}
    wrong: list[str] = []
    tables = expected()
    for run in ALL_RUNS:
        if run.name not in (names or [run.name]):
            continue
        table = tables.get(run.name, {})
        runs = [whole(run, table)]
        if isinstance(run, Run):
            runs.append(whole(run, table, behind=True))
        (checks, found), *others = await asyncio.gather(*runs)
        if all(check.status == "SUCCESS" for check in checks):
            seen[run.name] = counted(checks)
        wrong += [*found, *(line for _, lines in others for line in lines)]
    for one in ACROSS:
        if not names:
            line, found = await across(one)
            say(line)
            wrong += found
    for what, (scenario, check_id) in TEETH.items():
        wrong += await tooth(what, scenario, check_id)
    for line in wrong:
        say(f"  {line}")
    if write:
        write_expected({**tables, **seen})
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "runs", nargs="*", choices=[*(run.name for run in ALL_RUNS), []], default=[]
    )
    parser.add_argument("--write", action="store_true", help="expect from here on what is seen")
    asked = parser.parse_args()
    if not NODE.exists():
        say("the harness is not installed: make conformance does it (it needs npm)")
        return 2
    # What servers in this process say about being asked for the impossible is no news here.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    return asyncio.run(everything(asked.runs, write=asked.write))


if __name__ == "__main__":
    sys.exit(main())
