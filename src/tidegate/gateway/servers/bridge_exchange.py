"""Which way does this message take, and what is it answered with where it takes none?

Lives here: one message as the path sees it, in its client's revision: let through untouched,
carried, sent once more where nothing ran, or answered here; and what is remembered for that. Does
not live here: the carrier that makes it (bridge), one carried request (bridge_call), the
server's era and sessions (bridge_server), streams for what changes (bridge_streams).
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from tidegate import strictjson
from tidegate.gateway.servers.bridge_call import Carried
from tidegate.gateway.servers.bridge_line import Line
from tidegate.gateway.servers.bridge_mending import contradicting_header, mended
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.bridge_streams import Changes, Stream
from tidegate.gateway.servers.carrier import Asked, Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import (
    Code,
    Id,
    Notification,
    Request,
    Tree,
    error_body,
    result_body,
    typed,
)
from tidegate.mcp.answers import READABLE, Incoming, Reply, sort
from tidegate.mcp.bridged_results import status_for
from tidegate.mcp.bridging import LEVELS, Course, course, level_wanted
from tidegate.mcp.introductions import DESCRIBING, to_discover, to_initialize
from tidegate.mcp.probing import Heard, is_of_wrong_era, proves_unexecuted
from tidegate.mcp.sessions import Owner, Recent

OWN_SESSION: Final = "bridged."
_DEFAULT_LEVEL: Final = "info"
_MOST_CLIENTS: Final = 10_000
_COOL_S: Final = 30.0
_NO_TASKS: Final = "Method not found: not in the client's revision, or not to be bridged"


@dataclass(slots=True)
class ClientState:
    """What a legacy client told us to remember for it."""

    level: str | None = None
    line: Line | None = None
    subscribed: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    streams: "set[Stream]" = field(default_factory=set)


class Bridge:
    """What is known of one server and of its clients, and shared by all messages to it."""

    def __init__(self, server: BridgedServer, *, terminates: bool) -> None:
        self.server = server
        self.terminates = terminates
        self.changes = Changes(server)
        self.running: dict[object, BridgedExchange] = {}
        self._clients: Recent[ClientState] = Recent(_MOST_CLIENTS)
        self._cool_until_s = 0.0

    def passes(self, asked: Asked) -> bool:
        """Whether nothing stands between this client and the server."""
        if self.terminates or (asked.session or "").startswith(OWN_SESSION):
            return False
        return self.server.speaks[asked.revision.modern] is not False

    def client(self, owner: Owner, session: str | None) -> ClientState:
        """What this client told us to remember; a session that we lost begins with nothing."""
        key = session or owner
        state = self._clients.get(key)
        if state is None:
            state = ClientState()
            self._forget(self._clients.put(key, state))
        return state

    def client_of(self, asked: Asked) -> ClientState:
        """As `client`, for whoever sent this message."""
        return self.client(asked.owner, asked.session or asked.client)

    def cancel(self, asked: Asked) -> None:
        """End the carried request that a client's notification names; unknown ones are none."""
        message = asked.message
        params = message.params if isinstance(message, Notification) else None
        wanted = (params or {}).get("requestId")
        if isinstance(wanted, str | int) and not isinstance(wanted, bool):
            running = self.running.get(_key(asked, wanted))
            if running is not None:
                running.abort()

    def level_of(self, asked: Asked, line: Line) -> str | None:
        """See Told."""
        call = asked.message
        if asked.revision.modern:
            return level_wanted(call.params) if isinstance(call, Request) else None
        level = self.client_of(asked).level
        if level is None and line.modern and asked.session is not None:
            return _DEFAULT_LEVEL  # What such a server would not tell, an older one tells unasked.
        return level

    def hears_aside(self, asked: Asked) -> bool:
        """See Told."""
        return bool(self.client_of(asked).streams)

    def may_probe(self) -> bool:
        """Whether to ask the server what it speaks; not again soon after that told nothing."""
        return self.server.clock.monotonic_s() >= self._cool_until_s

    def probed_in_vain(self) -> None:
        """What the server speaks could not be found out."""
        self._cool_until_s = self.server.clock.monotonic_s() + _COOL_S

    def end_client(self, session: str) -> None:
        """A client's session that we gave out has ended."""
        state = self._clients.get(session)
        self._clients.take(session)
        self._forget(state)

    def _forget(self, state: ClientState | None) -> None:
        if state is not None:
            self.changes.resources.forget(state)


class BridgedExchange:
    """One message to a server, in the client's era on this side."""

    def __init__(self, bridge: Bridge, asked: Asked) -> None:
        self._bridge, self._asked = bridge, asked
        self._stack = ExitStack()
        self._way: Carried | Exchange | None = None
        self._waiting: list[Incoming] = []
        self._passing = self._left = self._is_anew = False

    @property
    def is_stream(self) -> bool:
        """See Exchange."""
        return self._way is not None and self._way.is_stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()

    def abort(self) -> None:
        """Leave; what still runs at the server is cancelled. Idempotent."""
        self._left = True
        if isinstance(self._asked.message, Request):
            self._bridge.running.pop(_key(self._asked, _id_of(self._asked)), None)
        self._stack.close()

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """See Exchange."""
        if self._bridge.passes(self._asked):
            return await self._pass()
        message = self._asked.message
        if isinstance(message, Request):
            return await self._carry(message)
        # Most of what a client tells is of its own era; a cancellation is for its request.
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            self._bridge.cancel(self._asked)
        return 202, {}

    async def read(self) -> list[Incoming] | None:
        """See Exchange."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            return waiting
        if self._way is None:
            return None
        arrived = await self._way.read()
        if self._left:
            raise ServerFailed("cancelled")
        if arrived and self._passing:
            self._learn(arrived)
        return arrived

    def let_end(self) -> None:
        """See Exchange."""
        if self._way is not None:
            self._way.let_end()

    async def _pass(self) -> tuple[int, Mapping[str, str]]:
        """Let it through, and look whether the server refuses it for its era."""
        call, modern = self._asked.message, self._asked.revision.modern
        exchange = self._stack.enter_context(self._bridge.server.carrier.exchange(self._asked))
        self._way, self._passing = exchange, True
        status, head = await exchange.head()
        if not isinstance(call, Request) or (status < 300 and call.method not in DESCRIBING):
            return status, head
        heard = await self._first(exchange, status)
        wrong = is_of_wrong_era(call.method, heard, modern=modern)
        if not wrong or not self._bridge.may_probe():
            return status, head
        server = self._bridge.server
        if not await server.speaks_only_other(self._asked.owner, modern=modern):
            if server.speaks[modern] is None:
                self._bridge.probed_in_vain()
            return status, head
        if not proves_unexecuted(call.method, heard, server.refusals.get(modern)):
            return status, head
        self._stack.close()
        self._waiting, self._way, self._passing = [], None, False
        return await self._carry(call)

    async def _first(self, exchange: Exchange, status: int) -> Heard:
        """The answer as far as it tells of the era; everything is kept for `read`."""
        own_id = _id_of(self._asked)
        if status >= 300 and status not in (400, 404, 405):
            return Heard(status)
        while (arrived := await exchange.read()) is not None:
            self._waiting += arrived
            self._learn(arrived)
            for incoming in arrived:
                value = incoming.value
                if status >= 300 and isinstance(value, dict) and "error" in value:
                    return Heard(status, value)
                message = sort(incoming, own_id)
                if isinstance(message, Reply):
                    return Heard(status, message.message)
                if message is not None:
                    return Heard(status, {"result": {}})
        return Heard(status)

    def _learn(self, arrived: list[Incoming]) -> None:
        """A result in the words of its own era shows that the server speaks it."""
        call, modern = self._asked.message, self._asked.revision.modern
        for incoming in arrived:
            value = incoming.value
            result = value.get("result") if isinstance(value, dict) else None
            if not isinstance(result, dict) or not isinstance(call, Request):
                continue
            if not modern or "resultType" in result or call.method == "server/discover":
                self._bridge.server.speaks[modern] = True

    async def _carry(self, message: Request) -> tuple[int, Mapping[str, str]]:
        bridge = self._bridge
        bridge.running[_key(self._asked, _id_of(self._asked))] = self
        causes: set[str | None] = {None}
        while True:
            line = await bridge.server.line(self._asked.owner)
            if course(message, self._asked.revision.version, line.version) is not Course.FORWARD:
                return await self._answer_here(message, line)
            if (lie := await contradicting_header(bridge.server, line, self._asked)) is not None:
                text = f"Header mismatch: {lie} is not what the arguments say"
                error = error_body(_id_of(self._asked), Code.HEADER_MISMATCH, text)
                return self._say(error)
            carried = self._stack.enter_context(Carried(bridge.server, line, self._asked, bridge))
            self._way = carried
            heard, _ = await carried.begin()
            if heard.status < 300:
                return await self._peeked(carried)
            cause = await mended(bridge.server, line, carried, heard)
            if cause in causes:
                break
            causes.add(cause)
            self._stack.close()
        if heard.status not in READABLE:
            return heard.status, {}
        carried.keep(heard)
        return await self._peeked(carried)

    async def _peeked(self, carried: Carried) -> tuple[int, Mapping[str, str]]:
        """The status for the client, which depends on the first message."""
        while not self._waiting:
            arrived = await carried.read()
            if arrived is None:
                break
            self._waiting += arrived
        if self._left:
            raise ServerFailed("cancelled")
        first = self._waiting[0].value if self._waiting else None
        status = status_for(first, self._asked.revision.version) if isinstance(first, dict) else 200
        return status, {}

    async def _answer_here(self, call: Request, line: Line) -> tuple[int, Mapping[str, str]]:
        """What is not carried is answered with what is known."""
        bridge, params = self._bridge, call.params or {}
        head: Mapping[str, str] = {}
        state = bridge.client_of(self._asked)
        match course(call, self._asked.revision.version, line.version):
            case Course.INTRODUCE if call.method == "initialize":
                result = to_initialize(line.introduction, params.get("protocolVersion"))
                head = {"mcp-session-id": f"{OWN_SESSION}{secrets.token_hex(16)}"}
            case Course.INTRODUCE:
                result = to_discover(line.introduction)
            case Course.PONG:
                result = {}
            case Course.LEVEL:
                if params.get("level") not in LEVELS:
                    return self._say(_invalid(_id_of(self._asked), "unknown level"))
                state.level, result = str(params["level"]), {}
            case Course.LISTEN:
                self._way = self._stack.enter_context(
                    Stream.of_request(bridge.changes, self._asked, line)
                )
                return await self._way.head()
            case Course.SUBSCRIBE | Course.UNSUBSCRIBE:
                return await self._subscription(call, line, state)
            case _:
                error = error_body(_id_of(self._asked), Code.METHOD_NOT_FOUND, _NO_TASKS)
                return self._say(error)
        return self._say(result_body(_id_of(self._asked), result), head)

    async def _subscription(
        self, call: Request, line: Line, state: ClientState
    ) -> tuple[int, Mapping[str, str]]:
        uri, error = (call.params or {}).get("uri"), None
        if not isinstance(uri, str):
            return self._say(_invalid(_id_of(self._asked), "uri"))
        resources = self._bridge.changes.resources
        if call.method == "resources/unsubscribe":
            await resources.unsubscribe(state, line, uri)
        else:
            error = await resources.subscribe(state, line, uri)
        if line.dropped:
            return await self._subscription_anew(call, state)
        if error is not None:
            return self._say({"jsonrpc": "2.0", "id": _id_of(self._asked), "error": error})
        for stream in state.streams:
            stream.wants(state.subscribed)
        return self._say(result_body(_id_of(self._asked), {}))

    async def _subscription_anew(
        self, call: Request, state: ClientState
    ) -> tuple[int, Mapping[str, str]]:
        """Once more, as the server had lost the session."""
        if self._is_anew:
            raise ServerFailed("session_ended")
        self._is_anew = True
        line = await self._bridge.server.line(self._asked.owner)
        return await self._subscription(call, line, state)

    def _say(
        self, body: Tree, head: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str]]:
        self._waiting = [Incoming(body, strictjson.dumps(body))]
        return status_for(body, self._asked.revision.version), head or {}


def _id_of(asked: Asked) -> Id:
    call = asked.message
    if asked.upstream_id is not None or not isinstance(call, Request):
        return asked.upstream_id or 0
    return call.id


def _key(asked: Asked, id: Id) -> object:  # noqa: A002 - the member's own name
    return asked.owner, asked.session, typed(id)


def _invalid(id: Id, what: str) -> Tree:  # noqa: A002 - the member's own name
    return error_body(id, Code.INVALID_PARAMS, f"Invalid params: {what}")


__all__ = ["OWN_SESSION", "Bridge", "BridgedExchange", "ClientState"]
