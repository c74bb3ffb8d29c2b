"""Who hears of what changes at a server whose revision tells of it in another way?

Lives here: the streams of clients (a GET of older revisions, a subscriptions/listen of
2026-07-28), what each wants to hear, and where it comes from: the session's own stream, the
process, or a subscription of ours. Does not live here: the requests of clients
(bridge_exchange), whether an older server knows what they subscribed to (bridge_held), which of it
a client may hear (gateway.tool_requests.answer).

Sources: MCP 2026-07-28, basic/utilities/subscriptions; MCP 2025-11-25, basic/transports (listening
for messages from the server).
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Protocol, Self

from tidegate import strictjson
from tidegate.gateway.pause import pause
from tidegate.gateway.servers.bridge_held import HeldResources, Holder
from tidegate.gateway.servers.bridge_line import CLIENT, Line
from tidegate.gateway.servers.bridge_server import BridgedServer
from tidegate.gateway.servers.carrier import Asked
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.jsonrpc import Id, Request, Tree, result_body
from tidegate.mcp.answers import Ask, Incoming, Note, Reply, sort
from tidegate.mcp.bridged_results import params_for
from tidegate.mcp.bridging import Envelope, is_told, own_request
from tidegate.mcp.changes import ALL, Wanted, wanted_of
from tidegate.mcp.eras import Revision
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.sessions import Owner

_MOST_WAITING: Final = 256
_MOST_STREAMS: Final = 1_000
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class Subscriber(Holder, Protocol):
    """What is remembered of a legacy client."""

    level: str | None
    streams: "set[Stream]"


class Changes:
    """Everything that one server says by itself, and everybody who listens."""

    def __init__(self, server: BridgedServer) -> None:
        self.server = server
        self.resources = HeldResources(server)
        self.tools_changed: Callable[[], None] = lambda: None
        server.heard_aside, server.began, server.ended = self.heard, self._began, self._ended
        self._streams: dict[Stream, Line] = {}
        self._feeds: dict[Line, asyncio.Task[None]] = {}

    def heard(self, line: Line, note: Note) -> None:
        """A message that belongs to no request: for all who share this conversation."""
        self.look_at(note)
        for stream, theirs in tuple(self._streams.items()):
            if theirs is line:
                stream.hear(note.method, note.message.get("params"))

    def look_at(self, note: Note) -> None:
        """Whatever tells that tools have changed is told on, whoever else hears of it."""
        if note.method == "notifications/tools/list_changed":
            self.tools_changed()

    def join(self, stream: "Stream", line: Line) -> None:
        """`stream` hears what comes in `line`. Raises ServerFailed if too many do."""
        if len(self._streams) >= _MOST_STREAMS:
            raise ServerFailed("busy")
        self._streams[stream] = line
        line.users += 1

    def leave(self, stream: "Stream") -> None:
        """It hears nothing any more; idempotent."""
        line = self._streams.pop(stream, None)
        if line is not None:
            line.users -= 1

    def end(self) -> None:
        """Every stream comes to its end."""
        for stream in tuple(self._streams):
            stream.finish()

    def _began(self, line: Line) -> None:
        """Hear a legacy server out from the beginning: what it asks here has to be answered."""
        if line.session is not None and not self.server.is_process:
            self._feeds[line] = self.server.spawn(self._feed(line))

    def _ended(self, line: Line) -> None:
        feed = self._feeds.pop(line, None)
        if feed is not None and feed is not asyncio.current_task():
            feed.cancel()
        for stream, theirs in tuple(self._streams.items()):
            if theirs is line:
                stream.finish()

    async def _feed(self, line: Line) -> None:
        """What a legacy server says by itself in a session, as long as that lives."""
        pause_s = _PAUSE_S
        while not line.dropped and line.session is not None:
            status = 0
            with suppress(ServerFailed):
                listening = self.server.carrier.listening(
                    line.owner, line.session, Revision(line.version)
                )
                with listening as exchange:
                    status, _ = await exchange.head()
                    if status == 200:
                        pause_s = _PAUSE_S
                        while (arrived := await exchange.read()) is not None:
                            self._pass_on(line, arrived)
            if status == 404:
                self.server.drop(line)
            elif 300 <= status < 500:
                return
            else:
                await pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _pass_on(self, line: Line, arrived: list[Incoming]) -> None:
        for incoming in arrived:
            message = sort(incoming, None)
            if isinstance(message, Ask):
                self.server.answer(line, message)
            elif isinstance(message, Note):
                self.heard(line, message)


class Stream:
    """What one client hears; an Exchange whose `read` waits for it.

    `id` is that of the subscription of a client of 2026-07-28, None for a GET.
    """

    is_stream = True

    def __init__(self, changes: Changes, owner: Owner, wanted: Wanted, id: Id | None) -> None:  # noqa: A002
        self._changes, self._owner, self._wanted, self._id = changes, owner, wanted, id
        self._line: Line | None = None
        self._state: Subscriber | None = None
        self._held: set[str] = set()
        self._waiting: list[Incoming] = []
        self._woken = asyncio.Event()
        self._ended = False
        self._source: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    @classmethod
    def of_session(cls, changes: Changes, owner: Owner, state: Subscriber) -> "Stream":
        """The stream of a client of an older revision: all lists, and what it subscribed to."""
        stream = cls(changes, owner, ALL.with_uris(state.subscribed), None)
        stream._state = state
        return stream

    @classmethod
    def of_request(cls, changes: Changes, asked: Asked, line: Line) -> "Stream":
        """The answer to a subscriptions/listen, from a legacy server."""
        call = asked.message
        if not isinstance(call, Request):
            raise TypeError("only a request subscribes")
        own = call.id if asked.upstream_id is None else asked.upstream_id
        stream = cls(changes, asked.owner, wanted_of(call.params), own)
        stream._line = line
        return stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._changes.leave(self)
        if self._state is not None:
            self._state.streams.discard(self)
        for source in (self._source, self._next):
            if source is not None:
                source.cancel()
        if self._line is not None:
            self._changes.resources.let_go(self._line, self._held)
            self._held = set()

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """See Exchange."""
        wanted = self._wanted
        line = await self._open(self._line or await self._changes.server.line(self._owner))
        if line.dropped:
            # The server had lost the session, which only asking told.
            self._changes.leave(self)
            self._wanted, self._held, self._waiting, self._ended = wanted, set(), [], False
            await self._open(await self._changes.server.line(self._owner))
        return 200, {}

    async def _open(self, line: Line) -> Line:
        self._line = line
        self._changes.join(self, line)
        if self._state is not None:
            await self._changes.resources.settle(self._state, line)
            self._wanted = self._wanted.with_uris(self._state.subscribed)
            self._state.streams.add(self)
        if self._id is not None:
            await self._acknowledge(self._id, line)
        elif line.modern:
            self._listen(line)
        return line

    async def read(self) -> list[Incoming] | None:
        """See Exchange."""
        while not self._waiting:
            if self._ended:
                return None
            self._woken.clear()
            await self._woken.wait()
        waiting, self._waiting = self._waiting, []
        return waiting

    def let_end(self) -> None:
        """See Exchange."""

    def hear(self, method: str, params: object) -> None:
        """What the server said, if this client wants to hear of it."""
        told = method == "notifications/message" and self._is_told(params)
        if self._ended or not (told or self._wanted.hears(method, params)):
            return
        if len(self._waiting) >= _MOST_WAITING:
            # It would miss something; a new stream begins with asking for the lists anew.
            self.finish()
            return
        message: Tree = {"jsonrpc": "2.0", "method": method}
        if words := self._own_words(params):
            message["params"] = words
        self._say(message)

    def wants(self, uris: set[str]) -> None:
        """The client has subscribed to other resources than before."""
        self._wanted = self._wanted.with_uris(uris)
        if self._line is not None and self._line.modern:
            self._listen(self._line)

    def finish(self) -> None:
        """The server has nothing more to say, or is gone."""
        if self._ended:
            return
        if self._id is not None:
            meta = {SUBSCRIPTION_KEY: self._id}
            self._say(result_body(self._id, {"resultType": "complete", "_meta": meta}))
        self._ended = True
        self._woken.set()

    def _is_told(self, params: object) -> bool:
        """Whether a log message is for this client: of a session that is its principal's own."""
        line, state = self._line, self._state
        if line is None or state is None or line.modern or self._changes.server.is_process:
            return False
        level = params.get("level") if isinstance(params, dict) else None
        return state.level is None or is_told(level, state.level)

    def _say(self, message: Tree) -> None:
        self._waiting.append(Incoming(message, strictjson.dumps(message)))
        self._woken.set()

    def _own_words(self, params: object) -> object:
        if self._id is None:
            return params_for(params, None)
        held = params if isinstance(params, dict) else {}
        meta = held.get("_meta")
        known = meta if isinstance(meta, dict) else {}
        return {**held, "_meta": {**known, SUBSCRIPTION_KEY: self._id}}

    async def _acknowledge(self, id: Id, line: Line) -> None:  # noqa: A002 - the member's own name
        """Say what of the wish the server fulfils, before anything of it."""
        for uri in sorted(self._wanted.uris):
            if await self._changes.resources.hold(line, uri) is None:
                self._held.add(uri)
        self._wanted = self._wanted.granted(line.introduction).with_uris(self._held)
        told: Tree = {"notifications": self._wanted.encode(), "_meta": {SUBSCRIPTION_KEY: id}}
        acknowledged = "notifications/subscriptions/acknowledged"
        message: Tree = {"jsonrpc": "2.0", "method": acknowledged, "params": told}
        # What was heard meanwhile comes behind it.
        self._waiting.insert(0, Incoming(message, strictjson.dumps(message)))

    def _listen(self, line: Line) -> None:
        """Hear of it from a server of 2026-07-28, by a subscription of our own.

        The one before goes on until the server has begun this one: nothing is lost in between.
        """
        if self._next is not None:
            self._next.cancel()
        self._next = self._changes.server.spawn(self._subscription(line, self._wanted))

    def _begun(self) -> None:
        if self._next is not asyncio.current_task():
            return
        if self._source is not None:
            self._source.cancel()
        self._source, self._next = self._next, None

    async def _subscription(self, line: Line, wanted: Wanted) -> None:
        pause_s = _PAUSE_S
        while not self._ended:
            with suppress(ServerFailed):
                if not await self._hear_out(line, wanted):
                    return
                pause_s = _PAUSE_S
            await pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _hear_out(self, line: Line, wanted: Wanted) -> bool:
        """One subscription to its end; whether another one may be asked for."""
        own_id, server = line.next_id(), self._changes.server
        params: Tree = {"notifications": wanted.encode()}
        envelope = Envelope(CLIENT)
        request = own_request(own_id, "subscriptions/listen", params, line.version, envelope)
        with server.carrier.exchange(line.asked(request, endless=True)) as exchange:
            status, _ = await exchange.head()
            if status >= 300:
                return status >= 500
            while (arrived := await exchange.read()) is not None:
                for incoming in arrived:
                    message = sort(incoming, own_id)
                    if isinstance(message, Note):
                        self._begun()
                        self._changes.look_at(message)
                        self.hear(message.method, message.message.get("params"))
                    elif isinstance(message, Reply):
                        return "result" in message.message
        return True


__all__ = ["Changes", "Stream"]
