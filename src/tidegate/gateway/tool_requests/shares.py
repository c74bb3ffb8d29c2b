"""How much of something that all clients share may one principal have at a time?

Lives here: the count of one such thing, in all and for each principal. Does not live here: what
is counted (tool_traffic, streams, relay).
"""

from collections.abc import Iterator
from contextlib import contextmanager

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

    @contextmanager
    def taken(self, principal: Principal, amount: int = 1) -> Iterator[bool]:
        """So much more, as long as the block lasts. Raises RateLimited and Overloaded.

        Somebody who has nothing yet gets any amount, so that nothing is too large for ever.
        """
        owner = owner_of(principal)
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
        try:
            yield True
        finally:
            self._all -= amount
            self._held[owner] -= amount
            if not self._held[owner]:
                del self._held[owner]


__all__ = ["Shares"]
