"""What is written down about a request, whatever ends it?

Lives here: the one context that every authenticated request passes through, which gives each of
them exactly one end: in the records, in the metrics and (for failures) in the log. Does not live
here: the steps on the way (Trail), who pays (charge), what the client gets (app).
"""

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType

from tidegate.clock import Clock
from tidegate.errors import ContentBlocked, RateLimited, RequestExceedsLimit, TidegateError
from tidegate.gateway.charge import Charge
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.respond import Responder
from tidegate.gateway.tally import tally
from tidegate.records.entries import Trail
from tidegate.records.store import Recorder

logger = logging.getLogger(__name__)


class Accounting:
    """Opens one account a request. One per application."""

    def __init__(self, recorder: Recorder, metrics: Metrics, clock: Clock) -> None:
        self.recorder = recorder
        self.metrics = metrics
        self.clock = clock

    def accounted(self, trail: Trail, responder: Responder) -> "Account":
        """A context for the whole handling of one authenticated request."""
        return Account(self, trail, responder)


def note_limit(trail: Trail, error: RateLimited | RequestExceedsLimit) -> None:
    """The step of a limit that refused, with the numbers it was judged by."""
    trail.step(
        "limits",
        "deny",
        limit=error.limit,
        scope=error.scope,
        cap=error.cap,
        requested=error.requested,
        used=error.used if isinstance(error, RateLimited) else None,
        retry_after_s=error.retry_after_s,
    )


class Account:
    """The context of `Accounting.accounted`; entered once.

    `outcome` is one word for a request that raised nothing: "ok", or the code of what was wrong
    with an answer that had begun. `route` is the name of the route, once there is one.
    """

    __slots__ = (
        "_accounting",
        "_is_postponed",
        "_responder",
        "_started_s",
        "_trail",
        "outcome",
        "route",
    )

    def __init__(self, accounting: Accounting, trail: Trail, responder: Responder) -> None:
        self._accounting = accounting
        self._trail = trail
        self._responder = responder
        self._started_s = 0.0
        self._is_postponed = False
        self.outcome = "ok"
        self.route = ""

    async def __aenter__(self) -> "Account":
        self._started_s = self._accounting.clock.monotonic_s()
        self._responder.known = True
        self._accounting.recorder.begin(self._trail)
        return self

    def postpone(self) -> Callable[[str], None]:
        """Leaving the context ends nothing: the request goes on behind it.

        Whoever asks calls what is returned, once, with the word for how it ended.
        """
        self._is_postponed = True
        return self._end

    def used(self, charge: Charge) -> None:
        """What the request is settled at, if it is and that is known."""
        need = charge.used
        if need is None or not charge.committed:
            return
        self._trail.step(
            "limits",
            "settle",
            input_tokens=need.input_tokens,
            output_tokens=need.output_tokens,
            money_micros=need.money_micros or None,
            counted=charge.counted or None,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_postponed:
            return
        status = self._responder.status
        match error:
            case None:
                outcome = self.outcome
            case TidegateError():
                outcome, status = error.code, status or error.status
                self._note_refusal(error)
            case asyncio.CancelledError():
                # Who leaves with the whole answer has not cancelled it.
                outcome = self.outcome if self._responder.complete else "cancelled"
            case _:
                # The boundary in app logs it and answers.
                outcome, status = "gateway.internal", status or 500
        self._end(outcome, status)

    def _end(self, outcome: str, status: int = 200) -> None:
        trail = self._trail
        trail.finish(outcome, status)
        self._accounting.recorder.end(trail)
        tally(trail.steps, trail.principal.tenant, self._accounting.metrics)
        self._accounting.metrics.request_ended(
            surface=trail.surface,
            tenant=trail.principal.tenant,
            route=self.route,
            outcome=outcome,
            seconds=self._accounting.clock.monotonic_s() - self._started_s,
        )

    def _note_refusal(self, error: TidegateError) -> None:
        if isinstance(error, RateLimited | RequestExceedsLimit):
            note_limit(self._trail, error)
        elif isinstance(error, ContentBlocked):
            self._trail.step("redaction", "block", detector=error.kind)
        logger.log(
            logging.WARNING if error.status >= 500 else logging.INFO,
            "request_refused",
            extra={
                "request_id": self._trail.request_id,
                "code": error.code,
                "status": error.status,
                "tenant": self._trail.principal.tenant,
            },
        )
