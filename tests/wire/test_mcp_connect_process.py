"""Does the process of `mcp connect` keep its stdout pure and end with its client?

The server is a listener of the test that takes connections, or nobody.
"""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.wire.test_mcp_wrap import comes_to_rest
from tests.wire.test_task1_stdio import WAIT_S, environment, lines

CONNECT = [sys.executable, "-m", "tidegate", "mcp", "connect"]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {}}


@contextmanager
def deaf_server() -> Iterator[tuple[str, socket.socket]]:
    """It takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", listener


@contextmanager
def connecting(url: str) -> Iterator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*CONNECT, url], stdin=pipe, stdout=pipe, stderr=pipe, env=environment(unbuffered=False)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: "subprocess.Popen[bytes]", message: dict[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(lines(message))
    process.stdin.flush()


@pytest.mark.full
@pytest.mark.parametrize("message", [PING, HELLO], ids=["ping", "initialize"])
def test_when_the_client_leaves_a_deaf_server_is_left_and_the_call_answered(
    message: dict[str, object],
) -> None:
    with deaf_server() as (url, _), connecting(url) as process:
        out, errors = process.communicate(lines(message), timeout=WAIT_S)
        (answer,) = [json.loads(line) for line in out.splitlines()]
        assert (answer["id"], answer["error"]["code"]) == (message["id"], -32603)
        assert answer["error"]["data"] == {"reason": "ended"}
        assert (process.returncode, errors) == (0, b"")


@pytest.mark.full
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_what_is_open_is_answered(number: signal.Signals, code: int) -> None:
    with deaf_server() as (url, listener), connecting(url) as process:
        say(process, PING)
        taken, _ = listener.accept()
        with taken:
            assert taken.recv(16) == b"POST /mcp HTTP/1"
            process.send_signal(number)
            out, errors = process.communicate(timeout=WAIT_S)
        assert json.loads(out)["error"]["data"] == {"reason": "ended"}
        assert (process.returncode, errors) == (code, b"")


@pytest.mark.full
def test_a_client_that_closes_its_end_is_the_end_without_a_trace() -> None:
    with connecting("http://127.0.0.1:9/mcp") as process:
        assert process.stdout is not None
        process.stdout.close()
        say(process, PING)
        assert process.wait(WAIT_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.full
def test_at_rest_it_uses_no_processor() -> None:
    with connecting("http://127.0.0.1:9/mcp") as process:
        assert process.stdout is not None
        say(process, PING)
        assert json.loads(process.stdout.readline())["error"]["data"]["reason"] == "unreachable"
        comes_to_rest(process)


@pytest.mark.full
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://mcp.example.com/mcp", b"--insecure"),
        ("https://me:word@mcp.example.com/", b"TIDEGATE_TOKEN"),
        ("mcp.example.com", b"write the whole URL"),
    ],
)
def test_a_url_that_would_give_the_token_away_is_a_usage_error(url: str, said: bytes) -> None:
    done = subprocess.run(
        [*CONNECT, url],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
        env=environment(unbuffered=False, TIDEGATE_TOKEN="-".join(("a", "token"))),
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr
    assert b"a-token" not in done.stderr
    assert b"me:word" not in done.stderr
