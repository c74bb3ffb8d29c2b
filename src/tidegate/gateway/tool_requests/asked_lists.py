"""How does the gateway itself ask a server for its whole list of tools?

Lives here: our own words, every page, and what is no answer. Does not live here: when that has to
be (pins.checked, offered), what a list says (mcp.pins, mcp.offered), lists that clients ask for
(pages, relay).
"""

import asyncio
from typing import Final

from tidegate.gateway.pins.known import Where
from tidegate.gateway.servers.bridge_line import CLIENT, BridgeTimes
from tidegate.gateway.servers.carrier import Carrier
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.upstream import NEEDS_SESSION, ServerFailed
from tidegate.gateway.tool_requests.failures import note_status
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.gateway.tool_requests.unheard import answer_unheard
from tidegate.jsonrpc import Code, Tree
from tidegate.mcp.answers import READABLE, Ask, Reply, about, asks_for_session, sort
from tidegate.mcp.bridging import Envelope, own_request
from tidegate.mcp.eras import McpHeaders
from tidegate.mcp.offered import MOST_NAMES
from tidegate.mcp.page_walk import MOST_BYTES, PageWalk
from tidegate.mcp.servers import ServerCommand

LIST: Final = "tools/list"
_MOST_PAGES: Final = 200
_LIST_S: Final = 30.0
_STARTS_S: Final = BridgeTimes().start_s


class AskedList:
    """The server of `plan`, asked for its tools in the words of this request. A Source of pins."""

    def __init__(
        self, carriers: Carriers, sessions: ToolSessions, turn: Turn, plan: Plan, *, word: str
    ) -> None:
        """`word` tells the requests apart that we send for one of a client."""
        self._carriers = carriers
        self._sessions = sessions
        self._turn = turn
        self._plan = plan
        self._word = word

    def where(self) -> Where:
        """See Source."""
        place = self._plan.server.place
        return Where(place, self._carriers.life_of(place))

    def is_heard(self) -> bool:
        """See Source."""
        return self._carriers.is_heard(self._plan.server.place)

    async def __call__(self) -> list[object]:
        """See Source; a server that knows no list has no tools."""
        return await self.whole() or []

    async def whole(self) -> list[object] | None:
        """Every page of the list, as the server wrote it; None if it knows no list of tools.

        Raises ServerFailed. Takes no longer than 30 s, and as long as a process may take to begin.
        """
        starts_s = _STARTS_S if isinstance(self._plan.server.place, ServerCommand) else 0.0
        try:
            async with asyncio.timeout(starts_s + _LIST_S):
                return await self._read()
        except TimeoutError:
            raise ServerFailed("timeout") from None

    async def _read(self) -> list[object] | None:
        carrier = self._carriers.of(self._plan.server.place)
        tools: list[object] = []
        walk, size = PageWalk("tools"), 0
        for page in range(_MOST_PAGES):
            reply, reply_bytes = await self._answered(carrier, self._page(page, walk.cursor))
            size += reply_bytes
            if size > MOST_BYTES:
                break
            result = _result(reply)
            if result is None:
                return tools if page else None
            found = walk.items(result)
            if found is None:
                raise ServerFailed("malformed")
            tools += found
            if walk.cursor is None:
                return tools
            if len(tools) > MOST_NAMES:
                break
        raise ServerFailed("too_large")

    def _page(self, page: int, cursor: str | None) -> Plan:
        """Our own words in the client's revision: what a client adds to its own decides nothing."""
        turn = self._turn
        params: Tree = {} if cursor is None else {"cursor": cursor}
        # Nobody else's: ids of requests are random.
        own_id = f"{turn.responder.request_id}-{self._word}-{page}"
        asked = own_request(own_id, LIST, params, turn.revision.version or "", Envelope(CLIENT))
        return Plan(asked, self._plan.server, McpHeaders(traceparent=turn.headers.traceparent))

    async def _answered(self, carrier: Carrier, plan: Plan) -> tuple[Reply, int]:
        """What the server answers, and in how many bytes. Raises ServerFailed."""
        turn, sent_id = self._turn, plan.request.id
        with carrier.exchange(plan.asked(turn)) as exchange:
            status, _ = await exchange.head()
            if status == 404 and turn.session is not None and turn.upstream_session is not None:
                self._sessions.end_soon(turn.session)
                raise ServerFailed("session_ended", status)
            note_status(turn, plan.server, status)
            if not 200 <= status < 300 and status not in READABLE:
                raise ServerFailed("status", status)
            while (arrived := await exchange.read()) is not None:
                for incoming in arrived:
                    message = sort(about(incoming, sent_id, status), sent_id)
                    if isinstance(message, Ask):
                        answer_unheard(self._carriers, turn, plan.server, message)
                    if isinstance(message, Reply):
                        exchange.let_end()
                        if turn.lacks_session and asks_for_session(message.message, status):
                            raise ServerFailed(NEEDS_SESSION, status)
                        return message, incoming.size_bytes
        raise ServerFailed("no_answer", status)


def _result(reply: Reply) -> Tree | None:
    """The result; None if the server does not know the method. Raises ServerFailed."""
    result, error = reply.original, reply.message.get("error")
    if isinstance(result, dict):
        return result
    if isinstance(error, dict) and error.get("code") == Code.METHOD_NOT_FOUND:
        return None
    raise ServerFailed("refused" if error is not None else "malformed")


__all__ = ["LIST", "AskedList"]
