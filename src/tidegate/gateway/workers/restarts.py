"""When is a worker that ended started again?

At once, if it had lived for a while: something happened to it. A worker that ends soon after its
start, again and again, has a cause that starting does not mend, and waits longer each time.
Pure. Does not live here: starting (parent).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. `loop_after`: so many short lives in a row are called a loop."""

    short_life_s: float = 10.0
    first_delay_s: float = 0.5
    most_delay_s: float = 30.0
    loop_after: int = 3


class Restarts:
    """The short lives of each place, and when it is filled again."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._short_lives: dict[int, int] = {}
        self._due_s: dict[int, float] = {}

    def ended(self, slot: int, *, lived_s: float, now_s: float) -> float:
        """The worker of `slot` ended unasked; returns after how many seconds it is due again."""
        short = self._short_lives.get(slot, 0) + 1 if lived_s < self._pace.short_life_s else 0
        self._short_lives[slot] = short
        # The first short life may be an accident; a delay would only cost capacity.
        delay_s = 0.0 if short <= 1 else self._pace.first_delay_s * 2.0 ** min(short - 2, 16)
        delay_s = min(delay_s, self._pace.most_delay_s)
        self._due_s[slot] = now_s + delay_s
        return delay_s

    def at_once(self, slot: int, now_s: float) -> None:
        """The place of `slot` is free, and nothing is wrong."""
        self._due_s[slot] = now_s

    def taken_due(self, now_s: float) -> list[int]:
        """The places that are to be filled now; they are due no longer."""
        due = sorted(slot for slot, due_s in self._due_s.items() if due_s <= now_s)
        for slot in due:
            del self._due_s[slot]
        return due

    def lasted(self, slot: int) -> None:
        """The worker of `slot` has lived long enough for its next end to be an accident."""
        self._short_lives.pop(slot, None)

    def none(self) -> None:
        """Nothing is to be started any more."""
        self._due_s.clear()

    @property
    def next_s(self) -> float:
        """When the next place is due; infinity if none is."""
        return min(self._due_s.values(), default=float("inf"))

    @property
    def waiting(self) -> int:
        """Places that are empty and will be filled."""
        return len(self._due_s)

    @property
    def looping(self) -> list[int]:
        """Places whose workers end again and again soon after their start."""
        loop_after = self._pace.loop_after
        return sorted(slot for slot, lives in self._short_lives.items() if lives >= loop_after)


__all__ = ["Pace", "Restarts"]
