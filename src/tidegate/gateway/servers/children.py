"""How do messages reach the MCP servers that we run ourselves, over stdio?

Lives here: when a process is started, again started, replaced and ended, and the exchange of one
message with it. Does not live here: one process (child), whose answer a line is
(mcp.stdio_upstream), when to try again (backoff).

Only the configuration file names what is run. Every client shares the one process of a server,
so it has one era and, in the older eras, one session: `generation` tells when that is gone.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from tidegate.clock import Clock
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.backoff import Backoff, Pace
from tidegate.gateway.servers.carrier import Asked
from tidegate.gateway.servers.child import Bounds, EndReason, Life
from tidegate.gateway.servers.child_exchange import ChildExchange, Formality
from tidegate.gateway.servers.child_words import StderrWords
from tidegate.gateway.servers.upstream import ServerFailed, ToolTimes
from tidegate.jsonrpc import Notification, Tree
from tidegate.mcp.eras import Revision
from tidegate.mcp.servers import ServerCommand
from tidegate.mcp.sessions import Owner
from tidegate.redaction import RedactionPolicy
from tidegate.transport.child import Child

logger = logging.getLogger(__name__)

_LOCALE: Final = "C.UTF-8"
_CANCELLED: Final = "notifications/cancelled"
_OK: Final = 200
_NO_STREAM: Final = 405
_LIVES: Final = 1 << 32
"""More than a server has, and even: one carrier has no generation of another, which may have had
the same place before it."""


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What all servers have in common.

    `chance` draws from [0, 1). `search_path` is where their programs are looked for: our PATH.
    """

    clock: Clock
    times: ToolTimes = field(default_factory=ToolTimes)
    max_line_bytes: int = 8_388_608
    policy: RedactionPolicy = field(default_factory=RedactionPolicy.preset)
    pace: Pace = field(default_factory=Pace)
    chance: Callable[[], float] = field(default_factory=lambda: Random().random)  # noqa: S311
    search_path: str = os.defpath
    metrics: Metrics = field(default_factory=Metrics)


def environment_of(place: ServerCommand, search_path: str = os.defpath) -> dict[str, str]:
    """All variables of the process: those of the file, our PATH, and a locale with UTF-8.

    PATH, because the command and what it calls are looked for in it. Nothing else of ours: it
    holds the credentials of everything else. Programs find their home without HOME.
    """
    own = {"PATH": search_path, "LANG": _LOCALE}
    return {**own, **place.env}


class ChildCarrier:
    """The way to one server that is a process of ours, started when it is first needed."""

    def __init__(self, place: ServerCommand, settings: ChildSettings, *, first: int = 0) -> None:
        self.place = place
        self.generation = first
        """Changes whenever a process begins or has ended: what it knew of us is gone."""
        self.listener: Callable[[Tree], None] | None = None
        """Gets every notification of the server that belongs to no call."""
        self.over: Callable[[], None] | None = None
        """Called when a process has ended, before its calls hear of it."""
        self._settings = settings
        self._backoff = Backoff(settings.pace)
        self._life: Life | None = None
        self._dying: Life | None = None
        self._starting: asyncio.Task[Life] | None = None
        self._open: set[ChildExchange] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._casts: set[asyncio.Task[None]] = set()
        self._is_retiring = False
        self._refusal: str | None = None

    def exchange(self, asked: Asked) -> ChildExchange:
        """See Carrier. `asked.session`, if given, is the generation that it was opened with."""
        return ChildExchange(self, asked, self._settings.clock, self._settings.times)

    def cast(self, asked: Asked) -> None:
        """See Carrier. What only a process that runs could use is dropped if none does."""
        message = asked.message
        if not isinstance(message, Notification):
            return
        life = self._life
        if life is not None and life.is_open and asked.session in (None, str(self.generation)):
            # At once: what is sent next must not overtake it.
            with suppress(ServerFailed):
                life.tell(message, owner=asked.owner)
            return
        if message.method == _CANCELLED:
            return
        task = asyncio.get_running_loop().create_task(self._cast(asked))
        self._casts.add(task)
        task.add_done_callback(self._casts.discard)

    def ending(self, session: str, version: str | None) -> Formality:
        """See Carrier: the session is the process, which others use, too."""
        del session, version
        return Formality(_OK)

    def listening(
        self,
        owner: Owner,
        session: str | None,
        revision: Revision,
        last_event_id: str | None = None,
    ) -> Formality:
        """See Carrier: what the server says by itself goes to `listener`."""
        del owner, session, revision, last_event_id
        return Formality(_NO_STREAM)

    @property
    def is_up(self) -> bool:
        """Whether its process runs and can be asked."""
        return self._life is not None and self._life.is_open

    async def start(self) -> None:
        """Start the process, if none runs. Raises ServerFailed."""
        await self.life()

    async def life(self, session: str | None = None, life: int | None = None) -> Life:
        """The process that runs, or one that is started for it. Raises ServerFailed.

        `session` and `life` are generations: who names one gets that process or none.
        """
        is_open = self._life is not None and self._life.is_open
        if life is not None and (life != self.generation or not is_open):
            raise ServerFailed("restarted")
        if session is not None and (session != str(self.generation) or not is_open):
            raise ServerFailed("session_ended")
        if self._life is not None and is_open:
            return self._life
        if self._refusal is not None:
            raise ServerFailed(self._refusal)
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._started)
        # Whoever gives up does not take it away from the others.
        return await asyncio.shield(self._starting)

    def enter(self, exchange: ChildExchange) -> None:
        """An exchange begins: a process that is replaced waits for it."""
        self._open.add(exchange)
        self._idle.clear()
        if self._is_retiring and exchange.is_endless:
            exchange.end("replaced")

    def leave(self, exchange: ChildExchange) -> None:
        """It is over."""
        self._open.discard(exchange)
        if not self._open:
            self._idle.set()

    def refuse(self, reason: str) -> None:
        """Start no process any more."""
        self._refusal = self._refusal or reason

    def cut(self) -> None:
        """End every call: the gateway is leaving."""
        self.refuse("draining")
        for exchange in tuple(self._open):
            exchange.end("draining")

    async def retire(self) -> None:
        """Another command stands in its place: end the process once its calls have ended."""
        self._is_retiring = True
        for exchange in tuple(self._open):
            if exchange.is_endless:
                exchange.end("replaced")
        await self._idle.wait()
        self.refuse("replaced")
        await self.close()

    async def close(self) -> None:
        """End the process now, in order: seconds at most."""
        self.refuse("draining")
        if self._casts:
            await asyncio.wait(self._casts, timeout=self._settings.times.connect_s)
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        for life in (self._life, self._dying):
            if life is not None:
                await life.close()

    async def _cast(self, asked: Asked) -> None:
        try:
            async with asyncio.timeout(self._settings.times.connect_s):
                with self.exchange(asked) as exchange:
                    await exchange.head()
        except (ServerFailed, TimeoutError):
            logger.info("cancellation_not_delivered", extra={"server": self.place.name})

    def _started(self, task: "asyncio.Task[Life]") -> None:
        self._starting = None
        if not task.cancelled():
            # Its waiters may all have left.
            task.exception()

    async def _start(self) -> Life:
        for old in (self._life, self._dying):
            if old is not None:
                await old.gone()
        wait_s = self._backoff.wait_s(self._settings.clock.monotonic_s())
        if wait_s > self._settings.times.connect_s:
            raise ServerFailed("resting")
        await pause(wait_s)
        if self._refusal is not None:
            raise ServerFailed(self._refusal)
        try:
            life = await self._born()
        except (OSError, ValueError) as error:
            self._failed_to_start(error)
            raise ServerFailed("not_started") from None
        self.generation += 1
        self._life = life
        self._settings.metrics.tool_server_started(server=self.place.name, result="ok")
        logger.info("tool_server_started", extra={"server": self.place.name, "pid": life.pid})
        return life

    async def _born(self) -> Life:
        """A process of the command. Raises OSError or ValueError; then none is left."""
        settings, place = self._settings, self.place
        environment = environment_of(place, settings.search_path)
        # A thread: the system may take its time to find a program on a slow disk.
        child = await asyncio.to_thread(
            Child, place.command, env=environment, cwd=place.cwd, pipes_stderr=True
        )
        words = StderrWords(settings.policy, place.env)
        # No call runs longer than this: whatever keeps it from reading, nobody waits for any more.
        bounds = Bounds(settings.max_line_bytes, settings.times.total_s)
        life = Life(place.name, child, settings.clock, words, bounds)
        life.ended, life.left, life.listener = self._ended, self._left, self._heard
        await life.open()
        return life

    def _failed_to_start(self, error: Exception) -> None:
        now_s = self._settings.clock.monotonic_s()
        pause_s = self._backoff.ended(lived_s=0.0, now_s=now_s, chance=self._settings.chance())
        self._settings.metrics.tool_server_started(server=self.place.name, result="failed")
        logger.error(
            "tool_server_not_started",
            extra={
                "server": self.place.name,
                "problem": problem_of(error, self.place),
                "pause_s": round(pause_s, 3),
            },
        )

    def _ended(self, life: Life) -> None:
        self.generation += 1
        self._life, self._dying = None, life
        if self.over is not None:
            self.over()
        if self._refusal is not None:
            return
        now_s = self._settings.clock.monotonic_s()
        self._backoff.ended(
            lived_s=now_s - life.began_s, now_s=now_s, chance=self._settings.chance()
        )

    def _left(self, reason: EndReason) -> None:
        self._settings.metrics.tool_server_ended(server=self.place.name, reason=reason)

    def _heard(self, message: Tree) -> None:
        if self.listener is not None:
            self.listener(message)


class Children:
    """The carriers of all servers on stdio. One per application; survives a reload."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._carriers: dict[object, ChildCarrier] = {}
        self._retired: dict[asyncio.Task[None], ChildCarrier] = {}
        self._kept: frozenset[object] | None = None
        self._names: tuple[str, ...] = ()
        self._is_cut = False
        self._firsts = count(0, _LIVES)

    def carrier(self, place: ServerCommand) -> ChildCarrier:
        """The way to this server: the same one for an equal place.

        A request of an older revision finds the server of its time as long as that runs.
        """
        key = _key(place)
        found = self._carriers.get(key)
        if found is not None:
            return found
        made = ChildCarrier(place, self._settings, first=next(self._firsts))
        if self._is_cut:
            made.refuse("draining")
        if self._kept is None or key in self._kept:
            self._carriers[key] = made
            return made
        made.refuse("replaced")
        return next((each for each in self._retired.values() if each.place == place), made)

    def retain(self, places: Iterable[ServerCommand]) -> None:
        """Only these are configured now: every other process ends once its calls have ended."""
        kept = {_key(place): place.name for place in places}
        self._kept, self._names = frozenset(kept), tuple(kept.values())
        for key in self._carriers.keys() - self._kept:
            carrier = self._carriers.pop(key)
            task = asyncio.get_running_loop().create_task(carrier.retire())
            self._retired[task] = carrier
            task.add_done_callback(self._retired.pop)

    def running(self) -> dict[str, int]:
        """How many processes of each server can be asked: 2 while one is being replaced."""
        counts = dict.fromkeys(self._names, 0)
        for carrier in self._all():
            name = carrier.place.name
            counts[name] = counts.get(name, 0) + carrier.is_up
        return counts

    def cut(self) -> None:
        """End every call that still runs; nothing is started any more."""
        self._is_cut = True
        for carrier in self._all():
            carrier.cut()

    async def close(self) -> None:
        """End all processes, at the same time: within a few seconds."""
        self._is_cut = True
        await asyncio.gather(*(each.close() for each in self._all()))
        if self._retired:
            await asyncio.wait(tuple(self._retired))

    def _all(self) -> tuple[ChildCarrier, ...]:
        return (*self._carriers.values(), *self._retired.values())


def problem_of(error: Exception, place: ServerCommand) -> str:
    """Why a command cannot be started, in words for the operator; no argument of it is named."""
    program = place.command[0]
    if place.cwd is not None and not os.path.isdir(place.cwd):
        return f"the directory {place.cwd} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"the program {program} was not found"
    if isinstance(error, PermissionError):
        return f"the program {program} may not be run"
    return f"the program {program} could not be started"


def _key(place: ServerCommand) -> object:
    return place.name, place.command, tuple(sorted(place.env.items())), place.cwd


__all__ = ["ChildCarrier", "ChildExchange", "ChildSettings", "Children", "environment_of"]
