"""Does this charge fit, and if not, when?

Lives here: the sliding window of buckets and the one decision over several limits. Does not
live here: leases (books), clocks and stores; time comes in as whole microseconds, because all
stores must round alike.

A window is cut into 240 buckets. A bucket counts until its *end* has left the window, so what
was granted inside it counts for at least the whole window: no true window of that length, laid
anywhere, ever holds more than the cap. The price is at most 1/240 of the window in patience.
A running total makes a decision cost the same with any amount of traffic in the window.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec import Struct

from tidegate.limits.ledger import Granted, Limit, NeverFits, Refused, Standing

BUCKETS = 240

CONCURRENT_RETRY_S = 1.0
"""Advice for a full concurrency limit: nobody knows when a running call ends."""


def bucket_end_us(now_us: int, window_us: int) -> int:
    """The end of the bucket that `now_us` falls into, which is also the bucket's name.

    Ends, not numbers: when the window of a limit is changed, what was counted in buckets of
    the old width stays true.
    """
    width_us = -(-window_us // BUCKETS)
    return (now_us // width_us + 1) * width_us


def horizon_us(now_us: int, window_us: int) -> int:
    """Buckets that end at or before this time no longer count."""
    return now_us - window_us


class Book(Protocol):
    """Looks into one counter; asked only when the answer is no. Both write nothing."""

    def live(self, key: str, horizon: int) -> "Iterable[Bucket]":
        """The buckets that end after `horizon`, oldest first."""

    def newest_end_us(self, key: str, horizon: int) -> int:
        """The end of the newest bucket that ends after `horizon`, or 0."""


class Ask(Struct, frozen=True, gc=False):
    """What one limit is asked for, with what is known of its counter `key` in `book` now.

    `used` is everything that counts now; `end_us` is the bucket that a grant would be in.
    """

    limit: Limit
    amount: int
    used: int
    end_us: int
    key: str
    book: Book


def admit(
    reservation_id: str, asks: Sequence[Ask], *, now_us: int
) -> Granted | Refused | NeverFits:
    """All of `asks` fit, or the reason why not. Changes nothing.

    NeverFits wins over Refused: waiting for the other limits would be in vain. Among several
    full limits the one that takes longest is named, so that obeying `retry_after_s` is enough
    for all of them. Cost: O(len(asks)) when granted, plus a walk over at most 241 buckets for
    each full limit.
    """
    standings = []
    for ask in asks:
        limit, used = ask.limit, ask.used + ask.amount
        if used > limit.cap:
            return _refused(asks, now_us)
        is_slot = limit.unit == "concurrent"
        reset_s = 0.0 if is_slot else (ask.end_us + limit.window_us - now_us) / 1_000_000
        # This request counts, in the newest bucket.
        standings.append(Standing(limit, used, limit.cap - used, reset_s))
    return Granted(reservation_id, tuple(standings))


def _refused(asks: Sequence[Ask], now_us: int) -> Refused | NeverFits:
    for ask in asks:
        if ask.amount > ask.limit.cap:
            return NeverFits(ask.limit, ask.amount)
    refusals = [_refusal(ask, now_us) for ask in asks if ask.used + ask.amount > ask.limit.cap]
    latest = max(refusals, key=lambda refused: refused.retry_after_s)
    return replace(latest, standings=tuple(_standing(ask, now_us) for ask in asks))


def _standing(ask: Ask, now_us: int) -> Standing:
    """Nothing of this request counts."""
    limit, reset_us = ask.limit, 0
    if limit.unit != "concurrent":
        newest_us = ask.book.newest_end_us(ask.key, horizon_us(now_us, limit.window_us))
        reset_us = newest_us + limit.window_us - now_us if newest_us else 0
    return Standing(limit, ask.used, max(0, limit.cap - ask.used), max(0, reset_us) / 1_000_000)


def _refusal(ask: Ask, now_us: int) -> Refused:
    limit = ask.limit
    if limit.unit == "concurrent":
        return Refused(limit, ask.used, ask.amount, CONCURRENT_RETRY_S, exact=False)
    missing = ask.used + ask.amount - limit.cap
    free_us = now_us
    for bucket in ask.book.live(ask.key, horizon_us(now_us, limit.window_us)):
        free_us = bucket.end_us + limit.window_us
        missing -= bucket.amount
        if missing <= 0:
            break
    return Refused(limit, ask.used, ask.amount, max(1, free_us - now_us) / 1_000_000)


@dataclass(slots=True)
class Bucket:
    """What was taken in one slice of time: `reserved` of `amount` is still leased.

    `overrun` of `amount` is what settlements charged above their reservations.
    """

    end_us: int
    amount: int = 0
    reserved: int = 0
    overrun: int = 0


class Window:
    """The buckets of one counter in memory, oldest first, with their running total."""

    __slots__ = ("_buckets", "_by_end", "total")

    def __init__(self) -> None:
        self._buckets: deque[Bucket] = deque()
        self._by_end: dict[int, Bucket] = {}
        self.total = 0

    def evict(self, horizon: int) -> None:
        """Drop what ended at or before `horizon`; amortized O(1) for each bucket ever made."""
        buckets = self._buckets
        while buckets and buckets[0].end_us <= horizon:
            gone = buckets.popleft()
            del self._by_end[gone.end_us]
            self.total -= gone.amount

    def used(self, horizon: int) -> int:
        """What ends after `horizon`; reads only."""
        used = self.total
        for bucket in self._buckets:
            if bucket.end_us > horizon:
                break
            used -= bucket.amount
        return used

    def newest_end_us(self, horizon: int) -> int:
        """The end of the newest bucket, if it is after `horizon`; else 0."""
        newest = self._buckets[-1].end_us if self._buckets else 0
        return newest if newest > horizon else 0

    def live(self, horizon: int) -> Iterable[Bucket]:
        """The buckets that end after `horizon`, oldest first."""
        return (bucket for bucket in self._buckets if bucket.end_us > horizon)

    def add(self, end_us: int, amount: int) -> bool:
        """Reserve `amount` in the bucket that ends at `end_us`; True if that bucket is new."""
        bucket = self._by_end.get(end_us)
        is_new = bucket is None
        if bucket is None:
            bucket = self._by_end[end_us] = Bucket(end_us)
            self._insert(bucket)
        bucket.amount += amount
        bucket.reserved += amount
        self.total += amount
        return is_new

    def _insert(self, bucket: Bucket) -> None:
        # At the end, but for a window that was just reconfigured from coarser buckets.
        place = len(self._buckets)
        while place and self._buckets[place - 1].end_us > bucket.end_us:
            place -= 1
        self._buckets.insert(place, bucket)

    def correct(self, end_us: int, *, amount: int, reserved: int, overrun: int) -> None:
        """Change the bucket that ends at `end_us` by these differences, if it still exists."""
        bucket = self._by_end.get(end_us)
        if bucket is not None:
            bucket.amount += amount
            bucket.reserved += reserved
            bucket.overrun += overrun
            self.total += amount

    def __len__(self) -> int:
        return len(self._buckets)


__all__ = [
    "BUCKETS",
    "CONCURRENT_RETRY_S",
    "Ask",
    "Book",
    "Bucket",
    "Window",
    "admit",
    "bucket_end_us",
    "horizon_us",
]
