"""Is a server that let others wait in vain asked for its part of a list, or missed at once?

Lives here: the rest of a server behind a miss, and who may look whether it answers again. Pure:
time is an argument. Does not live here: asking, and what counts as a miss
(gateway.tool_requests.federation).

A rest is of one kind of question: a server may hang over one and answer the others. What somebody
has asked may have been the reason, so a miss lets the server rest for that one alone, until a
second one has missed it, too.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from tidegate.mcp.sessions import Recent

_MOST: Final = 1_000
_ENOUGH: Final = 2


@dataclass(frozen=True, slots=True)
class RestTimes:
    """Seconds: of the first rest, and of the longest; each miss in a row doubles them."""

    first_s: float = 5.0
    most_s: float = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """A question to a server, by server and kind, and who asks; made by `Rests.ask` only."""

    what: Hashable
    who: Hashable
    turn: int


@dataclass(slots=True)
class _Rest:
    """`misses` in a row, the last of them numbered `turn`; missed by `who`, two at most."""

    turn: int
    misses: int = 0
    due_s: float = 0.0
    who: set[Hashable] = field(default_factory=set)
    probe: Asking | None = None

    def is_for(self, who: Hashable) -> bool:
        return who in self.who or len(self.who) >= _ENOUGH


class Rests:
    """The rests of all servers; bounded. Cost of everything: a look-up."""

    def __init__(self, times: RestTimes | None = None) -> None:
        self._times = times or RestTimes()
        self._rests: Recent[_Rest] = Recent(_MOST)
        self._turns = 0

    def ask(self, what: Hashable, who: Hashable, now_s: float) -> Asking | None:
        """Ask, say what came of it, and that it has ended; None: it rests, or somebody is looking.

        `what`: which server, and what it is asked.
        """
        rest = self._rests.get(what)
        asking = Asking(what, who, 0 if rest is None else rest.turn)
        if rest is None or not rest.is_for(who):
            return asking
        if rest.probe is not None or now_s < rest.due_s:
            return None
        rest.probe = asking
        return asking

    def answered(self, asking: Asking) -> None:
        """Whatever was missed before: the server answers, and everybody may ask it."""
        self._rests.take(asking.what)

    def missed(self, asking: Asking, now_s: float) -> None:
        """It did not answer in time."""
        rest = self._rests.get(asking.what)
        if rest is None:
            rest = _Rest(asking.turn)
            self._rests.put(asking.what, rest)
        if len(rest.who) < _ENOUGH:
            rest.who.add(asking.who)
        if rest.turn != asking.turn:
            return  # Of those who asked at the same time the first one has counted for all.
        times = self._times
        rest.due_s = now_s + min(times.most_s, times.first_s * 2.0 ** min(rest.misses, 16))
        rest.misses += 1
        self._turns += 1
        rest.turn = self._turns

    def ended(self, asking: Asking) -> None:
        """Nobody waits for it any more: the next one may look. Idempotent."""
        rest = self._rests.get(asking.what)
        if rest is not None and rest.probe is asking:
            rest.probe = None


__all__ = ["Asking", "RestTimes", "Rests"]
