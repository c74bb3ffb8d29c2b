"""How much of something that all clients share may one principal have at a time?

Lives here: the count of one such thing, in all and for each principal. Does not live here: what
is counted (tool_traffic, streams, relay).
"""

from contextlib import AbstractContextManager
from types import TracebackType

from tidegate.errors import Overloaded, RateLimited
from tidegate.mcp.sessions import Owner, owner_of
from tidegate.policy import Principal


class Shares:
    """`limit` names the thing in refusals; None for `most`: somebody else bounds the whole."""

    def __init__(
        self, limit: str, *, most: int | None, of_principal: int, retry_after_s: float
    ) -> None:
        self._limit = limit
        self._most = most
        self._of_principal = of_principal
        self._retry_after_s = retry_after_s
        self._held: dict[Owner, int] = {}
        self._all = 0

    def __len__(self) -> int:
        return self._all

    def taken(self, principal: Principal, amount: int = 1) -> "Share":
        """So much more, as long as the block lasts. Entering raises RateLimited and Overloaded.

        Somebody who has nothing yet gets any amount, so that nothing is too large for ever.
        """
        return Share(self, owner_of(principal), amount)

    def take(self, owner: Owner, amount: int) -> None:
        """See `taken`."""
        held = self._held.get(owner, 0)
        if self._most is not None and self._all and self._all + amount > self._most:
            raise Overloaded(self._limit)
        if held and held + amount > self._of_principal:
            raise RateLimited(
                limit=self._limit,
                scope="principal",
                cap=self._of_principal,
                used=held,
                requested=amount,
                retry_after_s=self._retry_after_s,
            )
        self._held[owner] = held + amount
        self._all += amount

    def give_back(self, owner: Owner, amount: int) -> None:
        """The block is over."""
        self._all -= amount
        self._held[owner] -= amount
        if not self._held[owner]:
            del self._held[owner]


class Share(AbstractContextManager[bool]):
    """The context of `Shares.taken`; entered once."""

    __slots__ = ("_amount", "_of", "_owner")

    def __init__(self, of: Shares, owner: Owner, amount: int) -> None:
        self._of = of
        self._owner = owner
        self._amount = amount

    def __enter__(self) -> bool:
        self._of.take(self._owner, self._amount)
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._of.give_back(self._owner, self._amount)


__all__ = ["Share", "Shares"]
