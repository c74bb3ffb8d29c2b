"""Was this server, where it is reached and as it runs, compared with its pins?

Lives here: what one process knows of the pins of one server, and the one answer to that question.
Does not live here: when a list is looked at (checked), how it is asked for (tool_requests.pinned).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from tidegate.errors import StoreUnavailable
from tidegate.gateway.beside import LARGE_BYTES, beside_the_loop
from tidegate.gateway.servers.upstream import ServerFailed
from tidegate.mcp.pin_forms import Snapshot, Survey
from tidegate.mcp.pins import EMPTY, Book

UNHEARD_S: Final = 60.0
"""How old a comparison may be, in mode block, while nothing would tell us of a change."""
_MOST_CURSORS: Final = 256
_SHORT_LIST: Final = 10


class Where(Struct, frozen=True):
    """Where a server is reached, and in which life: one number for each start and each end.

    An odd `life` is a process that runs, an even one none; it stays 0 for what is no process.
    """

    place: object = None
    life: int = 0

    def until(self, now: "Where") -> "Where | None":
        """Who gave the answer that was asked for here and is there `now`; None if it is not sure.

        A process that was not there before, and is the next one, was started for it.
        """
        starts = self.life % 2 == 0 and (self.place, self.life + 1) == (now.place, now.life)
        return now if starts or now == self else None


HERE: Final = Where()


class Since(Struct, frozen=True):
    """What was known when a list was asked for: what the server says later may not be in it."""

    news: int
    where: Where

    def until(self, now: Where) -> "Since | None":
        """The same for what is there `now`, if the answer is sure to come from that."""
        where = self.where.until(now)
        return None if where is None else Since(self.news, where)


@dataclass(frozen=True, slots=True)
class Page:
    """What was listed, whether it is all there is, and whether all has been seen with it."""

    tools: Mapping[str, Snapshot]
    is_whole: bool = True
    completes: bool = True


class Source(Protocol):
    """One server, as whoever calls one of its tools can ask it."""

    async def __call__(self) -> Sequence[object]:
        """The whole list, every page of it, as the server wrote it. Raises ServerFailed, also for
        one that does not come in time."""

    def where(self) -> Where:
        """Where a message goes that is sent at once."""

    def is_heard(self) -> bool:
        """Whether we would hear it say that its tools change."""


class Known:
    """What this process knows of one server: its book as it was read or written last.

    `news` counts what the server said of changes. `running` is a list on its way, asked for in
    `running_for`. `rests_until_s`: one that could not be had, for `failure`, is not asked for
    before; `told_until_s`: the log does not hear of it again before.
    `untold`: the others do not know of the last news, and `telling` is on its way to them.
    """

    __slots__ = (
        "_checked",
        "_checked_s",
        "_followed",
        "_followed_since",
        "book",
        "failure",
        "mark",
        "news",
        "rests_until_s",
        "running",
        "running_for",
        "survey",
        "telling",
        "told_until_s",
        "turn",
        "untold",
    )

    def __init__(self) -> None:
        self.book: Book = EMPTY
        self.mark = 0
        self.news = 0
        self.failure: StoreUnavailable | ServerFailed | None = None
        self.rests_until_s = self.told_until_s = 0.0
        self.turn = asyncio.Lock()
        self.running: asyncio.Task[None] | None = None
        self.running_for: tuple[int, object] | None = None
        self.telling: asyncio.Task[None] | None = None
        self.untold = False
        self.survey = Survey()
        self._checked: Since | None = None
        self._checked_s = 0.0
        self._followed: set[str] = set()
        self._followed_since: Since | None = None

    def is_checked(self, where: Where, *, now_s: float, heard: bool = True) -> bool:
        """Whether what is reached there was compared, and said nothing of a change since."""
        checked = self._checked
        if checked is None or checked.news != self.news or checked.where != where:
            return False
        return heard or now_s - self._checked_s < UNHEARD_S

    def checked(self, since: Since, *, now_s: float) -> None:
        """A whole list was compared that was asked for then and came from there."""
        self._checked, self._checked_s = since, now_s
        self.failure, self.rests_until_s = None, 0.0

    def completes(self, since: Since, cursor: str | None, following: str | None) -> bool:
        """Note a page; whether every page of the list has been seen with it.

        Only a cursor that stood in a page which belongs to it leads on from the first page: who
        asks for the last one alone has not seen the list.
        """
        if self._followed_since != since:
            self._followed.clear()
            self._followed_since = since
        if cursor is not None and cursor not in self._followed:
            return False
        if following is None:
            return True
        if len(self._followed) < _MOST_CURSORS:
            self._followed.add(following)
        return False

    async def surveyed(self, tools: Sequence[object]) -> dict[str, Snapshot]:
        """What a list says: at once if it is short or as it was, else from a thread."""
        if (same := self.survey.recall(tools)) is not None:
            return same
        if len(tools) <= _SHORT_LIST or self.survey.knows(tools):
            return self.survey.of(tools)
        mine = Survey()
        found = await beside_the_loop(LARGE_BYTES + 1, mine.of, tools)
        self.survey = mine
        return found


def again(failure: StoreUnavailable | ServerFailed) -> StoreUnavailable | ServerFailed:
    """The same failure for somebody else."""
    if isinstance(failure, ServerFailed):
        return ServerFailed(failure.reason)
    return StoreUnavailable(failure.detail)


__all__ = ["HERE", "UNHEARD_S", "Known", "Page", "Since", "Source", "Where", "again"]
