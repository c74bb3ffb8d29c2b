"""Does any canary cross the boundary, and do all come back? Asked by the package canarywire.

Its OpenAI half: whole answers, tool calls, conversations, and answers that are cut at every
character. The gateway restores, so every value has to come back in its place.
"""

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.foreign.gateway import START_S, free_port, gateway

TIMEOUT_S = 600.0
_CHUNKS = {"sizes": [1, 2, 3, 4, 7], "phases": "all"}


@contextmanager
def _capture(command: str, port: int, folder: str) -> Iterator[None]:
    """The suite's own upstream."""
    process = subprocess.Popen(
        [command, "serve", "--listen", f"127.0.0.1:{port}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)


def main(command: str, *, seeds: Iterable[int]) -> None:
    """Gateways that restore, and one that only masks; SystemExit if the boundary did not hold."""
    for seed in seeds:
        _run(command, duty="restore", seed=seed)
    _run(command, duty="mask-only", seed=1)


def _run(command: str, *, duty: str, seed: int) -> None:
    port = free_port()
    upstream = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory() as folder,
        _capture(command, port, folder),
        gateway(upstream, vault=duty == "restore") as url,
    ):
        file = Path(folder) / "canarywire.yaml"
        tree = {
            "seed": seed,
            "capture": {"url": upstream},
            "target": {"base_url": url, "duty": duty},
            "timeouts": {"capture_connect": START_S},
            "generators": {
                "baseline": {"enabled": True},
                "fragmentation": {
                    "enabled": True,
                    "chunks": _CHUNKS,
                    "random_chunks": {"samples": 20},
                    "random_cuts": {"samples": 20},
                    "delay_ms": {"min": 0, "max": 1},
                },
            },
            "report": {"dir": f"{folder}/out"},
        }
        file.write_text(json.dumps(tree))
        done = subprocess.run(
            [command, "run", "--config", str(file)], cwd=folder, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            report = Path(folder) / "out" / "report.md"
            text = report.read_text() if report.exists() else ""
            raise SystemExit(f"canarywire ended with {done.returncode}\n{text}")
