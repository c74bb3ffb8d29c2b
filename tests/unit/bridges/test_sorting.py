"""Does exactly that reach the client of a wrapped server which is a message for it?"""

import json
from itertools import permutations
from typing import Any

import pytest

from tidegate.bridges.sorting import ENDED, TOO_LONG, UNREADABLE, Sorter, Step
from tidegate.lines import LineSplitter, LineTooLong


def ask(identifier: Any, method: str = "tools/call") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": method}).encode()


def answer(identifier: Any, **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}).encode()


def error_for(identifier: Any, message: str) -> dict[str, Any]:
    error = {"code": -32603, "message": message}
    return {"jsonrpc": "2.0", "id": identifier, "error": error}


def asked(*identifiers: Any) -> Sorter:
    sorter = Sorter()
    for identifier in identifiers:
        step = sorter.from_client(ask(identifier))
        assert step == Step(to_server=ask(identifier) + b"\n")
    return sorter


def test_an_answer_passes_byte_for_byte_once_and_to_its_own_id_only() -> None:
    for order in permutations((1, "1", -7, "")):
        sorter = asked(*order)
        for identifier in order:
            line = answer(identifier, text="ü 1.10 \u2028", n=1.10)
            assert sorter.from_server(line) == Step(line + b"\n")
            again = sorter.from_server(line)
            assert not again.to_client
            assert again.junk == line
        assert sorter.open_calls == 0


@pytest.mark.parametrize("identifier", [2, "1", 10, -1])
def test_an_answer_to_a_call_that_is_not_open_is_junk(identifier: object) -> None:
    sorter = asked(1)
    step = sorter.from_server(answer(identifier))
    assert (step.to_client, step.junk) == (b"", answer(identifier))
    assert sorter.open_calls == 1


@pytest.mark.parametrize(
    "line",
    [
        b"Listening on port 80",
        b"{}",
        b'{"event":"started"}',
        b'"text"',
        b"[]",
        b"[1]",
        b"{half",
        b"\xff\xfe\x00",
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","method":7}',
        b'{"jsonrpc":"2.0","method":"a","extra":1}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        ask(1, "initialize"),
        ask(1),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ],
)
def test_what_is_no_message_of_a_server_is_junk(line: bytes) -> None:
    step = asked(1).from_server(line)
    assert (step.to_client, step.to_server, step.junk) == (b"", b"", line)


@pytest.mark.parametrize(
    "line",
    [
        ask(5, "sampling/createMessage"),
        ask("x", "elicitation/create"),
        ask(0, "ping"),
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    ],
)
def test_requests_and_notifications_of_the_server_pass(line: bytes) -> None:
    assert Sorter().from_server(line) == Step(line + b"\n")


def test_only_what_the_server_asked_is_answered_to_it_and_once() -> None:
    sorter = Sorter()
    assert sorter.from_client(answer(5)).to_server == b""
    sorter.from_server(ask(5, "ping"))
    assert sorter.from_client(answer("5")).to_server == b""
    assert sorter.from_client(answer(5)).to_server == answer(5) + b"\n"
    assert sorter.from_client(answer(5)).to_server == b""
    sorter.from_server(ask(6, "ping"))
    sorter.from_server(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}'
    )
    assert sorter.from_client(answer(6)).to_server == b""


@pytest.mark.parametrize("before", [b"loading... ", b"\xef\xbb\xbf", b"\xc3", b"\r 10%\r 20%\r"])
def test_a_message_behind_a_print_without_a_line_end_is_found(before: bytes) -> None:
    step = asked(1).from_server(before + answer(1))
    assert (step.to_client, step.junk) == (answer(1) + b"\n", before)


@pytest.mark.parametrize("before", [b'{"a": 1}', b'log {"level":"info"} ', b"{'a': 1} {", b"{" * 9])
def test_a_message_behind_other_braces_is_found(before: bytes) -> None:
    step = asked(1).from_server(before + answer(1))
    assert (step.to_client, step.junk) == (answer(1) + b"\n", before)


def test_several_messages_in_a_line_become_lines() -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    sorter = asked(1, 2)
    step = sorter.from_server(b"... " + note + answer(2) + b" " + answer(1) + b" \r")
    assert step.to_client == b"\n".join((note, answer(2), answer(1), b""))
    assert step.junk == b"... "


@pytest.mark.parametrize(
    "line",
    [
        b"got %s from him",
        b"{'text': '%s'}",
        b'{"text": %s}',
        b"[1, %s]",
    ],
)
def test_a_message_that_stands_in_something_else_is_not_delivered(line: bytes) -> None:
    sorter = asked(1)
    step = sorter.from_server(line % answer(1))
    assert step.junk == line % answer(1)
    assert b'"result"' not in step.to_client


@pytest.mark.parametrize("result", [b'"text"', b"7", b"null", b"[]"])
def test_a_result_that_is_no_object_is_an_error_for_its_call(result: bytes) -> None:
    step = asked(1).from_server(b'{"jsonrpc":"2.0","id":1,"result":%s}' % result)
    assert json.loads(step.to_client) == error_for(1, UNREADABLE)


@pytest.mark.parametrize(
    "error",
    [
        b'{"code":"x","message":"m"}',
        b'{"code":1,"message":5}',
        b'{"code":true,"message":"m"}',
        b'{"code":1.5,"message":"m"}',
        b'{"message":"m"}',
        b'{"code":1,"message":"m","more":1}',
        b'"text"',
    ],
)
def test_an_error_that_is_none_is_one_of_ours(error: bytes) -> None:
    step = asked(1).from_server(b'{"jsonrpc":"2.0","id":1,"error":%s}' % error)
    assert json.loads(step.to_client) == error_for(1, UNREADABLE)


def test_an_echo_of_an_open_call_is_junk_whatever_its_method() -> None:
    sorter = Sorter()
    line = ask(1, "of/their/own")
    sorter.from_client(line)
    assert sorter.from_server(line).junk == line
    assert sorter.from_server(ask("1", "of/their/own")).to_client
    assert sorter.from_server(ask(1, "sampling/createMessage")).to_client


def test_a_message_with_white_space_that_other_readers_take_for_a_line_end_is_one_line() -> None:
    line = b'{"jsonrpc":"2.0",\r"id":1,"result":{"a":"\\r\\n"}}\r'
    assert asked(1).from_server(line).to_client == (
        b'{"jsonrpc":"2.0", "id":1,"result":{"a":"\\r\\n"}}\n'
    )


def test_a_batch_of_the_server_becomes_lines_and_each_element_is_judged() -> None:
    sorter = asked(1, 2)
    batch = b"[" + b",".join((answer(2, a=1), answer(3), ask(9, "ping"), answer(1))) + b"]"
    step = sorter.from_server(batch)
    assert [json.loads(line)["id"] for line in step.to_client.splitlines()] == [2, 9, 1]
    assert json.loads(step.junk)["id"] == 3
    assert sorter.open_calls == 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {"a": "\xff"}}',
        b'{"result":{"a":1,"a":2},"jsonrpc":"2.0","id":1}',
        b'{"id":1,"result":{"a":1}} and more',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}',
        b'{"jsonrpc":"2.0","id":1,"id":99,"result":{}}',
        b'log {"a":1} {"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","method":"n"}{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 500 + b"]" * 500 + b"}",
    ],
)
def test_a_call_with_an_unreadable_answer_gets_an_error_and_waits_for_nothing(line: bytes) -> None:
    sorter = asked(1, "1")
    step = sorter.from_server(line)
    assert json.loads(step.to_client) == error_for(1, UNREADABLE)
    assert step.junk == line
    assert sorter.open_calls == 1


@pytest.mark.parametrize(
    "shape",
    [
        b'{"jsonrpc":"2.0","id":"a","result":{"x":"%s"}}',
        b'{"result":{"x":"%s","id":7},"jsonrpc":"2.0","id":"a"}',
    ],
)
def test_an_answer_beyond_the_cap_is_an_error_for_its_call(shape: bytes) -> None:
    sorter = asked("a", 7)
    (line,) = LineSplitter(2048).feed(shape % (b"y" * 4096) + b"\n")
    assert isinstance(line, LineTooLong)
    assert json.loads(sorter.from_server(line).to_client) == error_for("a", TOO_LONG)
    assert sorter.open_calls == 1


def test_a_long_line_that_is_no_answer_is_nobodys_error() -> None:
    for text in (b"x" * 4096, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 4096 + b'"}'):
        (line,) = LineSplitter(2048).feed(text + b"\n")
        assert asked(1).from_server(line).to_client == b""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}', -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"n":1e999}}}',
            -32700,
        ),
        (b"[" + ask(3) + b"]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (ask("open"), -32600),
        (LineTooLong(9, b"", b""), -32600),
    ],
)
def test_a_bad_line_of_the_client_is_answered_and_does_not_reach_the_server(
    line: bytes, code: int
) -> None:
    step = asked("open").from_client(line)
    told = json.loads(step.to_client)
    assert (told["id"], told["error"]["code"]) == (None, code)
    assert step.to_server == b""
    assert step.note.startswith("dropped a line of the client: ")


def test_a_cancelled_call_is_not_answered_by_us_and_a_late_answer_may_pass_once() -> None:
    sorter = asked(1, 2)
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    assert sorter.from_client(cancel).to_server == cancel + b"\n"
    assert sorter.from_server(answer(1)).to_client == answer(1) + b"\n"
    assert sorter.from_server(answer(1)).to_client == b""
    assert json.loads(sorter.server_ended()) == error_for(2, ENDED)


def test_when_the_server_ends_every_open_call_gets_one_error_and_later_ones_too() -> None:
    sorter = asked(1, "1", 2)
    sorter.from_server(answer(2))
    told = [json.loads(line) for line in sorter.server_ended().splitlines()]
    assert told == [error_for(1, ENDED), error_for("1", ENDED)]
    assert sorter.server_ended() == b""
    assert json.loads(sorter.from_client(ask(3)).to_client) == error_for(3, ENDED)
