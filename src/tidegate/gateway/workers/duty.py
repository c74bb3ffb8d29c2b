"""What does a worker do next?

Pure: what the parent said and what became of it goes in, orders come out. Lives here: what a
worker may do in which state. Does not live here: doing it (worker), what the parent wants (plan).

The end has three causes, which may come together and in any order: the parent says so, somebody
sent this process a signal, the parent is gone. Each of them begins the drain, and only the
parent's own word ends it at once: what a whole process group is sent must not count twice.
"""

from dataclasses import dataclass
from enum import Enum

from tidegate.gateway.workers import words


@dataclass(frozen=True, slots=True)
class Open:
    """Make everything ready for this configuration."""

    config: bytes
    secret: bytes


@dataclass(frozen=True, slots=True)
class Say:
    """Send this to the parent."""

    message: words.ToParent


@dataclass(frozen=True, slots=True)
class Listen:
    """Accept connections."""


@dataclass(frozen=True, slots=True)
class Build:
    """Build what this configuration asks for."""

    generation: int
    config: bytes


@dataclass(frozen=True, slots=True)
class Swap:
    """Put in force what was built as `generation`, and forget what else was built."""

    generation: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget what was built as `generation`."""

    generation: int


@dataclass(frozen=True, slots=True)
class Report:
    """Answer what was asked."""

    number: int
    about: words.About


@dataclass(frozen=True, slots=True)
class End:
    """Accept no more, let what runs end, leave."""


@dataclass(frozen=True, slots=True)
class Force:
    """Leave at once."""


Order = Open | Say | Listen | Build | Swap | Forget | Report | End | Force


class State(Enum):
    """How far this worker has come."""

    NEW = "new"
    OPENING = "opening"
    OPEN = "open"
    LISTENING = "listening"
    ENDING = "ending"


class Duty:
    """The state of one worker. Every method that says what happened returns what to do."""

    def __init__(self) -> None:
        self.state = State.NEW
        self._generation = 0
        self._building: set[int] = set()
        self._built: set[int] = set()

    def heard(self, message: words.ToWorker) -> list[Order]:
        """The parent said something."""
        match message:
            case words.Begin() if self.state is State.NEW:
                self.state, self._generation = State.OPENING, message.generation
                return [Open(message.config, message.secret)]
            case words.Accept() if self.state is State.OPEN:
                self.state = State.LISTENING
                return [Listen()]
            case words.Offer() | words.Take() | words.Drop():
                return self._reload(message)
            case words.Ask():
                return [Report(message.number, message.about)]
            case words.Drain():
                return self.end()
            case words.Leave():
                return [*self.end(), Force()]
            case _:
                return []

    def opened(self) -> list[Order]:
        """Everything is open."""
        if self.state is not State.OPENING:
            return []
        self.state = State.OPEN
        return [Say(words.Opened(self._generation))]

    def not_opened(self, problem: str) -> list[Order]:
        """It cannot be opened: this worker ends, and not because somebody wants it."""
        was_ending, self.state = self.state is State.ENDING, State.ENDING
        return [Say(words.CannotStart(problem)), *([] if was_ending else [End()])]

    def listens(self) -> list[Order]:
        """Connections are accepted."""
        return [Say(words.Accepting())]

    def built(self, generation: int) -> list[Order]:
        """What was offered is built."""
        if generation not in self._building:
            return [Forget(generation)]  # dropped while it was built
        self._building.discard(generation)
        self._built.add(generation)
        return [Say(words.Willing(generation))]

    def not_built(self, generation: int, problem: str) -> list[Order]:
        """What was offered cannot be built."""
        self._building.discard(generation)
        return [Say(words.Unwilling(generation, problem))]

    def end(self) -> list[Order]:
        """Somebody wants this worker to end. Only the first time means anything."""
        if self.state is State.ENDING:
            return []
        self.state = State.ENDING
        return [End(), Say(words.Leaving())]

    def _reload(self, message: words.Offer | words.Take | words.Drop) -> list[Order]:
        generation = message.generation
        if isinstance(message, words.Offer):
            self._building.add(generation)
            return [Build(generation, message.config)]
        if isinstance(message, words.Drop):
            self._building.discard(generation)
            self._built.discard(generation)
            return [Forget(generation)]
        if generation not in self._built:
            return [Say(words.Unwilling(generation, "it was never built here"))]
        self._built.clear()
        self._generation = generation
        return [Swap(generation), Say(words.Took(generation))]


__all__ = [
    "Build",
    "Duty",
    "End",
    "Force",
    "Forget",
    "Listen",
    "Open",
    "Order",
    "Report",
    "Say",
    "State",
    "Swap",
]
