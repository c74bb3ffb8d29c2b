"""Is a batch refused as a whole or answered element by element in its order?"""

from itertools import permutations

import pytest

from tests.unit.mcp.asking import ask, tell
from tidegate.jsonrpc import Batch, Request, Response, typed
from tidegate.mcp.batch import flaw_of, merge


def batch(*messages: object) -> Batch:
    return Batch(messages)  # type: ignore[arg-type]


def test_an_ordinary_batch_has_no_flaw() -> None:
    mixed = (Request(1, "a"), Request("1", "b"), tell("n"), tell("n"), Response(1, {}))
    assert flaw_of(batch(*mixed)) is None


@pytest.mark.parametrize("id_", [0, 1, "1", ""])
def test_the_same_id_twice_is_refused(id_: int | str) -> None:
    assert flaw_of(batch(Request(id_, "a"), tell("n"), Request(id_, "b"))) is not None


def test_initialize_is_refused_as_a_request_only() -> None:
    assert flaw_of(batch(ask("initialize"))) is not None
    assert flaw_of(batch(tell("initialize"))) is None


def test_the_size_is_bounded() -> None:
    messages = [Request(number, "a") for number in range(100)]
    assert flaw_of(batch(*messages)) is None
    assert flaw_of(batch(*messages, tell("n"))) is not None
    assert flaw_of(batch(*messages), max_elements=99) is not None


def test_answers_keep_the_order_of_the_requests_and_the_type_of_ids() -> None:
    requests = [Request(1, "a"), Request("1", "b"), Request(2, "c")]
    answers = {typed(request.id): {"of": request.method} for request in requests}
    for order in permutations(requests):
        mixed = batch(tell("n"), order[0], tell("n"), *order[1:])
        assert merge(mixed, answers) == [{"of": request.method} for request in order]


def test_notifications_alone_have_no_answer() -> None:
    assert merge(batch(tell("a"), tell("b")), {}) == []


def test_a_missing_answer_is_an_error_of_ours() -> None:
    with pytest.raises(KeyError):
        merge(batch(Request(1, "a")), {typed("1"): {}})
