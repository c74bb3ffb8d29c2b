"""Whose time passes, when the first token came, and how fast the rest did: on a clock by hand."""

import pytest

from tidegate.gateway.clocks import FEWEST_TOKENS, Clocks
from tidegate.routing.plan import Deadlines
from tidegate.testing.clock import ManualClock

TIMES = Deadlines(first_token_s=10.0, idle_s=5.0, total_s=30.0, stream_total_s=60.0)
START_S = 1000.0


def clocks(*, stream: bool = True, began_s: float = 0.0, due_s: float = 10.0) -> Clocks:
    return Clocks(
        CLOCK.clock,
        TIMES,
        stream=stream,
        started_s=START_S,
        began_s=START_S + began_s,
        due_s=START_S + due_s,
    )


class _Clock:
    clock = ManualClock(monotonic_s=START_S)


CLOCK = _Clock()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CLOCK.clock = ManualClock(monotonic_s=START_S)


def held(found: Clocks, seconds: float) -> None:
    with found.stopped():
        CLOCK.clock.advance(seconds)


def test_only_more_tokens_move_the_deadline_of_a_stream_and_never_beyond_the_total() -> None:
    found = clocks()
    seen = []
    for after_s, tokens in ((3.0, 0), (1.0, 1), (2.0, 1), (1.0, 2), (50.0, 3)):
        CLOCK.clock.advance(after_s)
        found.saw(tokens)
        seen.append(found.due_s - START_S)
    assert seen == [10.0, 9.0, 9.0, 12.0, 60.0]


@pytest.mark.parametrize(("stream", "total_s"), [(True, 60.0), (False, 30.0)])
def test_held_time_moves_the_deadline_up_to_the_total_of_its_kind(
    *, stream: bool, total_s: float
) -> None:
    found = clocks(stream=stream)
    held(found, 7.0)
    assert found.due_s == START_S + 17.0
    held(found, 100.0)
    assert found.due_s == START_S + total_s
    assert found.left_s == 0.0


def test_a_plain_answer_has_no_idle_clock() -> None:
    found = clocks(stream=False, due_s=30.0)
    CLOCK.clock.advance(4.0)
    found.saw(1)
    assert found.due_s == START_S + 30.0
    assert found.first_token_s == 4.0


@pytest.mark.parametrize(
    ("held_s", "quiet_s", "excused"),
    [
        (55.0, 4.0, True),  # the client let go just before the total ended
        (3.1, 56.0, True),
        (2.9, 56.2, False),  # a client that reads, at its own pace
        (0.0, 59.1, False),
    ],
)
def test_who_took_the_time_of_a_request_that_ran_to_its_end(
    held_s: float,
    quiet_s: float,
    excused: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    found = clocks()
    CLOCK.clock.advance(1.0)
    found.saw(1)
    held(found, held_s)
    tokens = 1
    while quiet_s > 0:
        step_s = min(4.0, quiet_s)
        CLOCK.clock.advance(step_s)
        quiet_s -= step_s
        tokens += 1
        found.saw(tokens)
    assert found.due_s == START_S + 60.0
    assert found.was_held_up is excused


def test_a_silence_longer_than_idle_is_the_upstreams_whoever_held_it_before() -> None:
    found = clocks()
    CLOCK.clock.advance(1.0)
    found.saw(1)
    held(found, 20.0)
    CLOCK.clock.advance(5.0)
    assert found.due_s == CLOCK.clock.monotonic_s()
    assert not found.was_held_up


@pytest.mark.parametrize(("held_s", "left"), [(4.9, False), (5.0, True)])
def test_an_upstream_is_left_waiting_by_one_wait_as_long_as_its_own_silence_may_be(
    held_s: float,
    left: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    found = clocks()
    held(found, 4.0)
    held(found, held_s)
    held(found, 1.0)
    assert found.left_waiting is left


def test_the_first_token_is_measured_from_its_attempt_and_without_what_we_took() -> None:
    found = clocks(began_s=2.0)
    assert found.first_token_s is None
    CLOCK.clock.advance(3.0)
    found.saw(0)
    held(found, 4.0)
    CLOCK.clock.advance(1.5)
    found.saw(1)
    assert found.first_token_s == 2.5
    CLOCK.clock.advance(1.0)
    found.saw(2)
    assert found.first_token_s == 2.5


def stream_of(pauses_s: list[float], held_s: float = 0.0) -> Clocks:
    found = clocks()
    for number, pause_s in enumerate(pauses_s):
        CLOCK.clock.advance(pause_s)
        found.saw(number + 1)
        held(found, held_s)
    return found


def test_a_trickle_is_slow_by_its_pace_from_the_first_token_to_the_last() -> None:
    trickle = stream_of([0.1] + [1.0] * 24)
    assert trickle.is_slower(25, 2.0)
    assert trickle.is_slower(FEWEST_TOKENS, 1.0)
    assert not trickle.is_slower(25, 1.0)  # 25 tokens in 24 seconds
    assert not trickle.is_slower(25, 0.0)  # off
    assert not trickle.is_slower(FEWEST_TOKENS - 1, 2.0)
    # An answer that is late and then comes at once is judged by the other clocks.
    assert not stream_of([9.0] + [0.001] * 24).is_slower(25, 100.0)
    # What a slow client takes is not the stream's pace.
    assert not stream_of([0.1] * 25, held_s=5.0).is_slower(25, 5.0)
    assert not clocks().is_slower(25, 2.0)
    plain = clocks(stream=False)
    plain.saw(1)
    assert not plain.is_slower(1000, 2.0)
