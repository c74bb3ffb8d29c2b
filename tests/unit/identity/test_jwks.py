"""When are keys fetched, and what holds while nobody answers? In virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.app.virtual import clock_here, run_timeless
from tests.unit.identity.tokens import SETTINGS, algorithms_here, jwk, jwks
from tidegate.identity.jwks import FetchFailed, IssuerKeys, TokenKeys

OTHER = replace(SETTINGS, issuer="https://other.example", jwks_url="https://other.example/jwks")


class Published:
    """What the issuer's server answers; `fetches` counts how often it was asked."""

    def __init__(self, *names: str, takes_s: float = 0.0) -> None:
        self.names, self.takes_s = names, takes_s
        self.fails: Exception | None = None
        self.fetches: list[str] = []

    async def fetch(self, url: str) -> bytes:
        self.fetches.append(url)
        if self.takes_s:
            await passing(self.takes_s)
        if self.fails is not None:
            raise self.fails
        return jwks(*map(jwk, self.names))


async def passing(seconds: float) -> None:
    turn = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, turn.set)
    await turn.wait()


def kept(published: Published) -> IssuerKeys:
    return IssuerKeys(SETTINGS, published.fetch, algorithms_here(), clock_here())


def kids(keys: IssuerKeys) -> list[str | None]:
    return [key.kid for key in keys.keys]


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_timeless(body())


def test_keys_are_fetched_at_the_start_and_again_so_that_a_rotation_is_seen() -> None:
    async def body() -> None:
        published = Published("ec")
        keys = kept(published)
        assert (keys.standing, kids(keys)) == ("missing", [])
        keys.start()
        await passing(1.0)
        assert (keys.standing, kids(keys)) == ("fresh", ["ec"])
        published.names = ("ec-next",)
        await passing(301.0)
        assert kids(keys) == ["ec-next"]
        assert len(published.fetches) == 2
        await keys.stop()

    run(body)


def test_an_unknown_key_asks_for_a_fetch_at_once_and_a_flood_for_no_more() -> None:
    async def body() -> None:
        published = Published("ec", takes_s=1.0)
        keys = kept(published)
        keys.start()
        await passing(2.0)
        published.names = ("ec", "ec-next")
        await asyncio.gather(*(keys.refresh() for _ in range(500)))
        assert kids(keys) == ["ec", "ec-next"]
        assert len(published.fetches) == 2
        for _ in range(500):
            await keys.refresh()
        assert len(published.fetches) == 2
        await passing(30.0)
        await asyncio.gather(*(keys.refresh() for _ in range(500)))
        assert len(published.fetches) == 3
        await keys.stop()

    run(body)


def test_when_many_wait_for_a_fetch_the_next_one_does_not() -> None:
    async def body() -> None:
        keys = kept(Published("ec", takes_s=4.0))
        waiting = [asyncio.ensure_future(keys.refresh()) for _ in range(200)]
        await passing(1.0)
        assert sum(not each.done() for each in waiting) == 64
        await asyncio.wait(waiting)
        assert kids(keys) == ["ec"]

    run(body)


def test_who_stops_waiting_does_not_end_the_fetch_of_the_others() -> None:
    async def body() -> None:
        published = Published("ec", takes_s=1.0)
        keys = kept(published)
        first = asyncio.ensure_future(keys.refresh())
        second = asyncio.ensure_future(keys.refresh())
        await passing(0.5)
        first.cancel()
        await second
        assert kids(keys) == ["ec"]
        assert len(published.fetches) == 1

    run(body)


def test_in_an_outage_the_last_keys_hold_for_an_hour_and_then_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        published = Published("ec")
        keys = kept(published)
        keys.start()
        await passing(1.0)
        published.fails = FetchFailed("too_slow")
        await passing(3590.0)
        assert (keys.standing, kids(keys)) == ("kept", ["ec"])
        await passing(20.0)
        assert (keys.standing, kids(keys)) == ("expired", [])
        before = len(published.fetches)
        published.fails = None
        await passing(61.0)
        assert (keys.standing, kids(keys)) == ("fresh", ["ec"])
        assert len(published.fetches) - before <= 2
        await keys.stop()

    run(body)
    seen = {
        (r.getMessage(), r.__dict__["reason"]) for r in caplog.records if "reason" in r.__dict__
    }
    assert ("issuer_keys_not_fetched", "too_slow") in seen


@pytest.mark.parametrize("fault", [FetchFailed("status_500"), RuntimeError("a bug")])
def test_a_fetch_that_fails_in_any_way_is_tried_again(fault: Exception) -> None:
    async def body() -> None:
        published = Published("ec")
        published.fails = fault
        keys = kept(published)
        keys.start()
        await passing(4.0)
        assert len(published.fetches) == 1
        published.fails = None
        await passing(2.0)
        assert keys.standing == "fresh"
        await keys.stop()

    run(body)


def test_a_set_without_usable_keys_does_not_take_the_place_of_a_good_one() -> None:
    async def body() -> None:
        published = Published("ec")
        keys = kept(published)
        keys.start()
        await passing(1.0)
        published.names = ()
        await keys.refresh()
        assert (keys.standing, kids(keys)) == ("kept", ["ec"])
        await keys.stop()

    run(body)


def test_a_reload_keeps_the_keys_of_an_issuer_that_stays_and_forgets_one_that_goes() -> None:
    async def body() -> None:
        published = Published("ec")
        keys = TokenKeys(published.fetch, clock_here())
        keys.retain((SETTINGS, OTHER))
        assert keys.without_keys == [SETTINGS.issuer, OTHER.issuer]
        assert not keys.any_usable
        await keys.open()
        await passing(1.0)
        assert (keys.without_keys, len(published.fetches)) == ([], 2)
        ring = keys.of(SETTINGS)
        keys.retain((replace(SETTINGS, leeway_s=5.0),))
        assert keys.of(SETTINGS) is ring
        assert keys.of(OTHER) is None
        moved = replace(SETTINGS, jwks_url="https://id.example/other")
        keys.retain((moved,))
        assert keys.without_keys == [SETTINGS.issuer]
        await passing(1.0)
        assert published.fetches[2:] == ["https://id.example/other"]
        await keys.close()
        await passing(1000.0)
        assert len(published.fetches) == 3

    run(body)
