"""Who takes a new configuration, and when, one history each."""

import pytest

from tests.unit.gateway.workers.plans import TIMES, beats, notes, serving, without_notes
from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import (
    Action,
    Adopted,
    Kept,
    Kill,
    OfferTo,
    Spawn,
    Tell,
)


def test_all_build_before_any_takes() -> None:
    plan = serving()
    generation, offers = plan.offer(1.0)
    assert (generation, offers) == (2, [OfferTo(1, 2), OfferTo(2, 2)])
    assert plan.heard(1, words.Willing(2), 1.0) == []
    assert plan.in_force == 1
    assert plan.heard(2, words.Willing(2), 1.0) == [
        Tell(1, words.Take(2)),
        Tell(2, words.Take(2)),
    ]
    assert plan.in_force == 2
    assert plan.heard(2, words.Took(2), 1.0) == []
    assert plan.heard(1, words.Took(2), 1.0) == [Adopted(2)]


def test_one_refusal_keeps_what_was_in_force_for_all() -> None:
    plan = serving(3)
    plan.offer(1.0)
    plan.heard(1, words.Willing(2), 1.0)
    assert plan.heard(2, words.Unwilling(2, "a list is empty"), 1.0) == [
        Kept(2, "a list is empty"),
        Tell(1, words.Drop(2)),
        Tell(3, words.Drop(2)),
    ]
    assert plan.heard(3, words.Willing(2), 1.0) == []
    assert plan.in_force == 1
    assert plan.offer(2.0) == (3, [OfferTo(1, 3), OfferTo(2, 3), OfferTo(3, 3)])


def test_one_that_opens_during_a_vote_takes_part_in_it_before_it_accepts() -> None:
    plan = serving()
    plan.ended(2, -9, 1.0)
    plan.offer(2.0)
    assert plan.heard(3, words.Opened(1), 3.0) == [OfferTo(3, 2)]
    assert plan.heard(1, words.Willing(2), 3.0) == []
    plan.heard(3, words.Willing(2), 3.0)
    assert plan.heard(3, words.Took(2), 3.0) == [Tell(3, words.Accept())]
    assert plan.heard(1, words.Took(2), 3.0) == [Adopted(2)]


def test_one_that_opens_after_a_vote_takes_it_over_before_it_accepts() -> None:
    plan = serving()
    plan.ended(2, -9, 1.0)
    plan.offer(2.0)
    plan.heard(1, words.Willing(2), 2.0)
    assert plan.heard(1, words.Took(2), 2.0) == [Adopted(2)]
    assert plan.heard(3, words.Opened(1), 3.0) == [OfferTo(3, 2)]
    assert plan.heard(3, words.Willing(2), 3.0) == [Tell(3, words.Take(2))]
    assert plan.heard(3, words.Took(2), 3.0) == [Tell(3, words.Accept())]
    plan.ended(3, -9, 4.0)
    assert without_notes(plan.tick(4.5)) == [Spawn(2, 4, 2)]
    assert plan.heard(4, words.Opened(2), 5.0) == [Tell(4, words.Accept())]


def test_one_that_cannot_take_over_what_is_in_force_is_killed() -> None:
    plan = serving()
    plan.ended(2, -9, 1.0)
    plan.offer(2.0)
    plan.heard(1, words.Willing(2), 2.0)
    plan.heard(3, words.Opened(1), 3.0)
    done = plan.heard(3, words.Unwilling(2, "no memory"), 3.0)
    assert notes(done) == ["worker_refuses"]
    assert without_notes(done) == [Kill(3)]


@pytest.mark.parametrize(
    ("answer", "orders"),
    [
        (words.Willing(2), [Tell(3, words.Drop(2)), OfferTo(3, 3)]),
        (words.Unwilling(2, "wrong"), [OfferTo(3, 3)]),
    ],
)
def test_an_answer_about_what_is_out_of_date_counts_for_nothing_newer(
    answer: words.ToParent, orders: list[Action]
) -> None:
    plan = serving()
    plan.ended(2, -9, 1.0)
    for generation in (2, 3):
        plan.offer(2.0)
        plan.heard(1, words.Willing(generation), 2.0)
        plan.heard(1, words.Took(generation), 2.0)
        if generation == 2:
            assert plan.heard(3, words.Opened(1), 3.0) == [OfferTo(3, 2)]
    plan.offer(4.0)
    assert plan.heard(3, answer, 4.0) == orders
    plan.heard(1, words.Willing(4), 4.0)
    assert plan.heard(1, words.Took(4), 4.0) == [Adopted(4)]


def test_a_silent_one_is_not_waited_for_and_takes_it_over_when_it_answers() -> None:
    plan = serving()
    beats(plan, 3, answering=[2])
    _, offers = plan.offer(20.0)
    assert offers == [OfferTo(1, 2), OfferTo(2, 2)]
    assert plan.heard(2, words.Willing(2), 20.0) == [Tell(2, words.Take(2))]
    assert plan.heard(2, words.Took(2), 20.0) == [Adopted(2)]
    assert without_notes(plan.heard(1, words.Willing(2), 30.0)) == [Tell(1, words.Take(2))]
    assert plan.heard(1, words.Took(2), 30.0) == []


def test_one_that_answers_again_is_waited_for_again() -> None:
    plan = serving()
    plan.offer(0.0)
    beats(plan, 3, answering=[2])
    plan.heard(1, words.Told(0), 20.0)
    assert plan.heard(2, words.Willing(2), 20.0) == []
    assert plan.heard(1, words.Unwilling(2, "wrong"), 20.0) == [
        Kept(2, "wrong"),
        Tell(2, words.Drop(2)),
    ]


def test_a_vote_in_which_nobody_answers_is_refused() -> None:
    plan = serving(1)
    plan.offer(0.0)
    done = beats(plan, 3)
    assert [action for action in done if isinstance(action, Kept)] == [Kept(2, "no worker answers")]
    assert plan.in_force == 1


def test_a_vote_with_nobody_to_ask_waits_for_one_but_not_for_ever() -> None:
    plan = serving(1)
    plan.ended(1, 1, 1.0)
    plan.ended(2, 1, 2.0)
    assert plan.offer(2.0) == (2, [])
    assert without_notes(plan.tick(2.5)) == [Spawn(1, 3, 1)]
    assert plan.heard(3, words.Opened(1), 3.0) == [OfferTo(3, 2)]
    plan.ended(3, 1, 4.0)
    plan = serving(1)
    plan.ended(1, 1, 1.0)
    plan.ended(2, 1, 2.0)
    plan.offer(2.0)
    late = plan.tick(2.0 + TIMES.vote_s)
    assert Kept(2, "no worker answers") in late


def test_a_vote_goes_on_without_one_that_dies_in_it_but_not_without_all() -> None:
    plan = serving()
    plan.offer(1.0)
    plan.heard(1, words.Willing(2), 1.0)
    done = without_notes(plan.ended(2, -9, 1.0))
    # Decided first: who is started now begins with it.
    assert done == [Tell(1, words.Take(2)), Spawn(2, 3, 2)]
    assert plan.heard(3, words.Opened(2), 2.0) == [Tell(3, words.Accept())]
    plan = serving(1)
    plan.offer(1.0)
    assert without_notes(plan.ended(1, -9, 1.0)) == [
        Kept(2, "no worker answers"),
        Spawn(1, 2, 1),
    ]


def test_a_decision_that_is_not_carried_out_in_time_stands() -> None:
    plan = serving()
    plan.offer(0.0)
    plan.heard(1, words.Willing(2), 0.0)
    plan.heard(2, words.Willing(2), 0.0)
    plan.heard(1, words.Took(2), 0.0)
    done = beats(plan, 12, answering=[1, 2])
    assert Adopted(2) in done
