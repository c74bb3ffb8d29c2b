"""Calls and answers arrive as they were sent, and what is none of them is refused."""

import pytest

from tidegate.frames import Frames, Malformed
from tidegate.limits.ledger import Limit, Need, Usage
from tidegate.limits.owner_frames import (
    Answers,
    Bad,
    Calls,
    Ended,
    Failed,
    Granted,
    Look,
    Looked,
    NeverFits,
    Refused,
    Release,
    Reserve,
    Settle,
    Term,
    Walk,
    Walked,
    answers_in,
    calls_in,
    encode,
)

CALLS = Calls(
    (Term("tokens", "tokens", 10**12, 60.0, "tenant"),),
    (
        Reserve("a", "me", 30_000_000, ((0, "tenant:a", 5), (1, "global", 1)), True),
        Settle("a", "me", Need(1, 2, output_is_default=True, money_micros=3, prompt_micros=4)),
        Settle("b", "me", None),
        Release("c", "me"),
        Look(0, "tenant:a"),
        Walk((0, 1)),
    ),
)
ANSWERS = Answers(
    True,
    -3_600.5,
    (
        Granted(((5, 60.25), (1, 0.0))),
        Refused(1, 100, 0.25, False, ((100, 60.0),)),
        NeverFits(0),
        Ended(True),
        Looked(Usage(1, 2, 3, None, 4)),
        Walked(((0, "tenant:a"),)),
        Failed("disk full"),
        Bad("a limit may be charged once"),
    ),
)


def test_every_call_and_every_answer_arrives_as_it_was_sent() -> None:
    for message, decode in ((CALLS, calls_in), (ANSWERS, answers_in)):
        (body,) = Frames().feed(encode(message))
        assert decode(body) == message


@pytest.mark.parametrize(
    "body", [b"", b"\x93", b"\x92\x90", b"\x90", b"\xc1", b"\x92\x90\x91\x91\x09"]
)
def test_what_is_no_frame_is_refused_without_a_word_of_what_it_was(body: bytes) -> None:
    for decode in (calls_in, answers_in):
        with pytest.raises(Malformed) as refused:
            decode(body)
        assert refused.value.args == ()


def test_a_term_is_the_limit_as_far_as_the_books_are_concerned() -> None:
    limit = Limit("tokens", "tokens", 100, 3_600.0, "key", roles=("admin",))
    books = Term.of(limit).limit()
    assert (books.name, books.unit, books.cap, books.window_us, books.per) == (
        limit.name,
        limit.unit,
        limit.cap,
        limit.window_us,
        limit.per,
    )
