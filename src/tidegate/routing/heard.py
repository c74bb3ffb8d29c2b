"""What have the targets of one request said, and which word of theirs counts?

Lives here: who said what, and what it says about the targets that were not asked. Does not live
here: what follows from it (the table in outcome.py), the walk (failover.py).
"""

from tidegate.routing.outcome import Outcome
from tidegate.routing.plan import Target

_SKIPS = frozenset({Outcome.OPEN, Outcome.COOLING})


class Heard:
    """The words of one request's targets, in order; OPEN and COOLING for those passed over."""

    __slots__ = ("_said", "_too_long_for_tokens")

    def __init__(self) -> None:
        self._said: list[tuple[Target, Outcome]] = []
        self._too_long_for_tokens: int | None = None

    def said(self, target: Target, outcome: Outcome) -> None:
        """Add the outcome of an attempt, or of there having been none."""
        self._said.append((target, outcome))
        if outcome is Outcome.CONTEXT and target.context_tokens is not None:
            self._too_long_for_tokens = target.context_tokens

    def is_longer(self, target: Target) -> bool:
        """Whether the window of `target` is declared longer than those that were too short."""
        bound = self._too_long_for_tokens
        return bound is None or (
            target.context_tokens is not None and target.context_tokens > bound
        )

    def may_fit(self, target: Target) -> bool:
        """Whether the prompt may fit `target`: it was not too long for it, nor is its window
        known to be shorter. A window that is not declared counts where the target was reached."""
        about = [outcome for one, outcome in self._said if one == target]
        if Outcome.CONTEXT in about:
            return False
        return self.is_longer(target) or (target.context_tokens is None and bool(about))

    def last_word(self) -> Outcome | None:
        """The last outcome of the targets that were called; None if there is none that counts.

        That a prompt is too long for one window says nothing about a longer one: it counts only
        if no target that it may fit failed, or rests, for a reason that may pass.
        """
        called = [outcome for _, outcome in self._said if outcome not in _SKIPS]
        last = called[-1] if called else None
        if last is not Outcome.CONTEXT:
            return last
        others = [outcome for target, outcome in self._said if self.may_fit(target)]
        if not others:
            return last
        return next((outcome for outcome in reversed(others) if outcome not in _SKIPS), None)


__all__ = ["Heard"]
