"""How is a real gateway process started, watched and stopped?

Lives here: `python -m tidegate serve` with a configuration of its own in a folder of its own, its
log, its memory, its records. Does not live here: which configuration (configs).
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.ports import free_ports

SERVE = (sys.executable, "-m", "tidegate", "serve")
START_S = 60.0
STOP_S = 30.0
_POLL_S = 0.02


class CannotStart(RuntimeError):
    """The gateway did not come up; the text holds the end of its stderr."""


class Gateway:
    """One gateway process, to be entered with `with`. Every file it writes is in `folder`.

    `config` is the configuration without ports and paths; these are filled in unless they are
    there. `files` lie beside the configuration.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVE,
    ) -> None:
        self.port, self.admin_port = free_ports(2)
        self._folder = tempfile.TemporaryDirectory(prefix="casebook-gateway-")
        self.folder = Path(self._folder.name)
        self._environment = dict(environment or {})
        self._command = list(command)
        self.file = self.folder / "tidegate.yaml"
        self.write_config(config)
        for name, text in (files or {}).items():
            (self.folder / name).write_text(text)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[str] = []
        self._news = threading.Condition()

    @property
    def url(self) -> str:
        """http://127.0.0.1:port"""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All that it wrote to stderr so far."""
        return "\n".join(self._lines)

    def log_lines(self) -> int:
        """How many lines the log has: a mark for `log_since`."""
        return len(self._lines)

    def log_since(self, mark: int) -> str:
        """The log after a mark."""
        return "\n".join(self._lines[mark:])

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the file (JSON is YAML), with ports and paths of this process."""
        whole = json.loads(json.dumps(config))
        server = whole.setdefault("server", {})
        server.setdefault("host", "127.0.0.1")
        server["port"] = self.port
        server.setdefault("admin", {})["port"] = self.admin_port
        server.setdefault("drain_s", 1.0)
        whole.setdefault("store", {}).setdefault("url", "memory:")
        whole.setdefault("records", {}).setdefault("path", str(self.folder / "records.db"))
        whole.setdefault("telemetry", {}).setdefault("log", "json")
        self.file.write_text(json.dumps(whole, ensure_ascii=False, indent=1))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start it and wait until it is ready; raises CannotStart."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TIDEGATE_")}
        self._process = subprocess.Popen(
            [*self._command, "--config", str(self.file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=kept | self._environment,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,))
        self._reader.start()
        due_s = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > due_s:
                self.stop()
                raise CannotStart(" ".join(self.log.split())[-300:] or "no word on stderr")
            with self._news:
                self._news.wait(_POLL_S)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not end it."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_S)
        if self._reader is not None:
            self._reader.join(STOP_S)
        if process.stderr is not None:
            process.stderr.close()

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)

    def reset_peak(self) -> None:
        """Forget the highest memory so far (Linux)."""
        with suppress(OSError):
            Path(f"/proc/{self._pid()}/clear_refs").write_text("5")

    def peak_bytes(self) -> int | None:
        """The highest resident memory since then; None where the system does not tell."""
        return self._status("VmHWM")

    def resident_bytes(self) -> int | None:
        """Resident memory now."""
        return self._status("VmRSS")

    def open_files(self) -> int:
        """File descriptors of the process."""
        return len(list(Path(f"/proc/{self._pid()}/fd").iterdir()))

    def run(self, *arguments: str) -> str:
        """What another command prints with this configuration."""
        done = subprocess.run(
            [sys.executable, "-m", "tidegate", *arguments, "--config", str(self.file)],
            capture_output=True,
            timeout=STOP_S,
            check=False,
            cwd=self.folder,
        )
        return done.stdout.decode("utf-8", "replace")

    def record(self, request_id: str) -> dict[str, Any]:
        """The decision record of one request, as the command prints it."""
        value = json.loads(self.run("explain", "--json", request_id) or "{}")
        return value if isinstance(value, dict) else {}

    def database_text(self) -> str:
        """Every byte of every database file, for searching."""
        return "\n".join(
            path.read_bytes().decode("latin-1")
            for path in sorted(self.folder.iterdir())
            if path.is_file() and path != self.file
        )

    def metrics(self) -> str:
        """One scrape."""
        return http_get(self.admin_port, "/metrics").partition("\r\n\r\n")[2]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name with these labels."""
        total = 0.0
        for line in self.metrics().splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(
                f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()
            ):
                total += float(found[2])
        return total

    def _answers(self) -> bool:
        try:
            return " 200 " in http_get(self.admin_port, "/readyz").partition("\r\n")[0]
        except OSError:
            return False

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for raw in process.stderr:
            self._lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
            with self._news:
                self._news.notify_all()

    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _status(self, name: str) -> int | None:
        with suppress(OSError):
            text = Path(f"/proc/{self._pid()}/status").read_text()
            found = re.search(rf"{name}:\s+(\d+) kB", text)
            return int(found[1]) * 1024 if found else None
        return None


def http_get(port: int, path: str, *, timeout_s: float = 5.0) -> str:
    """One GET on loopback, the whole answer with its head; OSError if nobody answers."""
    with socket.create_connection(("127.0.0.1", port), timeout_s) as sock:
        sock.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
        )
        received = b""
        while data := sock.recv(65536):
            received += data
    return received.decode("utf-8", "replace")
