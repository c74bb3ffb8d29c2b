"""A prompt too long for a small window is no word about a large one."""

import pytest

from tidegate.routing import Failover, GiveUp, Outcome, Targets, Try
from tidegate.routing.plan import Cooling, Deadlines, Route, Target

LONG = Target("a", credential_id="a", context_tokens=128_000)
SHORT = Target("b", credential_id="b", context_tokens=300)
UNKNOWN = Target("a", credential_id="a")
SMALLER = Target("a", credential_id="a", context_tokens=100)
TOO_LONG, BUSY, DOWN = Outcome.CONTEXT, Outcome.RATE_LIMITED, Outcome.SERVER_ERROR
ALL = "gateway.all_providers_failed"
NEVER = "context_length_exceeded"


@pytest.mark.parametrize(
    ("first", "second", "said", "code", "status"),
    [
        (LONG, SHORT, BUSY, ALL, 503),
        (LONG, SHORT, DOWN, ALL, 502),
        (LONG, SHORT, Outcome.TIMEOUT, ALL, 502),
        (LONG, SHORT, TOO_LONG, NEVER, 400),
        # Nobody knows how long a window is that the file does not say.
        (UNKNOWN, SHORT, BUSY, ALL, 503),
        (UNKNOWN, SHORT, DOWN, ALL, 502),
        (LONG, UNKNOWN, DOWN, ALL, 502),
        # The smaller one may come back: it is too long for it all the same.
        (SMALLER, SHORT, BUSY, NEVER, 400),
        (SMALLER, SHORT, DOWN, NEVER, 400),
    ],
)
def test_a_refusal_for_length_counts_only_where_no_longer_window_may_serve(
    first: Target, second: Target, said: Outcome, code: str, status: int
) -> None:
    second = second if second.provider == "b" else Target("b", credential_id="b")
    of = Route("r", (first, second), cooling=Cooling(3.0), deadlines=Deadlines(total_s=60.0))
    walk = Failover(of, Targets(), started_s=0.0, total_s=60.0)
    assert isinstance(walk.start(0.0), Try)
    step = walk.on(said, 1.0)
    if isinstance(step, Try):
        step = walk.on(TOO_LONG, 2.0)
    assert isinstance(step, GiveUp)
    assert (step.error.code, step.error.status) == (code, status)
    assert step.error.retry_after_s == (2.0 if status == 503 else None)


@pytest.mark.parametrize("rests", [True, False])
def test_a_longer_target_that_was_passed_over_counts_like_one_that_failed(*, rests: bool) -> None:
    of = Route("r", (LONG, SHORT), cooling=Cooling(9.0))
    targets = Targets()
    if rests:
        targets.state(LONG, of.breaker).cool(0.0, 9.0)
    walk = Failover(of, targets, started_s=0.0, total_s=60.0, order=(SHORT, LONG))
    walk.start(0.0)
    step = walk.on(TOO_LONG, 1.0)
    if not rests:
        assert isinstance(step, Try)
        step = walk.on(BUSY, 1.0)
    assert isinstance(step, GiveUp)
    assert (step.error.code, step.error.status) == (ALL, 503)
    assert step.error.retry_after_s == (8.0 if rests else 9.0)
