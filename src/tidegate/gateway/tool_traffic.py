"""What happens to one MCP request, in order?

    1 identity   headers -> Principal                       401 and -32000
    2 body       bounded bytes                              413 415
    3 jsonrpc    one strict parse                           -32700 -32600
    4 headers    do they say what the body says?            400 and -32020 -32022
    5 authorize  each message                               -32001, HTTP 200
      offer      does the server have it? (hide_denied)     as a denial
      pins       is the tool what was approved?             as a denial
      redaction  of arguments                               -31004
    6 batch      split: forwarded | answered | dropped
    7 limits     calls in their windows; a denied one is free
    8 record     the intent is on disk before anything leaves
    9 upstream   what was allowed, re-serialized, with our own credential
   10 listing    what may not be called is not seen
   11 redaction  of every message that comes back
   12 batch      answers merged in request order
   13 record     one end, whatever ended it

Lives here: this order, and what a request holds while it runs. Does not live here: any of the
decisions (mcp), how a message is carried (tool_requests.relay), what a client gets of what comes
back (tool_requests.answer).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from tidegate.clock import Clock
from tidegate.errors import MethodNotAllowed, NotFound, RateLimited, RequestExceedsLimit
from tidegate.gateway.accounting import Account, Accounting, note_limit
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.body import BodyReader
from tidegate.gateway.charge import Charge, Charging
from tidegate.gateway.identify import identify
from tidegate.gateway.limit_headers import DEGRADED
from tidegate.gateway.respond import Receive, Responder, Scope
from tidegate.gateway.tool_requests.among import judge_among
from tidegate.gateway.tool_requests.answer import Answer
from tidegate.gateway.tool_requests.call import judge, mask, place, place_ending, read
from tidegate.gateway.tool_requests.client_side import ClientSide, Collected
from tidegate.gateway.tool_requests.federation import ToolFederation
from tidegate.gateway.tool_requests.relay import ToolRelay
from tidegate.gateway.tool_requests.shares import Shares
from tidegate.gateway.tool_requests.streams import StreamCaps, ToolStreams
from tidegate.gateway.tool_requests.suspended import CANCELLED
from tidegate.gateway.tool_requests.turn import Plan, Rejected, ToolTrafficPolicy, Turn, no_session
from tidegate.jsonrpc import Batch, Message, Request, error_of, typed
from tidegate.limits.ledger import Need, Standing
from tidegate.mcp.batch import Key, merge
from tidegate.mcp.denials import Refusal
from tidegate.mcp.eras import LISTEN, read_headers
from tidegate.records.entries import Trail

_LEASE_GRACE_S: Final = 30.0
_UNREAD_S: Final = 5.0
_LISTEN_WEIGHT: Final = 64
"""Judging a URI costs up to 20 us a byte, looking for secrets less than one."""


class ToolTraffic:
    """Serves the MCP endpoint. `policy` gives the revision that is in force.

    Sessions, tasks and running calls live as long as this object and survive a reload.
    """

    def __init__(
        self,
        *,
        policy: Callable[[], ToolTrafficPolicy],
        bodies: BodyReader,
        charging: Charging,
        accounting: Accounting,
        relay: ToolRelay,
        clock: Clock,
        caps: StreamCaps | None = None,
    ) -> None:
        self._policy = policy
        self._bodies = bodies
        self._charging = charging
        self._accounting = accounting
        self.relay = relay
        self.streams = ToolStreams(relay, policy, clock, caps)
        self._federation = ToolFederation(relay, clock, keep_alive_s=relay.times.keep_alive_s)
        own = (caps or StreamCaps()).requests
        self._requests = Shares("requests", most=None, of_principal=own, retry_after_s=1.0)
        most = (caps or StreamCaps()).answers_bytes
        self._answers = Shares(
            "answers", most=most, of_principal=most // 4, retry_after_s=_UNREAD_S
        )
        self._call_s = relay.times.total_s
        self._clock = clock

    async def close(self) -> None:
        """Settle what calls hold that nobody came back for."""
        await self.relay.offers.close()
        await self.relay.resumables.close()

    async def serve(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        """Answer one request; raises the TidegateError that the client gets otherwise."""
        responder.error_body = error_of
        policy, headers = self._policy(), scope["headers"]
        principal = await identify(policy.keys, policy.tokens, scope)
        trail = Trail.begin(
            "mcp", responder.request_id, principal, policy.revision, headers=headers
        )
        async with self._accounting.accounted(trail, responder) as account:
            if not policy.servers:
                raise NotFound("no MCP server is configured")
            turn = Turn(
                policy=policy,
                principal=principal,
                headers=read_headers(headers),
                trail=trail,
                responder=responder,
                peer=scope.get("client"),
            )
            responder.error_body = turn.error_body
            responder.hold = partial(self._answers.taken, principal)
            await self.relay.shared.meet(turn)
            with self._requests.taken(principal):
                await self._serve(turn, account, scope, receive)

    async def _serve(self, turn: Turn, account: Account, scope: Scope, receive: Receive) -> None:
        try:
            match scope["method"]:
                case "POST":
                    await self._post(turn, account, scope, receive)
                case "GET":
                    intent = self._accounting.recorder.intent
                    account.outcome = await self.streams.serve(turn, scope, intent)
                case "DELETE":
                    await self._delete(turn)
                case _:
                    raise MethodNotAllowed(scope["method"])
        except Rejected as rejected:
            account.outcome = rejected.code
            await _respond(turn, rejected.refusal)

    async def _post(self, turn: Turn, account: Account, scope: Scope, receive: Receive) -> None:
        """One message or one batch, from its bytes to its answer."""
        async with self._bodies.raw(scope, receive) as data:
            message = await beside_the_loop(len(data), read, data)
        relay = self.relay
        place(turn, message, relay.sessions, self._clock.monotonic_s())
        messages = message.messages if isinstance(message, Batch) else (message,)
        await relay.shared.prepare(turn, messages)
        plans = await self._judged(turn, messages, len(data))
        intent = self._accounting.recorder.intent
        await relay.offers.calls(turn, plans, messages, intent)
        await relay.pins.calls(turn, plans, messages, intent)
        await beside_the_loop(len(data), mask, turn, plans)
        async with AsyncExitStack() as stack:
            charges = await self._reserve(turn, plans, stack)
            if any(plan.forwards for plan in plans):
                await intent(turn.trail)
            for charge in charges:
                charge.commit()
            if isinstance(message, Batch):
                await self._answer_batch(turn, message, plans)
                account.outcome = next((p.outcome for p in plans if p.outcome != "ok"), "ok")
            else:
                try:
                    await self._answer(turn, plans[0], scope)
                finally:
                    if (call := plans[0].suspended) is not None:
                        call.hold(stack.pop_all(), account.postpone())
                account.outcome = plans[0].outcome

    async def _judged(self, turn: Turn, messages: Sequence[Message], size_bytes: int) -> list[Plan]:
        """Each message on its own; between two of a batch others have their turn.

        A subscription may name a thousand resources. Judging it only reads what others hold.
        """
        judging = judge if turn.policy.federation is None else judge_among
        plans: list[Plan] = []
        for each in messages:
            if plans:
                await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
            is_long = isinstance(each, Request) and each.method == LISTEN
            work_bytes = size_bytes * _LISTEN_WEIGHT if is_long else 0
            asked = (turn, each, self.relay.sessions, self.relay.calls)
            plans.append(await beside_the_loop(work_bytes, judging, *asked))
        return plans

    async def _reserve(self, turn: Turn, plans: list[Plan], stack: AsyncExitStack) -> list[Charge]:
        """Take the calls that will be forwarded out of their windows.

        One that does not fit is answered instead; the others of its batch go on.
        """
        charges = []
        # The elements of a batch run one after the other, and it ends as a whole.
        lease_s = self._call_s * sum(plan.forwards for plan in plans) + _LEASE_GRACE_S
        for number, plan in enumerate(plans):
            tool = plan.charged_tool
            if tool is None:
                continue
            owed = turn.policy.limits.charges(
                turn.principal, server=plan.server.name, tool=tool, need=Need()
            )
            reservation = f"{turn.responder.request_id}-{number}"
            try:
                charges.append(
                    await stack.enter_async_context(
                        self._charging.reserved(
                            reservation, owed, lease_s, tell=partial(_show_degraded, turn)
                        )
                    )
                )
            except (RateLimited, RequestExceedsLimit) as error:
                note_limit(turn.trail, error)
                if turn.policy.errors == "spec" and len(plans) == 1:
                    raise
                plan.refuse(error, turn)
        return charges

    async def _answer(self, turn: Turn, plan: Plan, scope: Scope) -> None:
        """A single message: its answer, or 202 for one that has none.

        A notification that was denied gets the same 202: there is nobody to tell.
        """
        if plan.refusal is not None:
            await _respond(turn, plan.refusal)
        elif isinstance(plan.message, Request):
            if plan.message.method == LISTEN:
                forward = partial(self._forward, turn, plan)
                plan.outcome = await self.streams.subscribe(turn, plan, scope, forward)
            else:
                plan.outcome = await self._forward(turn, plan)
        elif plan.forwards and await self.relay.deliver(turn, plan) == 404 and turn.session:
            raise Rejected(no_session(None), "gateway.not_found")
        else:
            await turn.responder.empty(202)

    async def _forward(
        self, turn: Turn, plan: Plan, client: ClientSide | Collected | None = None
    ) -> str:
        """To one server, or to each that has a part in the answer."""
        if plan.parts is None:
            return await self.relay.forward(turn, plan, client)
        return await self._federation.answer(turn, plan, client)

    async def _answer_batch(self, turn: Turn, batch: Batch, plans: list[Plan]) -> None:
        """Each element on its own, one after the other; then the answers in request order."""
        answers: dict[Key, bytes] = {}
        for plan in plans:
            request = plan.message if isinstance(plan.message, Request) else None
            if request is None:
                if plan.forwards:
                    await self.relay.deliver(turn, plan)
            elif plan.refusal is not None:
                answers[typed(request.id)] = Answer.of(plan.refusal).data
            else:
                collected = Collected()
                plan.outcome = await self._forward(turn, plan, collected)
                is_wanted = plan.outcome != CANCELLED
                answers[typed(request.id)] = collected.answer.data if is_wanted else b""
        merged = [answer for answer in merge(batch, answers) if answer]
        if merged:
            await turn.responder.json(200, b"[" + b",".join(merged) + b"]")
        else:
            await turn.responder.empty(202)

    async def _delete(self, turn: Turn) -> None:
        """The end of a legacy session, by its owner."""
        place_ending(turn, self.relay.sessions, self._clock.monotonic_s())
        await self._accounting.recorder.intent(turn.trail)
        await self.relay.end_session(turn)


def _show_degraded(
    turn: Turn,
    _standings: Sequence[Standing],
    degraded: bool,  # noqa: FBT001 - of Tell
) -> None:
    if degraded and DEGRADED not in turn.responder.extra:
        turn.responder.extra.append(DEGRADED)


async def _respond(turn: Turn, refusal: Refusal) -> None:
    if refusal.challenge is not None and turn.policy.tokens is not None:
        refusal = replace(refusal, challenge=turn.policy.tokens.pointed(refusal.challenge))
    answer = Answer.of(refusal)
    await turn.responder.json(answer.status, answer.data, answer.headers)


__all__ = ["ToolTraffic", "ToolTrafficPolicy"]
