"""What store can a test send away and fetch back?"""

from collections.abc import Sequence

from tidegate.clock import Clock
from tidegate.errors import StoreUnavailable
from tidegate.limits import Charge, Granted, Limit, MemoryLedger, Need, NeverFits, Refused, Usage


class Store:
    """The one set of books that several `AwayLedger`s share."""

    def __init__(self, clock: Clock) -> None:
        self.books = MemoryLedger(clock)
        self.is_away = False
        self.asked = 0


class AwayLedger:
    """One process' view of it. Ends given while it is away are applied when it is back."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.owed: list[tuple[str, str, Need | None, bool]] = []
        self.noticed = True
        """Whether `degraded` says that it is away before somebody has asked in vain."""

    clock_ahead_s = 0.0

    @property
    def degraded(self) -> bool:
        return self.store.is_away and self.noticed

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def reserve(
        self, reservation_id: str, owner: str, charges: Sequence[Charge], *, lease_s: float
    ) -> Granted | Refused | NeverFits:
        await self._here()
        return await self.store.books.reserve(reservation_id, owner, charges, lease_s=lease_s)

    async def settle(self, reservation_id: str, owner: str, need: Need | None) -> bool:
        return await self._end(reservation_id, owner, need, False)

    async def release(self, reservation_id: str, owner: str) -> bool:
        return await self._end(reservation_id, owner, None, True)

    async def usage(self, limit: Limit, scope_key: str) -> Usage:
        await self._here()
        return await self.store.books.usage(limit, scope_key)

    async def scopes(self, limits: Sequence[Limit]) -> tuple[tuple[Limit, str], ...]:
        await self._here()
        return await self.store.books.scopes(limits)

    async def _end(
        self,
        reservation_id: str,
        owner: str,
        need: Need | None,
        is_release: bool,  # noqa: FBT001
    ) -> bool:
        if self.store.is_away:
            self.owed.append((reservation_id, owner, need, is_release))
            self.noticed = True
            raise StoreUnavailable
        await self._say_owed()
        if is_release:
            return await self.store.books.release(reservation_id, owner)
        return await self.store.books.settle(reservation_id, owner, need)

    async def _here(self) -> None:
        self.store.asked += 1
        if self.store.is_away:
            self.noticed = True
            raise StoreUnavailable
        await self._say_owed()

    async def _say_owed(self) -> None:
        owed, self.owed = self.owed, []
        for reservation_id, owner, need, is_release in owed:
            if is_release:
                await self.store.books.release(reservation_id, owner)
            else:
                await self.store.books.settle(reservation_id, owner, need)
