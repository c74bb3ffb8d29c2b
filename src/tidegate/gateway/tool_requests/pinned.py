"""What do the pins say about the messages of one MCP request?

Lives here: the two places where the path asks, before calls are forwarded and when a list comes
back, and how the gateway itself asks a server for its whole list. Does not live here: when that
has to be (pins.checked), what a difference means (mcp.pins).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from tidegate.gateway.pins.checked import Pins
from tidegate.gateway.pins.known import Where
from tidegate.gateway.servers.bridge_line import CLIENT
from tidegate.gateway.servers.carrier import Carrier
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.call import deny
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn, no_session
from tidegate.jsonrpc import Code, Id, Notification, Request, Tree
from tidegate.mcp.answers import Incoming, Note, Reply, generic, sort
from tidegate.mcp.bridging import Envelope, own_request
from tidegate.mcp.denials import Refusal
from tidegate.mcp.eras import McpHeaders
from tidegate.mcp.pins import Verdicts

if TYPE_CHECKING:
    from tidegate.records.entries import Trail

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
LIST: Final = "tools/list"
_MOST_PAGES: Final = 200
_MOST_TOOLS: Final = 10_000


class PinGate:
    """Asks the pins on behalf of the path. One per application."""

    def __init__(self, pins: Pins, carriers: Carriers) -> None:
        self._pins = pins
        self._carriers = carriers

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
            source = _Listing(self._carriers, turn, plan)
            if not intended and self._pins.is_due(server.name, source):
                await intent(turn.trail)
                intended = True
            try:
                verdicts = await self._pins.before_call(server.name, server.pin, tool, source)
            except ServerFailed as failed:
                _fail(turn, plan, failed)
                continue
            if server.pin == "block":
                # What was compared is what runs now: whatever is started later was not.
                plan.life = source.where().life
            self._carriers.watch(server.place)
            verdicts.note(turn.trail, tool)
            decision = verdicts.deny(tool)
            if decision is not None and isinstance(message, Request | Notification):
                deny(turn, plan, message, decision)

    def sending(self, plan: Plan) -> None:
        """It is sent now: a list is of whoever is reached now, as it is now."""
        if plan.server.pin != "off" and plan.request.method == LIST:
            plan.sent = self._pins.since(plan.server.name, self._where(plan.server))

    async def listed(self, plan: Plan, reply: Reply) -> Verdicts | None:
        """What may be seen of a list that came back; None if that does not depend on pins.

        Raises StoreUnavailable.
        """
        if plan.server.pin == "off" or plan.request.method != LIST:
            return None
        self._carriers.watch(plan.server.place)
        result = reply.original
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            return Verdicts.of_nothing(plan.server.name, plan.server.pin)
        return await self._pins.judge(
            plan.server.name,
            plan.server.pin,
            tools,
            cursor=_text((plan.request.params or {}).get("cursor")),
            following=_text(result.get("nextCursor")),
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


class _Listing:
    """The server of `plan`, asked for its tools in the words of this request."""

    def __init__(self, carriers: Carriers, turn: Turn, plan: Plan) -> None:
        self._carriers = carriers
        self._turn = turn
        self._plan = plan

    def where(self) -> Where:
        """See Source."""
        place = self._plan.server.place
        return Where(place, self._carriers.life_of(place))

    def is_heard(self) -> bool:
        """See Source."""
        return self._carriers.is_heard(self._plan.server.place)

    async def __call__(self) -> list[object]:
        """See Source."""
        carrier = self._carriers.of(self._plan.server.place)
        tools: list[object] = []
        cursor: str | None = None
        for page in range(_MOST_PAGES):
            asked = _page(self._turn, self._plan, page, cursor)
            result = await _answered(carrier, self._turn, asked)
            found = result.get("tools", [])
            if not isinstance(found, list):
                raise ServerFailed("malformed")
            tools += found
            following = result.get("nextCursor")
            if not isinstance(following, str):
                return tools
            if following == cursor:
                raise ServerFailed("malformed")
            if len(tools) > _MOST_TOOLS:
                break
            cursor = following
        raise ServerFailed("too_large")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _page(turn: Turn, plan: Plan, page: int, cursor: str | None) -> Plan:
    """Our own words in the client's revision: what a client adds to its own decides nothing."""
    params: Tree = {} if cursor is None else {"cursor": cursor}
    # Nobody else's: ids of requests are random.
    own_id = f"{turn.responder.request_id}-pins-{page}"
    version = turn.revision.version or ""
    asked = own_request(own_id, LIST, params, version, Envelope(CLIENT))
    return Plan(asked, plan.server, McpHeaders(traceparent=turn.headers.traceparent))


async def _answered(carrier: Carrier, turn: Turn, plan: Plan) -> Tree:
    """The result of the server; empty if it has no tools at all. Raises ServerFailed."""
    sent_id = plan.request.id
    with carrier.exchange(plan.asked(turn)) as exchange:
        status, _ = await exchange.head()
        if status == 404 and turn.upstream_session is not None:
            raise ServerFailed("session_ended")
        if not 200 <= status < 300 and status not in (400, 404):
            raise ServerFailed("refused" if 400 <= status < 500 else "status")
        while (arrived := await exchange.read()) is not None:
            for incoming in arrived:
                message = sort(_ours(incoming, status, sent_id), sent_id)
                if isinstance(message, Reply):
                    exchange.let_end()
                    return _result(message)
    raise ServerFailed("no_answer")


def _ours(incoming: Incoming, status: int, sent_id: Id) -> Incoming:
    """A refusal without an id is about the only thing that was asked."""
    value = incoming.value
    if status < 300 or not isinstance(value, dict) or "error" not in value:
        return incoming
    return incoming.about(sent_id)


def _result(reply: Reply) -> Tree:
    result, error = reply.original, reply.message.get("error")
    if isinstance(result, dict):
        return result
    if isinstance(error, dict) and error.get("code") == Code.METHOD_NOT_FOUND:
        return {}
    raise ServerFailed("refused" if error is not None else "malformed")


def _fail(turn: Turn, plan: Plan, failed: ServerFailed) -> None:
    """Nobody knows what the tool is now, and mode block lets nothing pass that is not known."""
    turn.trail.step("pin", "deny", server=plan.server.name, reason=f"pin_{failed.reason}")
    plan.forwards, plan.outcome = False, "gateway.upstream_failed"
    if not isinstance(plan.message, Request):
        return
    if failed.reason == "session_ended":
        plan.outcome, plan.refusal = "gateway.not_found", no_session(plan.message.id)
    else:
        plan.refusal = Refusal(generic(plan.message.id, turn.responder.request_id))


__all__ = ["LIST", "TOOLS_CHANGED", "PinGate"]
