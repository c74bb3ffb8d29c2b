"""What does the owner of the ledger do with a call?

Lives here: from a call out of a frame to the books, and from their answer to the one in a frame.
Does not live here: the decision (books), the frames (owner_frames), the thread (owner). Pure.
"""

from collections.abc import Sequence
from typing import assert_never, cast

from tidegate.errors import StoreUnavailable
from tidegate.limits import books, ledger
from tidegate.limits import owner_frames as frames
from tidegate.limits.books import Rows
from tidegate.limits.ledger import Charge, Limit

_UNKNOWN = "no limit of this number was ever sent"


def perform(call: frames.Call, limits: Sequence[Limit], rows: Rows, now_us: int) -> frames.Answer:
    """Raises ValueError, before it changed anything, for a bad call."""
    # By far the most frequent first; each look at a type costs.
    if isinstance(call, frames.Reserve):
        return _reserve(call, limits, rows, now_us)
    match call:
        case frames.Settle():
            return frames.Ended(books.settle(rows, call.reservation_id, call.owner, call.need))
        case frames.Release():
            return frames.Ended(books.release(rows, call.reservation_id, call.owner))
        case frames.Look():
            limit = _limit(limits, call.limit)
            return frames.Looked(books.usage(rows, limit, call.scope_key, now_us=now_us))
        case frames.Walk():
            asked = [_limit(limits, number) for number in call.limits]
            places = {id(limit): place for place, limit in enumerate(asked)}
            found = books.scopes(rows.keys(), asked)
            return frames.Walked(tuple((places[id(limit)], scope) for limit, scope in found))
        case _:
            assert_never(call)


def said(result: object) -> frames.Answer:
    """What the worker hears of `result`, which may be what the call raised."""
    if isinstance(result, StoreUnavailable):
        return frames.Failed(result.detail)
    if isinstance(result, Exception):
        return frames.Bad(str(result))
    return cast("frames.Answer", result)


def _reserve(
    call: frames.Reserve, limits: Sequence[Limit], rows: Rows, now_us: int
) -> frames.Answer:
    try:
        charges = [Charge(limits[number], scope, amount) for number, scope, amount in call.charges]
    except IndexError:
        raise ValueError(_UNKNOWN) from None
    reservation, lease_us = (call.reservation_id, call.owner), call.lease_us
    verdict = books.reserve(rows, reservation, charges, now_us=now_us, lease_us=lease_us)
    if isinstance(verdict, ledger.Granted):
        return frames.Granted(_stands(verdict.standings))
    place = [charge.limit for charge in charges].index(verdict.limit)
    if isinstance(verdict, ledger.NeverFits):
        return frames.NeverFits(place)
    stands = _stands(verdict.standings)
    return frames.Refused(place, verdict.used, verdict.retry_after_s, verdict.exact, stands)


def _stands(standings: Sequence[ledger.Standing]) -> frames.Stands:
    return tuple([(standing.used, standing.reset_s) for standing in standings])


def _limit(limits: Sequence[Limit], number: int) -> Limit:
    try:
        return limits[number]
    except IndexError:
        raise ValueError(_UNKNOWN) from None


__all__ = ["perform", "said"]
