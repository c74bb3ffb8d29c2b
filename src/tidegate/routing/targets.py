"""How is each target doing?

Lives here: the state that all requests share about a target: its breaker, until when it cools,
how fast it answers, what room it says it has, what became of the attempts at it. It is keyed by
provider, model and credential, so it survives a reload. Does not live here: the decision what to
do about it (failover.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.routing.breaker import Breaker, BreakerSettings, State
from tidegate.routing.history import History
from tidegate.routing.latency import Latency
from tidegate.routing.outcome import Outcome
from tidegate.routing.plan import Target
from tidegate.routing.retries import RetryBudget

TargetKey = tuple[str, str | None, str]


class TargetState:
    """The memory about one target at one address."""

    __slots__ = (
        "_retries",
        "_scarce_until_s",
        "address",
        "breaker",
        "cooling_until_s",
        "history",
        "latency",
    )

    def __init__(self, settings: BreakerSettings, address: str = "") -> None:
        self.address = address
        self.breaker = Breaker(settings)
        self.history = History()
        self.cooling_until_s = float("-inf")
        self.latency = Latency()
        self._scarce_until_s = float("-inf")
        self._retries = RetryBudget()

    def earn_retry(self) -> None:
        """An attempt was good: it pays for a part of a retry."""
        self._retries.earn()

    def may_retry(self, now_s: float) -> bool:
        """Whether a request that failed here may ask here once more."""
        return self._retries.has(now_s)

    def retry(self, now_s: float) -> None:
        """Take one such retry out of the budget."""
        self._retries.spend(now_s)

    def note_room(self, now_s: float, scarce_s: float) -> None:
        """It said that for `scarce_s` there is (almost) no room left; 0.0: there is."""
        self._scarce_until_s = now_s + scarce_s

    def is_scarce(self, now_s: float) -> bool:
        """Whether the target said that it has (almost) no room left."""
        return now_s < self._scarce_until_s

    def cool(self, now_s: float, seconds: float) -> None:
        """Rest for `seconds` from now; a longer rest already begun is kept."""
        self.cooling_until_s = max(self.cooling_until_s, now_s + seconds)

    def is_cooling(self, now_s: float) -> bool:
        """Whether the target still rests after a 429."""
        return now_s < self.cooling_until_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until a request may try this target again; 0.0 if it may now."""
        reopens_at_s = self.breaker.reopens_at_s
        free_at_s = (
            self.cooling_until_s
            if reopens_at_s is None
            else max(self.cooling_until_s, reopens_at_s)
        )
        return max(0.0, free_at_s - now_s)


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """One line for metrics, readiness and the command line. `wait_s` 0.0 = may be called.

    `opened_by` is what opened the breaker, None while it is closed. `share` below 1.0 says that
    the target has just recovered, `first_token_s` is None until it was measured. The rest is its
    History. The defaults are those of a target that was never asked.
    """

    provider: str
    model: str | None
    credential: str
    state: State = State.CLOSED
    cooling_s: float = 0.0
    wait_s: float = 0.0
    opened_by: str | None = None
    share: float = 1.0
    first_token_s: float | None = None
    successes: int = 0
    failures: int = 0
    recent: tuple[Outcome, ...] = ()


class Targets:
    """All target states of this process. Bounded by the targets of the configuration."""

    def __init__(self) -> None:
        self._states: dict[TargetKey, TargetState] = {}
        self._known: dict[TargetKey, str] | None = None

    def state(self, target: Target, settings: BreakerSettings) -> TargetState:
        """The state of `target`, made on first use.

        Routes that share a target share what happened to it and judge it by their own
        `settings`; so do the routes before and after a reload. A target that a reload has
        removed, or whose provider it has moved, has a state for its asker only: a request that
        still runs must not bring it back.
        """
        key = key_of(target)
        state = self._states.get(key)
        if state is None or state.address != target.address:
            state = TargetState(settings, target.address)
            if self._known is None or self._known.get(key) == target.address:
                self._states[key] = state
        state.breaker.settings = settings
        return state

    def retain(self, targets: Iterable[Target]) -> None:
        """Forget all targets but these, for good; called after a reload."""
        known = {key_of(target): target.address for target in targets}
        self._states = {
            key: state for key, state in self._states.items() if known.get(key) == state.address
        }
        self._known = known

    def snapshot(self, now_s: float) -> tuple[TargetSnapshot, ...]:
        """Every target seen so far, in order of first use."""
        return tuple(_snapshot(key, state, now_s) for key, state in self._states.items())

    def look(self, target: Target, now_s: float) -> TargetSnapshot:
        """How `target` is doing; changes nothing, also for one that was never asked."""
        key = key_of(target)
        state = self._states.get(key)
        return TargetSnapshot(*key) if state is None else _snapshot(key, state, now_s)


def _snapshot(key: TargetKey, state: TargetState, now_s: float) -> TargetSnapshot:
    return TargetSnapshot(
        *key,
        state=state.breaker.state(now_s),
        cooling_s=max(0.0, state.cooling_until_s - now_s),
        wait_s=state.wait_s(now_s),
        opened_by=state.breaker.opened_by,
        share=state.breaker.share(now_s),
        first_token_s=state.latency.first_token_s,
        successes=state.history.successes,
        failures=state.history.failures,
        recent=state.history.recent,
    )


def key_of(target: Target) -> TargetKey:
    """What makes two targets the same one."""
    # The name of the secret, not its index: a replaced key must not inherit the old one's rest.
    return target.provider, target.upstream_model, target.credential_id or f"#{target.credential}"


__all__ = ["TargetKey", "TargetSnapshot", "TargetState", "Targets", "key_of"]
