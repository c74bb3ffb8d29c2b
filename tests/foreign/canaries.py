"""Does any canary cross the boundary, and do all come back? Asked by the package canarywire.

Its OpenAI half: whole answers, tool calls, conversations, answers that are cut at every
character, and faults: a classifier beside the gateway that fails, and one that never answers. The
gateway restores, so every value has to come back in its place.
"""

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.foreign.gateway import START_S, gateway
from tests.ports import free_port

TIMEOUT_S = 600.0
LATE_S = 1.0
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


@contextmanager
def _classifier(folder: Path) -> Iterator[str]:
    """A webhook that finds nothing; it fails while `folder/fails` is there, and `folder/hangs`."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if (folder / "hangs").exists():
                ended.wait(4 * LATE_S)
            answer = json.dumps({"spans": [[] for _ in asked["texts"]]}).encode()
            self.send_response(500 if (folder / "fails").exists() else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            with suppress(OSError):  # whoever waited for a late answer has left
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing: the suite speaks."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/find"
    finally:
        ended.set()
        server.shutdown()
        thread.join(START_S)
        server.server_close()


def main(command: str, *, seeds: Iterable[int]) -> None:
    """Gateways that restore, and one that only masks; SystemExit if the boundary did not hold."""
    for seed in seeds:
        _run(command, duty="restore", seed=seed)
    _run(command, duty="mask-only", seed=1)


def _run(command: str, *, duty: str, seed: int) -> None:
    port = free_port()
    upstream = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory() as name,
        _capture(command, port, name),
        _classifier(Path(name)) as webhook,
        gateway(
            upstream,
            vault=duty == "restore",
            classifier={"url": webhook, "deadline_s": LATE_S, "late": "block"},
        ) as url,
    ):
        folder = Path(name)
        file = folder / "canarywire.yaml"
        file.write_text(json.dumps(_configuration(folder, upstream, url, duty=duty, seed=seed)))
        done = subprocess.run(
            [command, "run", "--config", str(file)], cwd=folder, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            report = folder / "out" / "report.md"
            text = report.read_text() if report.exists() else ""
            raise SystemExit(f"canarywire ended with {done.returncode}\n{text}")


def _configuration(
    folder: Path, upstream: str, target: str, *, duty: str, seed: int
) -> dict[str, Any]:
    faults = [
        {"name": f"classifier-{name}", "before": f"touch {folder / name}",
         "after": f"rm {folder / name}", "expect": ["refuse"]}
        for name in ("fails", "hangs")
    ]  # fmt: skip
    return {
        "seed": seed,
        "capture": {"url": upstream},
        "target": {"base_url": target, "duty": duty},
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
            "fault": {"enabled": True, "templates": ["default", "tool-calls"]},
        },
        "faults": faults,
        "report": {"dir": str(folder / "out")},
    }
