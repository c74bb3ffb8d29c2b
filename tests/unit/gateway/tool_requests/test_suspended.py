"""Is a call that nobody serves kept for its client, for as long as it may be, and settled once?"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from tests.app.virtual import clock_here, run_timeless
from tidegate.gateway.tool_requests.suspended import CANCELLED, Resumable, Resumables
from tidegate.mcp.sessions import Session

RESUME_S, DUE_S = 60.0, 600.0


class Shaper:
    """As much of one as a suspended call needs."""

    def __init__(self, upstream_id: object) -> None:
        self.upstream_id = upstream_id
        self.counted = 0

    def note_counts(self) -> None:
        self.counted += 1


class Life:
    """One call and all that happens to it, in order."""

    def __init__(self, calls: Resumables, session: Session, *, id: object = 7) -> None:  # noqa: A002
        self.told: list[str] = []
        self.calls = calls
        self.shaper: Any = Shaper(id)
        now_s = calls.clock.monotonic_s()
        cancel = lambda: self.told.append("told the server")  # noqa: E731
        self.call = calls.begin(session, self.shaper, cancel, now_s + DUE_S)

    @property
    def made(self) -> Resumable:
        assert self.call is not None
        return self.call

    def suspend(self) -> None:
        """As the request does that made the call."""
        ids, charges = ExitStack(), AsyncExitStack()
        ids.callback(self.told.append, "id free")
        charges.callback(self.told.append, "settled")
        self.made.keep(ids)
        self.made.let_go()
        self.made.hold(charges, lambda word: self.told.append(f"recorded {word}"))


def session(name: str = "mine", principal: str = "vera") -> Session:
    return Session(name, ("", "acme", principal, ""), "server", "theirs")


async def passes(seconds: float) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 - the loop's time is virtual


def run(body: Callable[[Resumables], Awaitable[None]]) -> None:
    async def started() -> None:
        await body(Resumables(clock_here(), resume_s=RESUME_S))

    run_timeless(started())


def test_an_answer_brought_by_another_request_settles_the_call_once() -> None:
    async def body(calls: Resumables) -> None:
        mine = session()
        life = Life(calls, mine)
        life.suspend()
        assert life.told == []
        assert calls.find(mine, life.made.name) is life.made
        await life.made.take()
        life.made.finish("ok")
        life.made.finish("gateway.upstream_failed")
        life.made.let_go()
        await passes(0)
        assert life.told == ["id free", "recorded ok", "settled"]
        assert life.shaper.counted == 1
        await passes(RESUME_S - 1)
        assert calls.find(mine, life.made.name) is life.made
        await passes(2)
        assert calls.find(mine, life.made.name) is None
        assert (len(calls), mine.on_end, life.told[3:]) == (0, set(), [])

    run(body)


def test_an_answer_that_is_faster_than_the_end_of_its_request_loses_nothing() -> None:
    async def body(calls: Resumables) -> None:
        life = Life(calls, session())
        life.made.finish("ok")
        life.suspend()
        await passes(0)
        assert life.told == ["id free", "recorded ok", "settled"]

    run(body)


@pytest.mark.parametrize(("since_s", "waited_s"), [(0.0, RESUME_S), (DUE_S - 10, 10.0)])
def test_a_call_that_nobody_comes_back_for_is_given_up(since_s: float, waited_s: float) -> None:
    async def body(calls: Resumables) -> None:
        mine = session()
        life = Life(calls, mine)
        await passes(since_s)
        life.suspend()
        await passes(waited_s - 1)
        assert life.told == []
        await passes(2)
        assert life.told == ["told the server", "id free", "recorded cancelled", "settled"]
        assert (len(calls), mine.on_end) == (0, set())

    run(body)


def test_whoever_serves_it_keeps_it_alive() -> None:
    async def body(calls: Resumables) -> None:
        life = Life(calls, session())
        life.suspend()
        await passes(RESUME_S - 1)
        await life.made.take()
        await passes(2 * RESUME_S)
        assert (len(calls), life.told) == (1, [])
        life.made.let_go()
        await passes(RESUME_S + 1)
        assert "recorded cancelled" in life.told

    run(body)


def test_the_next_reader_takes_it_from_one_that_hangs() -> None:
    async def body(calls: Resumables) -> None:
        life = Life(calls, session())
        life.suspend()
        taken, ended = asyncio.Event(), asyncio.Event()

        async def hang() -> None:
            await life.made.take()
            taken.set()
            try:
                await passes(DUE_S)
            finally:
                life.made.let_go()
                ended.set()

        hanging = asyncio.create_task(hang())
        await taken.wait()
        await life.made.take()
        assert ended.is_set()
        assert hanging.cancelled()
        await passes(2 * RESUME_S)
        assert len(calls) == 1
        life.made.finish("ok")
        life.made.let_go()
        await passes(0)
        assert life.told == ["id free", "recorded ok", "settled"]

    run(body)


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("how", ["cancelled", "session ended"])
def test_a_call_that_is_not_wanted_any_more_is_over_as_soon_as_nobody_serves_it(
    how: str, *, served: bool
) -> None:
    async def body(calls: Resumables) -> None:
        mine = session()
        life, other = Life(calls, mine), Life(calls, mine, id="7")

        def end() -> None:
            if how == "cancelled":
                calls.cancelled(mine, 7)
            else:
                for told in tuple(mine.on_end):
                    told()

        if served:
            end()
            assert life.told == []
            life.suspend()
        else:
            life.suspend()
            end()
        await passes(0)
        assert life.told == ["id free", "recorded cancelled", "settled"]
        assert calls.find(mine, life.made.name) is None
        assert other.told == []
        await calls.close()

    run(body)


def test_the_end_of_the_gateway_settles_everything() -> None:
    async def body(calls: Resumables) -> None:
        lives = [Life(calls, session(str(number))) for number in range(3)]
        for life in lives:
            life.suspend()
        await calls.close()
        assert [life.told for life in lives] == [["id free", "recorded cancelled", "settled"]] * 3
        assert len(calls) == 0

    run(body)


def test_a_session_has_few_of_them_and_answered_ones_give_way() -> None:
    async def body(calls: Resumables) -> None:
        mine, theirs = session(), session("theirs")
        lives = [Life(calls, mine) for _ in range(32)]
        assert all(life.call for life in lives)
        assert Life(calls, mine).call is None
        assert Life(calls, theirs).call is not None
        lives[5].made.finish("ok")
        lives[5].made.let_go()
        more = Life(calls, mine)
        assert more.call is not None
        assert calls.find(mine, lives[5].made.name) is None
        assert Life(calls, mine).call is None
        assert len({each.made.name for each in lives}) == 32
        await calls.close()

    run(body)


def test_all_sessions_together_have_a_bound() -> None:
    async def body(calls: Resumables) -> None:
        made = [
            Life(calls, session(str(number // 30), str(number // 240))).call
            for number in range(1002)
        ]
        assert [call is not None for call in made].count(True) == 1000
        assert made[-2:] == [None, None]
        await calls.close()

    run(body)


def test_one_principal_with_many_sessions_has_a_quarter_and_the_others_have_room() -> None:
    async def body(calls: Resumables) -> None:
        lives = [Life(calls, session(str(number // 30))) for number in range(252)]
        assert [life.call is not None for life in lives] == [True] * 250 + [False] * 2
        assert Life(calls, session("new")).call is None
        assert Life(calls, session("theirs", "bob")).call is not None
        # An answered one of another session is still its client's, one of the same gives way.
        lives[0].made.finish("ok")
        lives[0].made.let_go()
        assert Life(calls, session("new")).call is None
        assert Life(calls, lives[0].made.session).call is not None
        assert Life(calls, session("new")).call is None
        lives[1].made.finish(CANCELLED)
        assert Life(calls, session("new")).call is not None
        assert len(calls) == 251
        await calls.close()
        assert len(calls) == 0
        assert Life(calls, session("new")).call is not None
        await calls.close()

    run(body)


def test_of_another_session_nothing_is_found() -> None:
    async def body(calls: Resumables) -> None:
        life = Life(calls, session())
        assert calls.find(session("theirs"), life.made.name) is None
        calls.cancelled(session("theirs"), 7)
        life.suspend()
        assert life.told == []
        await calls.close()

    run(body)


def test_without_time_to_come_back_there_are_none() -> None:
    async def body() -> None:
        calls = Resumables(clock_here(), resume_s=0)
        shaper: Any = Shaper(1)
        assert calls.begin(session(), shaper, lambda: None, 1.0) is None

    run_timeless(body())
