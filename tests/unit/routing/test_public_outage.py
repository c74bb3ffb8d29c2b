"""Is an outage of a minute served, and its end found in time? (failoverbench/failoverbench S15)

The published sequence: the primary is down for 60 s, twenty requests come, one every 4 s. All are
to be answered, the dead provider is not to be hammered, and the primary is to serve again within
30 s of its recovery, which here means within the sequence.
"""

import random

import pytest

from tidegate.routing import (
    Failover,
    Outcome,
    Route,
    Target,
    Targets,
    Try,
    ordered,
)

DOWN_S, EVERY_S, REQUESTS = 60.0, 4.0, 20


def played(seed: int) -> tuple[list[str], int, float | None]:
    """Who served each request, how often the dead primary was asked, when it served again."""
    draw = random.Random(seed)  # noqa: S311 - a seed to play it again
    route = Route("r", (Target("primary"), Target("backup")))
    targets = Targets()
    served: list[str] = []
    asked, back_s = 0, None
    for number in range(REQUESTS):
        now_s = number * EVERY_S
        order = ordered(route, targets, draw.random, now_s)
        walk = Failover(route, targets, started_s=now_s, total_s=60.0, order=order)
        step = walk.start(now_s)
        while isinstance(step, Try):
            is_primary = step.target.provider == "primary"
            if is_primary and now_s < DOWN_S:
                asked += 1
                step = walk.on(Outcome.SERVER_ERROR, now_s, jitter=draw.uniform(-1.0, 1.0))
                continue
            walk.commit(now_s)
            walk.finished(Outcome.OK, now_s)
            served.append(step.target.provider)
            back_s = now_s if is_primary and back_s is None else back_s
            break
    return served, asked, back_s


@pytest.mark.parametrize("seed", range(100))
def test_an_outage_is_served_and_its_end_is_found_in_time(seed: int) -> None:
    served, asked, back_s = played(seed)
    assert len(served) == REQUESTS
    # Five failures open the breaker; then one probe a pause.
    assert asked <= 8
    # Failures that come at once cost nobody a wait, so the pauses stay short.
    assert back_s is not None
    assert back_s - DOWN_S <= 16.0
