"""Does a server of 2026-07-28 tell us when its tools change, though no client has asked it to?

Lives here: the gateway's own subscription to that, from its first use until nobody needs it any
more. Does not live here: what clients want to hear (bridge_streams), what follows from a
change (pins.checked).

Source: MCP 2026-07-28, basic/utilities/subscriptions.
"""

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge_line import CLIENT, Line, Process
from tidegate.gateway.servers.bridge_streams import Changes
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.answers import Note, Reply, sort
from tidegate.mcp.bridging import Envelope, own_request
from tidegate.mcp.changes import Wanted, wanted_of
from tidegate.mcp.eras import MODERN
from tidegate.mcp.introductions import Introduction
from tidegate.mcp.sessions import NOBODY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_TOOLS: Final = Wanted(frozenset({"toolsListChanged"}))
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_REFUSED_S: Final = 600.0


class ToolWatch:
    """One subscription to one server. `process`: what runs, if it is one of ours.

    An older server needs none: a process tells everything to whoever runs it, and over HTTP only
    the session of a client hears of anything.
    """

    def __init__(self, changes: Changes, process: Process | None) -> None:
        self._changes = changes
        self._process = process
        self._task: asyncio.Task[None] | None = None
        self._granted = False
        self._ended = False
        self.began: Callable[[], None] = lambda: None
        self._rests_until_s = 0.0
        self._numbers = count(1)

    @property
    def is_heard(self) -> bool:
        """Whether the server could tell us of a change."""
        speaks = self._changes.server.speaks
        tells_all = self._process is not None and speaks[True] is False and speaks[False] is True
        return self._granted or tells_all

    def begin(self) -> None:
        """Subscribe, if the server is known to speak that revision; idempotent and free.

        One that refuses is asked again after a while. A process that has ended is not started
        for this: it is subscribed to when somebody needs it the next time.
        """
        server = self._changes.server
        if self._ended or server.closed or server.speaks[True] is not True:
            return
        if self._task is not None and not self._task.done():
            return
        runs = self._process is None or self._process.generation % 2 == 1
        if runs and server.clock.monotonic_s() >= self._rests_until_s:
            self._task = server.spawn(self._run())

    def end(self, *, for_good: bool = False) -> None:
        """Nobody needs it any more, or `for_good`: the way to the server is given up."""
        self._ended = self._ended or for_good
        self._granted = False
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        clock = self._changes.server.clock
        pause_s = _PAUSE_S
        while True:
            may_ask_again = True
            try:
                with suppress(ServerFailed):
                    may_ask_again = await self._hear_out()
                if self._granted:
                    pause_s = _PAUSE_S
            finally:
                self._granted = False
            if self._process is not None or not may_ask_again:
                rest_s = pause_s if may_ask_again else _REFUSED_S
                self._rests_until_s = clock.monotonic_s() + rest_s
                return
            await pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _hear_out(self) -> bool:
        """One subscription to its end; whether another one may be asked for. Raises ServerFailed.

        What changed before it was granted is told to nobody, so that counts as a change.
        """
        life = None if self._process is None else str(self._process.generation)
        line = Line(Introduction(MODERN), NOBODY, session=life)
        own_id = f"tidegate-tools-{next(self._numbers)}"
        wish: dict[str, object] = {"notifications": _TOOLS.encode()}
        request = own_request(own_id, "subscriptions/listen", wish, MODERN, Envelope(CLIENT))
        carrier = self._changes.server.carrier
        with carrier.exchange(line.asked(request, endless=True)) as exchange:
            status, _ = await exchange.head()
            if status >= 300:
                return status >= 500
            while (arrived := await exchange.read()) is not None:
                for incoming in arrived:
                    message = sort(incoming, own_id)
                    if isinstance(message, Reply):
                        return "result" in message.message
                    if isinstance(message, Note) and not self._heard(message):
                        return False
        return True

    def _heard(self, note: Note) -> bool:
        """Whether it is worth to go on listening."""
        if note.method != _ACKNOWLEDGED:
            self._changes.look_at(note)
            return True
        params = note.message.get("params")
        self._granted = wanted_of(params if isinstance(params, dict) else None) == _TOOLS
        if self._granted:
            self.began()
        return self._granted


__all__ = ["ToolWatch"]
