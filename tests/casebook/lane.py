"""In which order are the cases of one gateway played, and what is noted about each?

One gateway process and one listener of scripted upstreams for all cases that want the same
configuration; the cases run one after the other. Lives here: the process, and what surrounds a
case (log, memory, settled tokens, decoys). Does not live here: the exchanges of one kind of case
(chat, tools, bare).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.casebook import configs
from tests.casebook.backend import Backend
from tests.casebook.cases import Case
from tests.casebook.gateways import Gateway
from tests.casebook.seen import Exchange, Seen
from tests.casebook.upstreams import Upstreams
from tests.casebook.waiting import passing

LOG_S = 0.5
"""Log lines come through a pipe of their own: a case that looks at them waits this long."""


@dataclass
class Stage:
    """What a case needs to run: the gateway, the upstreams, and the name it has in both."""

    gateway: Gateway
    upstreams: Upstreams
    backend: Backend
    name: str
    seen: Seen
    decoys: dict[int, int] = field(default_factory=dict)

    @contextmanager
    def noting(self, exchange_calls: list[Exchange]) -> Iterator[None]:
        """Give the exchanges made inside the calls that the upstreams got meanwhile."""
        calls, ran = len(self.upstreams.calls), len(self.backend.executed)
        said = len(self.backend.said)
        yield
        if exchange_calls:
            exchange = exchange_calls[-1]
            exchange.calls = self.upstreams.calls[calls:]
            exchange.executed = self.backend.executed[ran:]
            if len(self.backend.said) > said:
                exchange.canned = b"".join(self.backend.said[said:][-1:])


Play = Callable[[Stage], Awaitable[None]]
Played = Callable[[Seen], None]


class Lane:
    """The cases of one configuration; `run` plays them all and hands over what was seen."""

    def __init__(self, wanted: configs.Wanted, profile: str) -> None:
        self._wanted = wanted
        self._profile = profile
        self._plays: list[tuple[Case, Play]] = []

    def add(self, case: Case, play: Play) -> None:
        """One more case."""
        self._plays.append((case, play))

    async def run(self, done: Callable[[Case, Seen | BaseException], None]) -> None:
        """Play every case; `done` gets what was seen, or why it could not be played."""
        async with Upstreams() as upstreams:
            config = self._config(upstreams)
            gateway = Gateway(config, environment=self._wanted.environment)
            try:
                await asyncio.to_thread(gateway.start)
                for case, play in self._plays:
                    done(case, await self._one(case, play, gateway, upstreams))
            except RuntimeError as error:
                for case, _ in self._plays:
                    done(case, error)
            finally:
                await asyncio.to_thread(gateway.__exit__, None, None, None)

    def _config(self, upstreams: Upstreams) -> dict[str, Any]:
        names = [configs.slot(case) for case, _ in self._plays]
        routed = configs.Wanted(route=self._wanted.route)
        chat = configs.for_chat(names, {name: upstreams.url(name) for name in names}, routed)
        tools = configs.for_tools(names, upstreams.url("tools"), _NOTHING)
        return merged(chat, tools, self._wanted)

    async def _one(
        self, case: Case, play: Play, gateway: Gateway, upstreams: Upstreams
    ) -> Seen | BaseException:
        seen = Seen(case, self._profile)
        backend = Backend()
        upstreams.answer("tools", backend.serve)
        stage = Stage(gateway, upstreams, backend, configs.slot(case), seen)
        mark = gateway.log_lines()
        gateway.reset_peak()
        before = gateway.resident_bytes()
        try:
            async with decoys(decoy_ports(case), seen.decoys):
                await play(stage)
        except (ValueError, RuntimeError, OSError, TimeoutError) as error:
            return error
        if re.search(r"\blogs?\b", " ".join(case.sentences)):
            await passing(LOG_S)
        peak = gateway.peak_bytes()
        if peak is not None and before is not None:
            seen.extra_bytes = max(0, peak - before)
        seen.log = gateway.log_since(mark)
        seen.alive = gateway.alive
        return seen


_NOTHING = configs.Wanted()


def merged(chat: dict[str, Any], tools: dict[str, Any], wanted: configs.Wanted) -> dict[str, Any]:
    """Both faces in one file: keys side by side, redaction of MCP as an override of the server."""
    both = dict(chat)
    both["identity"] = {"keys": [*chat["identity"]["keys"], *tools["identity"]["keys"]]}
    both["mcp"] = tools["mcp"]
    both["mcp"]["servers"]["backend"]["redaction"] = tools["redaction"]
    return configs.merge(both, wanted.config)


def decoy_ports(case: Case) -> list[int]:
    """Ports that a request names as its destination."""
    texts = repr(
        [case.input.get("request"), case.input.get("variants"), case.input.get("requests")]
    )
    return sorted({int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", texts)})


class decoys:  # noqa: N801 - reads as a function
    """Listeners that count who connects; entered with `async with`."""

    def __init__(self, ports: Sequence[int], hits: dict[int, int]) -> None:
        self._ports, self._hits = ports, hits
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> None:
        for port in self._ports:
            self._hits[port] = 0
            self._servers.append(await asyncio.start_server(self._hit(port), "127.0.0.1", port))

    async def __aexit__(self, *exc: object) -> None:
        for server in self._servers:
            server.close()

    def _hit(self, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._hits[port] += 1
            writer.close()

        return count
