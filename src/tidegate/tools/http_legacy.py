"""What may a client of the handshake era do over HTTP?

Lives here: POST, GET and DELETE of the revisions before 2026-07-28: the handshake that begins a
session, batches where the revision has them, the standing stream, streams that are taken up again.
Does not live here: the sessions themselves (http_sessions), what both eras share (http).
"""

from typing import Final

from tidegate.jsonrpc import Batch, Id, Message, Request, Response, typed
from tidegate.mcp.eras import BATCHING, LEGACY, McpHeaders, prefers_events
from tidegate.tools.doors import Refusal
from tidegate.tools.http_edges import Watch, Web
from tidegate.tools.http_sessions import Session, Sessions, message_of

_MOST_IN_BATCH: Final = 100
_NO_SESSION: Final = Refusal(400, "Mcp-Session-Id is missing; a session begins with initialize")
_UNKNOWN_SESSION: Final = Refusal(404, "Session not found")
_TOO_MANY: Final = Refusal(503, "Too many open sessions", -31002, headers=((b"retry-after", b"5"),))
_BUSY: Final = Refusal(503, "Too many requests in this session", -31002)
_NO_ANSWER: Final = Refusal(400, "An answer must have a result or an error of JSON-RPC")
_IN_FLIGHT: Final = Refusal(400, "This id is already in flight")
_ONLY_POST: Final = Refusal(405, "The method must be POST", headers=((b"allow", b"POST"),))
_TAKEN: Final = Refusal(409, "This stream has a reader already")


NEEDS_EVENTS: Final = Refusal(406, "The answer is an event stream, which must be accepted")


class LegacyHttp:
    """The handshake era of one application."""

    def __init__(self, sessions: Sessions, *, handshake_s: float) -> None:
        self.sessions = sessions
        self._handshake_s = handshake_s

    async def post(self, web: Web, message: Message | Batch) -> None:
        """Answers one POST: whatever of JSON-RPC it holds."""
        known, reply = web.known, web.reply
        if isinstance(message, Request) and message.method == "initialize":
            return await self._initialize(web, message)
        session = self._session(known)
        if isinstance(session, Refusal):
            return await reply.refuse(session, id_of(message))
        if isinstance(message, Batch) and (refused := _batch_refusal(message, session)):
            return await reply.refuse(refused)
        self.sessions.enter(session)
        try:
            return await self._converse(web, session, message)
        finally:
            self.sessions.leave(session)

    async def _converse(self, web: Web, session: Session, message: Message | Batch) -> None:
        reply = web.reply
        messages = message.messages if isinstance(message, Batch) else (message,)
        ids = tuple(each.id for each in messages if isinstance(each, Request))
        if any(isinstance(each, Response) and message_of(each) is None for each in messages):
            return await reply.refuse(_NO_ANSWER)
        if ids and session.is_full:
            return await reply.refuse(_BUSY, id_of(message))
        outbox = session.outbox(ids) if ids else None
        if ids and outbox is None:
            return await reply.refuse(_IN_FLIGHT)
        events = web.takes_events
        for each in messages:
            if not await session.say(each, http=web.request(), events=events):
                return await reply.refuse(_UNKNOWN_SESSION, id_of(message))
        if outbox is None:
            return await reply.whole(202)
        # In this era leaving is no cancellation: the session goes on, and so does the call.
        async with Watch(web, outbox):
            if events and prefers_events(web.known):
                await reply.stream(outbox)
            else:
                await reply.relay(outbox, events=events, batch=isinstance(message, Batch))
        if outbox.complete and not reply.streamed:
            session.forget(outbox)
        return None

    async def _initialize(self, web: Web, message: Request) -> None:
        known, reply = web.known, web.reply
        if known.session is not None:
            refused = Refusal(400, "A new session is asked for without Mcp-Session-Id")
            return await reply.refuse(refused, message.id)
        session = self.sessions.open()
        if session is None:
            return await reply.refuse(_TOO_MANY, message.id)
        self.sessions.enter(session)
        try:
            outbox = session.outbox((message.id,))
            await session.say(_in_a_served_revision(message), http=web.request())
            item = None if outbox is None else await outbox.reader.next(self._handshake_s)
            if session.version is not None:
                reply.extra.append((b"mcp-session-id", session.id.encode()))
            if item is None:
                return await reply.refuse(_UNKNOWN_SESSION, message.id)
            return await reply.whole(item.status, item.data)
        finally:
            self.sessions.leave(session)
            if session.version is None:
                self.sessions.drop(session.id)

    async def verb(self, web: Web) -> None:
        """Answers a GET or a DELETE."""
        known, reply = web.known, web.reply
        if known.session is None and known.version not in LEGACY:
            return await reply.refuse(_ONLY_POST)
        session = self._session(known)
        if isinstance(session, Refusal):
            return await reply.refuse(session)
        if web.scope["method"] == "DELETE":
            self.sessions.drop(session.id)
            return await reply.whole(204)
        if not web.takes_events:
            return await reply.refuse(NEEDS_EVENTS)
        return await self._listen(web, session)

    async def _listen(self, web: Web, session: Session) -> None:
        reply = web.reply
        last = [value for name, value in web.scope["headers"] if name == b"last-event-id"]
        outbox = session.resume(last[0].decode("latin-1")) if last else session.standing
        if outbox is None:
            return await reply.refuse(Refusal(404, "The stream of this event is gone"))
        if not last:
            if outbox.reader.claimed:
                return await reply.refuse(_TAKEN)
            outbox.read()
        # Who comes back for a stream takes it from a connection that may be dead unnoticed.
        reader = outbox.reader
        reader.claimed = True
        self.sessions.enter(session)
        try:
            async with Watch(web, outbox):
                await reply.stream(outbox)
        finally:
            reader.claimed = False
            self.sessions.leave(session)

    def _session(self, known: McpHeaders) -> Session | Refusal:
        if known.flaw is not None:
            return Refusal(400, f"Header mismatch: {known.flaw}", -32020)
        if known.session is None:
            return _NO_SESSION
        return self.sessions.get(known.session) or _UNKNOWN_SESSION


def _batch_refusal(batch: Batch, session: Session) -> Refusal | None:
    requests = [each for each in batch.messages if isinstance(each, Request)]
    if session.version != BATCHING:
        return Refusal(400, "This protocol version has no batches")
    if any(each.method == "initialize" for each in requests):
        return Refusal(400, "initialize must not be part of a batch")
    if len(batch.messages) > _MOST_IN_BATCH:
        return Refusal(400, "The batch has too many messages")
    if len({typed(each.id) for each in requests}) != len(requests):
        return Refusal(400, "The batch uses the same id twice")
    return None


def _in_a_served_revision(hello: Request) -> Request:
    """The handshake as the SDK may take it, which also knows a revision without this transport."""
    params = hello.params or {}
    asked = params.get("protocolVersion")
    if not isinstance(asked, str) or asked in LEGACY:
        return hello
    return Request(hello.id, hello.method, {**params, "protocolVersion": LEGACY[0]})


def id_of(message: Message | Batch) -> Id | None:
    """The id that an error about `message` carries."""
    return message.id if isinstance(message, Request | Response) else None


__all__ = ["NEEDS_EVENTS", "LegacyHttp", "id_of"]
