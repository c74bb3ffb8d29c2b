"""Who is asked, who is silent, who is given up?"""

from tidegate.gateway.workers.pulses import Beat, Pulses


def test_who_answers_is_asked_each_time() -> None:
    pulses = Pulses(silent_after=2, dead_after=4)
    pulses.add(1)
    for _ in range(10):
        assert pulses.beat() == [(1, Beat.ASK)]
        assert not pulses.heard(1)
    assert not pulses.is_silent(1)


def test_who_does_not_answer_is_asked_once_then_silent_then_dead_and_then_nothing() -> None:
    pulses = Pulses(silent_after=2, dead_after=4)
    pulses.add(1)
    said = [pulses.beat() for _ in range(7)]
    assert said == [[(1, Beat.ASK)], [], [(1, Beat.SILENT)], [], [(1, Beat.DEAD)], [], []]
    assert pulses.is_silent(1)


def test_a_word_makes_a_silent_one_lively() -> None:
    pulses = Pulses(silent_after=1, dead_after=9)
    pulses.add(1)
    pulses.beat()
    pulses.beat()
    assert pulses.heard(1)
    assert not pulses.is_silent(1)
    assert pulses.beat() == [(1, Beat.ASK)]


def test_adding_twice_changes_nothing_and_who_was_removed_is_unknown() -> None:
    pulses = Pulses(silent_after=1, dead_after=2)
    pulses.add(1)
    pulses.beat()
    pulses.beat()
    pulses.add(1)
    assert pulses.is_silent(1)
    pulses.remove(1)
    pulses.remove(1)
    assert not pulses.heard(1)
    assert not pulses.is_silent(1)
    assert pulses.beat() == []
