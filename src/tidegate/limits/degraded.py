"""What holds while the store is away, and how do the books become one again?

Lives here: `on_store_down`, for whichever store stands behind it. Does not live here: whether
the store is away (each store says so and asks again by itself), the arithmetic of the share
(share).

    store ──StoreUnavailable──► away ──store serves──► telling ──all told──► store

A request with a limit that is `closed` is refused while the store does not answer. All others
are decided here without asking the store: `local_share` by this process' part of each cap,
`open` by nothing. Afterwards the store hears, once, of what was admitted: running requests
become reservations there, under another id; what has ended is charged as one amount for each
counter, at the moment of the telling.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits.ledger import (
    Charge,
    Granted,
    Ledger,
    Limit,
    Need,
    NeverFits,
    Refused,
    Usage,
)
from tidegate.limits.share import Seen, Share, forced_charge

logger = logging.getLogger(__name__)

POLL_S = 0.05
_SHORTEST_LEASE_S = 1.0
_TOLD_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class _Held:
    """A reservation in the store that occupies slots: who may end it, until when."""

    slots: tuple[Charge, ...]
    due_s: float


class DegradingLedger:
    """`inner`, and what `on_store_down` of each limit says while it is away.

    `sharers` is how many processes share `inner`, as far as is known. While it is away a
    request costs what a decision in memory costs; the first one that finds it away waits as
    long as `inner` does.
    """

    def __init__(self, inner: Ledger, clock: Clock, *, sharers: Callable[[], int]) -> None:
        self._inner = inner
        self._clock = clock
        self._sharers = sharers
        self._seen = Seen()
        self._held: dict[str, _Held] = {}
        self._share: Share | None = None
        self._moving: dict[str, asyncio.Event] = {}
        self._moved: dict[str, str] = {}
        self._untold: list[Charge] = []
        self._returning: asyncio.Task[None] | None = None

    @property
    def degraded(self) -> bool:
        """Whether the store is away, or has not heard everything yet."""
        return self._share is not None or self._inner.degraded

    @property
    def clock_ahead_s(self) -> float:
        """See Ledger.clock_ahead_s."""
        return self._inner.clock_ahead_s

    async def open(self) -> None:
        """See Ledger.open. It must answer once: how many share it is not known before."""
        await self._inner.open()

    async def close(self) -> None:
        """See Ledger.close."""
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.wait((self._returning,))
        if self._share is not None:
            try:
                await self._tell(self._share)
            except StoreUnavailable:
                count = self._share.owes + len(self._untold)
                logger.warning("local_admissions_untold", extra={"count": count})
        await self._inner.close()

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        """See Ledger.reserve."""
        if any(charge.limit.on_store_down == "closed" for charge in charges):
            return await self._ask(reservation_id, owner, charges, lease_s)
        if self._share is None and not self._inner.degraded:
            try:
                return await self._ask(reservation_id, owner, charges, lease_s)
            except StoreUnavailable:
                # Nothing of it is left there: that is what a ledger promises when it raises.
                pass
        share = self._share or await self._leave()
        return await share.reserve(reservation_id, owner, charges, lease_s)

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        """See Ledger.settle."""
        return await self._end(reservation_id, owner, need, is_release=False)

    async def release(self, reservation_id: str, owner: str) -> bool:
        """See Ledger.release."""
        return await self._end(reservation_id, owner, None, is_release=True)

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        """See Ledger.usage: what the store says."""
        return await self._inner.usage(limit, scope_key)

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        """See Ledger.scopes: what the store says."""
        return await self._inner.scopes(limits)

    async def _ask(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], lease_s: float
    ) -> Granted | Refused | NeverFits:
        verdict = await self._inner.reserve(reservation_id, owner, charges, lease_s=lease_s)
        now_s = self._clock.monotonic_s()
        if isinstance(verdict, Granted | Refused):
            for charge, standing in zip(charges, verdict.standings, strict=False):
                if charge.limit.on_store_down == "local_share":
                    self._seen.note(charge, standing.used, now_s)
        if isinstance(verdict, Granted):
            slots = tuple(charge for charge in charges if charge.limit.unit == "concurrent")
            if slots:
                self._held[reservation_id] = _Held(slots, now_s + lease_s)
        return verdict

    async def _end(
        self, reservation_id: str, owner: str, need: Need | None, *, is_release: bool
    ) -> bool:
        if (moving := self._moving.get(reservation_id)) is not None:
            await moving.wait()
        share = self._share
        if share is not None and reservation_id in share.lent:
            return await share.end(reservation_id, owner, need, is_release=is_release)
        self._held.pop(reservation_id, None)
        if share is not None:
            await share.let_go(reservation_id)
        name = self._moved.pop(reservation_id, reservation_id)
        try:
            if is_release:
                return await self._inner.release(name, owner)
            return await self._inner.settle(name, owner, need)
        except StoreUnavailable:
            if self._share is None:
                raise
            # The store has it in its books-to-be: it is applied as soon as it serves.
            return True

    async def _leave(self) -> Share:
        """From here on this process decides by itself."""
        share = self._share = Share(self._clock, self._seen, self._sharers())
        self._returning = asyncio.get_running_loop().create_task(self._return())
        now_s = self._clock.monotonic_s()
        for reservation_id, held in list(self._held.items()):
            if held.due_s > now_s:
                await share.hold(reservation_id, held.slots, held.due_s - now_s)
            else:
                del self._held[reservation_id]
        return share

    async def _return(self) -> None:
        turn = asyncio.Event()
        while (share := self._share) is not None:
            asyncio.get_running_loop().call_later(POLL_S, turn.set)
            await turn.wait()
            turn.clear()
            if self._inner.degraded:
                continue
            try:
                count = await self._tell(share)
            except StoreUnavailable:
                continue
            # Nothing is awaited between the last look and this line.
            self._share = None
            logger.info("local_admissions_told", extra={"count": count})

    async def _tell(self, share: Share) -> int:
        """Until nothing is left to tell; raises StoreUnavailable."""
        count = 0
        while share.owes or self._untold:
            here = list(share.lent)[:_TOLD_AT_ONCE]
            await _all([self._move(share, reservation_id) for reservation_id in here])
            self._untold += share.take_spent()
            telling = self._untold[:_TOLD_AT_ONCE]
            await _all([self._charge(charge) for charge in telling])
            count += len(here) + len(telling)
        return count

    async def _move(self, share: Share, reservation_id: str) -> None:
        """Make a reservation in the store of one that was made here."""
        lent = share.lent.get(reservation_id)
        if lent is None:
            return
        moved = self._moving[reservation_id] = asyncio.Event()
        lease_s = max(_SHORTEST_LEASE_S, lent.due_s - self._clock.monotonic_s())
        charges = [forced_charge(charge) for charge in lent.charges]
        # Another name for each attempt: a ledger takes back what it raised for, also later.
        name = f"{reservation_id}+{secrets.token_hex(4)}"
        try:
            await self._inner.reserve(name, lent.owner, charges, lease_s=lease_s)
            share.take_lent(reservation_id)
            self._moved[reservation_id] = name
            slots = tuple(one for one in lent.charges if one.limit.unit == "concurrent")
            if slots:
                self._held[reservation_id] = _Held(slots, lent.due_s)
        finally:
            del self._moving[reservation_id]
            moved.set()

    async def _charge(self, charge: Charge) -> None:
        """Charge what was spent here."""
        name, forced = secrets.token_hex(16), [forced_charge(charge)]
        await self._inner.reserve(name, name, forced, lease_s=_SHORTEST_LEASE_S)
        self._untold.remove(charge)
        with suppress(StoreUnavailable):
            await self._inner.settle(name, name, None)


async def _all(works: Sequence[Coroutine[object, object, None]]) -> None:
    """Each of them to its end; then raises what the first that failed raised."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if outcome is not None:
            raise outcome


__all__ = ["POLL_S", "DegradingLedger"]
