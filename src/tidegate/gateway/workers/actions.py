"""What can the parent be told to do?

Values that plan returns and parent carries out, in order. `run` numbers a worker process, `slot`
its place from 1 on; a place is filled again by a process with another number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tidegate.gateway.workers.words import ToWorker

Level = Literal["info", "warning", "error"]
Field = str | int | float


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a process and send it Begin with this configuration."""

    slot: int
    run: int
    generation: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Send this message."""

    run: int
    message: ToWorker


@dataclass(frozen=True, slots=True)
class OfferTo:
    """Send it Offer with this configuration."""

    run: int
    generation: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process at once; it does not answer."""

    run: int


@dataclass(frozen=True, slots=True)
class Ready:
    """All workers accept."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """This configuration is in force."""

    generation: int


@dataclass(frozen=True, slots=True)
class Kept:
    """This configuration was refused; nothing has changed."""

    generation: int
    problem: str


@dataclass(frozen=True, slots=True)
class Note:
    """One line for the log."""

    event: str
    level: Level = "warning"
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Over:
    """No process is left: leave with this exit code."""

    code: int


Action = Spawn | Tell | OfferTo | Kill | Ready | Adopted | Kept | Note | Over


@dataclass(frozen=True, slots=True)
class Standing:
    """How many workers there are, and how they are.

    `silent` and `looping` name places: no sign of life; one short life after the other.
    """

    wanted: int
    accepting: int
    starting: int
    silent: tuple[int, ...]
    looping: tuple[int, ...]
    draining: bool


__all__ = [
    "Action",
    "Adopted",
    "Field",
    "Kept",
    "Kill",
    "Level",
    "Note",
    "OfferTo",
    "Over",
    "Ready",
    "Spawn",
    "Standing",
    "Tell",
]
