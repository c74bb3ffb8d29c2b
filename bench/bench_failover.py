"""What does it cost when a provider fails, hangs, or is known to be dead?

Three questions in one run. A failed call and then a good one, against the two asked for one after
the other: both through the gateway, on a route that only fails and on one that only succeeds,
because a failover saves a second way through the gateway and must not spend it on something
else; and both straight to the provider, for what a client without a gateway would pay. The time
at which a hanging target is given up, against a timer of this process. And a request whose first
target is open, against the same route without that target.
"""

import asyncio
import http.client
import json
import select
import sys
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores, gateway, paired

PATH = "/v1/chat/completions"
ROUNDS, WARM = 400, 30
HUNG, DEADLINE_S = 80, 0.2
OPEN_S, OPEN_FOR_S = 1.0, 8.0
CONFIG = """
server: {{ admin: {{ port: 0 }} }}
identity: {{ anonymous: {{ principal: guest, tenant: demo, roles: [guest] }} }}
limits: [{{ name: much, per: tenant, tokens: 1000000000000, window_s: 60.0 }}]
providers:
  good: {{ base_url: "http://127.0.0.1:{port}/good/v1" }}
  bad: {{ base_url: "http://127.0.0.1:{port}/bad/v1" }}
  hung: {{ base_url: "http://127.0.0.1:{port}/hung/v1" }}
  dead: {{ base_url: "http://127.0.0.1:{port}/dead/v1" }}
routes:
  - {{ name: good, model: good, candidates: [{{ provider: good }}] }}
  - {{ name: bad, model: bad, candidates: [{{ provider: bad }}], breaker: {never} }}
  - name: over
    model: over
    candidates: [{{ provider: bad }}, {{ provider: good }}]
    breaker: {never}
  - name: hung
    model: hung
    candidates: [{{ provider: hung }}, {{ provider: good }}]
    deadlines: {{ first_token_s: {deadline} }}
    breaker: {never}
  - name: open
    model: open
    candidates: [{{ provider: dead }}, {{ provider: good }}]
    breaker: {{ open_s: {open_s}, max_open_s: {open_s} }}
"""
NEVER = "{ consecutive: 1000000, min_results: 1000000 }"
COMPLETION = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
FAILURE = b'{"error":{"message":"overloaded","type":"server_error","code":null}}'


def main() -> None:
    """Print the three comparisons."""
    ours, theirs = get_context("spawn").Pipe()
    provider = get_context("spawn").Process(target=provide, args=(theirs,), daemon=True)
    provider.start()
    port = ours.recv()
    config = CONFIG.format(port=port, never=NEVER, deadline=DEADLINE_S, open_s=OPEN_S)
    with gateway(config) as process:
        through, straight = Caller(process.port), Caller(port)
        print(f"failures of a provider, {cores()}")  # noqa: T201 - a report
        fast_failure(through, straight)
        hanging(through)
        dead(through, straight)
    provider.terminate()


class Caller:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def ms(self, path: str, model: str, status: int = 200) -> float:
        """Milliseconds that one request took, its answer read whole."""
        body = b'{"model":"%s","messages":[{"role":"user","content":"hi"}]}' % model.encode()
        begin = perf_counter()
        self._connection.request("POST", path, body, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        answer.read()
        took_s = perf_counter() - begin
        if answer.status != status:
            tried = answer.getheader("x-tidegate-attempts")
            raise RuntimeError(f"{model}: status {answer.status}, {tried}")
        return took_s * 1e3

    def called(self, name: str) -> list[float]:
        """When the provider was called under this name, in seconds of its own clock."""
        self._connection.request("POST", f"/{name}/called", b"{}")
        return [float(at_s) for at_s in json.loads(self._connection.getresponse().read())]


def by_turns(
    *kinds: Callable[[], float], rounds: int = ROUNDS, warm: int = WARM
) -> list[list[float]]:
    """Each kind once a round; what each gave."""
    found: list[list[float]] = [[] for _ in kinds]
    for number in range(rounds + warm):
        for kind, values in zip(kinds, found, strict=True):
            value = kind()
            if number >= warm:  # the first ones warm all of them up
                values.append(value)
    return found


def fast_failure(through: Caller, straight: Caller) -> None:
    """503 at once, then the next target."""
    over, bad, good, direct_bad, direct_good = by_turns(
        lambda: through.ms(PATH, "over"),
        lambda: through.ms(PATH, "bad", 502),
        lambda: through.ms(PATH, "good"),
        lambda: straight.ms("/bad" + PATH, "m", 503),
        lambda: straight.ms("/good" + PATH, "m"),
    )
    both = [sum(pair) for pair in zip(bad, good, strict=True)]
    direct = [sum(pair) for pair in zip(direct_bad, direct_good, strict=True)]
    print(paired("failover, two routes", over, both))  # noqa: T201 - a report
    print(paired("failover, good route", over, good))  # noqa: T201 - a report
    print(paired("failover, two direct calls", over, direct))  # noqa: T201 - a report
    rest = [o - g - b for o, g, b in zip(over, good, direct_bad, strict=True)]
    print(f"{'failover beyond its two calls':<28} {median(rest):9.2f} ms")  # noqa: T201 - a report


def hanging(through: Caller) -> None:
    """No answer at all, until the deadline of the first token."""
    hung, good, timer = by_turns(
        lambda: through.ms(PATH, "hung"),
        lambda: through.ms(PATH, "good"),
        wait,
        rounds=HUNG,
        warm=3,
    )
    late = [value - DEADLINE_S * 1e3 for value in hung]
    rest = [value - other for value, other in zip(late, good, strict=True)]
    for name, values in (
        ("after a deadline", late),
        ("of that, not the good call", rest),
        ("a timer of this process", timer),
    ):
        line = f"{name:<28} {median(values):9.2f} ms  p99 {quantiles(values, n=100)[98]:9.2f} ms"
        print(line)  # noqa: T201 - a report


def wait() -> float:
    """Milliseconds by which the system wakes us late."""
    begin = perf_counter()
    select.select([], [], [], DEADLINE_S)
    return (perf_counter() - begin - DEADLINE_S) * 1e3


def dead(through: Caller, straight: Caller) -> None:
    """A target that fails every time, and is left alone but for probes."""
    before = -1
    while before != len(straight.called("dead")):  # until it opens
        before = len(straight.called("dead"))
        through.ms(PATH, "open")
    begin = monotonic()
    times: list[list[float]] = [[], []]
    while monotonic() < begin + OPEN_FOR_S:
        for values, model in zip(times, ("open", "good"), strict=True):
            values.append(through.ms(PATH, model))
    called = straight.called("dead")[before:]
    gaps = [after - at for at, after in pairwise(called)]
    print(paired("first target open, without it", *times))  # noqa: T201 - a report
    periods = (monotonic() - begin) / OPEN_S
    line = f"{len(called)} probes of {len(times[0])} requests in {periods:.0f} times {OPEN_S} s"
    print(f"{line}, never closer than {min(gaps, default=0.0):.2f} s")  # noqa: T201 - a report


def provide(port: Connection) -> None:
    """Providers by the first part of the path; `/NAME/called` says when each was called."""
    called: dict[str, list[float]] = {}

    def answer(path: str) -> bytes | None:
        name, last = path.split("/")[1], path.rsplit("/", 1)[1]
        if last == "called":
            return whole(200, json.dumps(called.get(name, [])).encode())
        called.setdefault(name, []).append(monotonic())
        if name == "hung":
            return None
        return whole(200, COMPLETION) if name == "good" else whole(503, FAILURE)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                if (data := answer(head.split(b" ")[1].decode())) is not None:
                    writer.write(data)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def whole(status: int, body: bytes) -> bytes:
    """One answer."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


if __name__ == "__main__":
    main()
