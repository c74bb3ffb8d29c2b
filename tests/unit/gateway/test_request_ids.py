"""A request id is 32 hex digits, never given out twice, and sorts by its time."""

import re

from tidegate.gateway.request_ids import RequestIds
from tidegate.testing.clock import ManualClock


def test_ids_are_hex_of_one_length_and_differ_within_one_moment() -> None:
    ids = RequestIds(ManualClock())
    minted = [ids.mint() for _ in range(1_000)]
    assert len(set(minted)) == 1_000
    assert len({one[:12] for one in minted}) == 1
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in minted)


def test_later_ids_sort_behind_earlier_ones() -> None:
    clock = ManualClock()
    ids = RequestIds(clock)
    minted = []
    for _ in range(50):
        minted.append(ids.mint())
        clock.advance(0.001)
    assert minted == sorted(minted)
