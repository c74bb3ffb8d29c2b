"""Does each worker still answer?

Each is asked for a sign of life now and then, and not again before it has answered. Times
without an answer are counted instead of measured: a machine that was asleep has not made its
workers silent. Pure. Does not live here: what follows from it (plan).
"""

from dataclasses import dataclass
from enum import Enum


class Beat(Enum):
    """What is to be done about one worker now."""

    ASK = "ask"
    SILENT = "silent"
    """It is waited for no longer."""
    DEAD = "dead"
    """It will not answer any more."""


@dataclass(slots=True)
class _Pulse:
    wanted: bool = False
    missed: int = 0


class Pulses:
    """The signs of life of those who were added. `run` numbers name workers."""

    def __init__(self, *, silent_after: int, dead_after: int) -> None:
        self._silent_after, self._dead_after = silent_after, dead_after
        self._of: dict[int, _Pulse] = {}

    def add(self, run: int) -> None:
        """Watch `run` from now on."""
        self._of.setdefault(run, _Pulse())

    def remove(self, run: int) -> None:
        """Watch it no longer."""
        self._of.pop(run, None)

    def heard(self, run: int) -> bool:
        """It said something; whether it had been silent."""
        pulse = self._of.get(run)
        if pulse is None:
            return False
        was_silent = pulse.missed >= self._silent_after
        pulse.wanted, pulse.missed = False, 0
        return was_silent

    def beat(self) -> list[tuple[int, Beat]]:
        """It is time again; what to do, by worker."""
        todo: list[tuple[int, Beat]] = []
        for run, pulse in self._of.items():
            if not pulse.wanted:
                pulse.wanted = True
                todo.append((run, Beat.ASK))
                continue
            pulse.missed += 1
            if pulse.missed == self._dead_after:
                todo.append((run, Beat.DEAD))
            elif pulse.missed == self._silent_after:
                todo.append((run, Beat.SILENT))
        return todo

    @property
    def lively(self) -> list[int]:
        """Those who are not silent."""
        return [run for run in self._of if not self.is_silent(run)]

    def is_silent(self, run: int) -> bool:
        """Whether it has not answered for so long that nobody waits for it."""
        pulse = self._of.get(run)
        return pulse is not None and pulse.missed >= self._silent_after


__all__ = ["Beat", "Pulses"]
