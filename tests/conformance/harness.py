"""How is the conformance harness run against a URL?

Lives here: where its packages lie (`make conformance` installs them into .venv/conformance from
package-lock.json), its command lines, and the bound of time of a run. Does not live here: what is
measured (fixture), whether it went well (judge).
"""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.judge import Check, Table, read_checks

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".venv" / "conformance" / "node_modules"
NODE = PLACE / "node" / "bin" / "node"
"""Node 22: neither version of the harness starts with an older one."""
LONGEST_S = 60.0
"""A whole run; a good server needs a tenth of it."""

_SCENARIO_MS = "5000"
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
    """Runs the harness; raises RuntimeError when it does not end in time or says nothing.

    Its own exit code is not asked: what it wrote is judged, check by check.
    """
    out, log = folder / "out", folder / "harness.log"
    script = PLACE / run.package / "dist" / "index.js"
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(script), "server", "--url", url, *run.options, "-o", str(out)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=written,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            async with asyncio.timeout(LONGEST_S):
                await process.wait()
        except TimeoutError:
            raise RuntimeError(f"{run.name} did not end within {LONGEST_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    checks = read_checks(out)
    if not checks:
        raise RuntimeError(f"{run.name} wrote no checks:\n{log.read_text()[-2000:]}")
    return checks
