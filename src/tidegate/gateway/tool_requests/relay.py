"""How does one message that may pass reach its server, and its answer the client?

Lives here: the exchange with the upstream as the client experiences it: statuses, sessions,
answers that do not come, a client that leaves. Does not live here: what may pass and in which
order (tool_traffic), the wire towards the server (servers.upstream).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable, TidegateError
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.respond import Header
from tidegate.gateway.servers.carrier import Carrier, Exchange
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.upstream import ServerFailed, ToolTimes
from tidegate.gateway.tool_requests.answer import Answer, Shaper
from tidegate.gateway.tool_requests.call import note_refused
from tidegate.gateway.tool_requests.client_side import ClientSide, Collected
from tidegate.gateway.tool_requests.endings import Ended, EndOfClient, UntilEnded
from tidegate.gateway.tool_requests.failures import named, note_failed, note_status, told
from tidegate.gateway.tool_requests.offered import OfferGate
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.suspended import CANCELLED, Resumables
from tidegate.gateway.tool_requests.turn import Plan, ToolServer, Turn
from tidegate.gateway.tool_requests.unheard import answer_unheard
from tidegate.jsonrpc import Notification, Tree, error_of
from tidegate.mcp.answers import READABLE, Ask, Incoming, Note, Reply, about, generic, sort
from tidegate.mcp.listing import effort
from tidegate.mcp.sessions import Recent, RunningCall, RunningCalls, Sessions
from tidegate.mcp.stream_places import UNMARKED, Mark, makes_place
from tidegate.mcp.stream_places import mark as marked
from tidegate.transport.upstream import Failure

logger = logging.getLogger(__name__)

SESSION_HEADER: Final = b"mcp-session-id"
_SESSION: Final = "mcp-session-id"
_MOST_SESSION_CHARS: Final = 1024
_MOST_TOLD: Final = 1024

SUSPENDED: Final = "suspended"
_LEFT: Final = "the client has gone"
_UNWAITED: Final = "no answer is waited for any more"
_GIVEN_UP: Final = frozenset({"timeout", "too_large", "malformed", "draining"})
"""Failures of a server that may still be at work."""

RESUMED: Final = frozenset({"no_answer", Failure.RESET.value})
"""How a stream ends that can be taken up again: let go by its server, or lost."""


class ToolRelay:
    """Forwards messages to their server. One per application; holds what outlives a request."""

    def __init__(
        self,
        carriers: Carriers,
        pins: PinGate,
        clock: Clock,
        times: ToolTimes | None = None,
        shared: ToolSessions | None = None,
    ) -> None:
        self.carriers = carriers
        self._clock = clock
        self.pins = pins
        self.times = times = times or ToolTimes()
        self.resumables = Resumables(clock, resume_s=times.resume_s)
        self.shared = shared or ToolSessions(Sessions(), clock)
        self.offers = OfferGate(pins, carriers, self.shared, clock)
        self.sessions = self.shared.local
        self.calls = RunningCalls()
        self.calls.elsewhere = self.shared.has_store
        self._told: Recent[int] = Recent(_MOST_TOLD)

    async def deliver(self, turn: Turn, plan: Plan) -> int:
        """Forward what has no answer; the upstream's status, 0 for none."""
        carrier = self.carriers.of(plan.server.place)
        try:
            with carrier.exchange(plan.asked(turn)) as exchange, self.calls.ending(plan.ends):
                if turn.session is not None and (cancelled := plan.cancels) is not None:
                    self.resumables.cancelled(turn.session, cancelled)
                status, _ = await exchange.head()
                exchange.let_end()
        except ServerFailed as failed:
            note_failed(turn, plan.server, failed, 0)
            return 0
        turn.trail.step("upstream", "ok", status=status, server=named(turn, plan.server))
        if status == 404 and turn.session is not None and turn.upstream_session is not None:
            self.shared.end_soon(turn.session)
        return status

    async def forward(
        self, turn: Turn, plan: Plan, client: ClientSide | Collected | None = None
    ) -> str:
        """Send one request and bring its answer to the client, or to what stands for it.

        Returns the word for the end of the request; `plan.suspended` if it has not come yet.
        """
        server, call = plan.server, plan.request
        if call.method == "initialize" and not turn.revision.modern:
            self.shared.check()
        carrier = self.carriers.of(server.place)
        EndOfClient.meet(turn, call.method, carrier)
        client = client or ClientSide(turn, keep_alive_s=self.times.keep_alive_s)
        with ExitStack() as held:
            running = held.enter_context(
                self.calls.running(turn.principal, server.name, turn.session, call.id, turn.peer)
            )
            shaper = Shaper(turn, plan, running, self.sessions)
            cancel = partial(self._cancel, turn, plan, carrier, running)
            self.pins.sending(plan)
            asked = plan.asked(turn, running.upstream_id, resumable=self._resumes(client))
            try:
                async with UntilEnded(running):
                    with carrier.exchange(asked) as exchange:
                        word = await self._relay(turn, plan, exchange, shaper, client, cancel)
                if word == SUSPENDED:
                    self._suspend(plan, client, held)
                    await client.let_go()
                elif client.resumable is not None:
                    client.resumable.finish(word)
                    client.resumable.let_go()
            except Ended:
                word = CANCELLED
                if client.resumable is not None:
                    client.resumable.finish(word)
                await client.let_go()
            except asyncio.CancelledError:
                if not self._suspend(plan, client, held):
                    cancel(_LEFT)
                raise
            finally:
                if shaper.unusable:
                    self._tell_unusable(turn, server, call.method, shaper.unusable)
                if plan.suspended is None:
                    shaper.note_counts()
        return word

    def _resumes(self, client: ClientSide | Collected) -> bool:
        return client.can_return and self.times.resume_s > 0

    def _suspend(self, plan: Plan, client: ClientSide | Collected, held: ExitStack) -> bool:
        """Whether the call goes on without this request: its client can come back for it."""
        call = client.resumable
        if call is None or plan.suspended is not None:
            return plan.suspended is not None
        plan.suspended = call
        call.keep(held.pop_all())
        call.let_go()
        return True

    def _tell_unusable(self, turn: Turn, server: ToolServer, method: str, count: int) -> None:
        """Things of the server that no client could name; the log hears of them once."""
        turn.trail.step("listing", "left_out", server=server.name, count=count)
        if self._told.get((server.key, method)) != count:
            self._told.put((server.key, method), count)
            logger.warning(
                "names_unusable", extra={"server": server.name, "method": method, "count": count}
            )

    async def end_session(self, turn: Turn) -> None:
        """Pass a DELETE on; our session ends when the upstream's has."""
        session = turn.session
        if session is None:
            raise TypeError("there is no session to end")
        if turn.upstream_session is None:
            await self.shared.end(session)
            await turn.responder.empty(200)
            return
        server = next(iter(turn.policy.servers.values()))
        carrier = self.carriers.of(server.place)
        try:
            with carrier.ending(session.upstream_id, session.version) as exchange:
                status, _ = await exchange.head()
                exchange.let_end()
        except ServerFailed as failed:
            note_failed(turn, server, failed, 0)
            status = 0
        if status == 405:
            await turn.responder.empty(405, ((b"allow", b"POST"),))
        elif 200 <= status < 300 or status == 404:
            await self.shared.end(session)
            await turn.responder.empty(status)
        else:
            await turn.responder.json(502, generic(None, turn.responder.request_id))

    async def _relay(
        self,
        turn: Turn,
        plan: Plan,
        exchange: Exchange,
        shaper: Shaper,
        client: ClientSide | Collected,
        cancel: Callable[[str], None],
    ) -> str:
        """Bring the answer home; whatever goes wrong becomes one, too.

        SUSPENDED: nothing went wrong, but the stream is over.
        """
        status, word, mark, gives_up = 0, "ok", UNMARKED, True
        try:
            status, head = await exchange.head()
            self._check_status(turn, plan.server, status)
            if status < 300:
                client.headers = self._open_session(turn, shaper, head)
            due_s = self._clock.monotonic_s() + self.times.total_s
            left = partial(cancel, _UNWAITED)
            marking = partial(self._mark, turn, shaper, client, left, due_s)
            answer, mark = await self._read(plan, exchange, status, shaper, client, marking)
            turn.trail.step("upstream", "ok", status=status, server=named(turn, plan.server))
        except ServerFailed as failed:
            if client.resumable is not None and failed.reason in RESUMED:
                turn.trail.step("upstream", "suspended", reason=failed.reason)
                return SUSPENDED
            note_failed(turn, plan.server, failed, status)
            gives_up = failed.reason in _GIVEN_UP
            if (own := told(plan.request.id, failed)) is not None:
                answer, word = Answer.of(own[1]), own[0]
            else:
                answer, word = shaper.failed(), "gateway.upstream_failed"
        except StoreUnavailable as error:  # nobody else would know the session, or the tasks
            client.headers = ()
            body = error_of(error, turn.responder.request_id, id=plan.request.id)
            answer, word = Answer(body, error.status), error.code
        except TidegateError as error:  # the redactor: nothing unmasked leaves
            turn.trail.step("upstream", "ok", status=status, server=named(turn, plan.server))
            note_refused(turn, "redact_result", error)
            body = error_of(error, turn.responder.request_id, id=plan.request.id)
            answer, word = Answer(body), error.code
        if word == "ok":
            exchange.let_end()
        elif gives_up and status < 300 and not shaper.running.answered:
            cancel(_UNWAITED)
        shaper.running.end = None
        await client.final(answer, streamed=exchange.is_stream, mark=mark)
        return word

    def _mark(
        self,
        turn: Turn,
        shaper: Shaper,
        client: ClientSide | Collected,
        cancel: Callable[[], None],
        due_s: float,
        incoming: Incoming,
    ) -> Mark:
        """What the client of a call is told of the place of an event, if it can come back."""
        session = turn.session
        if session is None or not makes_place(incoming) or not self._resumes(client):
            return UNMARKED
        if client.resumable is None:
            client.resumable = self.resumables.begin(session, shaper, cancel, due_s)
            shaper.lighten()
        if client.resumable is None:
            return UNMARKED
        return marked(session.secret, client.resumable.name, incoming)

    async def _read(
        self,
        plan: Plan,
        exchange: Exchange,
        status: int,
        shaper: Shaper,
        client: ClientSide | Collected,
        marking: Callable[[Incoming], Mark],
    ) -> tuple[Answer, Mark]:
        """Pass on what precedes the answer as it comes, and return the answer."""
        while (arrived := await client.waiting_for(exchange.read())) is not None:
            for incoming in arrived:
                sent_id = shaper.running.upstream_id
                message = sort(about(incoming, sent_id, status), sent_id)
                if message is None:
                    if shaper.primes and incoming.value is None:
                        await client.place(marking(incoming))
                    continue
                if isinstance(message, Ask) and not client.takes_asides:
                    answer_unheard(self.carriers, shaper.turn, plan.server, message)
                    continue
                await self.shared.learn(shaper, message)
                if isinstance(message, Note):
                    self.pins.heard(plan.server, message)
                size = incoming.size_bytes
                if isinstance(message, Reply):
                    shaper.running.answered = True
                    self.offers.listed(shaper.turn, plan, message)
                    shaper.pinned = await self.pins.listed(plan, message)
                    size = effort(shaper.call.method, size)
                    answer = await beside_the_loop(size, shaper.reply, message, status)
                    mark = UNMARKED if client.resumable is None else marking(incoming)
                    return answer, mark
                if (data := await beside_the_loop(size, shaper.aside, message)) is not None:
                    await client.live(data, marking(incoming))
        raise ServerFailed("no_answer")

    def _check_status(self, turn: Turn, server: ToolServer, status: int) -> None:
        """Only an answer, or a refusal that may say why, is read at all."""
        if status == 404 and turn.session is not None and turn.upstream_session is not None:
            self.shared.end_soon(turn.session)
            raise ServerFailed("session_ended")
        note_status(turn, server, status)
        if not 200 <= status < 300 and status not in READABLE:
            raise ServerFailed("status")

    def _open_session(
        self, turn: Turn, shaper: Shaper, head: Mapping[str, str]
    ) -> tuple[Header, ...]:
        """A session of our own for the one the upstream minted; its header for the client."""
        theirs = head.get(_SESSION, "")
        opens = shaper.call.method == "initialize" and not turn.revision.modern
        if not opens or not 0 < len(theirs) <= _MOST_SESSION_CHARS:
            return ()
        now_s = self._clock.monotonic_s()
        realm = turn.policy.realm
        shaper.opened = self.sessions.open(turn.principal, realm, theirs, None, now_s)
        return ((SESSION_HEADER, shaper.opened.id.encode("ascii")),)

    def _cancel(
        self, turn: Turn, plan: Plan, carrier: Carrier, running: RunningCall, why: str
    ) -> None:
        """The call is left. A modern server notices that; a legacy one must be told."""
        if turn.revision.modern or plan.request.method == "initialize":
            return
        params: Tree = {"requestId": running.upstream_id, "reason": why}
        notice = Notification("notifications/cancelled", params)
        carrier.cast(Plan(notice, plan.server, turn.headers).asked(turn))


__all__ = ["RESUMED", "SESSION_HEADER", "SUSPENDED", "ToolRelay"]
