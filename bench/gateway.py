"""How is a gateway process started and asked, for a measurement?"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Process:
    """A running gateway: its port, the seconds it took to say so, its process id."""

    port: int
    started_in_s: float
    pid: int

    def resident_mb(self) -> float:
        """Resident memory in megabytes; 0.0 where the system does not tell."""
        status = Path(f"/proc/{self.pid}/status")
        if not status.exists():
            return 0.0
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextmanager
def gateway(config: str) -> Iterator[Process]:
    """`tidegate serve` on the configuration text `config`, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tidegate.yaml"
        path.write_text(config)
        begin = perf_counter()
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "tidegate", "serve", "--config", str(path), "--port", "0"],
            cwd=folder,
            env={**os.environ, "TIDEGATE_LOG": "json"},
            stderr=subprocess.PIPE,
        )
        try:
            port = _port(process)
            started_in_s = perf_counter() - begin
            # Somebody has to read the log, or the gateway stands still when the pipe is full.
            Thread(target=_drain, args=(process,), daemon=True).start()
            yield Process(port, started_in_s, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _port(process: subprocess.Popen[bytes]) -> int:
    for line in process.stderr or ():
        event = json.loads(line) if line.startswith(b"{") else {}
        if event.get("event") == "ready" and event.get("listener") == "main":
            return int(event["port"])
    raise RuntimeError("the gateway did not start")


def _drain(process: subprocess.Popen[bytes]) -> None:
    for _ in process.stderr or ():
        pass


def ask(connection: http.client.HTTPConnection, path: str, body: bytes) -> float:
    """Seconds that one POST took, answer read whole."""
    begin = perf_counter()
    connection.request("POST", path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}")
    return perf_counter() - begin


def paired(name: str, ours: list[float], base: list[float], unit: str = "ms") -> str:
    """One line: both medians and their ratio."""
    mine, other = median(ours), median(base)
    return f"{name:<28} {mine:9.2f} {unit}  against {other:9.2f} {unit}   ratio {mine / other:6.2f}"


def cpu_s(pid: int) -> float:
    """Processor time that a process has used; 0.0 where the system does not tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cores() -> str:
    """How much machine this was, for the heading."""
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}"
