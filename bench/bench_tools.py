"""How many calls a second does a strict tool server answer, and others the same two tools?

Over stdio and over HTTP, in both eras of MCP, against the high-level server of the official SDK and
`fastmcp`. All are asked by turns by one client that costs little; besides the rate the processor
time of the server for one call is told, which other work on the machine does not change as much.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores
from bench.tools_client import IN_FLIGHT, LEGACY, MODERN, OverHttp, OverPipes, Served

DESIGNS = ("ours", "sdk", "fastmcp")
LANES: tuple[tuple[str, type[Served], str], ...] = tuple(
    (f"{way} {era}", kind, era)
    for way, kind in (("stdio", OverPipes), ("HTTP", OverHttp))
    for era in (LEGACY, MODERN)
)
ROUNDS, SECONDS, WARM_S = 5, 0.6, 0.4


def lane(name: str, kind: type[Served], era: str) -> None:
    """One line for each design: medians, and how many times ours is as fast."""
    with ExitStack() as around:
        servers: list[Served] = []
        for design in DESIGNS:
            try:
                servers.append(kind(design, era, around))  # type: ignore[call-arg, arg-type]
            except RuntimeError as error:
                say(f"{name:18} {design:8} cannot be asked: {error}")
        for server in servers:
            server.turn(WARM_S)
        turns = {server.design: [server.turn(SECONDS)] for server in servers}
        for number in range(1, ROUNDS):
            # Whoever goes first in a round finds another machine than who goes last.
            for server in servers if number % 2 else reversed(servers):
                turns[server.design].append(server.turn(SECONDS))
    own = turns["ours"]
    for design, found in turns.items():
        rates = [one / other for (one, _), (other, _) in zip(own, found, strict=True)]
        costs = [other / one for (_, one), (_, other) in zip(own, found, strict=True)]
        say(
            f"{name:18} {design:8} {median(rate for rate, _ in found):7.0f} calls/s"
            f" {median(cost for _, cost in found):6.0f} us"
            f"   ours: {median(rates):5.2f} x as many, {median(costs):5.2f} x as cheap"
        )


def say(line: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Every lane."""
    say(f"{cores()}, {IN_FLIGHT} calls in flight, {ROUNDS} turns of {SECONDS} s each")
    for name, kind, era in LANES:
        lane(name, kind, era)


if __name__ == "__main__":
    main()
