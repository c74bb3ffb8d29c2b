"""What do the pins say about the messages of one MCP request?

Lives here: the two places where the path asks, before calls are forwarded and when a list comes
back. Does not live here: when a list has to be looked at (pins.checked), how it is asked for
(asked_lists), what a difference means (mcp.pins).
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidegate.errors import StoreUnavailable
from tidegate.gateway.pins.checked import Pins
from tidegate.gateway.pins.known import Since, Where
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.asked_lists import LIST, AskedList
from tidegate.gateway.tool_requests.call import deny
from tidegate.gateway.tool_requests.failures import fail
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.jsonrpc import Notification, Request
from tidegate.mcp.answers import Note, Reply
from tidegate.mcp.cursors import is_cursor, names_next
from tidegate.mcp.pins import Verdicts

if TYPE_CHECKING:
    from tidegate.records.entries import Trail

TOOLS_CHANGED: Final = "notifications/tools/list_changed"


class PinGate:
    """Asks the pins on behalf of the path. One per application."""

    def __init__(self, pins: Pins, carriers: Carriers, sessions: ToolSessions) -> None:
        self._pins = pins
        self._carriers = carriers
        self._sessions = sessions

    async def calls(
        self,
        turn: Turn,
        plans: Sequence[Plan],
        asked: Sequence[object],
        intent: "Callable[[Trail], Awaitable[None]]",
    ) -> None:
        """Refuse every call of a tool that is not what was approved; each is a step of the record.

        `asked` are the messages of the client that `plans` came of. `intent` is awaited before a
        list of the server is asked for. Raises StoreUnavailable.
        """
        intended = False
        for plan, message in zip(plans, asked, strict=True):
            tool, server = plan.charged_tool, plan.server
            if tool is None or server.pin == "off":
                continue
            source = AskedList(self._carriers, self._sessions, turn, plan, word="pins")
            if not intended and self._pins.is_due(server.name, source):
                await intent(turn.trail)
                intended = True
            try:
                verdicts = await self._pins.before_call(server.name, server.pin, tool, source)
            except ServerFailed as failed:
                turn.trail.step("pin", "deny", server=server.name, reason=f"pin_{failed.reason}")
                fail(turn, plan, failed)
                continue
            if server.pin == "block":
                # What was compared is what runs now: whatever is started later was not.
                plan.life = source.where().life
            self._carriers.watch(server.place)
            verdicts.note(turn.trail, tool)
            decision = verdicts.deny(tool)
            if decision is not None and isinstance(message, Request | Notification):
                deny(turn, plan, message, decision)

    def since(self, server: ToolServer) -> Since:
        """Where the server is reached now, and what it has said of changes until now."""
        return self._pins.since(server.name, self._where(server))

    def refuses(self, server: ToolServer, tool: str) -> bool:
        """Whether a call of the tool would be refused if nothing changed: nobody is asked."""
        return server.pin == "block" and self._pins.refuses(server.name, tool)

    def sending(self, plan: Plan) -> None:
        """It is sent now: a list is of whoever is reached now, as it is now."""
        if plan.request.method == LIST:
            plan.sent = self.since(plan.server)

    async def looked(self, server: ToolServer, tools: Sequence[object], since: Since) -> None:
        """The whole list of the server, which somebody has asked for `since`: it is not asked for
        again. If it cannot be compared, whoever calls a tool will hear of it."""
        if server.pin != "off":
            where = self._where(server)
            with suppress(StoreUnavailable):
                await self._pins.judge(server.name, server.pin, tools, since=since, where=where)

    async def listed(self, plan: Plan, reply: Reply) -> Verdicts | None:
        """What may be seen of a list that came back; None if that does not depend on pins.

        Raises StoreUnavailable.
        """
        if plan.server.pin == "off" or plan.request.method != LIST:
            return None
        self._carriers.watch(plan.server.place)
        result = reply.original
        tools = result.get("tools") if isinstance(result, dict) else None
        following: object = result["nextCursor"] if names_next(result) else None
        if not isinstance(tools, list) or not (following is None or is_cursor(following)):
            return Verdicts.of_nothing(plan.server.name, plan.server.pin)
        return await self._pins.judge(
            plan.server.name,
            plan.server.pin,
            tools,
            cursor=_cursor_of(plan.request),
            following=following,
            since=plan.sent,
            where=self._where(plan.server),
        )

    def heard(self, server: ToolServer, note: Note) -> None:
        """The server said something by itself: perhaps that its tools have changed."""
        if note.method == TOOLS_CHANGED:
            # Also while they are not compared: what was so before says nothing about afterwards.
            self._pins.stale(server.name)

    def _where(self, server: ToolServer) -> Where:
        return Where(server.place, self._carriers.life_of(server.place))


def _cursor_of(request: Request) -> str | None:
    cursor = (request.params or {}).get("cursor")
    return cursor if is_cursor(cursor) else None


__all__ = ["LIST", "TOOLS_CHANGED", "PinGate"]
