"""How does one message that may pass reach its server, and its answer the client?

Lives here: the exchange with the upstream as the client experiences it: statuses, sessions,
answers that do not come, a client that leaves. Does not live here: what may pass and in which
order (tool_traffic), the wire towards the server (tool_upstream).
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from tidegate.errors import TidegateError
from tidegate.gateway.beside import LARGE_BYTES, beside_the_loop
from tidegate.gateway.respond import Header
from tidegate.gateway.tool_answer import Answer, ClientSide, Collected, Shaper
from tidegate.gateway.tool_call import Plan, Turn, no_session
from tidegate.gateway.tool_upstream import Exchange, ServerFailed, ToolUpstream
from tidegate.jsonrpc import Id, Notification, Request, Tree, error_of
from tidegate.mcp.answers import Incoming, Reply, generic, sort
from tidegate.mcp.http_upstream import Outgoing, ending, outgoing
from tidegate.mcp.sessions import RunningCall, RunningCalls, Sessions
from tidegate.transport.upstream import Failure

logger = logging.getLogger(__name__)

_SESSION: Final = "mcp-session-id"
_READABLE_REFUSALS: Final = (400, 404)
_MOST_SESSION_CHARS: Final = 1024


class ToolRelay:
    """Forwards messages to their server. One per application; holds what outlives a request."""

    def __init__(self, upstream: ToolUpstream) -> None:
        self.upstream = upstream
        self.sessions = Sessions()
        self.calls = RunningCalls()

    async def deliver(self, turn: Turn, plan: Plan) -> int:
        """Forward what has no answer; the upstream's status, 0 for none."""
        message = self._outgoing(turn, plan)
        try:
            with self.upstream.exchange(turn.server.address.url, message) as exchange:
                status, _ = await exchange.head()
                exchange.let_end()
        except ServerFailed as failed:
            _note_failed(turn, failed, 0)
            return 0
        turn.trail.step("upstream", "ok", status=status)
        if status == 404 and turn.session is not None:
            self.sessions.close(turn.session)
        return status

    async def forward(self, turn: Turn, plan: Plan, collected: Collected | None = None) -> str:
        """Send one request and bring its answer to the client, or into `collected`.

        Returns the word for the end of the request.
        """
        call = plan.message
        if not isinstance(call, Request):
            raise TypeError("only a request has an answer")
        name, url = turn.server.address.name, turn.server.address.url
        with self.calls.running(turn.principal, name, turn.session, call.id, turn.peer) as running:
            shaper = Shaper(turn, call, running, self.sessions)
            message = self._outgoing(turn, plan, running.upstream_id)
            endless = call.method == "subscriptions/listen"
            try:
                with self.upstream.exchange(url, message, endless=endless) as exchange:
                    return await self._relay(turn, exchange, shaper, running, collected)
            except asyncio.CancelledError:
                self._cancel(turn, call, running)
                raise
            finally:
                mode = turn.server.masking.tool_results
                found = shaper.counts
                turn.trail.counts("redact_result", mode, found, unscanned=found.unscanned)

    async def end_session(self, turn: Turn) -> None:
        """Pass a DELETE on; our session ends when the upstream's has."""
        session = turn.session
        if session is None:
            raise TypeError("there is no session to end")
        message = ending(turn.server.address, session.version, session.upstream_id)
        url = turn.server.address.url
        try:
            with self.upstream.exchange(url, message, method="DELETE") as exchange:
                status, _ = await exchange.head()
                exchange.let_end()
        except ServerFailed as failed:
            _note_failed(turn, failed, 0)
            status = 0
        if status == 405:
            await turn.responder.empty(405, ((b"allow", b"POST"),))
        elif 200 <= status < 300 or status == 404:
            self.sessions.close(session)
            await turn.responder.empty(status)
        else:
            await turn.responder.json(502, generic(None, turn.responder.request_id))

    async def _relay(
        self,
        turn: Turn,
        exchange: Exchange,
        shaper: Shaper,
        running: RunningCall,
        collected: Collected | None,
    ) -> str:
        """Bring the answer home; whatever goes wrong becomes one, too."""
        keep_alive_s = self.upstream.times.keep_alive_s
        client: ClientSide | Collected = collected or ClientSide(turn, keep_alive_s=keep_alive_s)
        status, word = 0, "ok"
        try:
            status, head = await exchange.head()
            self._check_status(turn, status)
            if status < 300:
                client.headers = self._open_session(turn, shaper, head)
            answer = await self._read(exchange, status, shaper, running, client)
            turn.trail.step("upstream", "ok", status=status)
        except ServerFailed as failed:
            _note_failed(turn, failed, status)
            if failed.reason == "session_ended":
                answer, word = Answer.of(no_session(running.client_id)), "gateway.not_found"
            else:
                answer, word = shaper.failed(), "gateway.upstream_failed"
        except TidegateError as error:  # the redactor: nothing unmasked leaves
            body = error_of(error, turn.responder.request_id, id=running.client_id)
            answer, word = Answer(body), error.code
        if word == "ok":
            exchange.let_end()
        await client.final(answer, streamed=exchange.is_stream)
        return word

    async def _read(
        self,
        exchange: Exchange,
        status: int,
        shaper: Shaper,
        running: RunningCall,
        client: ClientSide | Collected,
    ) -> Answer:
        """Pass on what precedes the answer as it comes, and return the answer."""
        while (arrived := await client.waiting_for(exchange.read())) is not None:
            for incoming in arrived:
                message = sort(
                    _refusal_of(incoming, status, running.upstream_id), running.upstream_id
                )
                if message is None:
                    continue
                shaper.learn(message)
                # Without bytes of its own it came in an array, of any size.
                size = LARGE_BYTES + 1 if message.raw is None else len(message.raw)
                if isinstance(message, Reply):
                    return await beside_the_loop(size, shaper.reply, message, status)
                if (data := await beside_the_loop(size, shaper.aside, message)) is not None:
                    await client.live(data)
        raise ServerFailed("no_answer")

    def _check_status(self, turn: Turn, status: int) -> None:
        """Only an answer, or a refusal that may say why, is read at all."""
        if status == 404 and turn.session is not None:
            self.sessions.close(turn.session)
            raise ServerFailed("session_ended")
        if status in (401, 403):
            logger.error(
                "mcp_credential_refused",
                extra={
                    "request_id": turn.responder.request_id,
                    "server": turn.server.address.name,
                    "status": status,
                },
            )
        if not 200 <= status < 300 and status not in _READABLE_REFUSALS:
            raise ServerFailed("status")

    def _open_session(
        self, turn: Turn, shaper: Shaper, head: Mapping[str, str]
    ) -> tuple[Header, ...]:
        """A session of our own for the one the upstream minted; its header for the client."""
        theirs = head.get(_SESSION, "")
        opens = shaper.call.method == "initialize" and not turn.revision.modern
        if not opens or not 0 < len(theirs) <= _MOST_SESSION_CHARS:
            return ()
        now_s = self.upstream.clock.monotonic_s()
        url = turn.server.address.url
        shaper.opened = self.sessions.open(turn.principal, url, theirs, None, now_s)
        return ((_SESSION.encode("ascii"), shaper.opened.id.encode("ascii")),)

    def _outgoing(self, turn: Turn, plan: Plan, upstream_id: Id | None = None) -> Outgoing:
        session = turn.session.upstream_id if turn.session is not None else None
        return outgoing(
            plan.message,
            turn.server.address,
            turn.revision,
            plan.headers,
            session=session,
            upstream_id=upstream_id,
        )

    def _cancel(self, turn: Turn, call: Request, running: RunningCall) -> None:
        """The client has gone. A modern server notices that we leave; a legacy one must be told."""
        if turn.revision.modern or call.method == "initialize":
            return
        params: Tree = {"requestId": running.upstream_id, "reason": "the client has gone"}
        plan = Plan(Notification("notifications/cancelled", params), turn.headers)
        self.upstream.cast(turn.server.address.url, self._outgoing(turn, plan))


def _note_failed(turn: Turn, failed: ServerFailed, status: int) -> None:
    """The server did not answer, or not with MCP: in the record and in the log."""
    turn.trail.step("upstream", "failed", reason=failed.reason, status=status)
    if failed.reason not in ("session_ended", Failure.DRAINING):
        logger.warning(
            "tool_server_failed",
            extra={
                "request_id": turn.responder.request_id,
                "server": turn.server.address.name,
                "reason": failed.reason,
                "upstream_status": status,
            },
        )


def _refusal_of(incoming: Incoming, status: int, upstream_id: Id) -> Incoming:
    """An error without an id, in an answer with an error status, is about our request."""
    value = incoming.value
    if status not in _READABLE_REFUSALS or not isinstance(value, dict) or "error" not in value:
        return incoming
    return Incoming({**value, "id": upstream_id})


__all__ = ["ToolRelay"]
