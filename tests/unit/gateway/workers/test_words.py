"""Do messages arrive as they were sent, however they were cut, and is anything else refused?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.frames import MAX_BYTES, Frames, Malformed
from tidegate.gateway.workers import words

TO_WORKER: list[words.ToWorker] = [
    words.Begin(1, b"\x80\x00config", b"s" * 32),
    words.Accept(),
    words.Offer(2, b""),
    words.Take(2),
    words.Drop(2),
    words.Ask(7, "readiness"),
    words.Drain(),
    words.Leave(),
]
FAMILY = words.Family(
    "tidegate_requests",
    "Requests.",
    "counter",
    (words.Sample("tidegate_requests_total", (("tenant", "acmé"),), 3.0),),
)
TO_PARENT: list[words.ToParent] = [
    words.Opened(1),
    words.CannotStart("store: no such directory"),
    words.Accepting(),
    words.Willing(2),
    words.Unwilling(2, "f:1:1: wrong"),
    words.Took(2),
    words.Leaving(),
    words.Told(0),
    words.Told(3, readiness={"ready": True, "records": {"dropped": 0}, "reasons": ["x"]}),
    words.Told(4, families=(FAMILY,)),
]


def test_every_word_comes_back_as_it_was_in_its_direction_only() -> None:
    assert {type(message) for message in TO_WORKER} == set(words.ToWorker.__args__)
    assert {type(message) for message in TO_PARENT} == set(words.ToParent.__args__)
    for message in TO_WORKER:
        (body,) = Frames().feed(words.encode(message))
        assert words.for_worker(body) == message
        with pytest.raises(Malformed):
            words.for_parent(body)
    for answer in TO_PARENT:
        (body,) = Frames().feed(words.encode(answer))
        assert words.for_parent(body) == answer


def test_every_cut_gives_the_same_messages() -> None:
    data = b"".join(words.encode(message) for message in TO_PARENT[:4])
    for cut in range(len(data) + 1):
        frames = Frames()
        bodies = frames.feed(data[:cut]) + frames.feed(data[cut:])
        assert [words.for_parent(body) for body in bodies] == TO_PARENT[:4]


@given(st.lists(st.integers(1, 9)))
def test_any_pieces_give_the_same_messages(sizes: list[int]) -> None:
    data = b"".join(words.encode(message) for message in TO_WORKER)
    frames, bodies = Frames(), []
    for size in sizes:
        bodies += frames.feed(data[:size])
        data = data[size:]
    bodies += frames.feed(data)
    assert [words.for_worker(body) for body in bodies] == TO_WORKER


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x81\xa4type\xa4Nope", b"\x81\xa4type\xa4Take", b"\xa3abc"]
)
def test_what_is_no_message_is_refused_without_a_word_of_it(body: bytes) -> None:
    for decode in (words.for_worker, words.for_parent):
        with pytest.raises(Malformed) as refused:
            decode(body)
        assert str(refused.value) == ""


def test_a_length_beyond_the_bound_is_refused_before_anything_is_kept() -> None:
    frames = Frames()
    with pytest.raises(Malformed):
        frames.feed((MAX_BYTES + 1).to_bytes(4, "big"))
