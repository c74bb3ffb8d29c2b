"""What does the MCP gateway add to a call, beside a proxy that only passes bytes?

One server that answers at once stands behind all of them: asked directly, through a pass-through
proxy of 35 lines (uvicorn with uvloop and httptools, connections that are kept) on aiohttp, the
quickest client there is for Python, and one on httpx2, the usual one; through the gateway with
identity, rules, the decision record and redaction as they are by default, through the same without
redaction, and through fastmcp's proxy. They are asked by turns in one run, one request at a time;
what each adds is its median less the direct one, told as multiples of what either proxy adds. Then
16 at a time.
"""

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores, cpu_s, gateway
from bench.tools_client import LEGACY, MODERN, PEERS, READY, answer_of, hello, message

HERE = Path(__file__).parent
START_S = 30.0
AT_ONCE = 16
SLOW_SHARE = 20
"""A design named in SLOW gets one request where the others get so many."""
SLOW = ("fastmcp",)
UNITS = ("proxy", "proxy, httpx2")
KEY = "bench-viewer"
CONFIG = """
server: {{ admin: {{ port: 0 }} }}
identity:
  keys: [{{ key: {key}, principal: vera, tenant: acme, roles: [viewer] }}]
mcp:
  servers: {{ world: {{ url: "http://127.0.0.1:{port}/mcp", credential: bench-upstream }} }}
  rules:
    - {{ deny: {{ tools: ["admin_*"], unless_roles: [admin] }} }}
    - {{ allow: {{ roles: [viewer, admin] }} }}
{more}
"""
PLAIN = 'redaction: { tool_arguments: "off", tool_results: "off" }'
SMALL = ("tools/call", {"name": "small", "arguments": {"city": "Oslo", "count": 3}})
LARGE = ("tools/call", {"name": "large", "arguments": {"city": "Oslo", "count": 3}})
LANES = (
    ("call", MODERN, SMALL),
    ("call, session", LEGACY, SMALL),
    ("result of 10 kB", MODERN, LARGE),
    ("list of 50 tools", MODERN, ("tools/list", {})),
)


class Door:
    """One of the designs, from the client's side: where it listens and who works there."""

    def __init__(self, name: str, port: int, pids: tuple[int, ...]) -> None:
        self.name, self.port, self.pids = name, port, pids
        self._numbers = count(1)

    def connect(self) -> socket.socket:
        """A connection, once somebody accepts."""
        until = monotonic() + START_S
        while True:
            try:
                sock = socket.create_connection(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                if monotonic() > until:
                    raise
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock

    def session(self, sock: socket.socket) -> bytes:
        """Its header line, after the handshake of the older era."""
        sock.sendall(self._framed(hello(), b""))
        head, _ = answer_of(sock)
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        line = b"Mcp-Session-Id: %b\r\n" % fields[b"mcp-session-id"]
        sock.sendall(self._framed(READY, line))
        answer_of(sock)
        return line

    def request(self, era: str, asked: tuple[str, dict[str, object]], session: bytes) -> bytes:
        """The bytes of one request."""
        method, params = asked
        more = session + b"MCP-Protocol-Version: %b\r\n" % era.encode()
        if era == MODERN:
            more += b"Mcp-Method: %b\r\n" % method.encode()
            if "name" in params:
                more += b"Mcp-Name: %b\r\n" % str(params["name"]).encode()
        return self._framed(message(next(self._numbers), method, params, era), more)

    def cpu_s(self) -> float:
        """Processor time of whoever works here."""
        return sum(map(cpu_s, self.pids))

    def _framed(self, body: bytes, more: bytes) -> bytes:
        return (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\nAuthorization: Bearer %b\r\n"
            b"%bContent-Length: %d\r\n\r\n%b"
        ) % (self.port, KEY.encode(), more, len(body), body)


class Lane:
    """One door under one kind of request."""

    def __init__(self, door: Door, era: str, asked: tuple[str, dict[str, object]]) -> None:
        self.door, self.era, self._asked = door, era, asked
        self.times: list[float] = []
        self.rounds: list[float] = []
        self.rates: list[float] = []
        self.costs: list[float] = []
        with door.connect() as sock:
            self._session = door.session(sock) if era == LEGACY else b""

    def alone(self, requests: int) -> None:
        """So many, one at a time, on one connection that has served before."""
        took = []
        with self.door.connect() as sock:
            check(sock, self._request())
            for _ in range(requests):
                request = self._request()
                begin = perf_counter()
                sock.sendall(request)
                answer_of(sock)
                took.append(1e6 * (perf_counter() - begin))
        self.times += took
        self.rounds.append(median(took))

    def at_once(self, seconds: float) -> None:
        """AT_ONCE connections, each with one under way."""
        with ExitStack() as opened:
            socks = [opened.enter_context(self.door.connect()) for _ in range(AT_ONCE)]
            for sock in socks:
                check(sock, self._request())
            spent, begin, done = self.door.cpu_s(), perf_counter(), 0
            for sock in socks:
                sock.sendall(self._request())
            while perf_counter() - begin < seconds:
                for sock in socks:
                    answer_of(sock)
                    sock.sendall(self._request())
                done += AT_ONCE
            for sock in socks:
                answer_of(sock)
            done += AT_ONCE
            took = perf_counter() - begin
        self.rates.append(done / took)
        self.costs.append(1e6 * (self.door.cpu_s() - spent) / done)

    def p99(self) -> float:
        """Microseconds."""
        return quantiles(self.times, n=100)[98] if len(self.times) > 1 else self.times[0]

    def _request(self) -> bytes:
        return self.door.request(self.era, self._asked, self._session)


def check(sock: socket.socket, request: bytes) -> None:
    """Raises if the answer is not a result."""
    sock.sendall(request)
    head, body = answer_of(sock)
    if b" 200 " not in head[:16] or b'"result"' not in body:
        raise RuntimeError(f"{head!r} {body[:300]!r}")


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(around: ExitStack, python: Path, script: str, *args: object) -> int:
    """The process id of one of our scripts."""
    process = subprocess.Popen(  # noqa: S603 - our own commands
        [str(python), str(HERE / script), *map(str, args)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )
    around.callback(process.wait)
    around.callback(process.kill)
    return process.pid


def doors(around: ExitStack) -> Iterator[Door]:
    """The direct way, and each design in front of the same server."""
    own, port = Path(sys.executable), free_port()
    pid = started(around, own, "mcp_world.py", "server", port)
    yield Door("direct", port, (pid,))
    proxy = free_port()
    pid = started(around, own, "pass_through.py", proxy, port)
    yield Door("proxy", proxy, (pid,))
    for name, more in (("gateway", ""), ("no redaction", PLAIN)):
        process = around.enter_context(gateway(CONFIG.format(key=KEY, port=port, more=more)))
        yield Door(name, process.port, (process.pid,))
    if PEERS.exists():
        peer, usual = free_port(), free_port()
        pid = started(around, PEERS, "pass_through_httpx.py", usual, port)
        yield Door("proxy, httpx2", usual, (pid,))
        pid = started(around, PEERS, "mcp_world.py", "fastmcp", peer, port)
        yield Door("fastmcp", peer, (pid,))
    else:
        say("without bench/.venv (make bench makes it from bench/requirements.txt): no peers")


def measured(lanes: list[Lane], args: argparse.Namespace) -> None:
    """Everybody by turns; who goes first finds another machine than who goes last."""
    for number in range(-2, args.rounds):
        if number == 0:
            for lane in lanes:
                lane.times, lane.rounds = [], []
        for lane in lanes if number % 2 else reversed(lanes):
            slow = lane.door.name in SLOW
            lane.alone(max(2, args.block // SLOW_SHARE) if slow else args.block)
    for number in range(args.rates):
        for lane in lanes if number % 2 else reversed(lanes):
            lane.at_once(0.5)


def show(title: str, era: str, lanes: list[Lane]) -> None:
    """One line for each design."""
    named = {lane.door.name: lane for lane in lanes}
    direct, units = named["direct"], [named[name] for name in UNITS if name in named]
    for lane in lanes:
        added = median(lane.times) - median(direct.times)
        line = f"{title:17} {era}  {lane.door.name:13} {median(lane.times):7.0f} us"
        line += f"  p99 {lane.p99():7.0f}  added {added:7.0f}"
        for unit in units:
            ratio = added / (median(unit.times) - median(direct.times))
            line += f" = {ratio:6.2f} ({spread(lane, direct, unit)})"
        if lane.rates:
            line += f"   {median(lane.rates):6.0f}/s  CPU {median(lane.costs):6.0f} us"
        say(line)


def spread(lane: Lane, direct: Lane, unit: Lane) -> str:
    """The middle half of the ratios of single rounds."""
    rounds = zip(lane.rounds, direct.rounds, unit.rounds, strict=True)
    ratios = [(own - base) / (one - base) for own, base, one in rounds if one > base]
    if len(ratios) < 2:
        return "?"
    low, _, high = quantiles(ratios, n=4)
    return f"{low:.2f}-{high:.2f}"


def say(line: str) -> None:
    """On stdout."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Every lane."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each design")
    parser.add_argument("--block", type=int, default=40, help="requests in a turn")
    parser.add_argument("--rates", type=int, default=5, help="turns of half a second, 16 at once")
    parser.add_argument("--only", default="", help="the lanes whose title contains this")
    args = parser.parse_args()
    say("added: what it adds to the direct way = multiples of the proxies on aiohttp and httpx2")
    say(f"{cores()}, load {os.getloadavg()[0]:.1f}, {args.rounds} turns of {args.block} requests")
    with ExitStack() as around:
        found = list(doors(around))
        for title, era, asked in LANES:
            if args.only in title:
                lanes = [Lane(door, era, asked) for door in found]
                measured(lanes, args)
                show(title, era, lanes)
    say(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
