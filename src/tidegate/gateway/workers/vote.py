"""Do all workers take the new configuration?

Two phases: all that can answer build it, and only when none of them refuses does any put it in
force. Pure. Does not live here: who is asked, and what happens to the others (plan).
"""

from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """Where a vote stands."""

    OPEN = "open"
    CARRIED = "carried"
    """All that answered are willing: let them put it in force."""
    DONE = "done"
    """It is in force wherever somebody answers."""
    NOBODY = "nobody"
    """Those who were asked ended, or do not answer."""


@dataclass(slots=True)
class Vote:
    """One configuration before the workers. `run` numbers name workers."""

    generation: int
    due_s: float
    asked: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    willing: set[int] = field(default_factory=set)
    taken: bool = False

    def ask(self, run: int) -> None:
        """`run` is asked."""
        self.asked.add(run)
        self.waiting.add(run)

    def is_willing(self, run: int) -> None:
        """`run` has built it."""
        self.waiting.discard(run)
        self.willing.add(run)

    def forgo(self, run: int) -> None:
        """Do not wait for `run` any longer."""
        self.waiting.discard(run)

    def wait_again(self, run: int) -> None:
        """`run` is asked, has not answered, and will."""
        if run in self.asked and run not in self.willing and not self.taken:
            self.waiting.add(run)

    def gone(self, run: int) -> None:
        """`run` has ended, or has no vote any more."""
        self.waiting.discard(run)
        self.willing.discard(run)

    def take(self) -> list[int]:
        """The decision is made: who puts it in force and is waited for."""
        self.taken = True
        self.waiting = set(self.willing)
        return sorted(self.willing)

    @property
    def verdict(self) -> Verdict:
        """Where it stands. A vote in which nobody could be asked yet is open."""
        if self.waiting:
            return Verdict.OPEN
        if self.taken:
            return Verdict.DONE
        if self.willing:
            return Verdict.CARRIED
        return Verdict.NOBODY if self.asked else Verdict.OPEN


__all__ = ["Verdict", "Vote"]
