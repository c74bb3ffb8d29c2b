"""Has every tool that is listed or called been compared with its pin?

Lives here: when the list of a server is looked at, what this process knows of the store, and
what happens when either cannot be had. Does not live here: what a difference is and what follows
(mcp.pins), where pins are kept (mcp.pin_store), how a list is fetched (whoever asks).

A list is looked at whenever one passes, before the first call after a start, and before the next
call after the server said that its tools have changed. What another process does to a book (an
approval, a change that it saw) holds here within a second, an approval for the very next call.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeGuard

import msgspec

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.gateway.beside import LARGE_BYTES, beside_the_loop
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.tool_upstream import ServerFailed
from tidegate.mcp.pin_forms import Snapshot, Survey
from tidegate.mcp.pin_store import PinStore
from tidegate.mcp.pins import EMPTY, Book, Event, Mode, Observed, Verdicts, observe, skeletons

logger = logging.getLogger(__name__)

ListTools = Callable[[], Awaitable[Sequence[object]]]
"""The whole list of a server, every page of it, as the server wrote it. Raises ServerFailed."""

FRESH_S: Final = 1.0
_LIST_S: Final = 30.0
_AGAIN_S: Final = 5.0
_MOST_TRIES: Final = 16
_SHORT_LIST: Final = 10
_MOST_LINES: Final = 20
_STATES: Final = frozenset({"changed", "new", "flagged"})


class _Known:
    """What this process knows of one server: its book as it was read or written last."""

    __slots__ = (
        "again_s",
        "book",
        "checked",
        "generation",
        "mark",
        "running",
        "running_for",
        "survey",
        "turn",
    )

    def __init__(self) -> None:
        self.book: Book = EMPTY
        self.mark = 0
        self.generation = 0
        self.checked: int | None = None  # the generation of the last whole list
        self.again_s = 0.0  # a list that could not be had is not asked for before
        self.turn = asyncio.Lock()
        self.running: asyncio.Task[None] | None = None
        self.running_for = 0  # the generation it began in
        self.survey = Survey()

    @property
    def is_checked(self) -> bool:
        return self.checked == self.generation


@dataclass(frozen=True, slots=True)
class _Page:
    """What was listed, and which part of the whole it is."""

    tools: Mapping[str, Snapshot]
    starts: bool = True
    ends: bool = True


class Pins:
    """The pins of all servers, as one process sees them. For one event loop; survives reloads.

    `servers` are the names of all that are configured: their tools must not look alike. In mode
    block every method may raise StoreUnavailable (nobody knows what was approved) and
    ServerFailed (nobody knows what the server shows); in mode warn none does, what could not be
    compared passes, and no call waits for a comparison.
    """

    def __init__(
        self,
        store: PinStore,
        clock: Clock,
        metrics: Metrics,
        *,
        servers: Callable[[], Collection[str]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._servers = servers
        self._known: dict[str, _Known] = {}
        self._looked_s: float | None = None
        self._failed_s: float | None = None
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """See what the store knows, so that it is told before anybody asks for a tool.

        A store that is away is no reason not to start: what needs it will look again.
        """
        if self._servers():
            with suppress(StoreUnavailable):
                await self._look(at_most_s=0.0)

    def stale(self, server: str) -> None:
        """The server said that its tools have changed: its list is looked at before a call."""
        known = self._of(server)
        known.generation += 1
        known.again_s = 0.0

    def differing(self) -> dict[str, int]:
        """How many tools of each configured server are not what was approved."""
        return {name: self._known[name].book.differing for name in self._configured()}

    async def before_call(
        self, server: str, mode: Mode, tool: str, list_tools: ListTools | None
    ) -> Verdicts:
        """What holds for a call of `tool` now.

        Without `list_tools` only the lists that pass are looked at. Cost: nothing but a look-up,
        once a second a look into the store, and before the first call a whole list. In mode warn
        both happen beside the call, which they cannot hinder.
        """
        known = self._of(server)
        if mode != "block":
            self._look_beside(server, known, list_tools)
            return Verdicts(server, mode, known.book, unchecked=not known.is_checked)
        if not known.is_checked:
            if list_tools is None:
                raise ServerFailed("unchecked")
            return await self.check(server, mode, list_tools)
        await self._look(at_most_s=FRESH_S)
        verdicts = Verdicts(server, mode, known.book)
        if verdicts.refuses(tool):
            await self._look(at_most_s=0.0)
            verdicts = Verdicts(server, mode, known.book)
        return verdicts

    def _look_beside(self, server: str, known: _Known, list_tools: ListTools | None) -> None:
        """Begin whatever is due; at most one list a server, and a failed one rests."""
        now_s = self._clock.monotonic_s()
        if known.is_checked:
            last_s = max(self._looked_s or 0.0, self._failed_s or 0.0)
            if now_s - last_s >= FRESH_S and not _runs(self._looking):
                self._begin_look()
        elif list_tools is not None and now_s >= known.again_s and not _runs(known.running):
            task = self._begin_check(server, known, list_tools)
            task.add_done_callback(partial(self._checked_beside, server, known))

    def _checked_beside(self, server: str, known: _Known, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable | ServerFailed):
            self._note_unchecked(server, known, error)

    def _begin_check(
        self, server: str, known: _Known, list_tools: ListTools
    ) -> "asyncio.Task[None]":
        known.running_for = known.generation
        task = asyncio.get_running_loop().create_task(self._check(server, list_tools))
        task.add_done_callback(_heard)
        known.running = task
        return task

    def _begin_look(self) -> "asyncio.Task[None]":
        self._looking = asyncio.get_running_loop().create_task(self._read_changed())
        self._looking.add_done_callback(_heard)
        return self._looking

    async def check(self, server: str, mode: Mode, list_tools: ListTools) -> Verdicts:
        """Have the list of the server and compare it; callers at the same time share one."""
        known = self._of(server)
        if _runs(known.running) and known.running_for != known.generation:
            # It may hold the list from before the change.
            await asyncio.wait((known.running,))
        running = known.running
        if not _runs(running):
            running = self._begin_check(server, known, list_tools)
        try:
            await asyncio.shield(running)
        except (StoreUnavailable, ServerFailed) as error:
            self._note_unchecked(server, known, error)
            if mode == "block":
                raise
            return Verdicts(server, mode, known.book, unchecked=True)
        return Verdicts(server, mode, known.book)

    async def judge(
        self,
        server: str,
        mode: Mode,
        tools: Sequence[object],
        *,
        starts: bool = True,
        ends: bool = True,
    ) -> Verdicts:
        """Compare a list that the server has just sent, as it wrote it, before it is shown.

        `starts`: it is the first page, `ends`: the last one. Only both together show that a tool
        is gone, and count as a check.
        """
        known = self._of(server)
        generation = known.generation
        page = _Page(await _surveyed(known, tools), starts, ends)
        try:
            await self._note(server, page)
        except StoreUnavailable as error:
            self._note_unchecked(server, known, error)
            if mode == "block":
                raise
            observed = self._observed(server, known, page)
            return Verdicts(server, mode, observed.book, unchecked=True)
        if starts and ends:
            known.checked = generation
        return Verdicts(server, mode, known.book)

    async def close(self) -> None:
        """End what runs, and let go of the store."""
        running = [known.running for known in self._known.values()]
        for task in (*running, self._looking):
            if task is not None:
                task.cancel()
        await self._store.close()

    async def _check(self, server: str, list_tools: ListTools) -> None:
        known = self._of(server)
        generation = known.generation
        try:
            async with asyncio.timeout(_LIST_S):
                tools = await list_tools()
        except TimeoutError:
            raise ServerFailed("timeout") from None
        await self._note(server, _Page(await _surveyed(known, tools)))
        known.checked = generation

    async def _note(self, server: str, page: _Page) -> None:
        """Bring what was listed into the book, whoever else writes it. Raises StoreUnavailable."""
        known = self._of(server)
        async with known.turn:
            # What looks like an approved tool may have been approved a moment ago.
            await self._look(at_most_s=0.0 if known.book.differing else FRESH_S)
            for _ in range(_MOST_TRIES):
                observed = self._observed(server, known, page)
                if observed.book is known.book:
                    return
                mark = await self._store.write(server, observed.book, was=known.mark)
                if mark is not None:
                    known.book, known.mark = observed.book, mark
                    self._tell(server, observed)
                    return
                await self._look(at_most_s=0.0)
        raise StoreUnavailable("others write the pins of this server all the time")

    def _observed(self, server: str, known: _Known, page: _Page) -> Observed:
        def others() -> dict[str, str]:
            names = [name for name in self._configured() if name != server]
            books = [self._known[name].book for name in names]
            return {shape: tool for book in books for shape, tool in skeletons(book).items()}

        return observe(
            known.book,
            page.tools,
            now_s=self._clock.now_s(),
            others=others,
            is_whole=page.starts and page.ends,
            is_last=page.ends,
        )

    async def _look(self, *, at_most_s: float) -> None:
        """See to it that what is known is no older than that. Raises StoreUnavailable."""
        now_s = self._clock.monotonic_s()
        if self._looked_s is not None and now_s - self._looked_s < at_most_s:
            return
        if self._failed_s is not None and now_s - self._failed_s < at_most_s:
            raise StoreUnavailable("the store of the pins is away")
        if _runs(self._looking) and at_most_s == 0.0:
            # It may be from before what the caller wants to see. Whoever waits joins the next.
            await asyncio.wait((self._looking,))
        looking = self._looking
        await asyncio.shield(looking if _runs(looking) else self._begin_look())

    async def _read_changed(self) -> None:
        now_s = self._clock.monotonic_s()
        try:
            marks = await self._store.marks()
            for server in {*self._configured(), *self._known}:
                known = self._known[server]
                if marks.get(server, 0) != known.mark:
                    await self._take(server, known)
        except StoreUnavailable as error:
            if self._failed_s is None:
                logger.warning("tool_pins_store_failed", extra={"problem": error.detail})
            self._failed_s = now_s
            raise
        self._looked_s = now_s
        if self._failed_s is not None:
            self._failed_s = None
            logger.warning("tool_pins_store_serves_again")

    async def _take(self, server: str, known: _Known) -> None:
        """The book as another process wrote it; one that went backwards was lost and is mended."""
        kept = await self._store.read(server)
        if kept is not None and kept.book.turn >= known.book.turn:
            known.mark, known.book = kept.mark, kept.book
            return
        mended = msgspec.structs.replace(known.book, turn=known.book.turn + 1)
        mark = await self._store.write(server, mended, was=kept.mark if kept is not None else 0)
        if mark is not None:
            known.mark, known.book = mark, mended
            logger.warning("tool_pins_restored", extra={"server": server})

    def _note_unchecked(
        self, server: str, known: _Known, error: StoreUnavailable | ServerFailed
    ) -> None:
        """Count it, and say so once in a while."""
        self._metrics.tool_pin(server=server, state="unchecked")
        if (now_s := self._clock.monotonic_s()) < known.again_s:
            return
        known.again_s = now_s + _AGAIN_S
        reason = error.reason if isinstance(error, ServerFailed) else "store_unavailable"
        logger.warning("tool_pins_unchecked", extra={"server": server, "reason": reason})

    def _tell(self, server: str, observed: Observed) -> None:
        """A line for every tool that is not what it was, and a number for all of them."""
        told = [event for event in observed.events if event.state != "pinned"]
        for event in observed.events:
            self._metrics.tool_pin(server=server, state=event.state)
        for event in told[:_MOST_LINES]:
            level = logging.WARNING if event.state in _STATES else logging.INFO
            extra = {"server": server, "tool": event.tool, "reason": event.state}
            logger.log(level, "tool_definition_differs", extra=extra | _problem(event))
        if len(told) > _MOST_LINES:
            more = len(told) - _MOST_LINES
            logger.warning("tool_definitions_differ", extra={"server": server, "suppressed": more})
        if (count := observed.book.left_out) > 0:
            logger.warning("tool_pins_full", extra={"server": server, "count": count})

    def _configured(self) -> Iterable[str]:
        names = list(self._servers())
        for name in names:
            self._of(name)
        return names

    def _of(self, server: str) -> _Known:
        known = self._known.get(server)
        if known is None:
            known = self._known[server] = _Known()
        return known


def _problem(event: Event) -> dict[str, str]:
    """Words of ours: which members differ, and what is flagged in which."""
    parts = []
    if event.members:
        parts.append(f"differs in {', '.join(event.members)}")
    parts += [f"{flag.kind} in {flag.member}" for flag in event.flags]
    return {"problem": "; ".join(parts)} if parts else {}


async def _surveyed(known: _Known, tools: Sequence[object]) -> dict[str, Snapshot]:
    """What a list says: at once if it is short or as it was, else from a thread."""
    if (same := known.survey.recall(tools)) is not None:
        return same
    if len(tools) <= _SHORT_LIST or known.survey.knows(tools):
        return known.survey.of(tools)
    mine = Survey()
    found = await beside_the_loop(LARGE_BYTES + 1, mine.of, tools)
    known.survey = mine
    return found


def _runs(task: "asyncio.Task[None] | None") -> TypeGuard["asyncio.Task[None]"]:
    return task is not None and not task.done()


def _heard(task: "asyncio.Task[None]") -> None:
    """Whoever waited has heard of a failure; nobody may be left to."""
    if not task.cancelled():
        task.exception()


__all__ = ["FRESH_S", "ListTools", "Pins"]
