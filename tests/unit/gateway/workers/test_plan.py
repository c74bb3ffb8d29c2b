"""What the parent does about time, ends and words, one history each."""

import pytest

from tests.unit.gateway.workers.plans import TIMES, beats, notes, serving, without_notes
from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import (
    Adopted,
    Kept,
    Kill,
    Note,
    OfferTo,
    Over,
    Ready,
    Spawn,
    Standing,
    Tell,
)
from tidegate.gateway.workers.plan import Plan


def test_all_start_at_once_open_and_only_then_accept() -> None:
    plan = Plan(2, TIMES)
    assert plan.begin(0.0) == [Spawn(1, 1, 1), Spawn(2, 2, 1)]
    assert plan.heard(2, words.Opened(1), 1.0) == []
    assert plan.heard(1, words.Opened(1), 2.0) == [
        Tell(1, words.Accept()),
        Tell(2, words.Accept()),
    ]
    assert plan.heard(1, words.Accepting(), 3.0) == []
    assert plan.heard(2, words.Accepting(), 3.0) == [Ready()]
    assert plan.standing == Standing(2, 2, 0, (), (), draining=False)


def test_a_worker_that_cannot_start_ends_all_with_1_and_its_reason_once() -> None:
    plan = Plan(3, TIMES)
    plan.begin(0.0)
    plan.heard(1, words.Opened(1), 1.0)
    said = plan.heard(2, words.CannotStart("store: no"), 1.0)
    (note, *orders) = said
    assert isinstance(note, Note)
    assert (note.event, note.level) == ("worker_cannot_start", "error")
    assert note.fields == {"worker": 2, "problem": "store: no"}
    assert orders == [Tell(run, words.Leave()) for run in (1, 2, 3)]
    assert plan.heard(3, words.CannotStart("store: no"), 1.0) == []
    assert plan.ended(2, 1, 1.0) == plan.ended(1, 130, 1.0) == []
    assert plan.ended(3, 1, 1.0) == [Over(1)]
    assert plan.tick(1000.0) == []


@pytest.mark.parametrize(("code", "reason"), [(-9, "signal:9"), (3, "exit:3"), (0, "exit:0")])
def test_one_that_ends_without_a_word_at_the_start_does_so_too(code: int, reason: str) -> None:
    plan = Plan(2, TIMES)
    plan.begin(0.0)
    (note, *_) = plan.ended(1, code, 1.04)
    assert isinstance(note, Note)
    fields = {"worker": 1, "reason": reason, "seconds": 1.0}
    assert (note.event, note.fields) == ("worker_ended", fields)
    assert plan.ended(2, 130, 1.0) == [Over(1)]


def test_one_that_does_not_open_in_time_is_killed() -> None:
    plan = Plan(1, TIMES)
    plan.begin(0.0)
    beats(plan, 11)
    assert plan.due_s == TIMES.start_s
    done = plan.tick(TIMES.start_s)
    assert notes(done) == ["worker_start_late"]
    assert without_notes(done) == [Kill(1)]
    assert without_notes(plan.ended(1, -9, 61.0)) == [Over(1)]


def test_a_worker_that_dies_is_replaced_at_once_and_the_new_one_accepts_alone() -> None:
    plan = serving()
    done = plan.ended(1, -9, 100.0)
    assert without_notes(done) == [Spawn(1, 3, 1)]
    (note,) = [action for action in done if isinstance(action, Note)]
    assert note.fields == {"worker": 1, "reason": "signal:9", "seconds": 100.0, "pause_s": 0.0}
    assert plan.standing == Standing(2, 1, 1, (), (), draining=False)
    assert plan.heard(3, words.Opened(1), 101.0) == [Tell(3, words.Accept())]
    assert notes(plan.heard(3, words.Accepting(), 101.0)) == ["worker_started"]
    assert plan.standing.accepting == 2


def test_short_lives_wait_longer_each_time_are_called_a_loop_and_are_forgotten() -> None:
    plan = serving(1)
    now_s, run, waited = 0.0, 1, []
    for _ in range(9):
        died_s = now_s + 1.0
        spawned = without_notes(plan.ended(run, 1, died_s))
        while not spawned:
            now_s = plan.due_s
            spawned = without_notes(plan.tick(now_s))
        now_s = max(now_s, died_s)
        waited.append(now_s - died_s)
        run += 1
        assert spawned == [Spawn(1, run, 1)]
    assert waited == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert plan.standing.looping == (1,)
    plan.heard(run, words.Opened(1), now_s)
    plan.heard(run, words.Accepting(), now_s)
    beats(plan, 3, answering=[run])
    assert plan.standing.looping == ()
    assert without_notes(plan.ended(run, -9, plan.due_s)) == [Spawn(1, run + 1, 1)]


def test_a_later_start_that_fails_says_so_and_ends_nobody_else() -> None:
    plan = serving()
    plan.ended(1, -9, 1.0)
    assert notes(plan.heard(3, words.CannotStart("store: no"), 2.0)) == ["worker_cannot_start"]
    assert without_notes(plan.ended(3, 1, 2.0)) == []
    assert without_notes(plan.tick(2.5)) == [Spawn(1, 4, 1)]
    assert plan.standing.accepting == 1


def test_a_worker_that_leaves_by_itself_is_replaced_before_it_has_ended() -> None:
    plan = serving()
    assert without_notes(plan.heard(1, words.Leaving(), 1.0)) == [Spawn(1, 3, 1)]
    assert plan.standing == Standing(2, 1, 1, (), (), draining=False)
    assert plan.heard(1, words.Leaving(), 1.0) == []
    assert plan.ended(1, 0, 5.0) == []
    assert without_notes(plan.heard(3, words.Opened(1), 6.0)) == [Tell(3, words.Accept())]


def test_one_that_leaves_has_no_vote_but_takes_over_what_is_decided() -> None:
    plan = serving()
    plan.heard(1, words.Leaving(), 1.0)
    assert plan.offer(1.0) == (2, [OfferTo(2, 2)])
    assert plan.heard(2, words.Willing(2), 1.0) == [Tell(2, words.Take(2)), OfferTo(1, 2)]
    assert plan.heard(1, words.Willing(2), 1.0) == [Tell(1, words.Take(2))]
    assert plan.heard(2, words.Took(2), 1.0) == [Adopted(2)]
    assert plan.heard(1, words.Took(2), 1.0) == []


def test_signs_of_life_are_asked_for_one_at_a_time() -> None:
    plan = serving()
    assert plan.due_s == TIMES.beat_s
    asked = [Tell(1, words.Ask(0, "pulse")), Tell(2, words.Ask(0, "pulse"))]
    assert beats(plan, 1) == asked
    assert beats(plan, 1, answering=[2]) == []
    assert beats(plan, 1)[:1] == [Note("worker_silent", fields={"worker": 1})]
    assert plan.standing == Standing(2, 1, 0, (1,), (), draining=False)
    assert plan.reachable == {2: 2}
    back = plan.heard(1, words.Told(0), 20.0)
    assert back == [Note("worker_answers_again", fields={"worker": 1})]
    assert plan.standing.silent == ()


def test_one_that_stays_silent_is_killed_and_replaced() -> None:
    plan = serving()
    done = beats(plan, 1 + TIMES.dead_after, answering=[2])
    assert [action for action in done if isinstance(action, Kill)] == [Kill(1)]
    assert notes(done) == ["worker_silent", "worker_does_not_answer"]
    for late in (words.Told(0), words.Leaving(), words.Accepting()):
        assert plan.heard(1, late, 100.0) == []
    assert plan.reachable == {2: 2}
    assert without_notes(plan.ended(1, -9, 100.0)) == [Spawn(1, 3, 1)]


@pytest.mark.parametrize("orders", [1, 2])
def test_the_end_is_told_to_all_and_comes_when_nobody_is_left(orders: int) -> None:
    plan = serving()
    assert plan.stop(1.0) == [Tell(run, words.Drain()) for run in (1, 2)]
    if orders == 2:
        assert plan.stop(2.0) == [Tell(run, words.Leave()) for run in (1, 2)]
    code = 0 if orders == 1 else 130
    assert plan.heard(1, words.Leaving(), 2.0) == []
    assert plan.ended(1, code, 3.0) == []
    assert plan.standing.draining
    assert plan.ended(2, code, 3.0) == [Over(code)]
    assert plan.ended(2, code, 3.0) == []


@pytest.mark.parametrize(("signals", "after_s"), [(1, TIMES.drain_s), (2, TIMES.leave_s)])
def test_what_has_not_ended_in_time_is_killed(signals: int, after_s: float) -> None:
    plan = serving()
    for _ in range(signals):
        plan.stop(0.0)
    plan.ended(1, 0, 1.0)
    while plan.due_s < after_s:
        plan.tick(plan.due_s)
        plan.heard(2, words.Told(0), plan.due_s)
    done = plan.tick(after_s)
    assert Kill(2) in done
    assert "worker_drain_late" in notes(done)
    assert plan.ended(2, -9, after_s) == [Over(0 if signals == 1 else 130)]


def test_a_worker_that_crashes_in_the_drain_is_said_and_seen_in_the_exit_code() -> None:
    plan = serving()
    plan.stop(1.0)
    assert notes(plan.ended(1, -11, 2.0)) == ["worker_ended"]
    assert plan.ended(2, 0, 2.0) == [Over(1)]


def test_the_end_refuses_a_vote_and_starts_nobody() -> None:
    plan = serving()
    plan.ended(1, 1, 1.0)
    plan.ended(3, 1, 2.0)
    plan.offer(2.0)
    assert plan.stop(2.1) == [
        Kept(2, "the gateway is about to end"),
        Tell(2, words.Drop(2)),
        Tell(2, words.Drain()),
    ]
    assert plan.tick(100.0) != []
    assert plan.offer(100.0) == (3, [Kept(3, "the gateway is about to end")])
    assert plan.ended(2, 0, 101.0) == [Over(0)]


def test_a_vote_that_was_carried_is_not_refused_by_the_end() -> None:
    plan = serving(1)
    plan.offer(1.0)
    plan.heard(1, words.Willing(2), 1.0)
    assert plan.stop(1.0) == [Tell(1, words.Drain()), Adopted(2)]


def test_a_fault_of_the_parent_drains_and_ends_with_1() -> None:
    plan = serving(1)
    assert plan.fail(1.0) == [Tell(1, words.Drain())]
    assert plan.fail(1.0) == []
    assert plan.ended(1, 0, 2.0) == [Over(1)]


def test_a_newer_offer_ends_an_older_one() -> None:
    plan = serving(1)
    plan.offer(1.0)
    generation, actions = plan.offer(2.0)
    assert generation == 3
    assert actions == [Kept(2, "a newer one has come"), Tell(1, words.Drop(2)), OfferTo(1, 3)]
