"""How does one request get to a server of another revision, and its answer back?

Lives here: the request in the server's words and its exchange: taken up again where the server
let its stream go, cancelled where nobody waits any more. Does not live here: whether it is sent
once more (bridge_exchange), the translation (mcp), the server's sessions
(bridge_server), streams for what changes (bridge_streams).
"""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Final, Protocol, Self

from tidegate import strictjson
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge_line import CLIENT, Line
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.carrier import Asked, Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Id, Notification, Request, Tree, error_body, result_body
from tidegate.mcp.answers import READABLE, Ask, Incoming, Note, Reply, about, sort
from tidegate.mcp.bridged_results import error_for, params_for, result_for
from tidegate.mcp.bridging import (
    Envelope,
    Refused,
    is_told,
    progress_token,
    to_server,
)
from tidegate.mcp.eras import McpHeaders, Revision
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.probing import (
    Heard,
)

_MOST_FAILURES: Final = 3
_LEVEL_S, _LEVEL_REST_S = 3.0, 60.0
_SOONEST_S, _LATEST_S = 0.1, 30.0


class Told(Protocol):
    """What the path knows of the client that a message comes from."""

    def level_of(self, asked: Asked, line: Line) -> str | None:
        """From which level on this message's client wants to be told."""

    def hears_aside(self, asked: Asked) -> bool:
        """Whether the client has a stream of its own for what changes."""


class Carried:
    """One request in the server's words. `begin` sends it, `read` brings what is for the client.

    Use it in a `with` block of its own: leaving that aborts what still runs, and tells a server
    that would not notice.
    """

    def __init__(self, server: BridgedServer, line: Line, asked: Asked, told: Told) -> None:
        if not isinstance(asked.message, Request):
            raise TypeError("only a request is carried")
        self._server, self._line, self._asked, self._told = server, line, asked, told
        self.call: Request = asked.message
        self._client_id: Id = self.call.id if asked.upstream_id is None else asked.upstream_id
        self._own_id = ""
        self._level = told.level_of(asked, line)
        self._stack = ExitStack()
        self._exchange: Exchange | None = None
        self._status = 200
        self._answered = self._refused_here = False
        self._place: str | None = None
        self._retry_s = 1.0
        self._failures = 0
        self._resumed = False
        self._due_s = server.clock.monotonic_s() + server.times.call_s
        self._waiting: list[Incoming] = []

    @property
    def of_same_era(self) -> bool:
        """Whether client and server both speak 2026-07-28."""
        return self._line.modern and self._asked.revision.modern

    @property
    def is_stream(self) -> bool:
        """Whether the server answered with an event stream."""
        return self._exchange is not None and self._exchange.is_stream

    def __enter__(self) -> Self:
        self._line.users += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.users -= 1
        self.abort()

    def abort(self) -> None:
        """Nobody waits for the answer any more; idempotent."""
        if self._exchange is None:
            return
        # Of 2026-07-28 leaving is the cancellation, and a process is told by its carrier.
        told = not self._server.is_process and not self._line.modern
        if told and not self._answered and not self._refused_here:
            self._answered = True
            params: Tree = {"requestId": self._own_id, "reason": "the client has gone"}
            note = Notification("notifications/cancelled", params)
            self._server.carrier.cast(self._line.asked(note))
        self._stack.close()

    async def begin(self) -> tuple[Heard, Mapping[str, str]]:
        """Send it. Returns when it is settled whether it was refused as a whole.

        The answer to the client is not among what `read` gives if it was: the caller decides
        whether to send another message instead, or `keep`s it. Raises ServerFailed.
        """
        await self._raise_level()
        self._own_id = self._line.next_id()
        message = to_server(self.call, self._asked.revision.version, self._line.version, self._mine)
        if isinstance(message, Refused):
            self._refused_here = True
            self._say_error(error_body(None, message.code, message.message)["error"])
            return Heard(200), {}
        message = Request(self._own_id, message.method, message.params)
        exchange = self._server.carrier.exchange(
            self._line.asked(
                message,
                headers=self._headers(message),
                endless=self._asked.endless,
                owner=self._asked.owner,
                life=self._asked.life,
            )
        )
        self._exchange = self._stack.enter_context(exchange)
        try:
            self._status, head = await exchange.head()
        except ServerFailed as failed:
            if failed.reason != "session_ended":
                raise
            self._status, head = 404, {}
            self._refused_here = True
            return Heard(404), head
        if self._status < 300:
            return Heard(self._status), head
        self._refused_here = True
        if self._status not in READABLE:
            return Heard(self._status), head
        return await self._refusal(exchange), head

    def keep(self, heard: Heard) -> None:
        """A refusal is the answer after all. Raises ServerFailed if it is none of MCP."""
        if heard.message is None:
            raise ServerFailed("status")
        self._say_error(heard.message.get("error"))

    async def read(self) -> list[Incoming] | None:
        """The next messages for the client; None behind the answer, or at an end without one."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            return waiting
        if self._answered or self._exchange is None:
            return None
        try:
            arrived = await self._next(self._exchange)
        except ServerFailed:
            if not self._can_resume:
                raise
            arrived = None
        return await self._resume() if arrived is None else await self._shown(arrived)

    async def _shown(self, arrived: list[Incoming]) -> list[Incoming]:
        """What of the server's messages is for the client, in its words."""
        if arrived:
            self._failures = 0
        shown: list[Incoming] = []
        for incoming in arrived:
            self._mark(incoming)
            message = sort(about(incoming, self._own_id, self._status), self._own_id)
            if isinstance(message, Reply) and not self._answered:
                self._answered = True
                shown.append(await beside_the_loop(incoming.size_bytes, self._reply, message))
            elif isinstance(message, Ask):
                self._server.answer(self._line, message)
            elif isinstance(message, Note) and (note := self._note(message)) is not None:
                shown.append(note)
        return shown

    async def _next(self, exchange: Exchange) -> list[Incoming] | None:
        if not self._resumed:
            return await exchange.read()
        # A stream that is taken up again is one that may be silent for ever; a call may not.
        left_s = self._due_s - self._server.clock.monotonic_s()
        try:
            async with asyncio.timeout(left_s):
                return await exchange.read()
        except TimeoutError:
            self._failures = _MOST_FAILURES
            raise ServerFailed("timeout") from None

    def let_end(self) -> None:
        """See Exchange."""
        if self._exchange is not None:
            self._exchange.let_end()

    @property
    def _mine(self) -> Envelope:
        token = progress_token(self.call.params)
        return Envelope(CLIENT, self._level, None if token is None else self._own_id)

    def _headers(self, message: Request) -> McpHeaders:
        """Of the client's head only its trace goes on; Mcp-Param is computed from the schema."""
        params: tuple[tuple[str, str], ...] = ()
        if self._line.modern and message.method == "tools/call":
            # A client of the same revision computed them itself.
            own = self._asked.headers.params
            params = own if self.of_same_era else tuple(self._server.params.of(message.params))
        return McpHeaders(traceparent=self._asked.headers.traceparent, params=params)

    async def _raise_level(self) -> None:
        """A legacy server tells from one level on in a whole session: from the lowest one asked.

        No call fails because its server does not take a level; that is tried again later.
        """
        line, level = self._line, self._level
        if line.modern or level is None or not line.introduction.promises("logging"):
            return
        if self._is_raised(level):
            return
        async with line.turn:
            if self._is_raised(level):
                return
            asked: Tree = {"level": level}
            with suppress(ServerFailed):
                heard, _ = await self._server.ask(
                    line, "logging/setLevel", asked, within_s=_LEVEL_S
                )
                if heard.message is not None and "result" in heard.message:
                    line.level = level
                    return
            line.level_rests_until_s = self._server.clock.monotonic_s() + _LEVEL_REST_S

    def _is_raised(self, level: str) -> bool:
        """Whether there is nothing to tell the server, or it did not want to hear it just now."""
        line = self._line
        is_set = line.level is not None and is_told(level, line.level)
        return is_set or self._server.clock.monotonic_s() < line.level_rests_until_s

    async def _refusal(self, exchange: Exchange) -> Heard:
        while (arrived := await exchange.read()) is not None:
            for incoming in arrived:
                message = sort(about(incoming, self._own_id, self._status), self._own_id)
                if isinstance(message, Reply):
                    exchange.let_end()
                    return Heard(self._status, message.message)
        return Heard(self._status)

    def _mark(self, incoming: Incoming) -> None:
        if incoming.event_id is not None:
            self._place = incoming.event_id
        if incoming.retry_ms is not None:
            self._retry_s = min(max(incoming.retry_ms / 1000, _SOONEST_S), _LATEST_S)

    @property
    def _can_resume(self) -> bool:
        alive = self._place is not None and not self._line.modern and not self._line.dropped
        in_time = self._server.clock.monotonic_s() < self._due_s and self._failures < _MOST_FAILURES
        return alive and in_time and self._line.session is not None

    async def _resume(self) -> list[Incoming] | None:
        """The rest of a stream that a legacy server let go before the answer."""
        line = self._line
        if not self._can_resume or line.session is None:
            return None
        self._failures += 1
        self._resumed = True
        await pause(self._retry_s)
        rest = self._server.carrier.listening(
            line.owner, line.session, Revision(line.version), self._place
        )
        self._stack.close()
        self._exchange = self._stack.enter_context(rest)
        try:
            status, _ = await rest.head()
        except ServerFailed:
            return []
        if 400 <= status < 500:
            self._failures = _MOST_FAILURES
        return []

    def _reply(self, reply: Reply) -> Incoming:
        client, server = self._asked.revision.version, self._line.version
        if "result" in reply.message:
            result = given = reply.message["result"]
            if self.call.method == "tools/list":
                result = self._learn(result)
            result = self._own_subscription(result)
            shown = result_for(self.call.method, result, client, server, self._asked.shown)
            if isinstance(shown, Refused):
                body = error_body(self._client_id, shown.code, shown.message, shown.data)
            else:
                body = result_body(self._client_id, shown)
                return Incoming(body, strictjson.dumps(body), given=given)
        else:
            error = error_for(self.call.method, reply.message["error"], client, server)
            body = {"jsonrpc": "2.0", "id": self._client_id, "error": error}
        return Incoming(body, strictjson.dumps(body))

    def _learn(self, result: object) -> object:
        """What a list of tools says about headers; one that breaks the rules cannot be called."""
        if self.of_same_era and not self._server.is_process:
            return result  # Client and server both go by it themselves.
        first_page = "cursor" not in (self.call.params or {})
        kept, _ = self._server.params.learn(result, first_page=first_page)
        return kept if self._line.modern else result

    def _note(self, note: Note) -> Incoming | None:
        """What of a notification is for the client of this request."""
        params = note.message.get("params")
        known = params if isinstance(params, dict) else {}
        if note.method == "notifications/progress":
            token = progress_token(self.call.params)
            if token is None or known.get("progressToken") != self._own_id:
                return None
            return _notification(note.method, {**known, "progressToken": token})
        if note.method == "notifications/message":
            if not self._line.modern and not self._is_told(known.get("level")):
                return None
        elif self.of_same_era:
            return _notification(note.method, self._own_subscription(params))
        else:
            self._server.heard_aside(self._line, note)
            if self._asked.revision.modern or self._told.hears_aside(self._asked):
                return None
        return _notification(note.method, params_for(params, self._asked.revision.version))

    def _is_told(self, level: object) -> bool:
        """A client of an older revision hears of everything unless it says from where on."""
        if self._level is None and not self._asked.revision.modern:
            return True
        return is_told(level, self._level)

    def _own_subscription(self, params: object) -> object:
        """Under the id that the client's side knows."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(meta, dict):
            return params
        if meta.get(SUBSCRIPTION_KEY) != self._own_id:
            return params
        return {**params, "_meta": {**meta, SUBSCRIPTION_KEY: self._client_id}}

    def _say_error(self, error: object) -> None:
        client, server = self._asked.revision.version, self._line.version
        told = error_for(self.call.method, error, client, server)
        self._answered = True
        body: Tree = {"jsonrpc": "2.0", "id": self._client_id, "error": told}
        self._waiting.append(Incoming(body, strictjson.dumps(body)))


def _notification(method: str, params: object) -> Incoming:
    message: Tree = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return Incoming(message, strictjson.dumps(message))


__all__ = [
    "Carried",
    "Told",
]
