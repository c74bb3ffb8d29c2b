"""What do tests want to know of a gateway that is several processes?"""

import asyncio
import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.processes import HOST, START_S, WAIT_S, Running
from tests.acceptance.worlds import CHAT, Stream, chat_body, configuration, headers
from tidegate.testing.scripted import ScriptedUpstream
from tidegate.testing.sockets import RawClient


def pid(gateway: Running, worker: int) -> int:
    """The process that was started last in this place."""
    spawned = [line for line in gateway.events("worker_spawned") if line["worker"] == worker]
    return int(spawned[-1]["pid"])


def kill(gateway: Running, worker: int, number: int = signal.SIGKILL) -> None:
    """A signal to one worker."""
    os.kill(pid(gateway, worker), number)


async def readiness(gateway: Running) -> tuple[int, Any]:
    """Status and body of /readyz."""
    answer = await gateway.admin("/readyz")
    return answer.status, json.loads(answer.body)


async def until(true: Callable[[], bool]) -> None:
    """Look again a few times in each millisecond."""
    loop, later = asyncio.get_running_loop(), asyncio.Event()
    async with asyncio.timeout(WAIT_S):
        while not true():
            later.clear()
            loop.call_later(0.001, later.set)
            await later.wait()


async def until_ready(gateway: Running, true: Callable[[Any], bool]) -> Any:
    """Ask /readyz until its body is as wanted; processes may start meanwhile."""
    async with asyncio.timeout(2 * START_S):
        while not true(report := (await readiness(gateway))[1]):
            pass
    return report


async def replaced(gateway: Running, *, times: int = 1) -> None:
    """Wait until workers that ended have been replaced."""
    await gateway.event("worker_started", times=times, within_s=START_S)


async def scraped(gateway: Running) -> dict[str, float]:
    """The samples of a scrape, summed over their labels; parsed as Prometheus does."""
    answer = await gateway.admin("/metrics")
    assert answer.status == 200
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


async def scraped_until(
    gateway: Running, true: Callable[[dict[str, float]], bool]
) -> dict[str, float]:
    """Scrape until the samples are as wanted, or give the last ones to be judged.

    A request is counted a moment after its answer has left.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            while not true(found := await scraped(gateway)):
                pass
    return found


async def nobody_listens(gateway: Running) -> None:
    """Both ports are free, or become so: the system closes what a killed process had open."""
    async with asyncio.timeout(WAIT_S):
        for port in (gateway.port, gateway.admin_port):
            while await _accepts(port):
                pass


async def _accepts(port: int) -> bool:
    try:
        client = await RawClient.connect(HOST, port)
    except ConnectionRefusedError:
        return False
    await client.close()
    return True


def owed(folder: Path) -> tuple[int, int]:
    """Reservations and requests that are still open in the files."""
    counts = []
    for name, query in (
        ("ledger.db", "SELECT count(*) FROM limit_reservations WHERE is_open"),
        ("records.db", "SELECT count(*) FROM open_requests"),
    ):
        with closing(sqlite3.connect(folder / name)) as database:
            counts += database.execute(query).fetchone()
    return counts[0], counts[1]


def file(
    upstream: ScriptedUpstream, workers: int = 2, drain_s: float = 5.0, **parts: Any
) -> dict[str, Any]:
    """A configuration of several workers."""
    server = {"port": 0, "admin": {"port": 0}, "workers": workers, "drain_s": drain_s}
    return configuration(upstream.url, server=server, **parts)


async def ends(stream: Stream) -> bool:
    """Whether the stream came to its proper end."""
    return (await stream.rest()).endswith(b"data: [DONE]\n\n")


class Load:
    """Clients that ask one thing after the other until they are stopped or refused.

    With `keep_alive` each has one connection as long as the gateway keeps it. `unanswered` is
    what went wrong after a request was on its way on a connection that stood.
    """

    def __init__(
        self, gateway: Running, *, clients: int, keep_alive: bool, model: str = "quick"
    ) -> None:
        self._gateway, self._keep_alive = gateway, keep_alive
        self._body = chat_body(model)
        self._stopping = False
        self._news = asyncio.Event()
        self.statuses: Counter[int] = Counter()
        self.unanswered: list[str] = []
        self._tasks = [asyncio.ensure_future(self._ask_on()) for _ in range(clients)]

    def stop(self) -> None:
        """No new requests."""
        self._stopping = True

    async def answered(self, more: int) -> None:
        """Wait for so many more answers."""
        wanted = self.statuses.total() + more
        async with asyncio.timeout(WAIT_S):
            while self.statuses.total() < wanted:
                self._news.clear()
                await self._news.wait()

    async def ended(self) -> None:
        """Wait until every client has stopped or was refused a connection."""
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*self._tasks)

    async def _ask_on(self) -> None:
        client: RawClient | None = None
        while not self._stopping:
            if client is None:
                try:
                    client = await RawClient.connect(HOST, self._gateway.port)
                except ConnectionError:
                    return
                reused = False
            try:
                answer = await client.ask("POST", CHAT, headers=headers(), body=self._body)
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                # A connection that was idle may be closed just as its next request leaves
                # (RFC 9112 section 9.3.1); a new one may not.
                if not reused:
                    self.unanswered.append(repr(error))
                await client.close()
                client = None
                continue
            self.statuses[answer.status] += 1
            self._news.set()
            reused = True
            if not self._keep_alive or answer.header("connection") == "close":
                await client.close()
                client = None
        if client is not None:
            await client.close()
