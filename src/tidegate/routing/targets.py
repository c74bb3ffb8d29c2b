"""How is each target doing?

Lives here: the state that all requests share about a target: its breaker and until when it
cools. It is keyed by provider, model and credential, so it survives a reload. Does not live
here: the decision what to do about it (failover.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.routing.breaker import Breaker, BreakerSettings, State
from tidegate.routing.plan import Target

TargetKey = tuple[str, str | None, str]


class TargetState:
    """The memory about one target."""

    __slots__ = ("breaker", "cooling_until_s")

    def __init__(self, settings: BreakerSettings) -> None:
        self.breaker = Breaker(settings)
        self.cooling_until_s = float("-inf")

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
    """One line for metrics, readiness and the command line. `wait_s` 0.0 = may be called."""

    provider: str
    model: str | None
    credential: str
    state: State
    cooling_s: float
    wait_s: float


class Targets:
    """All target states of this process. Bounded by the targets of the configuration."""

    def __init__(self) -> None:
        self._states: dict[TargetKey, TargetState] = {}

    def state(self, target: Target, settings: BreakerSettings) -> TargetState:
        """The state of `target`, made on first use.

        Routes that share a target share what happened to it and judge it by their own
        `settings`; so do the routes before and after a reload.
        """
        state = self._states.get(_key(target))
        if state is None:
            state = self._states[_key(target)] = TargetState(settings)
        state.breaker.settings = settings
        return state

    def retain(self, targets: Iterable[Target]) -> None:
        """Forget all targets but these; called after a reload."""
        kept = {_key(target) for target in targets}
        self._states = {key: state for key, state in self._states.items() if key in kept}

    def snapshot(self, now_s: float) -> tuple[TargetSnapshot, ...]:
        """Every target seen so far, in order of first use."""
        return tuple(
            TargetSnapshot(
                provider=provider,
                model=model,
                credential=credential,
                state=state.breaker.state(now_s),
                cooling_s=max(0.0, state.cooling_until_s - now_s),
                wait_s=state.wait_s(now_s),
            )
            for (provider, model, credential), state in self._states.items()
        )


def _key(target: Target) -> TargetKey:
    # The name of the secret, not its index: a replaced key must not inherit the old one's rest.
    return target.provider, target.upstream_model, target.credential_id or f"#{target.credential}"


__all__ = ["TargetKey", "TargetSnapshot", "TargetState", "Targets"]
