"""How is the conformance harness run against a URL?

Lives here: where its packages lie (`make conformance` installs them into .venv/conformance from
package-lock.json), its command lines, and the bound of time of a run. Does not live here: what is
measured (fixture), whether it went well (judge).
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.judge import Check, Table, read_checks

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLACE = ROOT / ".venv" / "conformance" / "node_modules"
NODE = PLACE / "node" / "bin" / "node"
"""Node 22: neither version of the harness starts with an older one."""
LONGEST_S = 60.0
"""A whole run; a good server needs a tenth of it."""

_SCENARIO_MS, _CLIENT_MS = "5000", "20000"
_EXPECTED = HERE / "expected.json"


@dataclass(frozen=True)
class Run:
    """One call of the harness; `total` is what it prints when every check passed."""

    name: str
    package: str
    options: tuple[str, ...]
    total: int

    def only(self, scenario: str) -> "Run":
        """The same run of one scenario."""
        kept = self.options[self.options.index("--spec-version") :]
        return Run(self.name, self.package, ("--scenario", scenario, *kept), 0)


def _next(version: str, total: int) -> Run:
    options = ("--suite", "all", "--spec-version", version, "--timeout", _SCENARIO_MS)
    return Run(version, "conformance-next", options, total)


RUNS = (
    _next("2025-03-26", 3),
    _next("2025-06-18", 56),
    _next("2025-11-25", 84),
    _next("2026-07-28", 152),
    Run("0.1.16", "conformance-stable", ("--suite", "active"), 40),
)


def expected() -> dict[str, Table]:
    """The table of each run, by its name."""
    tables: dict[str, Table] = json.loads(_EXPECTED.read_text())
    return tables


def write_expected(tables: dict[str, Table]) -> None:
    """Keeps what was seen as what is expected from here on."""
    _EXPECTED.write_text(json.dumps(tables, indent=1, sort_keys=True) + "\n")


async def checks_of(run: Run, url: str, folder: Path) -> list[Check]:
    """Runs the harness against the server at `url`; see _checks."""
    return await _checks(run.package, ("server", "--url", url, *run.options), folder)


@dataclass(frozen=True)
class ClientRun:
    """Scenarios in which the harness is the server, and the bridge's client is judged."""

    name: str
    mode: str
    version: str
    scenarios: tuple[str, ...]
    total: int


CLIENT_RUNS = (
    ClientRun(
        "connect 2025-11-25",
        "legacy",
        "2025-11-25",
        ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
        11,
    ),
    ClientRun(
        "connect 2026-07-28",
        "2026-07-28",
        "2026-07-28",
        (
            "tools_call",
            "request-metadata",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "sep-2322-client-request-state",
            "json-schema-2020-12-preservation",
            "json-schema-ref-no-deref",
        ),
        62,
    ),
)


async def bridged_checks(run: ClientRun, folder: Path) -> list[Check]:
    """Runs the scenarios, two at a time; see _checks."""
    client = f"{sys.executable} -m tests.conformance.bridge_client {run.mode}"
    turns = asyncio.Semaphore(2)

    async def one(scenario: str) -> list[Check]:
        own = folder / scenario
        own.mkdir()
        options = ("--scenario", scenario, "--spec-version", run.version)
        bound = ("--timeout", _CLIENT_MS)
        async with turns:
            command = ("client", "--command", client, *options, *bound)
            return await _checks("conformance-next", command, own)

    found = await asyncio.gather(*map(one, run.scenarios))
    return [check for checks in found for check in checks]


async def _checks(package: str, command: tuple[str, ...], folder: Path) -> list[Check]:
    """What the harness wrote; raises RuntimeError when it does not end in time or says nothing.

    Its own exit code is not asked: what it wrote is judged, check by check.
    """
    out, log = folder / "out", folder / "harness.log"
    script = PLACE / package / "dist" / "index.js"
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(script), *command, "-o", str(out)),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=written,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            async with asyncio.timeout(LONGEST_S):
                await process.wait()
        except TimeoutError:
            raise RuntimeError(f"{command} did not end within {LONGEST_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    checks = read_checks(out)
    if not checks:
        raise RuntimeError(f"{command} wrote no checks:\n{log.read_text()[-2000:]}")
    return checks
