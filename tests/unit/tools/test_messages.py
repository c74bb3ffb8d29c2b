"""Is the body of a POST read once, strictly, and with its numbers as they were written?"""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.tools.test_stdio import BAD, GOOD
from tidegate.jsonrpc import Batch, Malformed, Notification, Request
from tidegate.tools.messages import BadMessage, infinite_in, read_body, read_message
from tidegate.tools.written import Written, exact

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":%s}}'


@pytest.mark.parametrize("data", GOOD)
def test_what_a_line_may_hold_a_body_may_hold(data: bytes) -> None:
    assert not isinstance(read_message(data), Malformed | Batch)


@pytest.mark.parametrize(("data", "code"), BAD)
def test_what_no_line_may_hold_no_body_may_hold(data: bytes, code: int) -> None:
    found = judged(data)
    if isinstance(found, BadMessage):
        assert found.code == code
        assert data.decode("latin-1") not in found.reason
    else:
        # A batch is one, whose revision is asked later.
        assert isinstance(found, Malformed) or (isinstance(found, Batch) and data[:2] == b"[{")


def judged(data: bytes) -> object:
    try:
        return read_message(data)
    except BadMessage as bad:
        return bad


OTHER_ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "utf-8-sig"]


@pytest.mark.parametrize("encoding", OTHER_ENCODINGS)
def test_a_body_in_another_encoding_is_not_guessed(encoding: str) -> None:
    with pytest.raises(BadMessage) as caught:
        read_message(GOOD[0].decode().encode(encoding))
    assert caught.value.code == -32700


@pytest.mark.parametrize("depth", [60, 61, 62, 63, 100, 100_000])
def test_depth_64_is_the_last(depth: int) -> None:
    data = CALL % (b"[" * depth + b"]" * depth)
    if depth <= 62:  # the message and its params are two levels
        assert isinstance(read_message(data), Request)
    else:
        with pytest.raises(BadMessage, match="deeply"):
            read_message(data)


def test_numbers_are_kept_and_infinite_ones_are_left_to_the_tool() -> None:
    message: Any = read_message(CALL % b'{"a":10000.0000000000001,"b":[1e400,{"c":-1e400}],"d":3}')
    arguments = message.params["arguments"]
    assert str(exact(arguments["a"])) == "10000.0000000000001"
    assert infinite_in(arguments) == 2
    assert isinstance(arguments["b"][0], Written)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"arguments":{"a":1e400}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1e400}}}',
        b"[" + CALL % b'{"a":1e400}' + b"]",
        b'{"jsonrpc":"2.0","id":1e400,"method":"tools/call"}',
    ],
)
def test_an_infinite_number_anywhere_else_is_none(data: bytes) -> None:
    found = judged(data)
    if isinstance(found, BadMessage):
        assert (found.code, found.reason) == (-32700, "a number is too large")
    else:
        assert isinstance(found, Malformed)


def test_a_large_body_is_read_the_same() -> None:
    data = json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "b" * 300_000}}
    )
    message = asyncio.run(read_body(data.encode()))
    assert isinstance(message, Notification)
