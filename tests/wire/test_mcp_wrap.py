"""Does a wrapped third-party server reach its client with messages only, and end with it?

Real processes over real pipes; the server is nasty_server.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.wire.test_task1_stdio import WAIT_S, environment, lines

SERVER = [sys.executable, str(Path(__file__).parent / "nasty_server.py")]
WRAP = [sys.executable, "-m", "tidegate", "mcp", "wrap"]
FULL_TRUE = pytest.param(True, marks=pytest.mark.full)


def ask(identifier: object, method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


class Wrapped:
    """A running wrap; `say` writes messages, `hear` reads one line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def say(self, *messages: dict[str, Any]) -> None:
        self.stdin.write(lines(*messages))
        self.stdin.flush()

    def hear(self) -> Any:
        # Not select: the line may be in the buffer already.
        bound = Timer(WAIT_S, self.process.kill)
        bound.start()
        try:
            return json.loads(self.stdout.readline())
        finally:
            bound.cancel()

    def everybody_has_left(self) -> str:
        """Stderr; its end means that nobody is left who has it, neither we nor a descendant."""
        assert select.select([self.stderr], [], [], WAIT_S)[0]
        return self.stderr.read().decode()


@contextmanager
def wrapping(*options: str, unbuffered: bool = False) -> Iterator[Wrapped]:
    """A wrapped server that has started, for the end of stdin leaves it a second."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*WRAP, *options, "--", *SERVER],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment(unbuffered=unbuffered),
    )
    with process:
        try:
            wrapped = Wrapped(process)
            wrapped.say(ask("ready", "ping"))
            assert wrapped.hear()["id"] == "ready"
            yield wrapped
        finally:
            process.kill()


@pytest.mark.parametrize("unbuffered", [False, FULL_TRUE])
def test_of_a_nasty_server_only_its_answers_come_through(*, unbuffered: bool) -> None:
    with wrapping(unbuffered=unbuffered) as wrapped:
        asked = [ask(identifier, "noisy") for identifier in (1, "1", 2)]
        wrapped.say(*asked, ask(3, "nan"), ask(4, "ping"))
        answers = [wrapped.hear() for _ in range(5)]
        wrapped.stdin.close()
        assert wrapped.stdout.read() == b""
        assert wrapped.process.wait(WAIT_S) == 0
        errors = wrapped.everybody_has_left()
    # The answer to str(1) is one to a call that the client made, if it has done so by then.
    assert sorted(json.dumps(answer["id"]) for answer in answers) == ['"1"', "1", "2", "3", "4"]
    (failed,) = [answer for answer in answers if "error" in answer]
    assert failed == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {
            "code": -32603,
            "message": "The answer of the wrapped server was not valid JSON-RPC.",
        },
    }
    for junk in ("at import, not flushed", "raw at import", "in a call", "a child", "BOM",
                 "half UTF-8 \\xc3", '{"junk": "JSON"}', "nobody asked", "no line end ...",
                 "\\x1b[31m the last", "print at exit"):  # fmt: skip
        assert junk in errors
    assert "on the server's stdout were no messages" in errors


@pytest.mark.full
def test_a_large_answer_passes_and_one_beyond_the_cap_is_an_error_for_its_call() -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(1, "large", bytes=10_000_000), ask(2, "large", bytes=20_000_000))
        assert len(wrapped.hear()["result"]["content"][0]["text"]) == 10_000_000
        told = wrapped.hear()
        assert (told["id"], told["error"]["message"]) == (
            2,
            "The answer of the wrapped server was too long.",
        )
        wrapped.say(ask(3, "ping"))
        assert wrapped.hear()["id"] == 3
        wrapped.stdin.close()
        assert wrapped.process.wait(WAIT_S) == 0
        assert "xxxx" * 200 not in wrapped.everybody_has_left()
    with wrapping("--max-line-bytes", "4096") as wrapped:
        wrapped.say(ask(1, "large", bytes=5000))
        assert "too long" in wrapped.hear()["error"]["message"]


@pytest.mark.parametrize("code", [7, pytest.param(0, marks=pytest.mark.full)])
def test_a_server_that_ends_early_answers_every_open_call_by_us_and_its_code_is_ours(
    code: int,
) -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(1, "silent"), ask("a", "silent"), ask(2, "exit", code=code))
        told = [wrapped.hear() for _ in range(3)]
        assert [answer["id"] for answer in told] == [1, "a", 2]
        assert {answer["error"]["code"] for answer in told} == {-32603}
        assert {answer["error"]["message"] for answer in told} == {
            "The wrapped server ended before it answered."
        }
        assert wrapped.process.wait(WAIT_S) == code
        assert wrapped.stdout.read() == b""


@pytest.mark.full
def test_a_server_that_closes_its_stdout_is_over_and_answered_for() -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(1, "silent"), ask(2, "close stdout"))
        assert wrapped.hear()["id"] == 2
        assert wrapped.hear()["error"]["code"] == -32603
        assert wrapped.process.wait(WAIT_S) == 128 + signal.SIGTERM
        wrapped.everybody_has_left()


@pytest.mark.full
def test_a_server_and_a_child_of_it_that_ignore_everything_are_killed_after_the_end_of_stdin() -> (
    None
):
    with wrapping() as wrapped:
        wrapped.say(ask(1, "silent"), ask(2, "deaf"))
        assert wrapped.hear()["id"] == 2
        wrapped.stdin.close()
        told = wrapped.hear()
        assert (told["id"], told["error"]["code"]) == (1, -32603)
        assert wrapped.process.wait(WAIT_S) == 128 + signal.SIGKILL
        assert "was killed" in wrapped.everybody_has_left()


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_server_decides(number: signal.Signals) -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(1, "silent"), ask(2, "ping"))
        assert wrapped.hear()["id"] == 2
        wrapped.process.send_signal(number)
        assert wrapped.hear()["error"]["code"] == -32603
        # Python makes an exit of its own of an interrupt.
        assert wrapped.process.wait(WAIT_S) in {128 + number, 1}
        wrapped.everybody_has_left()


@pytest.mark.full
def test_a_signal_that_whoever_started_it_has_it_ignore_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with wrapping() as wrapped:
            wrapped.process.send_signal(signal.SIGHUP)
            wrapped.say(ask(1, "ping"))
            assert wrapped.hear()["id"] == 1
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.full
def test_a_server_that_ignores_a_signal_is_killed() -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(2, "deaf"))
        assert wrapped.hear()["id"] == 2
        wrapped.process.send_signal(signal.SIGTERM)
        assert wrapped.process.wait(WAIT_S) == 128 + signal.SIGKILL
        assert "was killed" in wrapped.everybody_has_left()


@pytest.mark.full
@pytest.mark.parametrize("method", ["ping", "deaf"])
def test_kill_9_of_wrap_leaves_no_orphan(method: str) -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(2, method))
        assert wrapped.hear()["id"] == 2
        wrapped.process.kill()
        wrapped.everybody_has_left()


@pytest.mark.full
def test_a_client_that_closes_its_end_is_the_end_of_the_server() -> None:
    with wrapping() as wrapped:
        wrapped.stdout.close()
        wrapped.say(ask(1, "large", bytes=1_000_000))
        wrapped.process.wait(WAIT_S)
        assert "Traceback" not in wrapped.everybody_has_left().replace("stdout of the server", "")


@pytest.mark.full
def test_a_client_that_does_not_read_holds_nothing_up_at_the_end() -> None:
    with wrapping() as wrapped:
        wrapped.say(ask(1, "large", bytes=8_000_000))
        assert wrapped.stdout.read(1) == b"{"
        wrapped.process.send_signal(signal.SIGTERM)
        wrapped.process.wait(WAIT_S)
        wrapped.everybody_has_left()


@pytest.mark.full
def test_at_rest_it_uses_no_processor() -> None:
    with wrapping() as wrapped:
        comes_to_rest(wrapped.process)


def comes_to_rest(process: "subprocess.Popen[bytes]") -> None:
    """A whole second without any work, and without a word, comes soon: what began may end first."""
    for _ in range(30):
        before = ticks(process.pid)
        assert select.select([process.stdout], [], [], 1.0)[0] == []
        if ticks(process.pid) - before <= 1:
            return
    raise AssertionError("it is never at rest")


def ticks(pid: int) -> int:
    """Processor time of a process in ticks of the clock (a hundredth of a second)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.full
def test_a_command_that_is_not_there_is_said() -> None:
    done = subprocess.run(
        [*WRAP, "--", "/nowhere/at/all"],
        capture_output=True,
        timeout=WAIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Error: cannot run '/nowhere/at/all': No such file or directory" in done.stderr
