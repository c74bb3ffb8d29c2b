"""Who settles or releases this reservation?

Charging does, and nobody else: the context it hands out reserves on the way in and starts
exactly one of settle and release on the way out, in a task that belongs to the application, so
that cancelling the request (once or twice) cannot cancel it. Does not live here: how much was
used (the path says so through Charge), what a store does with it (limits).
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import assert_never

from tidegate.errors import RateLimited, RequestExceedsLimit, StoreUnavailable
from tidegate.limits.ledger import Charge as LimitCharge
from tidegate.limits.ledger import Granted, Ledger, Need, NeverFits, Refused, Standing

logger = logging.getLogger(__name__)

_SETTLE_WAIT_S = 0.25
"""How long the end of a request waits for its settlement, so that the same client's next
request finds the books settled. A slow store must not hold the request any longer."""

_ERROR_WAIT_S = 0.05
"""The same for a request whose answer, an error, has yet to leave: its time may be over."""


Tell = Callable[[Sequence[Standing], bool], None]
"""Hears where the limits stand, admitted or refused, and whether the store was left out."""


def new_owner() -> str:
    """An id for the reservations of this process: 128 random bits, made once per boot."""
    return secrets.token_hex(16)


class Charge:
    """What one request owes. It owes nothing until `commit`; then what `use` says it used.

    A committed charge of which no usage is known stands at its estimate: it is never free.
    `counted` says that a part of the usage is our own count.
    """

    __slots__ = ("_committed", "_used", "counted")

    def __init__(self) -> None:
        self._committed = False
        self._used: Need | None = None
        self.counted = False

    def commit(self) -> None:
        """From now on the request is settled, whatever ends it; before, it is released."""
        self._committed = True

    def use(self, used: Need, *, counted: bool = False) -> None:
        """Set what was really used so far; the last word counts."""
        self._used = used
        self.counted = counted

    @property
    def committed(self) -> bool:
        """Whether the end will be a settlement."""
        return self._committed

    @property
    def used(self) -> Need | None:
        """What a settlement would charge; None while nothing is known."""
        return self._used


class Charging:
    """Reserves for requests and ends what was reserved. One per application.

    `settled`, `released` and `unconfirmed` count ends. Unconfirmed: the store did not answer in
    time; the ledger applies the end when it can, else the lease expires at its estimate.
    """

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger = ledger
        self._owner = owner
        self._ending: set[asyncio.Task[None]] = set()
        self.settled = 0
        self.released = 0
        self.unconfirmed = 0

    @property
    def pending(self) -> int:
        """Ends that the store has not confirmed yet."""
        return len(self._ending)

    def reserved(
        self,
        request_id: str,
        charges: Sequence[LimitCharge],
        lease_s: float,
        *,
        tell: Tell | None = None,
    ) -> "Reserved":
        """A context that holds `charges` under the id `request_id` for at most `lease_s`.

        `tell` hears the standing of each limit before the context is entered or refuses.
        Entering raises RateLimited, RequestExceedsLimit or StoreUnavailable, and then nothing
        is reserved. Leaving ends the reservation exactly once. Without charges the store is
        not asked at all.
        """
        if not charges:
            return Reserved(None, None)
        return Reserved(
            partial(self._take, request_id, tuple(charges), lease_s, tell or _nobody),
            partial(self._end, request_id),
        )

    async def drain(self, timeout_s: float) -> int:
        """Wait until every end is confirmed; returns how many are not after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._ending:
                    await asyncio.wait(self._ending)
        except TimeoutError:
            logger.warning("settlements_unfinished", extra={"count": len(self._ending)})
        return len(self._ending)

    async def _take(
        self, request_id: str, charges: Sequence[LimitCharge], lease_s: float, tell: Tell
    ) -> None:
        verdict = await self._ledger.reserve(request_id, self._owner, charges, lease_s=lease_s)
        if not isinstance(verdict, NeverFits):
            tell(verdict.standings, verdict.degraded)
        match verdict:
            case Granted():
                return
            case Refused(limit=limit):
                raise RateLimited(
                    limit=limit.name,
                    scope=limit.per,
                    cap=limit.cap,
                    used=verdict.used,
                    requested=verdict.requested,
                    retry_after_s=verdict.retry_after_s,
                )
            case NeverFits(limit=limit):
                raise RequestExceedsLimit(
                    limit=limit.name,
                    scope=limit.per,
                    cap=limit.cap,
                    requested=verdict.requested,
                )
            case _:
                assert_never(verdict)

    def _end(self, request_id: str, charge: Charge) -> asyncio.Task[None]:
        """Start the one end of this reservation; the task is ours, not the request's."""
        task = asyncio.get_running_loop().create_task(
            self._settle(request_id, charge.used) if charge.committed else self._release(request_id)
        )
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _settle(self, request_id: str, used: Need | None) -> None:
        try:
            await self._ledger.settle(request_id, self._owner, used)
        except StoreUnavailable:
            self._note_unconfirmed(request_id)
        else:
            self.settled += 1

    async def _release(self, request_id: str) -> None:
        try:
            await self._ledger.release(request_id, self._owner)
        except StoreUnavailable:
            self._note_unconfirmed(request_id)
        else:
            self.released += 1

    def _note_unconfirmed(self, request_id: str) -> None:
        self.unconfirmed += 1
        logger.warning("settlement_unconfirmed", extra={"request_id": request_id})


def _nobody(standings: Sequence[Standing], degraded: bool) -> None:  # noqa: FBT001 - of Tell
    """Nobody wants to hear."""


class Reserved:
    """The context of `Charging.reserved`; made there only, entered once."""

    __slots__ = ("_charge", "_end", "_take")

    def __init__(
        self,
        take: Callable[[], Awaitable[None]] | None,
        end: Callable[[Charge], asyncio.Task[None]] | None,
    ) -> None:
        self._take = take
        self._end = end
        self._charge = Charge()

    async def __aenter__(self) -> Charge:
        if self._take is not None:
            await self._take()
        return self._charge

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._end is not None:
            # Not wait_for: it would cancel the settlement along with us, or at the time-out.
            wait_s = _SETTLE_WAIT_S if error is None else _ERROR_WAIT_S
            await asyncio.wait((self._end(self._charge),), timeout=wait_s)


__all__ = ["Charge", "Charging", "Reserved", "Tell", "new_owner"]
