"""Parent and workers together: every order in which things can happen, and what must never be.

Among it: nobody puts a configuration in force that one of those who were asked refuses, and all
do or none; nobody accepts under another configuration than the one in force; a worker is started
for one that ended and never for one that is to end; nothing is said to a process that is known to
be gone; the end comes once, when no process is left.
"""

from random import Random

import pytest

from tests.unit.gateway.workers.model import Budget, World, explore, wander

QUICK = {
    "a start and an end": (2, Budget(stops=1)),
    "an end at once": (1, Budget(stops=2)),
    "a vote": (2, Budget(offers=1, refusals=1)),
    "a death in a vote": (2, Budget(offers=1, deaths=1)),
    "a start that fails": (2, Budget(failed_starts=1)),
    "alone": (1, Budget(offers=2, refusals=1, deaths=1, stops=1)),
}
WHOLE = {
    "three vote": (3, Budget(offers=1)),
    "deaths and refusals": (2, Budget(offers=1, refusals=1, deaths=2)),
    "one vote after the other": (2, Budget(offers=2, refusals=1, deaths=1)),
    "everything ends": (2, Budget(offers=1, refusals=1, deaths=1, stops=2)),
    "starts that fail": (2, Budget(failed_starts=2, deaths=2, stops=1)),
    "single workers leave": (2, Budget(terms=2, offers=1)),
    "time passes": (2, Budget(ticks=4, deaths=1, offers=1)),
    "three and a death": (3, Budget(offers=1, deaths=1)),
    "all of it": (2, Budget(1, 1, 1, 1, 1, 2, 2)),
}
MOST = 12_000


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.full
def test_whatever_the_order_it_comes_to_a_right_end(name: str) -> None:
    workers, budget = QUICK[name]
    states, at_rest = explore(World(workers, budget), most=MOST)
    assert states < MOST
    assert at_rest > 0


@pytest.mark.full
@pytest.mark.parametrize("name", WHOLE)
def test_so_it_does_in_longer_histories(name: str) -> None:
    workers, budget = WHOLE[name]
    states, at_rest = explore(World(workers, budget), most=MOST)
    assert states > 500
    assert at_rest > 0


def many(seed: int) -> World:
    dice = Random(seed)  # noqa: S311 - a test
    budget = Budget(
        deaths=dice.randrange(6),
        terms=dice.randrange(4),
        offers=dice.randrange(6),
        refusals=dice.randrange(4),
        failed_starts=dice.randrange(3),
        stops=dice.choice((0, 0, 1, 2)),
        ticks=dice.randrange(30),
    )
    return World(dice.randrange(1, 6), budget)


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.full)])
def test_so_it_does_in_long_random_histories(first: int) -> None:
    for seed in range(first, first + (150 if first == 0 else 10_000)):
        wander(many(seed), Random(seed), steps=200)  # noqa: S311 - a test
