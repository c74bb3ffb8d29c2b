"""Does a tool server end with its client although a tool will not? (S2 of the research)

Each tool would take ten minutes: that the process has ended at all within the bound shows it.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.wire.test_mcp_wrap import comes_to_rest
from tests.wire.test_task1_stdio import (
    HELLO,
    READY,
    WAIT_S,
    call,
    environment,
    lines,
    until_answered,
)
from tests.wire.test_tool_server_isolation import NOISY, ROOT

STUCK = (
    "blocks_the_loop",
    "blocks_in_c",
    "blocks_a_thread",
    "blocks_a_thread_of_the_pool",
    "will_not_be_cancelled",
)
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


@contextmanager
def serving() -> Iterator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        NOISY,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=ROOT,
        env=environment(unbuffered=False),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.full
@pytest.mark.parametrize("tool", STUCK)
def test_after_the_end_of_stdin_a_stuck_call_is_answered_and_the_process_ends(tool: str) -> None:
    with serving() as process:
        out, _ = process.communicate(lines(HELLO, READY, call(1, tool, {})), timeout=WAIT_S)
        answers = [json.loads(line) for line in out.splitlines()]
        assert [answer["id"] for answer in answers] == ["hello", 1]
        assert answers[1]["error"]["code"] in {-32603, -32000}
        assert process.returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("kind", ["file", "socket"])
def test_the_end_of_a_file_and_of_a_socket_is_one_as_well(tmp_path: Path, kind: str) -> None:
    asked = lines(HELLO, READY, call(1, "blocks_the_loop", {}), call(2, "blocks_the_loop", {}))
    (tmp_path / "asked").write_bytes(asked)
    ours, theirs = socket.socketpair()
    with ours, theirs, open(tmp_path / "asked", "rb") as file:
        ours.sendall(asked)
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run(
            NOISY,
            stdin=file if kind == "file" else theirs,
            capture_output=True,
            cwd=ROOT,
            env=environment(unbuffered=False),
            timeout=WAIT_S,
            check=True,
        )
    first, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["id"] == "hello"
    assert 1 in {answer["id"] for answer in answers}, answers


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "tool"),
    [
        *((signal.SIGTERM, tool) for tool in STUCK),
        *((signal.SIGINT, tool) for tool in STUCK),
        # Python hears of an interrupt when it has its lock again; this one is for the system.
        (signal.SIGTERM, "blocks_in_c_with_the_lock"),
    ],
)
def test_a_signal_ends_a_stuck_server(tool: str, number: signal.Signals) -> None:
    with serving() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines(HELLO, READY, call(1, tool, {})))
        process.stdin.flush()
        assert any(b"begun" in line for line in process.stderr)
        process.send_signal(number)
        assert process.wait(WAIT_S) in {-signal.SIGTERM, 130}


@pytest.mark.full
def test_a_thread_that_a_tool_left_behind_does_not_keep_the_process() -> None:
    with serving() as process:
        out = until_answered(process, lines(HELLO, READY, call(1, "leaves_a_thread", {})))
        process.wait(WAIT_S)
        assert json.loads(out.splitlines()[-1])["result"]["content"][0]["text"] == "left"
        assert process.returncode == 0


@pytest.mark.full
def test_a_server_whose_loop_a_fork_has_broken_ends_with_its_client() -> None:
    with serving() as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(lines(HELLO, READY, call(1, "breaks_the_loop", {})))
        process.stdin.flush()
        assert any(b"begun" in line for line in process.stderr)
        # More than the pipe holds: it is written when the one read under way has returned, of
        # which the loop does not hear. What is left nobody reads.
        process.stdin.write(lines(PING) * (66_000 // len(lines(PING))))
        process.stdin.close()
        assert process.wait(WAIT_S) == 0


@pytest.mark.full
def test_a_forked_copy_of_the_server_does_not_serve() -> None:
    with serving() as process:
        asked = (call(n, "comes_back_twice", {}) for n in (1, 2))
        out, _ = process.communicate(lines(HELLO, READY, *asked), timeout=WAIT_S)
        answers = [json.loads(line) for line in out.splitlines()]
        assert sorted(str(answer["id"]) for answer in answers) == ["1", "2", "hello"]
        # What a busy machine has not done when the time after the end of stdin is over is an error.
        results = [
            answer["result"] for answer in answers if answer["id"] != "hello" and "result" in answer
        ]
        assert {result["content"][0]["text"] for result in results} <= {"True"}
        assert process.returncode == 0


@pytest.mark.full
def test_a_process_that_a_tool_forked_does_not_keep_the_clients_pipe_open() -> None:
    with serving() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        out = until_answered(process, lines(HELLO, READY, call(1, "leaves_a_process", {})))
        answers = [json.loads(line) for line in out.splitlines()]
        left = int(answers[-1]["result"]["content"][0]["text"])
        os.kill(left, signal.SIGKILL)
        assert process.wait(WAIT_S) == 0


@pytest.mark.full
def test_at_rest_a_server_uses_no_processor() -> None:
    with serving() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(HELLO, READY, PING))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == "hello"
        assert json.loads(process.stdout.readline())["id"] == "ping"
        comes_to_rest(process)
