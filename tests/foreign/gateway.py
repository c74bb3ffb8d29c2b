"""What does a foreign suite measure? A real gateway on loopback, in front of the suite's capture.

Lives here: the configuration, the process. Every wait is bounded, and a process is
ended by its own handle. Does not live here: the suites.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_S = 60.0
KEY = "-".join(("key", "of", "the", "suites"))
_READY = re.compile(r"tidegate ready: http://\S+:(\d+)")

# Numbers from 900 on were never issued as SSN, so no preset masks them; the suite sends only such.
_NEVER_ISSUED = {"kind": "TAXPAYER", "regex": "9[0-9]{2}-[0-9]{2}-[0-9]{4}"}
REDACTION: dict[str, Any] = {
    "request": "enforce",
    "response": "enforce",
    "tool_arguments": "enforce",
    "vault": True,
    "detectors": {"phone": {"action": "mask", "regions": ["US"]}},
    "custom": [_NEVER_ISSUED],
}


@contextmanager
def gateway(upstream: str, **redaction: Any) -> Iterator[str]:
    """The base URL of a gateway whose only provider is `upstream`."""
    tree = {
        "server": {"port": 0, "admin": {"port": 0}},
        "store": {"url": "memory:"},
        "records": {"path": "records.db"},
        "identity": {
            "anonymous": {"principal": "guest", "tenant": "suite", "roles": ["guest"]},
            "keys": [{"key": KEY, "principal": "suite", "tenant": "suite", "roles": ["guest"]}],
        },
        "providers": {"capture": {"base_url": f"{upstream}/v1"}},
        # A capture that goes away between two cases must not decide what the next one gets.
        "routes": [
            {
                "name": "default",
                "candidates": [{"provider": "capture"}],
                "attempts": 1,
                "cooling": {"on_429_s": 0.0},
                "breaker": {"consecutive": 100_000, "min_results": 100_000},
            }
        ],
        "redaction": {**REDACTION, **redaction},
    }
    with tempfile.TemporaryDirectory(prefix="tidegate-foreign-") as folder:
        file = Path(folder) / "tidegate.yaml"
        file.write_text(json.dumps(tree))
        log = Path(folder) / "stderr"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "tidegate", "serve", "--config", str(file)],
                cwd=folder,
                env={**os.environ, "XDG_CONFIG_HOME": "/nowhere"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        try:
            yield f"http://127.0.0.1:{_port(process, log)}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(START_S)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that the gateway says it listens on."""
    while process.poll() is None:
        found = _READY.search(log.read_text())
        if found:
            return int(found[1])
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError(f"the gateway did not start:\n{log.read_text()}")
