"""How are the tool servers of bench_tools.py started and asked, all of them alike?

Lives here: a client that costs as little as it can, over pipes and over sockets, in both eras of
MCP. Does not live here: what is compared.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from bench.gateway import cpu_s

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "bench" / ".venv" / "bin" / "python"
OURS = "bench.tools_ours:server"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
IN_FLIGHT = 8
START_S = 20.0
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_customer_record", {"customer_id": "CUST-00042"}),
    (
        "trigger_refund",
        {"customer_id": "CUST-00042", "amount": 12.5, "reason": "the parcel came late"},
    ),
)


def message(number: int, method: str, params: dict[str, Any], era: str) -> bytes:
    """One request; of the modern era with all that it must carry."""
    if era == MODERN:
        about = "io.modelcontextprotocol/"
        meta = {f"{about}protocolVersion": MODERN, f"{about}clientCapabilities": {}}
        params = {**params, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(body).encode()


def hello() -> bytes:
    """The handshake of the older era."""
    info = {"name": "bench", "version": "1"}
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
    return message(0, "initialize", params, LEGACY)


READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def command(design: str, where: str) -> list[str]:
    """What starts a server on stdio or on a port."""
    if design != "ours":
        return [str(PEERS), str(ROOT / "bench" / "tools_peer.py"), design, where]
    ours = [sys.executable, "-m", "tidegate", "mcp", "serve", OURS]
    return ours if where == "stdio" else [*ours, "--http", f"127.0.0.1:{where}"]


class Served:
    """One server in a process of its own, and its client."""

    def __init__(self, design: str, where: str, era: str, around: ExitStack) -> None:
        self.design, self.era = design, era
        self._numbers = count(1)
        self.process = around.enter_context(
            subprocess.Popen(  # noqa: S603 - our own commands
                command(design, where),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        )
        around.callback(self.process.kill)

    def turn(self, seconds: float) -> tuple[float, float]:
        """Calls a second, and the processor time of the server for one, in microseconds."""
        before, began = cpu_s(self.process.pid), perf_counter()
        calls = self._calls(began + seconds)
        took = perf_counter() - began
        return calls / took, 1e6 * (cpu_s(self.process.pid) - before) / calls

    def next_call(self) -> tuple[str, bytes]:
        """The tool's name and the message, the two tools by turns."""
        number = next(self._numbers)
        name, arguments = CALLS[number % 2]
        params = {"name": name, "arguments": arguments}
        return name, message(number, "tools/call", params, self.era)

    def check(self, answer: bytes) -> None:
        """Raises if this is not the record that was asked for."""
        said = answer.replace(b"\\", b"")
        if b'"tier":' not in said and b'"refunded":' not in said:
            raise RuntimeError(f"{self.design}, {self.era}: {answer[:300]!r}")

    def _calls(self, until: float) -> int:
        raise NotImplementedError


class OverPipes(Served):
    """IN_FLIGHT calls under way at any time."""

    def __init__(self, design: str, era: str, around: ExitStack) -> None:
        super().__init__(design, "stdio", era, around)
        if era == LEGACY:
            self._write(hello())
            self._read()
            self._write(READY)
        self._write(self.next_call()[1])
        self.check(self._read())

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101 - a pipe was asked for
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def _read(self) -> bytes:
        assert self.process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self.process.stdout.readline()

    def _calls(self, until: float) -> int:
        for _ in range(IN_FLIGHT):
            self._write(self.next_call()[1])
        done = 0
        while perf_counter() < until:
            self.check(self._read())
            done += 1
            self._write(self.next_call()[1])
        for _ in range(IN_FLIGHT):
            self._read()
        return done + IN_FLIGHT


class OverHttp(Served):
    """IN_FLIGHT connections, each with one call under way at any time."""

    def __init__(self, design: str, era: str, around: ExitStack) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        super().__init__(design, str(self._port), era, around)
        self._session = b""
        with self._connect(monotonic() + START_S) as sock:
            if era == LEGACY:
                head, _ = self._ask(sock, hello(), b"")
                fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
                named = {name.lower(): value for name, value in fields.items()}
                self._session = b"Mcp-Session-Id: %b\r\n" % named[b"mcp-session-id"]
                self._ask(sock, READY, b"")
            name, body = self.next_call()
            self.check(self._ask(sock, body, self._about(name))[1])

    def _connect(self, until: float) -> socket.socket:
        while True:
            try:
                sock = socket.create_connection(("127.0.0.1", self._port))
            except ConnectionRefusedError:
                if monotonic() > until or self.process.poll() is not None:
                    raise
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock

    def _about(self, name: str) -> bytes:
        if self.era == LEGACY:
            return b""
        return b"Mcp-Method: tools/call\r\nMcp-Name: %b\r\n" % name.encode()

    def _send(self, sock: socket.socket, body: bytes, about: bytes) -> None:
        head = (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: %b\r\n"
            b"%b%bContent-Length: %d\r\n\r\n"
        )
        fields = (self._port, self.era.encode(), self._session, about, len(body))
        sock.sendall(head % fields + body)

    def _ask(self, sock: socket.socket, body: bytes, about: bytes) -> tuple[bytes, bytes]:
        self._send(sock, body, about)
        return answer_of(sock)

    def _calls(self, until: float) -> int:
        # Anew each turn: a server may close what was idle while others had theirs.
        with ExitStack() as opened:
            socks = [opened.enter_context(self._connect(0.0)) for _ in range(IN_FLIGHT)]
            return self._calls_on(socks, until)

    def _calls_on(self, socks: list[socket.socket], until: float) -> int:
        for sock in socks:
            name, body = self.next_call()
            self._send(sock, body, self._about(name))
        done = 0
        while perf_counter() < until:
            for sock in socks:
                self.check(answer_of(sock)[1])
                name, body = self.next_call()
                self._send(sock, body, self._about(name))
            done += IN_FLIGHT
        for sock in socks:
            answer_of(sock)
        return done + IN_FLIGHT


def answer_of(sock: socket.socket) -> tuple[bytes, bytes]:
    """The head and the body of one answer, whichever way its length is told."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(sock)
    head, body = data.split(b"\r\n\r\n", 1)
    told = head.lower()
    if b"\r\ntransfer-encoding: chunked" in told:
        while not body.endswith(b"0\r\n\r\n"):
            body += received(sock)
    elif (place := told.find(b"\r\ncontent-length:")) >= 0:
        size = int(told[place + 17 :].split(b"\r\n", 1)[0])
        while len(body) < size:
            body += received(sock)
    return head, body


def received(sock: socket.socket) -> bytes:
    """What has come; raises when nothing comes any more."""
    data = sock.recv(65536)
    if not data:
        raise RuntimeError("the server closed the connection")
    return data
