"""How far has one worker come, and what is the whole gateway doing?

The states that plan moves between, and the times it keeps. Pure.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.pulses import Pulses
from tidegate.gateway.workers.restarts import Pace, Restarts


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, in seconds.

    `beat_s`: how often a worker is asked for a sign of life; after `silent_after` such times
    without one it is waited for no longer, after `dead_after` it is killed. `drain_s` is the time
    from the first signal, `leave_s` that from the second one, until what still runs is killed.
    """

    start_s: float = 60.0
    vote_s: float = 60.0
    beat_s: float = 5.0
    silent_after: int = 2
    dead_after: int = 12
    drain_s: float = 60.0
    leave_s: float = 20.0
    pace: Pace = field(default_factory=Pace)


class Phase(Enum):
    """What the whole gateway is doing."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"


class Stage(Enum):
    """How far one worker has come."""

    STARTING = "starting"
    OPENED = "opened"
    CALLED = "called"
    ACCEPTING = "accepting"


@dataclass(slots=True)
class Member:
    """One worker process. `offered` is what it builds or has built, neither taken nor dropped."""

    slot: int
    run: int
    generation: int
    began_s: float
    stage: Stage = Stage.STARTING
    offered: int | None = None
    leaving: bool = False
    killed: bool = False


def standing_of(
    members: Collection[Member],
    pulses: Pulses,
    restarts: Restarts,
    wanted: int,
    *,
    draining: bool,
) -> Standing:
    """How many of `members` there are for clients, and how they are."""
    staying = [member for member in members if not member.leaving]
    accepting = [member for member in staying if member.stage is Stage.ACCEPTING]
    silent = tuple(member.slot for member in accepting if pulses.is_silent(member.run))
    return Standing(
        wanted=wanted,
        accepting=len(accepting) - len(silent),
        starting=len(staying) - len(accepting),
        silent=silent,
        looping=tuple(restarts.looping),
        draining=draining,
    )


__all__ = ["Member", "Phase", "Stage", "Times", "standing_of"]
