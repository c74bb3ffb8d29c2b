"""Does a value reach the upstream, or the client? Asked by the package pii-leak-benchmark.

Version 1 looks at what the upstream gets and whether the client gets its own values back.
Version 2 looks at the answer: values of the client have to come back, all others have to go,
however the stream is cut, and no piece of one may be shown before the rest is recognized.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.foreign.gateway import KEY, gateway
from tests.ports import free_port

TIMEOUT_S = 1_200.0


def _run(python: str, *arguments: str) -> None:
    environ = {**os.environ, "CONFORMANCE_TARGET_API_KEY": KEY}
    done = subprocess.run([python, *arguments], env=environ, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments[:4])} ended with {done.returncode}")


def version_1(python: str) -> None:
    """The published profile and the check for operators, with keys among the values."""
    control = subprocess.run(
        [
            python,
            "-m",
            "pii_leak_benchmark.cli",
            "selfcheck",
            "--target-base-url",
            "capture://self",
        ],
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if control.returncode != 1:
        raise SystemExit("the suite does not see a leak where there is no gateway")
    port = free_port()
    with gateway(f"http://127.0.0.1:{port}") as url, tempfile.TemporaryDirectory() as folder:
        target = ("--target-base-url", f"{url}/v1", "--capture-port", str(port))
        _run(python, "-m", "pii_leak_benchmark.cli", "selfcheck", *target)
        report = Path(folder) / "report.json"
        _run(python, "-m", "pii_leak_benchmark.cli", *target, "--json-out", str(report))
        if not json.loads(report.read_text())["passed"]:
            raise SystemExit("the published profile is not met")


def version_2(python: str, *, seed: str, oracle: str) -> None:
    """Cuts at every place of a value, and the tier of partial emission."""
    port = free_port()
    with gateway(f"http://127.0.0.1:{port}") as url, tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        _run(
            python, "-m", "pii_leak_benchmark.v2_cli", "--validate", "--partial-emission",
            "--out", folder, "--json-out", str(summary), "--only", "tidegate", "--seed", seed,
            "--gateway-url", f"{url}/v1/chat/completions", "--upstream-port", str(port),
            "--oracle", oracle,
        )  # fmt: skip
        (row,) = json.loads(summary.read_text())["rows"]
        partial = json.loads((Path(folder) / "tidegate.partial-emission.json").read_text())
        sys.stdout.write(json.dumps(row) + "\n")
        shown = partial["metrics"]["partial_emission_rate"]["overall"]
        if row["outcome"] != "pass" or shown != 0:
            raise SystemExit(f"version 2: {row['outcome']}, partial emission {shown}")


def main(python: str, *, thorough: bool) -> None:
    """Everything; `thorough` also tries all cuts in three."""
    version_1(python)
    version_2(python, seed="a1b2c3d4e5f60001", oracle="exhaustive-2-part")
    if thorough:
        version_2(python, seed="0f1e2d3c4b5a6978", oracle="union-worst-case")
