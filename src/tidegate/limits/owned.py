"""How does a worker use a ledger that another process keeps?

Lives here: the Ledger at the worker's end of the socket to the owner, and what becomes of it
when the owner is gone. Does not live here: what is said (owner_frames), the wire and the waiting
(owner_line), the other end (owner), the file (sqlite).

An owner that is gone has died together with the parent: this process is about to end as well.
Until then it goes on with the file itself, so that what its running requests owe is settled.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from tidegate.errors import StoreUnavailable
from tidegate.limits import owner_frames as frames
from tidegate.limits.ledger import (
    Charge,
    Granted,
    Ledger,
    Limit,
    Need,
    NeverFits,
    Refused,
    Standing,
    Usage,
)
from tidegate.limits.owner_line import Line, Unsaid

logger = logging.getLogger(__name__)

_AGAIN_S = 0.5
_REMEMBERED = 1_024
_TOO_MUCH = 2**62  # for a frame, and far beyond what any limit allows

T = TypeVar("T")


class OwnedLedger:
    """A Ledger through `line`, an end of Owner.connect; `alone` is the one without an owner.

    No call waits longer than about `wait_s`: then StoreUnavailable. All calls of one turn of the
    event loop travel together.
    """

    def __init__(self, line: socket.socket, alone: Ledger, wait_s: float = 5.0) -> None:
        self._socket, self._alone, self._wait_s = line, alone, wait_s
        self._line: Line | None = None
        self._numbers: dict[int, tuple[int, Limit]] = {}
        self._terms: dict[frames.Term, int] = {}
        self._serves_alone: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def degraded(self) -> bool:
        """Whether the store failed at the last attempt, or nobody answers."""
        if self._serves_alone is not None:
            return not self._serves_alone.is_set() or self._alone.degraded
        return self._line is None or self._line.degraded

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s."""
        if self._serves_alone is not None:
            return self._alone.clock_ahead_s
        return 0.0 if self._line is None else self._line.clock_ahead_s

    async def open(self) -> None:
        """Ask the owner whether the store serves; raises StoreUnavailable."""
        if self._line is None:
            self._line = Line(self._socket, wait_s=self._wait_s, lost=self._lost)
            await self.scopes(())

    async def close(self) -> None:
        """Wait, at most `wait_s`, until what was accepted is answered, and hang up."""
        if self._line is not None:
            if not await self._line.answered(self._wait_s):
                logger.warning("ledger_close_late")
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self._wait_s)
            for task in self._tasks:
                task.cancel()
            self._line.close()
            self._line = None
        if self._serves_alone is not None:
            await self._alone.close()

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        asked, is_money = [], False
        for charge in charges:
            limit = charge.limit
            asked.append((self._number(limit), charge.scope_key, min(charge.amount, _TOO_MUCH)))
            is_money = is_money or limit.unit == "money_micros"
        lease_us = round(lease_s * 1_000_000)
        call = frames.Reserve(reservation_id, owner, lease_us, tuple(asked), is_money)
        waiting = self._submit(call)
        if waiting is None:
            alone = await self._served_alone()
            return await alone.reserve(reservation_id, owner, charges, lease_s=lease_s)
        try:
            answer = await waiting
        except (asyncio.CancelledError, StoreUnavailable) as gave_up:
            self._undo(call, waiting, gave_up)
            raise
        return _verdict(reservation_id, charges, answer)

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return await self._end(frames.Settle(reservation_id, owner, need and _sane(need)))

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return await self._end(frames.Release(reservation_id, owner))

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage."""
        waiting = self._submit(frames.Look(self._number(limit), scope_key))
        if waiting is None:
            return await (await self._served_alone()).usage(limit, scope_key)
        answer = await waiting
        assert isinstance(answer, frames.Looked)  # noqa: S101 - the owner is our own program
        return answer.usage

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes."""
        waiting = self._submit(frames.Walk(tuple(self._number(limit) for limit in limits)))
        if waiting is None:
            return await (await self._served_alone()).scopes(limits)
        answer = await waiting
        assert isinstance(answer, frames.Walked)  # noqa: S101 - the owner is our own program
        return tuple((limits[place], scope) for place, scope in answer.found)

    def _submit(self, call: frames.Call) -> "asyncio.Future[frames.Answer] | None":
        """None when the owner is gone."""
        if self._serves_alone is not None:
            return None
        if self._line is None:
            raise StoreUnavailable("ledger not open", retry_after_s=None)
        return self._line.submit(call)

    async def _end(self, call: frames.Settle | frames.Release) -> bool:
        waiting = self._submit(call)
        if waiting is not None:
            answer = await waiting
            return isinstance(answer, frames.Ended) and answer.changed
        ending = self._keep(self._end_alone(call))
        try:
            async with asyncio.timeout(self._wait_s):
                return await asyncio.shield(ending)
        except TimeoutError:
            raise StoreUnavailable("no answer from the ledger in time") from None

    def _undo(
        self, call: frames.Reserve, waiting: "asyncio.Future[frames.Answer]", gave_up: BaseException
    ) -> None:
        if self._line is None or isinstance(gave_up, Unsaid):
            return
        if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
            is_held = isinstance(waiting.result(), frames.Granted)
        else:
            is_held = not self._line.withdraw(call)
        if is_held:
            # It is being granted while we give up. The owner keeps the order: this comes after.
            release = frames.Release(call.reservation_id, call.owner)
            if (undoing := self._submit(release)) is not None:
                undoing.cancel()
            else:
                self._keep(self._end_alone(release))

    # Without the owner.

    def _lost(self, unanswered: Sequence[frames.Call]) -> None:
        """Its socket is closed: go on alone. What must happen and was not answered comes first."""
        logger.warning("ledger_owner_gone")
        self._serves_alone = asyncio.Event()
        self._keep(self._open_alone())
        for call in unanswered:
            if isinstance(call, frames.Settle | frames.Release):
                self._keep(self._end_alone(call))

    async def _open_alone(self) -> None:
        again = asyncio.Event()
        while self._serves_alone is not None:
            try:
                await self._alone.open()
            except StoreUnavailable:
                asyncio.get_running_loop().call_later(_AGAIN_S, again.set)
                await again.wait()
                again.clear()
            else:
                self._serves_alone.set()
                return

    async def _served_alone(self) -> Ledger:
        if self._serves_alone is None or not self._serves_alone.is_set():
            raise StoreUnavailable("the owner of the ledger is gone")
        return self._alone

    async def _end_alone(self, call: frames.Settle | frames.Release) -> bool:
        if self._serves_alone is not None:
            await self._serves_alone.wait()
        if isinstance(call, frames.Settle):
            return await self._alone.settle(call.reservation_id, call.owner, call.need)
        return await self._alone.release(call.reservation_id, call.owner)

    def _keep(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: "asyncio.Task[T]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(task.exception(), StoreUnavailable):
            logger.warning("settlement_unheard")

    # Numbers of limits.

    def _number(self, limit: Limit) -> int:
        known = self._numbers.get(id(limit))
        if known is not None:
            return known[0]
        if self._line is None and self._serves_alone is None:
            raise StoreUnavailable("ledger not open", retry_after_s=None)
        term = frames.Term.of(limit)
        number = self._terms.get(term)
        if number is None:
            frames.encode(frames.Calls((term,), ()))  # one that cannot be said gets no number
            number = self._terms[term] = len(self._terms)
            if self._line is not None:
                self._line.introduce(term)
        if len(self._numbers) >= _REMEMBERED:
            self._numbers.clear()
        self._numbers[id(limit)] = (number, limit)
        return number


def _sane(need: Need) -> Need:
    """What fits into a frame: a hostile usage figure counts as MAX_AMOUNT anyway."""
    figures = (need.input_tokens, need.output_tokens, need.money_micros, need.prompt_micros)
    if all(-_TOO_MUCH < figure < _TOO_MUCH for figure in figures):
        return need
    prompt, answer, money, part = (max(-_TOO_MUCH, min(one, _TOO_MUCH)) for one in figures)
    return Need(prompt, answer, need.output_is_default, money, part)


def _verdict(
    reservation_id: str, charges: Sequence[Charge], answer: frames.Answer
) -> Granted | Refused | NeverFits:
    if isinstance(answer, frames.Granted):
        return Granted(reservation_id, _standings(charges, answer.standings))
    if isinstance(answer, frames.NeverFits):
        charge = charges[answer.place]
        return NeverFits(charge.limit, charge.amount)
    assert isinstance(answer, frames.Refused)  # noqa: S101 - the owner is our own program
    charge = charges[answer.place]
    standings = _standings(charges, answer.standings)
    return Refused(
        charge.limit, answer.used, charge.amount, answer.retry_after_s, answer.exact, standings
    )


def _standings(charges: Sequence[Charge], stands: frames.Stands) -> tuple[Standing, ...]:
    return tuple(
        [
            Standing(charge.limit, used, max(0, charge.limit.cap - used), reset_s)
            for charge, (used, reset_s) in zip(charges, stands, strict=False)
        ]
    )


__all__ = ["OwnedLedger"]
