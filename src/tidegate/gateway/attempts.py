"""How is one chat request carried to the targets of its route?

Lives here: the walk that tries target after target until one answer has begun to leave. Does
not live here: which target is next (routing.failover), how an answer's bytes get to the client
(relay), what may leave (pipeline).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tidegate.clock import Clock
from tidegate.errors import AllProvidersFailed, Overloaded
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pause import pause
from tidegate.gateway.pipeline import ChatAnswer, ChatStream, ResponseStage
from tidegate.gateway.relay import (
    OUTCOME_OF,
    PASSING,
    ChatCall,
    Ended,
    Relay,
    attempts_header,
    outcome_of,
)
from tidegate.gateway.spent import Spent
from tidegate.gateway.target_watch import TargetWatch
from tidegate.limits.ledger import Need
from tidegate.providers.base import UsageWish
from tidegate.providers.openai import chat_request, refuses_usage
from tidegate.providers.passed import passed_headers
from tidegate.providers.usage import reported_usage
from tidegate.routing.failover import Try
from tidegate.routing.outcome import Outcome, classify, retry_after_s
from tidegate.routing.retry_after import scarce_for_s
from tidegate.transport.inbox import AttemptFailed, Inbox, Inboxes
from tidegate.transport.upstream import Transport, UpstreamRequest

logger = logging.getLogger(__name__)

_ERROR_BODY_BYTES = 65_536
_MOST_REFUSING = 1024
_REFUSES_FOR_S = 600.0
"""A refusal is believed for so long: providers are updated, and streams are counted by their text
meanwhile."""

_OPTION = b"stream_options"
_REFUSALS = frozenset({Outcome.REJECTED, Outcome.FILTERED})
"""The provider may have read the prompt before it refused just this one; nobody else is asked."""

_PASSING_STATUS = 500
"""A second call to the same target may not meet it again. Statuses that speak of overload, or of a
gateway in between, last longer: asking at once would only add to it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an upstream may send, in bytes, and how long the body of an error may take.

    The status of an error has come and decides: its body only refines the decision.
    """

    event_bytes: int
    before_commit_bytes: int
    error_body_s: float = 1.0


class _UsageRefused(Exception):
    """The provider does not know the option by which we asked for usage."""


class Attempts:
    """Carries calls over one transport.

    It remembers which providers refuse to be asked for usage, and nothing else of a call. `random`
    is the one source of chance: tests give a seeded one.
    """

    def __init__(
        self,
        transport: Transport,
        inboxes: Inboxes,
        clock: Clock,
        bounds: Bounds,
        metrics: Metrics,
        random: Random,
    ) -> None:
        self.random = random
        self._transport = transport
        self._inboxes = inboxes
        self._clock = clock
        self._metrics = metrics
        self._bounds = bounds
        self._watch = TargetWatch(metrics, clock)
        self._refusing_usage: dict[tuple[str, str | None], float] = {}

    async def answer(self, call: ChatCall) -> str:
        """Answer the client from the first target that can; raises what the client gets if none.

        Before the first byte has left every fault moves on to the next target; after it an
        error event ends the answer. Returns "ok", or the code of that error. A cancelled call
        counts against no target.
        """
        failover = call.failover
        step = failover.start(self._clock.monotonic_s())
        self._watch.note(failover, call.trail.request_id)
        noted = self._note_skipped(call, 0)
        while isinstance(step, Try):
            ended = await self._carried(step, call)
            now_s = self._clock.monotonic_s()
            if ended.outcome in _REFUSALS:
                _charge_refused(call, step, ended)
            self._note(call, step, ended)
            jitter = self.random.uniform(-1.0, 1.0)
            if call.responder.started:
                failover.finished(ended.outcome, now_s, slow=ended.slow, jitter=jitter)
                self._watch.note(failover, call.trail.request_id, asked=step.target)
                return ended.code
            asked = step.target
            step = failover.on(
                ended.outcome,
                now_s,
                retry_after_s=ended.retry_after_s,
                passing=ended.passing,
                jitter=jitter,
            )
            self._watch.note(failover, call.trail.request_id, asked=asked, then=step)
            noted = self._note_skipped(call, noted)
        call.responder.extra.append(attempts_header(failover))
        if not call.fallback and isinstance(step.error, AllProvidersFailed):
            # That all targets were tried, which makes a retry useless, is not so here.
            step.error.should_retry = None
        raise step.error

    async def _carried(self, step: Try, call: ChatCall) -> Ended:
        """One attempt, not before its time; given back to its target if somebody else ended it."""
        await self._until_due(step, call)
        try:
            ended = await self._attempt(step, call)
        except BaseException as error:
            self._give_back(call, step, error)
            raise
        if self._inboxes.is_cut and not call.responder.started:
            # Our own cut is no fault of the target.
            draining = Overloaded("draining")
            self._give_back(call, step, draining)
            raise draining
        return ended

    async def _until_due(self, step: Try, call: ChatCall) -> None:
        """Wait until `step` may begin. Who leaves meanwhile has asked nobody again."""
        if step.again:
            try:
                await pause(step.not_before_s - self._clock.monotonic_s())
            except asyncio.CancelledError:
                # As after any attempt that gave nothing: it counts as a request.
                call.charge.use(Need())
                call.charge.commit()
                call.failover.cancelled(self._clock.monotonic_s())
                raise
        if self._inboxes.is_cut:
            call.failover.cancelled(self._clock.monotonic_s())
            raise Overloaded("draining")

    def _give_back(self, call: ChatCall, step: Try, error: BaseException) -> None:
        """The attempt ended by no fault of its target: the client left, or we failed."""
        if isinstance(error, asyncio.CancelledError) and not call.charge.committed:
            _charge_who_left(call, step)
        outcome = outcome_of(error)
        call.failover.finished(outcome, self._clock.monotonic_s())
        self._watch.note(call.failover, call.trail.request_id, asked=step.target)
        self._note(call, step, Ended(outcome, call.upstream_status))

    def _note_skipped(self, call: ChatCall, noted: int) -> int:
        """Record the targets that were passed over since `noted`; how many there are by now."""
        skips = call.failover.skips
        for skip in skips[noted:]:
            target = skip.target
            call.trail.step(
                "attempt",
                skip.outcome.value,
                provider=target.provider,
                model=target.upstream_model,
                credential=target.credential or None,
                reason=skip.opened_by,
                wait_s=round(skip.wait_s, 3),
            )
        return len(skips)

    def _note(self, call: ChatCall, step: Try, ended: Ended) -> None:
        target = step.target
        tokens, micros = _abandoned(call, step, ended.outcome)
        call.trail.step(
            "attempt",
            ended.outcome.value,
            provider=target.provider,
            model=target.upstream_model,
            credential=target.credential or None,
            status=ended.status or None,
            took_ms=self._took_ms(call),
            abandoned_tokens=tokens,
            abandoned_micros=micros,
        )
        if ended.outcome not in (Outcome.OK, Outcome.CANCELLED):
            logger.warning(
                "attempt_failed",
                extra={
                    "request_id": call.trail.request_id,
                    "provider": target.provider,
                    "outcome": ended.outcome.value,
                    "upstream_status": ended.status,
                },
            )

    def _took_ms(self, call: ChatCall) -> float | None:
        if not call.began_s:
            return None
        return round((self._clock.monotonic_s() - call.began_s) * 1000.0, 1)

    async def _attempt(self, step: Try, call: ChatCall) -> Ended:
        until_s = self._refusing_usage.get(_model_of(step, call), 0.0)
        asks = self._clock.monotonic_s() >= until_s
        try:
            return await self._ask(step, call, call.wish if asks else "keep")
        except _UsageRefused:
            # Within the same deadline.
            return await self._ask(step, call, "keep", is_second=True)

    async def _ask(
        self, step: Try, call: ChatCall, wish: UsageWish, *, is_second: bool = False
    ) -> Ended:
        """One call; raises _UsageRefused if what may be wrong with it is that we asked for usage.

        `is_second`: it was refused with the wish, and is asked without.
        """
        call.upstream_status, call.stage, call.began_s = 0, None, 0.0
        request = self._request(step, call, wish)
        call.began_s = self._clock.monotonic_s()
        with self._inboxes.new() as inbox:
            try:
                inbox.start(self._transport, request, connect_s=call.deadlines.connect_s)
                inbox.arm(step.deadline_s)
                status, headers = await inbox.head()
                call.upstream_status = status
                call.failover.note_room(scarce_for_s(headers, self._clock.now_s()), call.began_s)
                if status != 200:
                    due_s = self._clock.monotonic_s() + self._bounds.error_body_s
                    inbox.arm(min(step.deadline_s, due_s))
                    body = await _bounded(inbox, _ERROR_BODY_BYTES)
                    if wish != "keep" and refuses_usage(status, body):
                        raise _UsageRefused
                    wish_s = retry_after_s(headers, self._clock.now_s())
                    outcome = classify(status, headers, body)
                    passing = status == _PASSING_STATUS and outcome is Outcome.SERVER_ERROR
                    usage = reported_usage(body)
                    return Ended(outcome, status, wish_s, usage=usage, passing=passing)
                if is_second:
                    self._note_refused_usage(call, step)
                call.passed = passed_headers(headers)
                call.stage = self._stage(call, headers)
                return await Relay(call, step, inbox, call.stage, self._clock, self._metrics).run()
            except AttemptFailed as failed:
                passing = failed.failure in PASSING
                return Ended(OUTCOME_OF[failed.failure], passing=passing)

    def _note_refused_usage(self, call: ChatCall, step: Try) -> None:
        """Without the wish it was accepted: do not ask this model again for a while."""
        provider = step.target.provider
        call.trail.step("usage", "refused", provider=provider)
        logger.warning(
            "usage_refused", extra={"request_id": call.trail.request_id, "provider": provider}
        )
        if _OPTION in call.body:
            # The error may have quoted what the client wrote: it counts for this call alone.
            return
        now_s = self._clock.monotonic_s()
        kept = {key: until_s for key, until_s in self._refusing_usage.items() if until_s > now_s}
        if len(kept) < _MOST_REFUSING:
            kept[_model_of(step, call)] = now_s + _REFUSES_FOR_S
        self._refusing_usage = kept

    def _request(self, step: Try, call: ChatCall, wish: UsageWish) -> UpstreamRequest:
        made = chat_request(
            call.providers[step.target.provider],
            step.target,
            call.body,
            model=call.model,
            stream=call.stream,
            wish=wish,
        )
        return UpstreamRequest(
            made.method, made.url, made.headers, made.body, made.proxy, replayable=True
        )

    def _stage(self, call: ChatCall, headers: Mapping[str, str]) -> ResponseStage:
        is_json = headers.get("content-type", "").lower().startswith("application/json")
        if call.stream and not is_json:
            return ChatStream(
                call.masking.stream_filter(),
                max_event_bytes=self._bounds.event_bytes,
                before_commit_bytes=self._bounds.before_commit_bytes,
                tail_comment=call.masking.masking.tail_comment,
                strip_usage=call.wish != "keep",
                choices=call.choices,
            )
        return ChatAnswer(
            call.masking.answer_filter(),
            max_bytes=self._bounds.event_bytes,
            # A stream was asked for: a document is an error object, or no answer to that.
            acceptable=not call.stream,
        )


def _model_of(step: Try, call: ChatCall) -> tuple[str, str | None]:
    """The provider, and the model as it hears it."""
    target = step.target
    provider = call.providers[target.provider]
    return target.provider, provider.model_sent(target.upstream_model, call.model)


def _charge_refused(call: ChatCall, step: Try, ended: Ended) -> None:
    """Who asks for what a provider refuses pays what that provider reports, which is mostly none.

    An answer that had begun has its bill already.
    """
    if ended.usage is not None and not call.charge.committed:
        call.charge_for(step.target, Spent(ended.usage))
        call.charge.commit()


def _charge_who_left(call: ChatCall, step: Try) -> None:
    """The client left before it had anything of the answer.

    It counts as a request. It pays for the prompt once that is known to be spent: when the
    provider has begun a plain answer, or has reported the prompt of a stream. Until then the
    cost is the operator's (`_abandoned`).
    """
    stage = call.stage
    if stage is not None and (not call.stream or stage.spent.prompt is not None):
        call.charge_for(step.target, stage.spent)
    else:
        call.charge.use(Need())
    call.charge.commit()


def _abandoned(call: ChatCall, step: Try, outcome: Outcome) -> tuple[int | None, int | None]:
    """Tokens and money that this attempt may have taken although no client is charged for them.

    A provider that answered 200, or was still at work when we gave up, has read the prompt.
    """
    at_work = call.stage is not None or outcome in (Outcome.TIMEOUT, Outcome.CANCELLED)
    if call.bill is not None or not at_work or not call.began_s:
        return None, None
    need = call.quote.bill(step.target, call.stage.spent if call.stage else Spent()).need
    return need.total_tokens, need.money_micros or None


async def _bounded(inbox: Inbox, limit: int) -> bytes:
    """The first `limit` bytes of a body that only a classifier will see.

    The status has come and decides: a body that breaks off or does not come takes nothing back.
    """
    body = bytearray()
    try:
        while len(body) < limit:
            chunk = await inbox.read()
            if not chunk:
                break
            body += chunk
    except AttemptFailed:
        pass
    return bytes(body[:limit])
