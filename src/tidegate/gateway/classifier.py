"""Who is asked about the texts of this request, and what happens when nobody answers?

Lives here: the calls of the webhook, their deadline, and the policy for a classifier that is late,
failing or absent. Does not live here: the documents (verdicts), which texts wait and what becomes
of them (redaction.holes), when a path asks (prompt, relay).

    hold     the text waits until an answer has come: a late one is waited for, a failed call is
             repeated with pauses, until the request's own time is over; then it ends with
             gateway.redaction_failed
    release  the text leaves unclassified: the one way to fail open, counted and logged
    block    the request ends with gateway.redaction_failed

With release and block a classifier that fails again and again is left alone for a while, so that
not every sentence waits for a deadline. Only the configured address is called, without redirects.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tidegate.clock import Clock
from tidegate.errors import Overloaded, RedactionFailed
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pause import pause
from tidegate.gateway.verdicts import Direction, batches, question, verdicts
from tidegate.records.entries import Trail
from tidegate.redaction import Counts
from tidegate.redaction.holes import Found, Holes
from tidegate.routing.breaker import Breaker, Verdict
from tidegate.transport.inbox import AttemptFailed, Inbox, Inboxes
from tidegate.transport.upstream import Failure, Transport, UpstreamRequest

logger = logging.getLogger(__name__)

_ANSWER_BYTES: Final = 1_048_576
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_HEADERS: Final = (("content-type", "application/json"), ("accept", "application/json"))

Judged: TypeAlias = list[tuple[Found, ...]]


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """The webhook of one route. `deadline_s` is the time for one answer."""

    url: str = field(repr=False)
    deadline_s: float = 0.2
    late: Literal["hold", "release", "block"] = "hold"


class Classifiers:
    """Makes checkers and remembers how each webhook does. One per application."""

    def __init__(
        self, transport: Transport, inboxes: Inboxes, clock: Clock, metrics: Metrics
    ) -> None:
        self.transport = transport
        self.inboxes = inboxes
        self.clock = clock
        self.metrics = metrics
        self._health: dict[str, _Health] = {}

    def checker(self, settings: ClassifierSettings, trail: Trail, due_s: float) -> "Checker":
        """What asks for one request, whose own time is over at `due_s` (monotonic)."""
        health = self._health.setdefault(settings.url, _Health())
        return Checker(self, settings, health, trail, due_s)


class _Health:
    """How one webhook does: the breaker, and whether its failing was logged."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self._is_failing = False

    def failed(self, reason: str) -> None:
        """Logged once, until it serves again."""
        if not self._is_failing:
            self._is_failing = True
            logger.warning("classifier_failing", extra={"reason": reason})

    def served(self) -> None:
        """Logged once, if it had failed."""
        if self._is_failing:
            self._is_failing = False
            logger.info("classifier_serves_again")


class Checker:
    """Gets verdicts for the texts of one request; made by `Classifiers.checker` only."""

    def __init__(
        self,
        classifiers: Classifiers,
        settings: ClassifierSettings,
        health: _Health,
        trail: Trail,
        due_s: float,
    ) -> None:
        self._classifiers = classifiers
        self._settings = settings
        self._health = health
        self._trail = trail
        self._due_s = due_s
        self._noted: set[Direction] = set()

    async def judge(self, holes: Holes, counts: Counts, direction: Direction) -> None:
        """A verdict for every text that `holes` wants; what is released unread is counted.

        Raises RedactionFailed, and Overloaded when the process is leaving.
        """
        for texts in batches(holes.wanted):
            judged = await self._judged(texts, direction)
            if judged is None:
                for _ in texts:
                    counts.passes("unclassified")
                judged = [()] * len(texts)
            for text, found in zip(texts, judged, strict=True):
                holes.judge(text, found)

    async def _judged(self, texts: Sequence[str], direction: Direction) -> Judged | None:
        """The verdicts; None if the texts are released without any."""
        late, pause_s = self._settings.late, _PAUSE_S
        while True:
            judged = await self._asked(texts, direction)
            if not isinstance(judged, str):
                return judged
            self._note(direction, judged)
            if late == "release":
                return None
            now_s = self._classifiers.clock.monotonic_s()
            if late == "block" or now_s + pause_s >= self._due_s:
                raise RedactionFailed(f"classifier_{judged}")
            await pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _asked(self, texts: Sequence[str], direction: Direction) -> Judged | str:
        """One call, unless the classifier is left alone; a word for what was wrong with it."""
        health, metrics = self._health, self._classifiers.metrics
        clock = self._classifiers.clock
        permit = health.breaker.permit(clock.monotonic_s())
        if permit is None and self._settings.late != "hold":
            metrics.classified(result="skipped")
            return "skipped"
        verdict = Verdict.NEUTRAL
        try:
            judged = await self._call(texts, direction)
            verdict = Verdict.FAILURE if isinstance(judged, str) else Verdict.SUCCESS
        finally:
            if permit is not None:
                health.breaker.record(permit, verdict, clock.monotonic_s())
        if isinstance(judged, str):
            metrics.classified(result="late" if judged == "late" else "failed")
            health.failed(judged)
        else:
            metrics.classified(result="ok")
            health.served()
        return judged

    async def _call(self, texts: Sequence[str], direction: Direction) -> Judged | str:
        request = UpstreamRequest(
            "POST", self._settings.url, _HEADERS, question(texts, direction), replayable=True
        )
        now_s = self._classifiers.clock.monotonic_s()
        on_time_s = max(now_s, min(now_s + self._settings.deadline_s, self._due_s))
        # Held text waits for a late answer too; that it is late is counted all the same.
        at_s = max(now_s, self._due_s) if self._settings.late == "hold" else on_time_s
        late = asyncio.get_running_loop().call_later(on_time_s - now_s, self._is_late, direction)
        try:
            with self._classifiers.inboxes.new() as inbox:
                inbox.start(self._classifiers.transport, request, connect_s=at_s - now_s)
                inbox.arm(at_s)
                status, _ = await inbox.head()
                body = await _bounded(inbox) if status == 200 else None
        except AttemptFailed as failed:
            if failed.failure is Failure.DRAINING:
                raise Overloaded("draining") from None
            return "late" if failed.failure is Failure.TIMEOUT else failed.failure.value
        finally:
            late.cancel()
        if body is None:
            return "status" if status != 200 else Failure.TOO_LARGE.value
        judged = verdicts(body, texts)
        return Failure.MALFORMED.value if judged is None else judged

    def _is_late(self, direction: Direction) -> None:
        if self._settings.late == "hold":
            self._classifiers.metrics.classified(result="late")
            self._health.failed("late")
            self._note(direction, "late")

    def _note(self, direction: Direction, reason: str) -> None:
        """A step of the record, the first time for each direction."""
        if direction not in self._noted:
            self._noted.add(direction)
            self._trail.step("classifier", self._settings.late, reason=reason, mode=direction)


async def _bounded(inbox: Inbox) -> bytes | None:
    """The body; None if it is longer than any answer needs to be."""
    body = bytearray()
    while chunk := await inbox.read():
        body += chunk
        if len(body) > _ANSWER_BYTES:
            return None
    return bytes(body)


__all__ = ["Checker", "ClassifierSettings", "Classifiers"]
