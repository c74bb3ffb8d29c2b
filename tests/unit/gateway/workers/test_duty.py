"""What a worker does about each word of its parent, in each state."""

import pytest

from tidegate.gateway.workers import words
from tidegate.gateway.workers.duty import (
    Build,
    Duty,
    End,
    Force,
    Forget,
    Listen,
    Open,
    Order,
    Report,
    Say,
    State,
    Swap,
)

BEGIN = words.Begin(4, b"config", b"secret")


def duty(state: State) -> Duty:
    """A worker that has come so far, with generation 5 built."""
    ours = Duty()
    if state is not State.NEW:
        ours.heard(BEGIN)
    if state in (State.OPEN, State.LISTENING, State.ENDING):
        ours.opened()
        ours.heard(words.Offer(5, b"newer"))
        ours.built(5)
    if state is State.LISTENING:
        ours.heard(words.Accept())
    if state is State.ENDING:
        ours.end()
    assert ours.state is state
    return ours


LEAVES: list[Order] = [End(), Say(words.Leaving())]
ALWAYS: dict[words.ToWorker, list[Order]] = {
    words.Ask(3, "metrics"): [Report(3, "metrics")],
    words.Offer(6, b"next"): [Build(6, b"next")],
    words.Take(9): [Say(words.Unwilling(9, "it was never built here"))],
    words.Drop(5): [Forget(5)],
}
BUILT: list[Order] = [Swap(5), Say(words.Took(5))]
NOT_BUILT: list[Order] = [Say(words.Unwilling(5, "it was never built here"))]
TABLE: dict[State, dict[words.ToWorker, list[Order]]] = {
    State.NEW: {
        BEGIN: [Open(b"config", b"secret")],
        words.Accept(): [],
        words.Take(5): NOT_BUILT,
        words.Drain(): LEAVES,
        words.Leave(): [*LEAVES, Force()],
    },
    State.OPENING: {
        BEGIN: [],
        words.Accept(): [],
        words.Take(5): NOT_BUILT,
        words.Drain(): LEAVES,
        words.Leave(): [*LEAVES, Force()],
    },
    State.OPEN: {
        BEGIN: [],
        words.Accept(): [Listen()],
        words.Take(5): BUILT,
        words.Drain(): LEAVES,
        words.Leave(): [*LEAVES, Force()],
    },
    State.LISTENING: {
        BEGIN: [],
        words.Accept(): [],
        words.Take(5): BUILT,
        words.Drain(): LEAVES,
        words.Leave(): [*LEAVES, Force()],
    },
    State.ENDING: {
        BEGIN: [],
        words.Accept(): [],
        words.Take(5): BUILT,
        words.Drain(): [],
        words.Leave(): [Force()],
    },
}
CELLS = [
    pytest.param(state, message, orders, id=f"{state.value}-{type(message).__name__}")
    for state, row in TABLE.items()
    for message, orders in (ALWAYS | row).items()
]


def test_the_table_has_every_word_in_every_state() -> None:
    every = set(words.ToWorker.__args__)
    for state in State:
        assert {type(message) for message in ALWAYS | TABLE[state]} == every


@pytest.mark.parametrize(("state", "message", "orders"), CELLS)
def test_each_word_in_each_state(
    state: State, message: words.ToWorker, orders: list[Order]
) -> None:
    assert duty(state).heard(message) == orders


def test_what_opened_says_so_and_listens_when_told() -> None:
    ours = Duty()
    assert ours.opened() == []
    ours.heard(BEGIN)
    assert ours.opened() == [Say(words.Opened(4))]
    assert ours.opened() == []
    assert ours.heard(words.Accept()) == [Listen()]
    assert ours.listens() == [Say(words.Accepting())]


def test_what_cannot_open_ends_without_saying_that_it_leaves() -> None:
    # Its parent would start another one at once.
    assert duty(State.OPENING).not_opened("no disk") == [Say(words.CannotStart("no disk")), End()]
    ending = duty(State.OPENING)
    ending.end()
    assert ending.not_opened("no disk") == [Say(words.CannotStart("no disk"))]
    assert ending.opened() == []


def test_three_causes_of_the_end_are_one_end() -> None:
    ours = duty(State.LISTENING)
    assert ours.end() == LEAVES
    assert ours.end() == []
    assert ours.heard(words.Drain()) == []


def test_what_was_dropped_while_it_was_built_is_forgotten() -> None:
    ours = duty(State.LISTENING)
    ours.heard(words.Offer(6, b"next"))
    assert ours.heard(words.Drop(6)) == [Forget(6)]
    assert ours.built(6) == [Forget(6)]
    assert ours.heard(words.Take(6)) == [Say(words.Unwilling(6, "it was never built here"))]


def test_what_was_taken_makes_the_others_void() -> None:
    ours = duty(State.LISTENING)
    ours.heard(words.Offer(6, b"next"))
    assert ours.built(6) == [Say(words.Willing(6))]
    assert ours.heard(words.Take(6)) == [Swap(6), Say(words.Took(6))]
    assert ours.heard(words.Take(5)) == NOT_BUILT


def test_what_cannot_be_built_is_refused_with_its_reason() -> None:
    ours = duty(State.LISTENING)
    ours.heard(words.Offer(6, b"next"))
    assert ours.not_built(6, "wrong") == [Say(words.Unwilling(6, "wrong"))]
    assert ours.built(6) == [Forget(6)]
