"""How do we speak to this server, and in which session of ours?

Lives here: what is known of one server's era, asked at most once at a time; the sessions of the
gateway with a legacy server, one for each owner and one for a process; and the gateway's own
requests in them. Does not live here: whose message is carried there (bridge), what a message
means (mcp.bridging), what an answer proves (mcp.probing).
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from tidegate.clock import Clock
from tidegate.gateway.servers.bridge_line import CLIENT, BridgeTimes, Line, Process
from tidegate.gateway.servers.carrier import Carrier
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Notification, Response, Tree
from tidegate.mcp.answers import READABLE, Ask, Incoming, Note, Reply, about, sort
from tidegate.mcp.bridging import Envelope, own_request, refusal_of_ask
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.introductions import Introduction
from tidegate.mcp.param_headers import ParamHeaders
from tidegate.mcp.probing import Era, Heard, era_of, introduction_in
from tidegate.mcp.sessions import NOBODY, Owner

logger = logging.getLogger(__name__)
T = TypeVar("T")

_MOST_SESSION_CHARS: Final = 1024
_MOST_LINES: Final = 256
_RECHECK_S: Final = 5.0


class BridgedServer:
    """One server behind its carrier. `process`: over stdio, where one session serves all."""

    def __init__(
        self,
        carrier: Carrier,
        name: str,
        clock: Clock,
        *,
        process: Process | None = None,
        times: BridgeTimes,
    ) -> None:
        self.carrier = carrier
        self.name = name
        self.clock = clock
        self.is_process = process is not None
        if process is not None:
            process.listener, process.over = self._said_aside, self._life_over
        self.times = times
        self.params = ParamHeaders()
        self.speaks: dict[bool, bool | None] = {True: None, False: None}
        self.refusals: dict[bool, Heard] = {}
        self.closed = False
        self.heard_aside: Callable[[Line, Note], None] = lambda _line, _note: None
        self.began: Callable[[Line], None] = lambda _: None
        self.ended: Callable[[Line], None] = lambda _: None
        self._process = process
        self._modern: Line | None = None
        self._lines: OrderedDict[Owner, Line] = OrderedDict()
        self._known_until_s = 0.0
        self._running: dict[object, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._farewells: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def line(self, owner: Owner) -> Line:
        """The conversation that a message of `owner` belongs to. Raises ServerFailed.

        Asks the server what it speaks, and opens a session, where that is not known or not there.
        """
        if self.closed:
            raise ServerFailed("draining")
        key = NOBODY if self.is_process else owner
        known = self._known(key)
        if known is None:
            if self._is_known:
                await self.once(key, lambda: self._open(key))
            else:
                await self.once("era", lambda: self._learn(key))
            known = self._known(key)
        if known is None:
            known = await self.once(key, lambda: self._open(key))
        known.used_s = self.clock.monotonic_s()
        if not known.modern:
            self._lines.move_to_end(key)
        return known

    async def speaks_only_other(self, owner: Owner, *, modern: bool) -> bool:
        """Whether the server refuses the era of a message and speaks the other. Never raises.

        `refusals` has the refusal then.
        """
        key = NOBODY if self.is_process else owner
        steps = [("era", self._discover), (key, lambda: self._open(key))]
        for name, work in steps if modern else reversed(steps):
            with suppress(ServerFailed):
                await self.once(name, work)
            if self.speaks[modern] is not False:
                return False
        if self.speaks[not modern] is not True:
            # It refuses everything, which says nothing about what it speaks.
            self.speaks[modern] = None
        return self.speaks[not modern] is True

    async def recheck(self, line: Line, *, at_once: bool) -> Heard | None:
        """How the server refuses what harms nobody, in this conversation; None if it does not.

        Asked at most every few seconds, unless `at_once`: a tool may look like a server that has
        changed whenever it likes. Raises ServerFailed.
        """
        due = at_once or self.clock.monotonic_s() >= line.checked_s + _RECHECK_S
        if line.refusal is None and due:
            await self.once((line, "recheck"), lambda: self._recheck(line))
        return line.refusal

    def drop(self, line: Line) -> None:
        """The server does not know this session any more."""
        if self._lines.get(line.owner) is line:
            del self._lines[line.owner]
        line.dropped = True
        self.ended(line)

    def contradicted(self, line: Line) -> None:
        """The server does not speak any more what is spoken in this conversation."""
        if self._modern is line or self._lines.get(line.owner) is line:
            self.forget()

    def forget(self) -> None:
        """What was known may not hold any more: the next message asks again."""
        self._known_until_s = 0.0
        self._modern = None
        for line in tuple(self._lines.values()):
            self.drop(line)
        self.speaks = {True: None, False: None}

    async def ask(
        self, line: Line, method: str, params: Tree, *, within_s: float | None = None
    ) -> tuple[Heard, Mapping[str, str]]:
        """A request of our own and what came of it. Raises ServerFailed, also when it is late."""
        try:
            async with asyncio.timeout(within_s or self.times.ask_s):
                return await self._ask(line, method, params, line.version)
        except TimeoutError:
            raise ServerFailed("timeout") from None

    def answer(self, line: Line, ask: Ask) -> None:
        """Answer what the server asks of the client; it cannot reach one from here."""
        refused = refusal_of_ask(ask.method)
        value: Tree = {"jsonrpc": "2.0", "id": ask.id}
        if refused is None:
            value["result"] = {}
        else:
            value["error"] = {"code": int(refused.code), "message": refused.message}
        if line.modern and not self.is_process:
            return  # It must not ask, and there is no way to post an answer.
        self.carrier.cast(line.asked(Response(ask.id, value)))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run beside the requests; cancelled when this is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """End every session of ours at the server; at most `farewell_s`."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in (tasks := tuple(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for line in self._lines.values():
            self._bid_farewell(line)
        self._lines.clear()
        if self._farewells:
            await asyncio.wait(tuple(self._farewells))

    @property
    def _is_known(self) -> bool:
        return self.clock.monotonic_s() < self._known_until_s

    def _known(self, key: Owner) -> Line | None:
        if not self._is_known:
            return None
        return self._modern or self._current(key)

    def _current(self, key: Owner) -> Line | None:
        """The open session; one of a process that is gone is not."""
        line = self._lines.get(key)
        process = self._process
        if line is None or process is None or line.session == str(process.generation):
            return line
        self.drop(line)
        return None

    def _life_over(self) -> None:
        """Whoever listens hears at once that there is nothing more, and asks again."""
        self._current(NOBODY)

    def _said_aside(self, message: Tree) -> None:
        note, line = sort(Incoming(message), None), self._current(NOBODY)
        if isinstance(note, Note) and line is not None:
            self.heard_aside(line, note)

    async def once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work` gives, which runs once for everybody who waits for it."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = self.spawn(work())
            task.add_done_callback(lambda _: self._running.pop(key, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ServerFailed("draining") from None
            raise

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ServerFailed):
            raise error

    async def _learn(self, key: Owner) -> None:
        # A process may not survive what it does not know; that was tried.
        tried = self.is_process and self.speaks[True] is False
        if not tried and await self._discover():
            return
        line = self._current(key)
        if line is not None:
            self._now_known(line.version)
            return
        try:
            await self._open(key)
        except ServerFailed:
            # A process may have been silent only because it had not begun yet.
            refused = self.refusals.pop(False, Heard(200))
            if (
                tried
                or era_of("initialize", refused) is not Era.MODERN
                or not await self._discover()
            ):
                raise

    async def _discover(self) -> bool:
        """Ask whether it speaks 2026-07-28. Raises ServerFailed if it cannot be reached."""
        line = Line(Introduction(MODERN), NOBODY)
        heard = Heard(200)
        try:
            bound_s = self.times.silence_s if self.is_process else self.times.ask_s
            async with asyncio.timeout(bound_s):
                heard, _ = await self._ask(line, "server/discover", {}, MODERN)
        except TimeoutError:
            # A process that leaves an unknown request without an answer is an old one.
            if not self.is_process:
                raise ServerFailed("timeout") from None
        except ServerFailed as failed:
            if failed.reason != "crashed":
                raise
        found = introduction_in("server/discover", heard)
        if found is None:
            self.speaks[True], self.refusals[True] = False, heard
            return False
        self.speaks[True] = True
        self._modern = line
        line.introduction = found
        self._now_known(MODERN)
        return True

    async def _open(self, key: Owner) -> Line:
        """Begin a session. Raises ServerFailed; then the server speaks no legacy revision."""
        line = Line(Introduction(LEGACY[0]), key)
        params: Tree = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": CLIENT}
        bound_s = self.times.start_s if self.is_process else self.times.ask_s
        heard, head = await self.ask(line, "initialize", params, within_s=bound_s)
        found = introduction_in("initialize", heard)
        if found is None or found.version == MODERN:
            if heard.is_refusal and not self._lines:
                self._known_until_s = 0.0
                self.speaks, self.refusals[False] = {True: None, False: False}, heard
            raise ServerFailed("era_unknown")
        line.introduction = found
        # Of a process it is the life that has answered, which may be over by now.
        if 0 < len(session := head.get("mcp-session-id", "")) <= _MOST_SESSION_CHARS:
            line.session = session
        try:
            await self._confirm(line)
            self._modern = None
            self._keep(key, line)
        finally:
            if self._lines.get(key) is not line:
                self._bid_farewell(line)
        self.speaks[False] = True
        self._now_known(found.version)
        self.began(line)
        return line

    async def _recheck(self, line: Line) -> None:
        line.checked_s = self.clock.monotonic_s()
        heard, _ = await self.ask(line, "server/discover" if line.modern else "ping", {})
        if heard.is_refusal:
            line.refusal = heard

    async def _confirm(self, line: Line) -> None:
        note = Notification("notifications/initialized")
        with self.carrier.exchange(line.asked(note)) as exchange:
            status, _ = await exchange.head()
            exchange.let_end()
        if not 200 <= status < 300:
            raise ServerFailed("status")

    def _keep(self, key: Owner, line: Line) -> None:
        line.used_s = self.clock.monotonic_s()
        self._lines[key] = line
        if len(self._lines) > _MOST_LINES:
            idle = (each for each, old in self._lines.items() if not old.users and old is not line)
            self._retire(next(idle, next(iter(self._lines))))
        self._arm()

    def _now_known(self, version: str) -> None:
        if not self._is_known:
            extra = {"server": self.name, "revision": version}
            logger.info("tool_server_revision", extra=extra)
        self._known_until_s = self.clock.monotonic_s() + self.times.known_s

    def _retire(self, key: Owner) -> None:
        line = self._lines[key]
        self.drop(line)
        self._bid_farewell(line)

    def _arm(self) -> None:
        if self._timer is None and self._lines and not self.closed and not self.is_process:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.times.idle_s / 2, self._expire)

    def _expire(self) -> None:
        self._timer = None
        oldest_s = self.clock.monotonic_s() - self.times.idle_s
        for key, line in list(self._lines.items()):
            if line.users == 0 and line.used_s <= oldest_s:
                self._retire(key)
        self._arm()

    def _bid_farewell(self, line: Line) -> None:
        """End the session at the server; not cut off by our own end, which waits for it."""
        if line.session is not None and not self.is_process:
            task = asyncio.get_running_loop().create_task(self._end(line.session, line.version))
            self._farewells.add(task)
            task.add_done_callback(self._farewells.discard)

    async def _end(self, session: str, version: str) -> None:
        """Tell the server, which need not listen."""
        with suppress(ServerFailed, TimeoutError):
            async with asyncio.timeout(self.times.farewell_s):
                with self.carrier.ending(session, version) as exchange:
                    await exchange.head()
                    exchange.let_end()

    async def _ask(
        self, line: Line, method: str, params: Tree, version: str
    ) -> tuple[Heard, Mapping[str, str]]:
        own_id = line.next_id()
        request = own_request(own_id, method, params, version, Envelope(CLIENT))
        with self.carrier.exchange(line.asked(request)) as exchange:
            status, head = await exchange.head()
            if status >= 300 and status not in READABLE:
                return Heard(status), head
            while (arrived := await exchange.read()) is not None:
                for incoming in arrived:
                    message = sort(about(incoming, own_id, status), own_id)
                    if isinstance(message, Reply):
                        exchange.let_end()
                        return Heard(status, message.message), head
                    if isinstance(message, Ask):
                        self.answer(line, message)
                    elif isinstance(message, Note):
                        self.heard_aside(line, message)
        return Heard(status), head


__all__ = ["BridgedServer"]
