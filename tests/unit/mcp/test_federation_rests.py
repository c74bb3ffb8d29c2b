"""Is a server that let others wait left alone for a while, and found again when it answers?"""

from itertools import count, product

import pytest

from tidegate.mcp.federation_rests import Rests, RestTimes

LIST, VERA, ADAM, EVE = ("s", "tools/list"), "vera", "adam", "eve"
TIMES = RestTimes(first_s=5.0, most_s=30.0)


def miss(rests: Rests, who: str, now_s: float, what: object = LIST) -> bool:
    """Whether it was asked, in vain."""
    asking = rests.ask(what, who, now_s)  # type: ignore[arg-type]
    if asking is None:
        return False
    rests.missed(asking, now_s)
    rests.ended(asking)
    return True


def test_rests_double_up_to_the_longest_and_end_with_an_answer() -> None:
    rests, now_s = Rests(TIMES), 0.0
    for rest_s in (5.0, 10.0, 20.0, 30.0, 30.0):
        assert miss(rests, VERA, now_s)
        assert not miss(rests, VERA, now_s + rest_s - 0.001)
        now_s += rest_s
    asking = rests.ask(LIST, VERA, now_s)
    assert asking is not None
    rests.answered(asking)
    rests.ended(asking)
    assert miss(rests, VERA, now_s)
    assert not miss(rests, VERA, now_s + 4.999)
    assert miss(rests, VERA, now_s + 5.0)


def test_one_alone_looks_whether_it_answers_again() -> None:
    rests = Rests(TIMES)
    miss(rests, VERA, 0.0)
    miss(rests, ADAM, 0.0)
    probe = rests.ask(LIST, EVE, 20.0)
    assert probe is not None
    assert [rests.ask(LIST, who, 20.0 + n) for n, who in enumerate((VERA, ADAM, EVE))] == [None] * 3
    rests.ended(probe)  # its client has left
    following = rests.ask(LIST, VERA, 23.0)
    assert following is not None
    rests.ended(probe)
    assert rests.ask(LIST, ADAM, 23.0) is None
    rests.answered(following)
    assert all(rests.ask(LIST, who, 23.0) for who in (VERA, ADAM, EVE))


def test_who_asked_at_the_same_time_misses_once() -> None:
    rests = Rests(TIMES)
    crowd = [rests.ask(LIST, who, 0.0) for who in (VERA, VERA, ADAM, EVE)]
    for asking in crowd:
        assert asking is not None
        rests.missed(asking, 4.0)
        rests.ended(asking)
    assert rests.ask(LIST, EVE, 8.999) is None
    assert rests.ask(LIST, EVE, 9.0) is not None


def test_a_miss_of_one_lets_it_rest_for_nobody_else() -> None:
    rests = Rests(TIMES)
    for now_s in (0.0, 5.0, 15.0):
        assert miss(rests, VERA, now_s)
    assert rests.ask(LIST, ADAM, 16.0) is not None
    assert miss(rests, ADAM, 16.0)
    assert rests.ask(LIST, EVE, 17.0) is None


def test_each_kind_of_question_to_each_server_rests_for_itself() -> None:
    rests = Rests(TIMES)
    miss(rests, VERA, 0.0)
    for what in (("s", "prompts/list"), ("t", "tools/list")):
        assert rests.ask(what, VERA, 0.0) is not None
    assert rests.ask(LIST, VERA, 0.0) is None


def test_a_miss_that_comes_behind_an_answer_of_others_is_a_first_one() -> None:
    rests = Rests(TIMES)
    miss(rests, VERA, 0.0)
    slow, quick = rests.ask(LIST, VERA, 5.0), rests.ask(LIST, ADAM, 6.0)
    assert slow is not None
    assert quick is not None
    rests.answered(quick)
    rests.missed(slow, 9.0)
    rests.ended(slow)
    assert rests.ask(LIST, VERA, 13.999) is None
    assert rests.ask(LIST, VERA, 14.0) is not None


@pytest.mark.parametrize("who", [(VERA,), (VERA, ADAM), (VERA, ADAM, EVE)])
def test_whatever_happens_somebody_may_look_after_the_longest_rest(who: tuple[str, ...]) -> None:
    for ways in product("amle", repeat=6):
        rests, now_s, running = Rests(TIMES), 0.0, []
        for number, way in zip(count(), ways, strict=False):
            now_s += 1.0
            asking = rests.ask(LIST, who[number % len(who)], now_s)
            if asking is not None and way == "l":
                running.append(asking)
            elif asking is not None:
                if way == "a":
                    rests.answered(asking)
                elif way == "m":
                    rests.missed(asking, now_s)
                rests.ended(asking)
        for asking in running:
            rests.missed(asking, now_s)
            rests.ended(asking)
        later_s = now_s + TIMES.most_s
        assert any(rests.ask(LIST, each, later_s) for each in who)
