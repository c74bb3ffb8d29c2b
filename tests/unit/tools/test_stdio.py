"""Are lines cut, capped and judged so that no bad one passes and none is met with silence?"""

import os
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from tidegate import strictjson
from tidegate.tools.stdio import (
    INVALID_REQUEST,
    PARSE_ERROR,
    BadLine,
    LineSplitter,
    LineTooLong,
    error_line,
    is_read_to_the_end,
    read_message,
)
from tidegate.tools.written import exact


def split(data: bytes, cuts: tuple[int, ...], cap: int = 64) -> list[bytes | type[LineTooLong]]:
    splitter = LineSplitter(cap)
    borders = (0, *cuts, len(data))
    lines: list[bytes | LineTooLong] = []
    for start, stop in pairwise(borders):
        lines += splitter.feed(data[start:stop])
    lines += splitter.finish()
    return [LineTooLong if isinstance(line, LineTooLong) else line for line in lines]


def test_lines_are_the_same_whatever_the_cuts() -> None:
    data = b"one\n\n \r\ntwo\rstill two\r\n" + "drei\u2028\x85".encode() + b"\nlast"
    whole = [b"one", b"two\rstill two\r", "drei\u2028\x85".encode(), b"last"]
    for first, second in product(range(len(data) + 1), repeat=2):
        if first <= second:
            assert split(data, (first, second)) == whole


@pytest.mark.parametrize("cut", range(60))
def test_a_line_beyond_the_cap_is_dropped_once_and_the_next_one_is_read(cut: int) -> None:
    data = b"a\n" + b"x" * 50 + b"\nb\n" + b"y" * 9
    assert split(data, (cut,), cap=8) == [b"a", LineTooLong, b"b", LineTooLong]


def test_a_line_of_exactly_the_cap_passes() -> None:
    assert split(b"x" * 8 + b"\n", (), cap=8) == [b"x" * 8]


GOOD = [
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b' {"jsonrpc":"2.0","id":"","method":"ping","params":{}} \r',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
]
BAD = [
    (b"not json", PARSE_ERROR),
    (b"\xff\xfe garbage", PARSE_ERROR),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":{"a":1e999}}}', PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1e999}}}', PARSE_ERROR),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"arguments":{"a":1e999},"task":{"ttl":-1e999}}}',
        PARSE_ERROR,
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":NaN}}}',
        PARSE_ERROR,
    ),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', PARSE_ERROR),
    (b"[" * 3000 + b"]" * 3000, PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', INVALID_REQUEST),
    (b"[]", INVALID_REQUEST),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST),
    (b"1", INVALID_REQUEST),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
]


@pytest.mark.parametrize("line", GOOD)
def test_a_message_is_read_whole(line: bytes) -> None:
    assert read_message(line) == strictjson.loads(line)


@pytest.mark.parametrize(("line", "code"), BAD)
def test_a_bad_line_has_a_code_and_a_reason_that_quotes_nothing(line: bytes, code: int) -> None:
    with pytest.raises(BadLine) as caught:
        read_message(line)
    assert caught.value.code == code
    assert line.decode("latin-1") not in caught.value.reason


def test_numbers_in_arguments_are_kept_as_they_were_written() -> None:
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":'
    message: Any = read_message(head + b'{"a":1e400,"b":[10000.0000000000001,1.10,-0.0,3]}}}')
    arguments = message["params"]["arguments"]
    numbers = [arguments["a"], *arguments["b"]]
    assert numbers == [float("inf"), 10000.0, 1.1, 0.0, 3]
    assert [str(exact(number)) for number in numbers] == [
        "1E+400",
        "10000.0000000000001",
        "1.10",
        "-0.0",
        "3",
    ]


def test_an_infinite_argument_beside_an_escaped_sign_is_left_to_the_tool() -> None:
    line = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"arguments":{"a":1e400,"b":"%s"}}}'
    )
    assert read_message(line % b"\\ud83d\\ude00")["id"] == 1
    with pytest.raises(BadLine):
        read_message(line % b"\\ud83d")


def test_the_answer_to_a_bad_line_has_a_null_id() -> None:
    line = error_line(PARSE_ERROR, "not JSON")
    assert line.endswith(b"\n")
    assert strictjson.loads(line) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": PARSE_ERROR, "message": "not JSON"},
    }


def test_a_file_is_read_to_the_end_with_its_last_byte_and_a_pipe_never(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"abc")
    fd = os.open(tmp_path / "lines", os.O_RDONLY)
    seen = [is_read_to_the_end(fd), os.read(fd, 2), is_read_to_the_end(fd), os.read(fd, 2)]
    assert [*seen, is_read_to_the_end(fd)] == [False, b"ab", False, b"c", True]
    os.close(fd)
    reading, writing = os.pipe()
    os.close(writing)
    assert not is_read_to_the_end(reading)
    os.close(reading)
