"""Did a run of the conformance harness go as it must?

A run is judged check by check: each id the expected number of times, each a success, and none that
is not expected; a harness that quietly runs less must not look like a success. Lives here: reading
what the harness wrote, the verdict. Does not live here: running it (__main__).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The harness calls a folder by the scenario and the time, behind "server-" if it asks a server;
# `INFO` is something seen, no verdict.
_FOLDER = re.compile(r"(?:server-)?(.+)-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z")
_UNJUDGED = "INFO"

Table = Mapping[str, Mapping[str, int]]
"""How often each check id is expected, by scenario."""


@dataclass(frozen=True)
class Check:
    scenario: str
    id: str
    status: str
    message: str = ""


def read_checks(folder: Path) -> list[Check]:
    """What the harness wrote into `folder`, without what is no verdict."""
    checks = []
    for file in sorted(folder.glob("*/checks.json")):
        named = _FOLDER.fullmatch(file.parent.name)
        scenario = named[1] if named else file.parent.name
        checks += [_check(scenario, item) for item in json.loads(file.read_text())]
    return [check for check in checks if check.status != _UNJUDGED]


def _check(scenario: str, item: Mapping[str, Any]) -> Check:
    return Check(scenario, item["id"], item["status"], str(item.get("errorMessage") or ""))


def counted(checks: Iterable[Check]) -> dict[str, dict[str, int]]:
    """How often each id stands in `checks`, by scenario, in order of their names."""
    counts = Counter((check.scenario, check.id) for check in checks)
    table: dict[str, dict[str, int]] = {}
    for (scenario, identifier), number in sorted(counts.items()):
        table.setdefault(scenario, {})[identifier] = number
    return table


def complaints(checks: list[Check], expected: Table) -> list[str]:
    """One sentence for everything that is not as it must be; none is a pass."""
    said = [
        f"{check.scenario}: {check.id}: {check.status} {check.message}".rstrip()
        for check in checks
        if check.status != "SUCCESS"
    ]
    found = counted(checks)
    for scenario in sorted(found.keys() | expected.keys()):
        here, there = found.get(scenario, {}), expected.get(scenario, {})
        said += [
            f"{scenario}: {identifier}: checked {here.get(identifier, 0)} times"
            f" instead of {there.get(identifier, 0)}"
            for identifier in sorted(here.keys() | there.keys())
            if here.get(identifier, 0) != there.get(identifier, 0)
        ]
    return said


def total(table: Table) -> int:
    """How many checks a table holds."""
    return sum(number for ids in table.values() for number in ids.values())
