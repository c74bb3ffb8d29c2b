"""Does the server have the tools that this MCP request calls, as far as its caller may know?

Lives here: with `hide_denied: full`, asking a server for its list before a call of a name that is
not known, and the same for one that is denied. Does not live here: when that has to be and what
follows (mcp.offered), how the list is asked for (asked_lists), what was approved (pinned).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from tidegate.clock import Clock
from tidegate.gateway.pins.known import Since
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.asked_lists import LIST, AskedList
from tidegate.gateway.tool_requests.call import deny
from tidegate.gateway.tool_requests.failures import fail, note_failed
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.jsonrpc import Notification, Request
from tidegate.mcp.answers import Reply
from tidegate.mcp.authorize import ARGUMENTS
from tidegate.mcp.offered import NOT_OFFERED, Look, Offers, Step, admits_unknown, standing_of, step
from tidegate.mcp.sessions import owner_of

if TYPE_CHECKING:
    from tidegate.records.entries import Trail

    Intent = Callable[[Trail], Awaitable[None]]

_Seen = tuple[Since | None, Look]
"""A look, and since when what it says is so; None if nobody knows who said it."""

_MOST_LOOKS: Final = 3


@dataclass(slots=True)
class _Running:
    """A list on its way, and how many wait for it."""

    task: "asyncio.Task[_Seen]"
    waiting: int = 0


class OfferGate:
    """Knows what servers offer, and asks them on behalf of the path. One per application."""

    def __init__(
        self, pins: PinGate, carriers: Carriers, sessions: ToolSessions, clock: Clock
    ) -> None:
        self._pins = pins
        self._carriers = carriers
        self._sessions = sessions
        self._clock = clock
        self._offers = Offers()
        self._looking: dict[object, _Running] = {}
        self._words = map("offer{}".format, count())

    async def calls(
        self, turn: Turn, plans: Sequence[Plan], asked: Sequence[object], intent: "Intent"
    ) -> None:
        """Answer every call of a tool that the server does not list like one that is denied, and
        the other way around; elements of a batch each by itself, notifications in silence.

        `asked` are the messages of the client that `plans` came of. `intent` is awaited before a
        list of the server is asked for. Raises StoreUnavailable. Cost: for a tool that the server
        has shown a look-up, else at most one list a second for a caller in a session.
        """
        if turn.policy.hide_denied != "full":
            return
        # Whatever was looked at since then counts for all that came with it.
        came_s = self._clock.monotonic_s()
        for plan, message in zip(plans, asked, strict=True):
            if isinstance(message, Request | Notification) and plan.decision is not None:
                follows, look = await self._follows(turn, plan, intent, came_s)
                _carry_out(follows, look, turn, plan, message)

    def listed(self, turn: Turn, plan: Plan, reply: Reply) -> None:
        """A list came back that a client asked for: whatever is in it is offered."""
        if turn.policy.hide_denied != "full" or plan.request.method != LIST or plan.sent is None:
            return
        since, result = self._pins.since(plan.server), reply.original
        tools = result.get("tools") if isinstance(result, dict) else None
        if plan.sent.until(since.where) == since and isinstance(tools, list):
            self._offers.show(plan.server.name, since, tools)

    async def close(self) -> None:
        """End what runs."""
        for running in self._looking.values():
            running.task.cancel()

    async def _follows(
        self, turn: Turn, plan: Plan, intent: "Intent", came_s: float
    ) -> tuple[Step, Look | None]:
        """What follows for a call, and the look that it follows from."""
        server, tool = plan.server, plan.tool
        if plan.decision is None or tool is None:
            return "goes_on", None
        standing = standing_of(plan.decision)
        look: Look | None = None
        for looks_left in reversed(range(1 + _MOST_LOOKS)):
            since = self._pins.since(server)
            shown = partial(self._offers.knows, server.name, since)
            held = standing == "open" and self._pins.refuses(server, tool)
            follows = step(
                standing,
                is_shown=shown(tool),
                is_held_back=held,
                # Of a name that is open and was not shown it is so.
                is_guessable=(standing == "open" and not held)
                or admits_unknown(turn.rules, turn.principal, server.name, shown),
                look=look,
            )
            if follows != "look":
                plan.is_listed = shown(tool)
                return follows, look
            if looks_left:
                look = self._offers.recall(_asker(turn, server), since, came_s)
                look = look or await self._looked(turn, plan, intent)
        return "failed", None

    async def _looked(self, turn: Turn, plan: Plan, intent: "Intent") -> Look | None:
        """Ask for the list, or wait for whoever does; None if it says nothing about now."""
        asker = _asker(turn, plan.server)
        if asker not in self._looking:
            await intent(turn.trail)
        running = self._looking.get(asker)
        if running is None:
            task = asyncio.get_running_loop().create_task(self._look(asker, turn, plan))
            running = self._looking[asker] = _Running(task)
            task.add_done_callback(lambda _: self._forget(asker, running))
        running.waiting += 1
        try:
            # Whoever leaves leaves the others their list.
            since, look = await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if not running.waiting:
                self._forget(asker, running)
                running.task.cancel()
        return look if since == self._pins.since(plan.server) else None

    def _forget(self, asker: object, running: "_Running") -> None:
        """Nobody joins what is over or given up."""
        if self._looking.get(asker) is running:
            del self._looking[asker]

    async def _look(self, asker: object, turn: Turn, plan: Plan) -> _Seen:
        server, began_s = plan.server, self._clock.monotonic_s()
        before = self._pins.since(server)
        word = next(self._words)
        asking = AskedList(self._carriers, self._sessions, turn, plan, word=word)
        try:
            tools = await asking.whole()
        except ServerFailed as failed:
            since: Since | None = Since(before.news, asking.where())
            look = Look(began_s, failure=failed.reason, status=failed.status)
        else:
            since = before.until(asking.where())
            look = Look(began_s, has_list=tools is not None)
            if since is not None:
                self._offers.show(server.name, since, tools or ())
                await self._pins.looked(server, tools or (), before)
        if since is not None:
            self._offers.looked(asker, since, look)
        return since, look


def _asker(turn: Turn, server: ToolServer) -> object:
    """Who may see another list of the server than others, or be refused it."""
    return server.name, owner_of(turn.principal), turn.upstream_session, turn.revision.version


def _carry_out(
    follows: Step, look: Look | None, turn: Turn, plan: Plan, message: Request | Notification
) -> None:
    server, tool = plan.server, plan.tool
    if follows == "unknown" and (plan.forwards or plan.outcome == ARGUMENTS):
        turn.trail.step("offer", "deny", server=server.name, tool=tool)
        deny(turn, plan, message, NOT_OFFERED)
    elif follows == "failed":
        # As if the call had been sent, and the server had failed then.
        reason, status = (look.failure, look.status) if look is not None else (None, 0)
        failed = ServerFailed(reason or "unchecked", status)
        note_failed(turn, server, failed, status)
        fail(turn, plan, failed)


__all__ = ["OfferGate"]
