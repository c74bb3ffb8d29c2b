"""Is a batch on stdio answered as one, and only where the revision has batches?"""

from itertools import permutations
from typing import Any

import pytest

from tests.unit.tools.pipes import after_hello
from tests.unit.tools.some_tools import serving
from tests.unit.tools.web import message
from tidegate.tools.line_batches import Batches

SLOW = message("tools/call", {"name": "echo", "arguments": {"word": "w"}}, "slow")


@pytest.mark.parametrize("order", list(permutations([1, "1", 2])))
def test_the_answers_leave_together_in_the_order_of_the_batch(order: tuple[int | str, ...]) -> None:
    batches = Batches()
    batches.begin([1, "1", 2])
    lines = [batches.answered(key, repr(key).encode()) for key in order]
    assert lines == [b"", b"", b"[1,'1',2]\n"]


def test_what_was_cancelled_is_left_out_and_holds_nobody_up() -> None:
    batches = Batches()
    batches.begin([1, 2])
    assert batches.answered(1, b"one") == b""
    assert batches.left_out(2) == b"[one]\n"
    batches.begin([3])
    assert batches.left_out(3) == b""
    assert batches.left_out(3) == b""


def test_two_batches_and_single_answers_do_not_wait_for_one_another() -> None:
    batches = Batches()
    batches.begin([1, 2])
    batches.begin([3])
    assert batches.answered(4, b"four") == b"four\n"
    assert batches.answered(None, b"news") == b"news\n"
    assert batches.answered(3, b"three") == b"[three]\n"
    assert batches.answered(1, b"one") == b""
    assert batches.answered(2, b"two") == b"[one,two]\n"


def told(version: str, line: Any) -> Any:
    (answer,) = after_hello(serving(), version, [line])
    return answer


def test_a_session_of_2025_03_26_takes_batches() -> None:
    batch = [SLOW, message("notifications/x", id=None), message("nothing", id=1)]
    answer = told("2025-03-26", batch)
    assert [each["id"] for each in answer] == ["slow", 1]
    assert answer[0]["result"]["content"][0]["text"] == "w"
    assert answer[1]["error"]["code"] == -32601


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_no_other_revision_does(version: str) -> None:
    answer = told(version, [message("ping")])
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize(
    "batch",
    [
        [],
        [5],
        [[message("ping")]],
        [message("ping"), message("ping")],
        [message("initialize", {})],
        [message("ping"), {"jsonrpc": "2.0"}],
        [message("ping", id=number) for number in range(101)],
    ],
)
def test_a_batch_that_cannot_be_answered_is_refused_whole(batch: list[Any]) -> None:
    answer = told("2025-03-26", batch)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
