"""How does a client hear what its server says by itself?

Lives here: GET until 2025-11-25: the standing stream of a session, and the rest of a stream that
ended before the answer of its call had come; the subscriptions of 2026-07-28; who may have one, how
many there may be, and how long one lasts. Does not live here: an open stream (hearing,
subscribed), which calls can be taken up again (suspended), the ids of events
(mcp.stream_places).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from tidegate.clock import Clock
from tidegate.errors import (
    MethodNotAllowed,
    Overloaded,
    StoreUnavailable,
    TidegateError,
)
from tidegate.gateway.identify import identify
from tidegate.gateway.respond import Scope
from tidegate.gateway.servers.carrier import Exchange
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.gateway.tool_requests.among import usable
from tidegate.gateway.tool_requests.answer import Answer, Shaper
from tidegate.gateway.tool_requests.call import may_use, place_listening
from tidegate.gateway.tool_requests.client_side import ClientSide, event_of
from tidegate.gateway.tool_requests.failures import note_failed
from tidegate.gateway.tool_requests.hearing import Hearing, Over
from tidegate.gateway.tool_requests.hearing_among import Part, hear_all
from tidegate.gateway.tool_requests.relay import RESUMED, ToolRelay
from tidegate.gateway.tool_requests.shares import Shares
from tidegate.gateway.tool_requests.subscribed import Subscriber, serve_until_over
from tidegate.gateway.tool_requests.suspended import CANCELLED, Resumable
from tidegate.gateway.tool_requests.turn import (
    Plan,
    Rejected,
    ToolServer,
    ToolTrafficPolicy,
    Turn,
    rejected,
)
from tidegate.gateway.tool_requests.turn import no_session as unknown_session
from tidegate.jsonrpc import Request, error_of
from tidegate.mcp.answers import generic
from tidegate.mcp.authorize import subject_of
from tidegate.mcp.eras import accepts_events
from tidegate.mcp.sessions import RunningCall, Session, owner_of
from tidegate.mcp.stream_places import STANDING, UNMARKED, Mark, Place, place
from tidegate.records.entries import Trail

_LAST_EVENT: Final = b"last-event-id"
_FAILED: Final = "gateway.upstream_failed"
_EVENTS: Final = "text/event-stream"
_PART_S: Final = 5.0
"""How long one of several servers has to begin its stream."""

_BAD_PLACE: Final = "This Last-Event-ID is not one of this session, or it is too old"
_WORDS: Final[Mapping[int, str]] = {
    400: "bad_place",
    405: "no_stream",
    409: "taken",
    501: "no_stream",
}
"""What a server says that gives no stream. A 409 may be a stream whose end it has not noticed."""

_LOST: Final = frozenset({"bad_place", "no_stream", "lifetime"})
"""Then there is no way to the answer of a call any more."""

_NOBODYS: Final = Request(0, "")
"""Stands for the call that a standing stream has not: nothing is ever an answer to it."""


@dataclass(frozen=True, slots=True)
class StreamCaps:
    """How many streams may be open: of all clients of this process, and of one principal.

    `requests`: how many of its requests may be served at a time, streams among them.
    `answers_bytes`: how much of large answers may wait for their readers, of all; of one a quarter.
    """

    all: int = 500
    of_principal: int = 50
    requests: int = 500
    answers_bytes: int = 268_435_456


class ToolStreams:
    """Serves GET and subscriptions. One per application; `policy` gives the revision in force."""

    def __init__(
        self,
        relay: ToolRelay,
        policy: Callable[[], ToolTrafficPolicy],
        clock: Clock,
        caps: StreamCaps | None = None,
    ) -> None:
        self._relay = relay
        self._policy = policy
        self._clock = clock
        self._times = relay.times
        caps = caps or StreamCaps()
        self._open = Shares(
            "streams",
            most=caps.all,
            of_principal=caps.of_principal,
            retry_after_s=relay.times.keep_alive_s,
        )
        self._standing: set[Hearing | Subscriber] = set()
        self._is_leaving = False

    def __len__(self) -> int:
        return len(self._open)

    def let_go(self) -> None:
        """The gateway drains: what would never end by itself ends now, and no more of it begins."""
        self._is_leaving = True
        for hearing in tuple(self._standing):
            hearing.end("draining")

    async def subscribe(
        self, turn: Turn, plan: Plan, scope: Scope, serve: Callable[[ClientSide], Awaitable[str]]
    ) -> str:
        """Have a subscription served as long as it would be granted anew; the word for its end."""
        if self._is_leaving:
            raise Overloaded("draining")
        with self._open.taken(turn.principal):
            every_s = self._times.keep_alive_s
            client = Subscriber(
                turn, keep_alive_s=every_s, is_current=lambda: self._policy() is turn.policy
            )
            until_s = self._clock.monotonic_s() + self._times.stream_s
            beat = partial(self._still_good, turn, None, scope, until_s)
            self._standing.add(client)
            try:
                work = serve(client)
                return await serve_until_over(turn, plan, client, work, beat, every_s=every_s)
            finally:
                self._standing.discard(client)

    async def serve(
        self, turn: Turn, scope: Scope, intent: Callable[[Trail], Awaitable[None]]
    ) -> str:
        """Answer one GET; the word for its end. Raises Rejected and TidegateError.

        `intent` commits the record of what is about to be done.
        """
        session = place_listening(turn, self._relay.sessions, self._clock.monotonic_s())
        if not accepts_events(turn.headers, named=False):
            raise rejected("The answer is an event stream, which must be accepted", 406)
        if turn.upstream_session is not None and not may_use(turn, _server(turn)):
            raise MethodNotAllowed("GET")
        last = _last_place(scope, session)
        await intent(turn.trail)
        with self._open.taken(turn.principal):
            if turn.upstream_session is None:
                return await self._listen_among(turn, session, scope)
            if last is None or last.stream == STANDING:
                return await self._listen(turn, session, scope, last)
            call = self._relay.resumables.find(session, last.stream)
            if call is None:
                raise rejected(_BAD_PLACE)
            return await self._resume(turn, session, call, last)

    async def _listen(self, turn: Turn, session: Session, scope: Scope, last: Place | None) -> str:
        """The standing stream, until one of the two sides ends it, or the gateway."""
        if self._is_leaving:
            raise Overloaded("draining")
        server = _server(turn)
        hearing = self._hearing(turn, server, session, scope)
        why = "client_left"
        self._standing.add(hearing)
        try:
            with hearing, self._exchange(turn, server, last) as exchange:
                self._admit(turn, *await hearing.head(exchange))
                await turn.responder.start_stream()
                await hearing.pass_on(exchange, None)
        except Over as over:
            why = over.why
        except ServerFailed as failed:
            why = failed.reason
            note_failed(turn, server, failed, turn.responder.status)
        finally:
            self._standing.discard(hearing)
            turn.trail.step("stream", "ended", reason=why, dropped=hearing.dropped or None)
            hearing.shaper.note_counts()
        return await _ended(turn, why)

    async def _listen_among(self, turn: Turn, session: Session, scope: Scope) -> str:
        """The standing stream of a session that is with us: everything that is said anywhere."""
        if self._is_leaving:
            raise Overloaded("draining")
        parts = [
            Part(
                server,
                self._hearing(turn, server, session, scope),
                partial(self._exchange, turn, server, None),
            )
            for server in usable(turn)
        ]
        hearings = {part.hearing for part in parts}
        why = "client_left"
        self._standing |= hearings
        try:
            why = await hear_all(turn, parts, partial(self._admit, turn), part_s=_PART_S)
        finally:
            self._standing -= hearings
            dropped = sum(hearing.dropped for hearing in hearings)
            turn.trail.step("stream", "ended", reason=why, dropped=dropped or None)
            for hearing in hearings:
                hearing.shaper.note_counts()
        return await _ended(turn, why)

    def _hearing(self, turn: Turn, server: ToolServer, session: Session, scope: Scope) -> Hearing:
        """A standing stream of one server."""
        plan = Plan(_NOBODYS, server, turn.headers)
        until_s = self._clock.monotonic_s() + self._times.stream_s
        return Hearing(
            self._relay,
            turn,
            plan,
            Shaper(turn, plan, _nobodys(turn, server, session), self._relay.sessions),
            name=STANDING,
            beat=partial(self._still_good, turn, session, scope, until_s),
            is_current=lambda: self._policy() is turn.policy,
        )

    async def _resume(self, turn: Turn, session: Session, call: Resumable, last: Place) -> str:
        """The rest of the stream of a call: perhaps its answer, which then is that call's."""
        plan, shaper = call.shaper.plan, call.shaper
        server = plan.server
        await call.take()
        until_s = call.due_s
        if call.outcome is not None:
            until_s = self._clock.monotonic_s() + self._times.resume_s
        beat = partial(self._in_time, turn, session, until_s)
        hearing = Hearing(self._relay, turn, plan, shaper, name=call.name, beat=beat)
        call.stop_reading = partial(hearing.end, CANCELLED)
        answer, mark, why = None, UNMARKED, "client_left"
        try:
            with hearing, self._exchange(turn, server, last) as exchange:
                self._admit(turn, *await hearing.head(exchange))
                await turn.responder.start_stream()
                answer, mark = await hearing.pass_on(exchange, shaper.upstream_id)
                exchange.let_end()
            why = "answered"
            call.finish("ok")
        except Over as over:
            why = over.why
            if why in _LOST:
                answer = shaper.failed()
                call.fail(_FAILED)
        except ServerFailed as failed:
            why = failed.reason
            note_failed(turn, server, failed, turn.responder.status)
            if why not in RESUMED or not turn.responder.started:
                answer = shaper.failed()
                call.fail(_FAILED)
        except TidegateError as error:  # the redactor: nothing unmasked leaves
            why = error.code
            answer = Answer(error_of(error, turn.responder.request_id, id=shaper.call.id))
            call.fail(error.code)
        finally:
            call.let_go()
            _note_resumed(turn, shaper, why)
        return await _ended(turn, why) if answer is None else await _told(turn, answer, mark)

    def _exchange(self, turn: Turn, server: ToolServer, last: Place | None) -> Exchange:
        if turn.session is None:
            raise TypeError("nobody listens without a session")
        return self._relay.carriers.of(server.place).listening(
            owner_of(turn.principal),
            turn.upstream_session,
            turn.revision,
            None if last is None else last.upstream_id,
            client=turn.client_session,
        )

    def _admit(self, turn: Turn, status: int, head: Mapping[str, str]) -> None:
        """Whether the server gives a stream; raises Over and ServerFailed if it does not."""
        if status == 404 and turn.session is not None and turn.upstream_session is not None:
            self._relay.shared.end_soon(turn.session)
            raise Over("session_ended")
        if status in _WORDS:
            raise Over(_WORDS[status])
        if not 200 <= status < 300:
            raise ServerFailed("status")
        kind = head.get("content-type", _EVENTS).split(";", 1)[0].strip().lower()
        if kind != _EVENTS:
            raise Over("no_stream")

    async def _still_good(
        self, turn: Turn, session: Session | None, scope: Scope, until_s: float
    ) -> None:
        """Whether this stream would be opened again now; raises Over if not."""
        await self._in_time(turn, session, until_s)
        if self._policy() is not turn.policy:
            raise Over("configuration_changed")
        try:
            principal = await identify(turn.policy.keys, turn.policy.tokens, scope)
        except TidegateError:
            raise Over("credential_ended") from None
        if principal != turn.principal:
            raise Over("credential_ended")

    async def _in_time(self, turn: Turn, session: Session | None, until_s: float) -> None:
        """Listening keeps a session in use, if there is one."""
        now_s = self._clock.monotonic_s()
        if now_s >= until_s:
            raise Over("lifetime")
        if session is None:
            return
        try:
            await self._relay.shared.bring(session.id, turn.principal)
        except StoreUnavailable:
            raise Over("session_ended") from None
        now_s = self._clock.monotonic_s()
        if self._relay.sessions.find(session.id, turn.principal, now_s) is not session:
            raise Over("session_ended")


def _server(turn: Turn) -> ToolServer:
    """The one that the client's session is with."""
    return next(iter(turn.policy.servers.values()))


def _nobodys(turn: Turn, server: ToolServer, session: Session) -> RunningCall:
    owner = owner_of(turn.principal)
    return RunningCall(owner, server.name, session.id, turn.peer, _NOBODYS.id, _NOBODYS.id)


def _last_place(scope: Scope, session: Session) -> Place | None:
    """Where the client says it was; raises Rejected for what it was never told."""
    values = [value for name, value in scope["headers"] if name == _LAST_EVENT]
    told = [value for value in values if value]
    if not told:
        return None
    found = place(session.secret, told[0].decode("latin-1")) if len(values) == 1 else None
    if found is None:
        raise rejected(_BAD_PLACE)
    return found


def _note_resumed(turn: Turn, shaper: Shaper, why: str) -> None:
    subject = subject_of(shaper.call)
    tool = subject.name if subject is not None and subject.kind == "tools" else None
    turn.trail.step("resume", "ended", reason=why, method=shaper.call.method, tool=tool)


async def _told(turn: Turn, answer: Answer, mark: Mark) -> str:
    """The answer to the call, at the end of the stream."""
    if not turn.responder.started:
        await turn.responder.start_stream()
    await turn.responder.end(event_of(answer.data, mark))
    return "ok"


async def _ended(turn: Turn, why: str) -> str:
    """The end of a stream, or the refusal of one that has not begun."""
    if turn.responder.started:
        await turn.responder.end()
        return "ok"
    match why:
        case "no_stream":
            raise MethodNotAllowed("GET")
        case "bad_place":
            raise rejected(_BAD_PLACE)
        case "taken":
            raise rejected("This stream has a reader already", 409)
        case "session_ended":
            raise Rejected(unknown_session(None), "gateway.not_found")
        case "draining":
            raise Overloaded("draining")
        case _:
            await turn.responder.json(502, generic(None, turn.responder.request_id))
            return _FAILED


__all__ = ["StreamCaps", "ToolStreams"]
