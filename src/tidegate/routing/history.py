"""What has become of the attempts at a target, and what changed for it?

Lives here: the counts and the last outcomes of one target, and the words for a change of its
health that an operator wants to hear of. Does not live here: the health itself (breaker.py,
targets.py), who says it (the gateway logs and counts).
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from tidegate.routing.breaker import Verdict
from tidegate.routing.outcome import TAXONOMY, Outcome
from tidegate.routing.plan import Target

_KEPT = 10

ChangeKind = Literal["opened", "probe", "closed", "cooling"]


@dataclass(frozen=True, slots=True)
class Change:
    """The breaker of `target` opened, lets one probe through, or closed; or it rests ("cooling").

    `reason` is the outcome that brought it about, with what opened the breaker, such as
    "timeout,consecutive"; "" for a probe. `pause_s` is how long it is left alone, 0.0 where it
    is not.
    """

    target: Target
    kind: ChangeKind
    reason: str = ""
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Skip:
    """`target` was passed over: it is OPEN or COOLING, for `wait_s` more.

    `opened_by` is what opened its breaker, None for one that is closed.
    """

    target: Target
    outcome: Outcome
    wait_s: float
    opened_by: str | None


class History:
    """The attempts at one target since this process first used it.

    `successes` and `failures` are verdicts: what says nothing about the health of the target (a
    refusal of one request, a 429, a client that left) is in neither, but in `recent`, which has
    the last outcomes, the newest last.
    """

    __slots__ = ("_recent", "failures", "successes")

    def __init__(self) -> None:
        self.successes = 0
        self.failures = 0
        self._recent: deque[Outcome] = deque(maxlen=_KEPT)

    @property
    def recent(self) -> tuple[Outcome, ...]:
        """The last outcomes, at most ten."""
        return tuple(self._recent)

    def saw(self, outcome: Outcome, verdict: Verdict | None = None) -> None:
        """One attempt has ended so; `verdict` where it is not that of the table."""
        verdict = TAXONOMY[outcome].verdict if verdict is None else verdict
        self.successes += verdict is Verdict.SUCCESS
        self.failures += verdict is Verdict.FAILURE
        self._recent.append(outcome)


__all__ = ["Change", "ChangeKind", "History", "Skip"]
