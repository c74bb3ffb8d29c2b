"""What does a stdio server do with the lines of a case?

Lives here: one real process on pipes, its handshake, what is written, closed and signaled when,
and everything that comes back. Does not live here: what is right (rules).
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.casebook import generate, toolkit
from tests.casebook.cases import KNOWN_CUSTOMER, Case
from tests.casebook.seen import Reply, Seen, Talk, parsed

ANSWER_S = 30.0
EXIT_S = 45.0
# Ids of the runner's own requests; their answers are not part of the conversation.
OWN = "casebook:"
_VERSION = "2025-06-18"
_TICKS = os.sysconf("SC_CLK_TCK")


class CannotRun(RuntimeError):
    """The case could not be brought to the point where it is judged."""


def run(case: Case, *, profile: str = "brief") -> Seen:
    """Play the case against a fresh server. Takes about a second: the server's start."""
    seen = Seen(case, profile)
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        data, target = _prepare(case, Path(folder))
        command = [sys.executable, "-m", "tidegate", "mcp", "serve", *target]
        if profile == "spec":
            command += ["--errors", "spec"]
        with Server(command, Path(folder)) as server:
            _converse(case, server, data, seen.talk)
    return seen


def _prepare(case: Case, folder: Path) -> tuple[bytes, list[str]]:
    """The bytes to write, and the module to serve if the case needs a tool of its own."""
    data = b"".join(base64.b64decode(part) for part in case.input.get("send_b64", []))
    tools: dict[str, str] = {}
    lines: list[str] = []
    for line in case.input.get("send", []):
        if line == "$GENERATED":
            made = generate.lines(str(case.input.get("generate", "")))
            lines += made.lines
            tools |= made.tools
        else:
            lines.append(line)
    data += "".join(f"{line}\n" for line in lines).encode()
    data += str(case.input.get("send_raw", "")).encode()
    if "tool_under_test" in case.input:
        requests = [value for line in lines if isinstance(value := parsed(line), dict)]
        for name in toolkit.called_tools(requests):
            tools.setdefault(name, toolkit.body(str(case.input["tool_under_test"])))
    if not tools:
        return data, []
    (folder / "casebook_tools.py").write_text(toolkit.module(tools))
    return data, ["casebook_tools:server"]


def _converse(case: Case, server: "Server", data: bytes, talk: Talk) -> None:
    if case.input.get("handshake", True):
        server.handshake(talk)
    talk.sent = data.splitlines()
    server.written_s = time.monotonic()
    server.write(data)
    then = str(case.input.get("then", ""))
    if re.search(r"eof at once|closes? (stdin )?(at once|immediately|right away)", then):
        server.close_stdin()
    else:
        _settle(case, server, talk)
        _end(then, server)
    server.wait(talk)
    for at_s, line in server.lines:
        message = parsed(line)
        if not isinstance(message, dict | list) or not _is_rpc(message):
            talk.impure.append(line)
        for single in message if isinstance(message, list) else [message]:
            own = isinstance(single, dict) and str(single.get("id")).startswith(OWN)
            if isinstance(single, dict) and not own and "method" not in single:
                talk.replies.append(Reply(line, single, at_s - server.written_s))
    talk.stderr = server.stderr.decode("utf-8", "replace")


def _settle(case: Case, server: "Server", talk: Talk) -> None:
    """Wait for the answers that are due, see whether it runs, and what became of the money."""
    wanted = [value["id"] for value in talk.requests() if value["id"] is not None]
    if case.input.get("handshake", True):
        with suppress(CannotRun):
            server.ask("ping", {}, "alive")
            for identifier in wanted:
                server.answer(identifier)
    talk.running = server.ended_s is None
    if talk.running and talk.refunded is not None:
        with suppress(CannotRun):
            talk.refunded = _difference(talk.refunded, server.balance("after"))


def _end(then: str, server: "Server") -> None:
    for name in re.findall(r"\b(SIGTERM|SIGINT|SIGHUP|SIGKILL)\b", then, re.IGNORECASE):
        server.closed_s = time.monotonic()
        os.kill(server.process.pid, getattr(signal, name.upper()))
        return
    server.close_stdin()


def _difference(before: str, after: str) -> str:
    cents = round(float(before) * 100) - round(float(after) * 100)
    return f"{cents / 100:.2f}"


def _is_rpc(message: Any) -> bool:
    singles = message if isinstance(message, list) else [message]
    return bool(singles) and all(
        isinstance(single, dict)
        and single.get("jsonrpc") == "2.0"
        and (("result" in single) + ("error" in single) + ("method" in single)) == 1
        for single in singles
    )


class Server:
    """One server process. Two threads read, one waits for its end."""

    def __init__(self, command: list[str], folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=kept,
        )
        self.lines: list[tuple[float, str]] = []
        self.stderr = b""
        self.written_s = self.closed_s = time.monotonic()
        self.ended_s: float | None = None
        self._exit = 0
        self._used_s = 0.0
        self._idle_from_s = 0.0
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._read_lines),
            threading.Thread(target=self._read_errors),
            threading.Thread(target=self._reap),
        ]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """To its stdin, whole."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any], name: str) -> dict[str, Any]:
        """One request of our own, answered."""
        message = {"jsonrpc": "2.0", "id": OWN + name, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        return self.answer(OWN + name)

    def answer(self, identifier: object) -> dict[str, Any]:
        """The answer with that id; raises CannotRun if it does not come."""
        at = 0
        due_s = time.monotonic() + ANSWER_S
        with self._changed:
            while True:
                for _, line in self.lines[at:]:
                    for single in _singles(line):
                        if single.get("id") == identifier and "method" not in single:
                            return single
                at = len(self.lines)
                left_s = due_s - time.monotonic()
                if self.ended_s is not None or left_s <= 0:
                    raise CannotRun(f"no answer to {identifier!r}; stderr: {self._tail()}")
                self._changed.wait(left_s)

    def handshake(self, talk: Talk) -> None:
        """Initialize, the list of tools, and the balance before anything is refunded."""
        client = {"name": "casebook", "version": "1"}
        params = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}
        self.ask("initialize", params, "initialize")
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        listed = self.ask("tools/list", {}, "tools").get("result", {})
        talk.tools = listed.get("tools", [])
        if any(tool.get("name") == "get_customer_record" for tool in talk.tools):
            talk.refunded = self.balance("before")
        self._idle_from_s = _cpu_s(self.process.pid)

    def balance(self, name: str) -> str:
        """What the known customer can still be refunded."""
        arguments = {"customer_id": KNOWN_CUSTOMER}
        params = {"name": "get_customer_record", "arguments": arguments}
        answer = self.ask("tools/call", params, name)
        record = answer.get("result", {}).get("structuredContent", {})
        return str(record.get("balance", "nan"))

    def close_stdin(self) -> None:
        """The client is gone."""
        assert self.process.stdin is not None
        self.closed_s = time.monotonic()
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def wait(self, talk: Talk) -> None:
        """Until it has ended; it is killed when that takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended_s is not None, EXIT_S)
        if self.ended_s is None:
            talk.exit_code = talk.exit_after_s = None
            return
        for thread in self._threads:
            thread.join(EXIT_S)
        talk.exit_code = self._exit
        talk.exit_after_s = self.ended_s - self.closed_s
        talk.cpu_s = max(0.0, self._used_s - self._idle_from_s)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.ended_s is None:
            self.process.kill()
        for thread in self._threads:
            thread.join(EXIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            with self._changed:
                self.lines.append((time.monotonic(), raw.decode("utf-8", "replace").rstrip("\n")))
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            self.stderr += raw

    def _reap(self) -> None:
        _, status, usage = os.wait4(self.process.pid, 0)
        with self._changed:
            self._exit = os.waitstatus_to_exitcode(status)
            self.process.returncode = self._exit
            self._used_s = usage.ru_utime + usage.ru_stime
            self.ended_s = time.monotonic()
            self._changed.notify_all()

    def _tail(self) -> str:
        return self.stderr[-300:].decode("utf-8", "replace").strip()


def _singles(line: str) -> list[dict[str, Any]]:
    value = parsed(line)
    singles = value if isinstance(value, list) else [value]
    return [single for single in singles if isinstance(single, dict)]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
