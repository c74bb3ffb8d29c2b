"""Does nothing but protocol reach the stdout of a tool server, and is every line answered?

Real processes over real pipes. PYTHONUNBUFFERED is cleared or set by each test: set, it hides
what is written at exit.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

SERVE = [sys.executable, "-m", "tidegate", "mcp", "serve"]
WAIT_S = 60.0  # a whole process, on a machine that is busy with other tests
# A process costs most of a second: the variants belong to the full tier.
FULL_TRUE = pytest.param(True, marks=pytest.mark.full)
FULL_MODES = [pytest.param(mode, marks=pytest.mark.full) for mode in ("legacy", "2026-07-28")]
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
REFUND = {"customer_id": "CUST-10001", "amount": 1.5, "reason": "parcel never arrived"}


def call(identifier: object, name: str, arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def environment(*, unbuffered: bool, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | ({"PYTHONUNBUFFERED": "1"} if unbuffered else {}) | extra


def talk(
    data: bytes,
    *,
    command: Sequence[str] = SERVE,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """The answers (every line of stdout, parsed) and stderr of a server fed `data` and EOF.

    It runs in `cwd`, or in a folder that is gone afterwards, with the books it kept there.
    """
    with (
        TemporaryDirectory(prefix="tidegate-task1-") as folder,
        TemporaryFile() as said,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=env or environment(unbuffered=False),
            cwd=cwd or folder,
        ) as process,
    ):
        out = until_answered(process, data)
        assert process.wait(WAIT_S) == 0
        said.seek(0)
        errors = said.read().decode()
    answers = [json.loads(line) for line in out.splitlines()]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    return answers, errors


def until_answered(process: "subprocess.Popen[bytes]", data: bytes) -> bytes:
    """Write `data`, end stdin when as much was answered as is asked in it; the whole stdout.

    Not before: what runs when stdin ends has a moment to end, which a busy machine may take.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    bound = Timer(WAIT_S, process.kill)
    bound.start()
    try:
        process.stdin.write(data)
        process.stdin.flush()
        heard = [process.stdout.readline() for _ in range(questions(data))]
        process.stdin.close()
        return b"".join(heard) + process.stdout.read()
    finally:
        bound.cancel()


def questions(data: bytes) -> int:
    """The requests among the lines."""
    found = 0
    for line in data.splitlines():
        with suppress(ValueError):
            message = json.loads(line)
            found += isinstance(message, dict) and {"id", "method"} <= message.keys()
    return found


@pytest.mark.full
@pytest.mark.parametrize("unbuffered", [False, FULL_TRUE])
def test_a_tool_that_prints_in_every_way_leaves_stdout_pure(*, unbuffered: bool) -> None:
    answers, errors = talk(
        lines(HELLO, READY, call(1, "trigger_refund", REFUND), call(2, "trigger_refund", REFUND)),
        env=environment(unbuffered=unbuffered, LEAK_DEMO="1"),
    )
    assert [answer["id"] for answer in answers] == ["hello", 1, 2]
    for way in ("print without flush", "os.write", "child process", "C puts"):
        assert errors.count(f"junk: {way}") == 2


@pytest.mark.full
def test_without_leak_demo_there_is_no_junk() -> None:
    answers, errors = talk(lines(HELLO, READY, call(1, "trigger_refund", REFUND)))
    assert [answer["id"] for answer in answers] == ["hello", 1]
    assert "junk" not in errors


NOISY = '''
import atexit, os, sys
print("noise at import")
os.write(1, b"raw noise at import\\n")
atexit.register(print, "noise at exit")
from tidegate.tools import StrictInput, ToolServer, strict_tool

class Nothing(StrictInput):
    """No arguments."""

@strict_tool
async def noisy(call: Nothing) -> str:
    """Makes noise."""
    print("noise in a call")
    sys.__stdout__.write("noise on the original stdout")
    os.system("cat; echo noise of a child")
    return "quiet"

@strict_tool
async def broken(call: Nothing) -> str:
    """Fails."""
    raise RuntimeError("password=hunter2")

tools = ToolServer([noisy, broken])
'''


@pytest.mark.full
@pytest.mark.parametrize("unbuffered", [False, True])
def test_noise_at_import_in_a_call_and_at_exit_lands_on_stderr(
    tmp_path: Path, *, unbuffered: bool
) -> None:
    (tmp_path / "noisy_tools.py").write_text(NOISY)
    answers, errors = talk(
        lines(HELLO, READY, call(1, "noisy", {}), call(2, "noisy", {})),
        command=[*SERVE, "noisy_tools:tools"],
        env=environment(unbuffered=unbuffered),
        cwd=tmp_path,
    )
    assert [answer["id"] for answer in answers] == ["hello", 1, 2]
    assert answers[1]["result"]["content"][0]["text"] == "quiet"
    assert errors.count("noise of a child") == 2
    for noise in ("noise at import", "raw noise", "noise in a call", "noise at exit"):
        assert noise in errors


@pytest.mark.full
@pytest.mark.parametrize("mode", ["legacy", pytest.param("2026-07-28", marks=pytest.mark.full)])
def test_a_crash_shows_the_client_an_incident_and_no_text(tmp_path: Path, mode: str) -> None:
    (tmp_path / "noisy_tools.py").write_text(NOISY)

    async def body() -> MCPError:
        server = StdioServerParameters(
            command=sys.executable,
            args=[*SERVE[1:], "noisy_tools:tools"],
            cwd=str(tmp_path),
            env=environment(unbuffered=False),
        )
        with anyio.fail_after(WAIT_S), open(os.devnull, "w") as nowhere:
            async with Client(server, mode=mode) as client:
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("broken", {})
        nowhere.close()
        return caught.value

    error = anyio.run(body).error
    assert error.code == -32603
    assert set(error.data) == {"incident"}
    assert "hunter2" not in repr(error)


@pytest.mark.full
def test_bad_lines_are_answered_with_a_null_id_and_the_session_goes_on() -> None:
    bad = (
        b"\xff\xfe garbage\n"
        b"this is not json\n"
        b"\n\r\n   \n"
        b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]\n'
        b'{"jsonrpc":"2.0","id":8,"method":"ping","id":9}\n'
    )
    answers, errors = talk(
        lines(HELLO, READY) + bad + b'{"jsonrpc":"2.0","id":2,"method":"ping"}\r\n'
    )
    # A bad line is answered at once, a request when it is done: only each kind is in order.
    refused = [answer["error"]["code"] for answer in answers if answer["id"] is None]
    assert refused == [-32700, -32700, -32600, -32600]
    assert [answer["id"] for answer in answers if answer["id"] is not None] == ["hello", 2]
    assert errors.count("dropped a line") == 4
    assert "garbage" not in errors


@pytest.mark.full
def test_a_line_beyond_the_cap_is_refused_and_the_next_one_is_read() -> None:
    long = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * (4 << 20) + b'"}}\n'
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    answers, _ = talk(lines(HELLO, READY) + long + lines(ping))
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32600]
    assert [answer["id"] for answer in answers if answer["id"] is not None] == ["hello", 2]


@pytest.mark.full
def test_every_call_in_flight_when_stdin_ends_is_answered_with_its_own_id(
    tmp_path: Path,
) -> None:
    lookup = {"customer_id": "CUST-10001"}
    identifiers = [*range(1, 20), "1", "", -7, 9007199254740993]
    calls = [call(identifier, "get_customer_record", lookup) for identifier in identifiers]
    done = subprocess.run(
        SERVE,
        input=lines(HELLO, READY, *calls),
        capture_output=True,
        timeout=WAIT_S,
        check=True,
        env=environment(unbuffered=False),
        cwd=tmp_path,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    answered = {json.dumps(answer["id"]): answer for answer in answers[1:]}
    assert set(answered) == {json.dumps(identifier) for identifier in identifiers}
    # Whatever a busy machine has not done by then is answered, too: by an error.
    for answer in answered.values():
        assert "error" in answer or "Jane Doe" in json.dumps(answer["result"])


@pytest.mark.parametrize("mode", ["auto", *FULL_MODES])
def test_the_official_client_gets_the_error_mapping_of_both_eras(mode: str, tmp_path: Path) -> None:
    async def code(client: Client, name: str, arguments: dict[str, Any]) -> int:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, arguments)
        return caught.value.error.code

    async def body() -> None:
        server = StdioServerParameters(command=sys.executable, args=SERVE[1:], cwd=tmp_path)
        with anyio.fail_after(WAIT_S):
            async with Client(server, mode=mode) as client:
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools] == ["get_customer_record", "trigger_refund"]
                assert all(t.input_schema["additionalProperties"] is False for t in tools)
                found = await client.call_tool("get_customer_record", {"customer_id": "CUST-10002"})
                assert found.structured_content["email"] == "luis@example.com"
                assert await code(client, "trigger_refund", REFUND | {"amount": -5}) == -32602
                assert await code(client, "trigger_refund", REFUND | {"note": "x"}) == -32602
                assert await code(client, "get_customer_record", {"customer_id": "12"}) == -32602
                assert await code(client, "drop_tables", {}) == -32601
                missing = {"customer_id": "CUST-99999"}
                assert (await client.call_tool("get_customer_record", missing)).is_error
                assert (await client.call_tool("trigger_refund", REFUND | {"amount": 900})).is_error

    anyio.run(body)
