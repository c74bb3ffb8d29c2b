"""How do the bytes of one attempt reach the client?

Lives here: one request on its way (ChatCall), the clocks while it is answered, and the moment
from which the tenant pays. Does not live here: which target is asked (attempts), what may leave
(pipeline), when a reservation ends (charge).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.clock import Clock
from tidegate.errors import (
    AllProvidersFailed,
    ContentBlocked,
    TidegateError,
    UpstreamInterrupted,
)
from tidegate.gateway.beside import LARGE_BYTES, beside_the_loop
from tidegate.gateway.charge import Charge
from tidegate.gateway.classifier import Checker
from tidegate.gateway.clocks import Clocks
from tidegate.gateway.filters import guarded, unread
from tidegate.gateway.masking import CallMasking
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pipeline import ResponseStage
from tidegate.gateway.quote import Bill, Quote
from tidegate.gateway.respond import Header, Responder
from tidegate.gateway.spent import Spent
from tidegate.providers.base import Provider, Usage, UsageWish
from tidegate.records.entries import Trail
from tidegate.redaction.holes import Holes
from tidegate.routing.breaker import Verdict
from tidegate.routing.failover import Failover, Try
from tidegate.routing.outcome import TAXONOMY, Outcome
from tidegate.routing.plan import Deadlines, Target
from tidegate.transport.inbox import AttemptFailed, Inbox
from tidegate.transport.upstream import Failure

_POOL_GRACE_S = 0.25
_CLIENT_GRACE_S = 0.05
"""The upstream's own deadline fires first: only a client, or our own work, gets to this."""

OUTCOME_OF: Mapping[Failure, Outcome] = {
    Failure.UNREACHABLE: Outcome.UNREACHABLE,
    Failure.RESET: Outcome.UNREACHABLE,
    Failure.MALFORMED: Outcome.MALFORMED,
    Failure.TOO_LARGE: Outcome.MALFORMED,
    Failure.TIMEOUT: Outcome.TIMEOUT,
    # Our own cut is no fault of the target.
    Failure.DRAINING: Outcome.CANCELLED,
}

_LOST = frozenset({Outcome.UNREACHABLE, Outcome.INTERRUPTED})
PASSING = frozenset({Failure.UNREACHABLE, Failure.RESET})
"""What a second call to the same target may not meet again."""


@dataclass(slots=True)
class ChatCall:
    """One admitted chat request on its way; made by the path function, changed only here."""

    body: bytes
    model: str | None
    stream: bool
    quote: Quote
    providers: Mapping[str, Provider]
    masking: CallMasking
    deadlines: Deadlines
    started_s: float
    failover: Failover
    charge: Charge
    trail: Trail
    responder: Responder
    checker: Checker | None = None
    choices: int = 1
    """How many the client asked for; 0: what it wrote is odd."""
    fallback: bool = True
    """Other targets may be asked; else a client's own retry may do better than ours did."""
    slow_tokens_per_s: float = 0.0
    """A stream that comes slower is noted against its target; 0: none is."""
    wish: UsageWish = "keep"
    """How we ask for usage when the client did not; then we keep the report to ourselves."""
    began_s: float = 0.0
    """When the attempt under way began; 0.0 while its provider has not been asked."""
    upstream_status: int = 0
    """Of the attempt under way; 0 before its head has come."""
    stage: ResponseStage | None = None
    """Of the attempt under way; None before its head has come with a 200."""
    passed: tuple[Header, ...] = ()
    """What the client may see of that head."""
    bill: Bill | None = None
    """What the client owes for the answer so far; None while it owes nothing."""

    def charge_for(self, target: Target, spent: Spent) -> None:
        """From now on the client pays for what this answer of `target` has used."""
        self.bill = self.quote.bill(target, spent)
        self.charge.use(self.bill.need, counted=self.bill.counted)


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended.

    `status` is the upstream's (0: no answer), `retry_after_s` its own wish, if it had one.
    `code` is what the client was told in an answer that had begun, `usage` what the provider says
    it used for one that had not. `passing`: the same call may
    succeed in a moment. `slow`: the tokens dripped.
    """

    outcome: Outcome
    status: int = 0
    retry_after_s: float | None = None
    code: str = "ok"
    usage: Usage | None = None
    passing: bool = False
    slow: bool = False


class Relay:
    """One attempt that was answered with 200: from here on its bytes, clocks and end."""

    __slots__ = ("_call", "_clock", "_clocks", "_inbox", "_metrics", "_outcome", "_stage", "_step")

    def __init__(
        self,
        call: ChatCall,
        step: Try,
        inbox: Inbox,
        stage: ResponseStage,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._call = call
        self._step = step
        self._inbox = inbox
        self._stage = stage
        self._clock = clock
        self._metrics = metrics
        self._clocks = Clocks(
            clock,
            call.deadlines,
            stream=call.stream,
            started_s=call.started_s,
            began_s=call.began_s,
            due_s=step.deadline_s,
        )
        self._outcome = Outcome.OK

    async def run(self) -> Ended:
        """Pass on what the stage releases; OK, or why there is no (whole) answer.

        Raises a TidegateError of our own while nothing has left; afterwards it becomes the
        event that ends the answer.
        """
        responder = self._call.responder
        timer = asyncio.timeout(self._clocks.left_s + _CLIENT_GRACE_S)
        try:
            async with timer:
                await self._pump()
        except TimeoutError:
            if not timer.expired():
                raise  # somebody else's: a bug, and no news about time
            # The upstream's silence ends at its own deadline, before this.
            return await self._out_of_time()
        except AttemptFailed as failed:
            if (ended := await self._failed(failed.failure)) is not None:
                return ended
        except TidegateError as error:
            if not responder.started:
                self._charge_withheld(error)
                raise
            return await self._break_off(error, outcome_of(error))
        finally:
            if responder.started:
                self._account()
                self._note_found()
        return await self._end()

    async def _end(self) -> Ended:
        """The upstream has said all it will; what is left is to say how it ended."""
        responder = self._call.responder
        if not responder.started:
            return Ended(self._outcome, 200, usage=self._stage.spent.usage)
        if self._outcome is not Outcome.OK:
            return await self._break_off(UpstreamInterrupted(self._outcome.value), self._break())
        if not responder.complete:
            await responder.end()
        # The client has its answer. The connection can serve another attempt once the upstream
        # has ended its framing, but nobody waits for that: the reservation ends now.
        self._inbox.let_end(_POOL_GRACE_S)
        return self._ended(Outcome.OK)

    async def _failed(self, failure: Failure) -> Ended | None:
        """The upstream's part is over; None if an answer that had begun has broken off."""
        self._outcome = OUTCOME_OF[failure]
        if self._outcome is Outcome.TIMEOUT and self._clocks.was_held_up:
            return await self._out_of_time()
        if self._call.responder.started:
            return None
        return Ended(self._outcome, 200, passing=failure in PASSING)

    def _break(self) -> Outcome:
        """What the break of an answer that had begun says about its target."""
        if TAXONOMY[self._outcome].verdict is not Verdict.FAILURE:
            # A refusal of this one request stays one.
            return self._outcome
        given_up = self._outcome in _LOST and self._clocks.left_waiting
        return Outcome.CANCELLED if given_up else Outcome.INTERRUPTED

    async def _out_of_time(self) -> Ended:
        """The request's time is over, by the client or by our own work on it."""
        if not self._call.responder.started:
            raise AllProvidersFailed(self._call.failover.header, status=504)
        slow = UpstreamInterrupted("the client took too long")
        return await self._break_off(slow, Outcome.CANCELLED)

    async def _pump(self) -> None:
        stage, inbox = self._stage, self._inbox
        while not stage.complete:
            inbox.arm(self._clocks.due_s)
            try:
                chunk = await inbox.read()
            except AttemptFailed:
                if not stage.is_whole:
                    raise
                chunk = b""  # nothing but the form of its end was missing
            ready = await self._worked_on(chunk)
            self._clocks.saw(stage.tokens_seen)
            if ready and stage.holes is not None:
                ready = await self._filled(stage.holes, ready)
            if ready:
                inbox.disarm()
                with self._clocks.stopped():
                    await self._pass_on(ready)
            if stage.broken is not None:
                self._outcome = stage.broken
                return

    async def _worked_on(self, chunk: bytes) -> bytes:
        """What the stage makes of this read; b"" is the end of the message.

        So much that other requests would notice is worked on beside the loop, and the time that
        we need is not the upstream's.
        """
        stage = self._stage
        size_bytes = stage.held_bytes + len(chunk)
        if size_bytes <= LARGE_BYTES:
            return stage.feed(chunk) if chunk else stage.finish()
        self._inbox.disarm()
        with self._clocks.stopped():
            if chunk:
                return await beside_the_loop(size_bytes, stage.feed, chunk)
            return await beside_the_loop(size_bytes, stage.finish)

    async def _filled(self, holes: Holes, ready: bytes) -> bytes:
        """What leaves once a classifier has answered; its time is not the upstream's."""
        self._inbox.disarm()
        with self._clocks.stopped():
            if self._call.checker is not None:
                await self._call.checker.judge(holes, self._stage.found, "response")
            return await beside_the_loop(len(ready), guarded, holes.fill, ready)

    async def _pass_on(self, ready: bytes) -> None:
        call = self._call
        if not call.responder.started:
            # From here on the tenant pays for what it gets, and no other target is tried.
            now_s = self._clock.monotonic_s()
            call.charge.commit()
            call.failover.commit(now_s, first_token_s=self._clocks.first_token_s)
            self._account()
            self._metrics.first_byte(
                provider=self._step.target.provider, seconds=now_s - call.began_s
            )
            headers = self._headers()
            if not call.stream:
                await call.responder.json(200, ready, headers)
                return
            await call.responder.start_stream(headers)
        if self._stage.complete:
            await call.responder.end(ready)
        else:
            await call.responder.chunk(ready)

    async def _break_off(self, error: TidegateError, outcome: Outcome) -> Ended:
        call = self._call
        if isinstance(error, ContentBlocked):
            call.trail.step("redaction", "block", detector=error.kind)
        call.trail.step("cut", "error_event", code=error.code)
        await call.responder.end(self._stage.fail(error, call.responder.request_id))
        return self._ended(outcome, error.code)

    def _ended(self, outcome: Outcome, code: str = "ok") -> Ended:
        pace = self._call.slow_tokens_per_s
        slow = pace > 0 and self._clocks.is_slower(self._stage.spent.output_tokens, pace)
        return Ended(outcome, 200, code=code, slow=slow)

    def _charge_withheld(self, error: TidegateError) -> None:
        """An answer that our own policy withholds was still made for this tenant."""
        if isinstance(error, ContentBlocked):
            self._call.charge.commit()
            self._account()

    def _account(self) -> None:
        self._call.charge_for(self._step.target, self._stage.spent)

    def _note_found(self) -> None:
        mode = self._call.masking.masking.response
        if mode != "off":
            found = self._stage.found
            self._call.trail.counts(
                "redact_response",
                mode,
                dict(found),  # a thread that was left may still add to it
                **unread(found),
            )

    def _headers(self) -> tuple[Header, ...]:
        return (
            (b"x-tidegate-provider", self._step.target.provider.encode()),
            attempts_header(self._call.failover),
            *self._call.passed,
        )


def attempts_header(failover: Failover) -> Header:
    """Who was asked, and what came of it: words of ours and of the configuration."""
    return b"x-tidegate-attempts", failover.header.encode()


def outcome_of(error: BaseException) -> Outcome:
    """What an end that is no fault of the target says about it.

    It served, if all that happened is that our own policy blocked the content; else nothing.
    """
    return Outcome.OK if isinstance(error, ContentBlocked) else Outcome.CANCELLED
