"""Has every tool that is listed or called been compared with its pin?

Lives here: when the list of a server is looked at, what this process knows of the store, and
what happens when either cannot be had. Does not live here: what a difference is and what follows
(mcp.pins), where pins are kept (mcp.pin_store), how a list is fetched (whoever asks).

A list is looked at whenever one passes, before the first call after a start, and before the next
call after the server said that its tools have changed, was moved or started anew, or, in mode
block, could not have told us for a minute. What another process does to a book (an
approval, a change that it saw) holds here within a second, an approval for the very next call.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeGuard

import msgspec

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pause import pause
from tidegate.gateway.pins.known import HERE, Known, Page, Since, Source, Where, again
from tidegate.gateway.pins.told import tell
from tidegate.gateway.servers.upstream import NEEDS_SESSION, ServerFailed
from tidegate.mcp.pin_store import PinStore
from tidegate.mcp.pins import Mode, Observed, Verdicts, observe, skeletons

logger = logging.getLogger(__name__)

FRESH_S: Final = 1.0
_AGAIN_S: Final = 5.0
_REST_S: Final = 1.0
_MOST_LISTS: Final = 3
_OF_ONE: Final = frozenset({"session_ended", NEEDS_SESSION, "refused", "malformed"})
"""How a list fails that may be had in another client's session."""
_MOST_TRIES: Final = 16


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
        self._known: dict[str, Known] = {}
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

    def stale(self, server: str, *, announced: bool = True) -> None:
        """The tools of the server may be others: its list is looked at before a call.

        `announced`: it said so itself, perhaps to this process alone, so that all hear of it.
        """
        known = self._of(server)
        known.news += 1
        known.rests_until_s = known.told_until_s = 0.0
        if announced and server in self._servers():
            known.untold = True
            if not _runs(known.telling):
                known.telling = asyncio.get_running_loop().create_task(self._spread(server, known))
                known.telling.add_done_callback(_heard)

    async def _spread(self, server: str, known: Known) -> None:
        """Let the others on the same store know; at most once a second."""
        while known.untold:
            known.untold = False
            with suppress(StoreUnavailable):
                async with known.turn:
                    await self._write_heard(server, known)
            await pause(FRESH_S)

    async def _write_heard(self, server: str, known: Known) -> None:
        for _ in range(_MOST_TRIES):
            await self._look(at_most_s=0.0)
            if known.mark == 0:
                return  # Nobody has compared anything yet.
            book = known.book
            told = msgspec.structs.replace(book, turn=book.turn + 1, heard=book.heard + 1)
            mark = await self._store.write(server, told, was=known.mark)
            if mark is not None:
                known.book, known.mark = told, mark
                return

    def differing(self) -> dict[str, int]:
        """How many tools of each configured server are not what was approved."""
        return {name: self._known[name].book.differing for name in self._configured()}

    def refuses(self, server: str, tool: str) -> bool:
        """Whether mode block has something against a tool, as far as is known without a look."""
        return Verdicts(server, "block", self._of(server).book).refuses(tool)

    def since(self, server: str, where: Where) -> Since:
        """To be kept while a list that passes is on its way from there."""
        return Since(self._of(server).news, where)

    def is_due(self, server: str, source: Source) -> bool:
        """Whether a call would have the list of the server asked for."""
        known, now_s = self._of(server), self._clock.monotonic_s()
        return not self._is_checked(known, source) and now_s >= known.rests_until_s

    async def before_call(self, server: str, mode: Mode, tool: str, source: Source) -> Verdicts:
        """What holds for a call of `tool` that is sent to `source` at once.

        Cost: nothing but a look-up, once a second a look into the store, and before the first
        call a whole list. In mode warn both happen beside the call, which they cannot hinder.
        """
        known = self._of(server)
        if mode != "block":
            is_checked = known.is_checked(source.where(), now_s=self._clock.monotonic_s())
            self._look_beside(server, known, source)
            return Verdicts(server, mode, known.book, unchecked=not is_checked)
        try:
            for _ in range(_MOST_LISTS):
                if not self._is_checked(known, source):
                    await self._list(server, known, source)
                verdicts = await self._judged(server, mode, known, tool)
                # While this waited it may have said that its tools changed, or been replaced.
                if self._is_checked(known, source):
                    return verdicts
        except (StoreUnavailable, ServerFailed) as error:
            self._note_unchecked(server, known, error)
            raise
        raise ServerFailed("unchecked")

    async def _judged(self, server: str, mode: Mode, known: Known, tool: str) -> Verdicts:
        await self._look(at_most_s=FRESH_S)
        verdicts = Verdicts(server, mode, known.book)
        if verdicts.refuses(tool):
            # It may have been approved a moment ago.
            await self._look(at_most_s=0.0)
            verdicts = Verdicts(server, mode, known.book)
        return verdicts

    def _is_checked(self, known: Known, source: Source) -> bool:
        now_s = self._clock.monotonic_s()
        return known.is_checked(source.where(), now_s=now_s, heard=source.is_heard())

    def _look_beside(self, server: str, known: Known, source: Source) -> None:
        """Begin whatever is due; at most one list a server, and a failed one rests."""
        now_s = self._clock.monotonic_s()
        if known.is_checked(source.where(), now_s=now_s):
            last_s = max(self._looked_s or 0.0, self._failed_s or 0.0)
            if now_s - last_s >= FRESH_S and not _runs(self._looking):
                self._begin_look()
        elif now_s >= known.told_until_s and not _runs(known.running):
            task = self._begin_check(server, known, source)
            task.add_done_callback(partial(self._checked_beside, server, known))

    def _checked_beside(self, server: str, known: Known, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable | ServerFailed):
            self._note_unchecked(server, known, error)

    def _begin_check(self, server: str, known: Known, source: Source) -> "asyncio.Task[None]":
        known.running_for = known.news, source.where().place
        task = asyncio.get_running_loop().create_task(self._check(server, source))
        task.add_done_callback(_heard)
        known.running = task
        return task

    def _begin_look(self) -> "asyncio.Task[None]":
        self._looking = asyncio.get_running_loop().create_task(self._read_changed())
        self._looking.add_done_callback(_heard)
        return self._looking

    async def _list(self, server: str, known: Known, source: Source) -> None:
        """Have the list of the server and compare it; callers at the same time share one.

        One that could not be had is not asked for again at once, whoever wants it. Raises
        StoreUnavailable and ServerFailed.
        """
        running, mine = known.running, False
        if _runs(running) and known.running_for != (known.news, source.where().place):
            # It may hold the list from before the change.
            await asyncio.wait((running,))
            running = known.running
        if self._is_checked(known, source):
            return
        if not _runs(running):
            if known.failure is not None and self._clock.monotonic_s() < known.rests_until_s:
                raise again(known.failure)
            running, mine = self._begin_check(server, known, source), True
        try:
            await asyncio.shield(running)
        except ServerFailed as failed:
            # What came of the session of another client is no reason to refuse this one.
            if mine or failed.reason not in _OF_ONE:
                raise

    async def judge(
        self,
        server: str,
        mode: Mode,
        tools: Sequence[object],
        *,
        cursor: str | None = None,
        following: str | None = None,
        since: Since | None = None,
        where: Where = HERE,
    ) -> Verdicts:
        """Compare a list that the server has just sent, as it wrote it, before it is shown.

        `cursor` is that of the page, None for the first one, `following` that of the next, None
        for the last one. Only a page that is both shows that a tool is gone, and counts as a
        check: of what was there `since` and is there still, `where` it is reached. Without
        `since` nobody knows where the list came from.
        """
        known = self._of(server)
        is_whole = cursor is None and following is None
        of = since.until(where) if since is not None else None
        completes = is_whole or (of is not None and known.completes(of, cursor, following))
        page = Page(await known.surveyed(tools), is_whole, completes)
        try:
            await self._note(server, page)
        except StoreUnavailable as error:
            self._note_unchecked(server, known, error)
            if mode == "block":
                raise
            observed = self._observed(server, known, page)
            return Verdicts(server, mode, observed.book, unchecked=True)
        if is_whole and of is not None:
            known.checked(of, now_s=self._clock.monotonic_s())
        return Verdicts(server, mode, known.book)

    async def close(self) -> None:
        """End what runs, and let go of the store."""
        running = [
            task for known in self._known.values() for task in (known.running, known.telling)
        ]
        for task in (*running, self._looking):
            if task is not None:
                task.cancel()
        await self._store.close()

    async def _check(self, server: str, source: Source) -> None:
        known, now_s = self._of(server), self._clock.monotonic_s()
        since = Since(known.news, source.where())
        try:
            tools = await source()
            of = since.until(source.where())
            await self._note(server, Page(await known.surveyed(tools)))
        except (ServerFailed, StoreUnavailable) as failure:
            is_theirs = isinstance(failure, ServerFailed) and _is_of_one(failure)
            if since.news == known.news and not is_theirs:
                known.failure = failure
                known.rests_until_s = self._clock.monotonic_s() + _REST_S
            raise
        if of is not None:
            known.checked(of, now_s=now_s)

    async def _note(self, server: str, page: Page) -> None:
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
                    tell(observed, server, self._metrics)
                    return
                await self._look(at_most_s=0.0)
        raise StoreUnavailable("others write the pins of this server all the time")

    def _observed(self, server: str, known: Known, page: Page) -> Observed:
        def others() -> dict[str, str]:
            names = [name for name in self._configured() if name != server]
            books = [self._known[name].book for name in names]
            return {shape: tool for book in books for shape, tool in skeletons(book).items()}

        return observe(
            known.book,
            page.tools,
            now_s=self._clock.now_s(),
            others=others,
            is_whole=page.is_whole,
            is_last=page.completes,
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

    async def _take(self, server: str, known: Known) -> None:
        """The book as another process wrote it; one that went backwards was lost and is mended."""
        kept = await self._store.read(server)
        if kept is not None and kept.book.turn >= known.book.turn:
            if known.mark and kept.book.heard != known.book.heard:
                self.stale(server, announced=False)
            known.mark, known.book = kept.mark, kept.book
            return
        mended = msgspec.structs.replace(known.book, turn=known.book.turn + 1)
        mark = await self._store.write(server, mended, was=kept.mark if kept is not None else 0)
        if mark is not None:
            known.mark, known.book = mark, mended
            logger.warning("tool_pins_restored", extra={"server": server})

    def _note_unchecked(
        self, server: str, known: Known, error: StoreUnavailable | ServerFailed
    ) -> None:
        """Count it, and say so once in a while."""
        self._metrics.tool_pin(server=server, state="unchecked")
        if (now_s := self._clock.monotonic_s()) < known.told_until_s:
            return
        known.told_until_s = now_s + _AGAIN_S
        reason = error.reason if isinstance(error, ServerFailed) else "store_unavailable"
        logger.warning("tool_pins_unchecked", extra={"server": server, "reason": reason})

    def _configured(self) -> Iterable[str]:
        names = list(self._servers())
        for name in names:
            self._of(name)
        return names

    def _of(self, server: str) -> Known:
        known = self._known.get(server)
        if known is None:
            known = self._known[server] = Known()
        return known


def _is_of_one(failed: ServerFailed) -> bool:
    refused = failed.reason == "status" and 400 <= failed.status < 500
    return refused or failed.reason in _OF_ONE


def _runs(task: "asyncio.Task[None] | None") -> TypeGuard["asyncio.Task[None]"]:
    return task is not None and not task.done()


def _heard(task: "asyncio.Task[None]") -> None:
    """Whoever waited has heard of a failure; nobody may be left to."""
    if not task.cancelled():
        task.exception()


__all__ = ["FRESH_S", "Pins"]
