"""Whatever a client and a wrapped server do, is every call answered at most once, and rightly?"""

import json
from random import Random
from typing import Any

import pytest

from tidegate.bridges.sorting import Sorter, Step
from tidegate.lines import LineSplitter

IDS: list[Any] = [0, 1, 2, "0", "1", "", -1]
JUNK = [
    b"text",
    b"{",
    b"[1]",
    b'{"a":1}',
    b"\xff",
    b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":0,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
    b'{"jsonrpc":"2.0","id":true,"result":{}}',
]


def ask(identifier: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": "tools/call"}).encode()


def answer(identifier: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "result": {}}).encode()


class Watched:
    """A sorter, and which calls are open by its own account: the oracle."""

    def __init__(self) -> None:
        self.sorter = Sorter()
        self.open: set[str] = set()

    def asks(self, identifier: object) -> None:
        step = self.sorter.from_client(ask(identifier))
        key = json.dumps(identifier)
        if key in self.open:
            assert json.loads(step.to_client)["error"]["code"] == -32600
            assert step.to_server == b""
        else:
            assert step == Step(to_server=ask(identifier) + b"\n")
            self.open.add(key)

    def says(self, line: bytes) -> None:
        step = self.sorter.from_server(line)
        for part in step.to_client.splitlines():
            told = json.loads(part)
            assert set(told) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
            self.open.remove(json.dumps(told["id"]))
        assert step.to_client or step.junk == line
        assert step.to_server == b""
        assert self.sorter.open_calls == len(self.open)


@pytest.mark.parametrize("seed", range(60))
def test_each_call_has_at_most_one_answer_and_all_have_one_at_the_end(seed: int) -> None:
    random, watched = Random(seed), Watched()  # noqa: S311 - a test that repeats
    for _ in range(100):
        identifier, kind = random.choice(IDS), random.random()
        if kind < 0.4:
            watched.asks(identifier)
        elif kind < 0.7:
            watched.says(answer(identifier))
        elif kind < 0.8:
            watched.says(random.choice([b"print ", b"\xef\xbb\xbf"]) + answer(identifier))
        else:
            watched.says(random.choice(JUNK))
    told = [json.loads(line) for line in watched.sorter.server_ended().splitlines()]
    assert sorted(json.dumps(each["id"]) for each in told) == sorted(watched.open)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_of_any_kind_raise_nothing_and_only_messages_come_out(seed: int) -> None:
    random, sorter = Random(seed), Sorter(256)  # noqa: S311
    for identifier in IDS:
        sorter.from_client(ask(identifier))
    pieces = [*JUNK, *map(answer, IDS), b"\n", b"\n\n", b"\r\n", b"\x00", b"x" * 300, b'{"id":']
    stream = b"".join(random.choices(pieces, k=300))
    splitter, out = LineSplitter(256), b""
    for _ in range(50):
        cut = random.randrange(1, 200)
        for line in splitter.feed(stream[:cut]):
            out += sorter.from_server(line).to_client
        stream = stream[cut:]
    for line in (*splitter.feed(stream), *splitter.finish()):
        out += sorter.from_server(line).to_client
    told = [json.dumps(json.loads(line)["id"]) for line in out.splitlines()]
    assert len(set(told)) == len(told)
    assert set(told) <= set(map(json.dumps, IDS))
