"""Does `tidegate mcp serve --http` serve, refuse and end as it says, over real sockets?

Real processes; one serves all the tests that only ask. The drain and who may listen have their own.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.unit.tools.web import ENVELOPE, MODERN
from tests.wire.test_task1_stdio import environment

pytestmark = pytest.mark.full  # a process for each
WAIT_S = 60.0  # a whole process, on a machine that is busy with other tests
TOOLS = '''
import asyncio, os
from tidegate.tools import StrictInput, ToolContext, ToolServer, strict_tool

class Nothing(StrictInput):
    """No arguments."""

@strict_tool
async def slow(call: Nothing, context: ToolContext) -> str:
    """Waits for a word in a pipe, and says when it began and when it was given up."""
    pipe, go = os.open("go", os.O_RDONLY | os.O_NONBLOCK), asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe, go.set)
    open("began", "w").close()
    try:
        await context.progress(1)
        await go.wait()
    except asyncio.CancelledError:
        open("given-up", "w").close()
        raise
    finally:
        asyncio.get_running_loop().remove_reader(pipe)
        os.close(pipe)
    return "went"

@strict_tool
async def broken(call: Nothing) -> str:
    """Fails."""
    print("junk from a tool")
    raise RuntimeError("password=hunter2")

tools = ToolServer([slow, broken], name="some")
'''


class Served:
    """A process that serves; `url` is where."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"tidegate mcp: (http://(\S+):(\d+)/mcp)\n", line)
        assert found is not None, line + process.stderr.read()
        self.url, self.host, self.port = found[1], found[2].strip("[]"), int(found[3])

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)

    def ask(self, body: object, **headers: str) -> tuple[int, Any]:
        connection = self.connection()
        given = {"content-type": "application/json", "accept": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", "/mcp", data, given)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None

    def call(self, name: str, **headers: str) -> tuple[int, Any]:
        return self.ask(body_of(name), **headers_of(name) | headers)

    def ended(self) -> tuple[int, str]:
        """Exit code and the rest of stderr, within the bound."""
        _, errors = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, errors


def body_of(name: str) -> dict[str, Any]:
    params = {"name": name, "arguments": {}, "_meta": ENVELOPE}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def headers_of(name: str) -> dict[str, str]:
    return {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": name}


@contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[Served]:
    (folder / "some_tools.py").write_text(TOOLS)
    os.mkfifo(folder / "go")
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "mcp", "serve", "--http", "127.0.0.1:0", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(unbuffered=False, **variables),
    )
    with process:
        try:
            yield Served(process)
        finally:
            process.kill()


def appeared(path: Path) -> None:
    """Until the file is there."""

    async def body() -> None:
        with anyio.fail_after(WAIT_S):
            while not path.exists():
                await anyio.lowlevel.checkpoint()

    anyio.run(body)


def test_what_is_wrong_with_a_request_is_said_over_the_wire_and_the_crash_is_in_the_log(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "some_tools:tools") as served:
        assert served.ask(b"{}", host="evil.example")[0] == 421
        assert served.ask(b"{}", origin="http://evil.example")[0] == 403
        assert served.ask(b"{}", content_type="text/plain")[0] == 415
        assert served.ask(b"{", accept="application/json")[1]["error"]["code"] == -32700
        status, answer = served.ask(b"{}", x_odd="x" * 40_000)
        assert (status, answer["jsonrpc"], answer["error"]["code"]) == (431, "2.0", -32600)
        assert served.call("broken", mcp_method="tools/list")[1]["error"]["code"] == -32020
        status, answer = served.call("broken")
        assert (status, answer["error"]["code"]) == (200, -32603)
        incident = answer["error"]["data"]["incident"]
        served.process.send_signal(signal.SIGTERM)
        code, errors = served.ended()
        assert code == 0
        assert f"tool_crashed incident={incident}" in errors
        assert "hunter2" in errors


def test_a_body_without_a_length_is_counted_as_it_comes(tmp_path: Path) -> None:
    with serving(tmp_path, "some_tools:tools") as served:
        connection = served.connection()
        connection.putrequest("POST", "/mcp")
        connection.putheader("content-type", "application/json")
        connection.putheader("transfer-encoding", "chunked")
        connection.endheaders()
        sent = 0
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with suppress(OSError):  # it hangs up while we are talking
            while sent < 1000:
                connection.send(chunk)
                sent += 1
        assert sent < 1000
        with closing(connection), suppress(OSError, http.client.HTTPException):
            # When the answer was lost with the connection, that it was cut is all there is to see.
            assert connection.getresponse().status == 413
        assert sent > 64


def test_who_leaves_cancels_what_it_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, "some_tools:tools") as served:
        connection = served.connection()
        headers = {name.replace("_", "-"): value for name, value in headers_of("slow").items()}
        data = json.dumps(body_of("slow")).encode()
        connection.request("POST", "/mcp", data, headers | {"content-type": "application/json"})
        appeared(tmp_path / "began")
        connection.close()
        appeared(tmp_path / "given-up")


async def accepts(served: Served) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", served.port)
    except OSError:
        return False
    await stream.aclose()
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_end_and_then_the_process(tmp_path: Path, number: int) -> None:
    async def talk(served: Served) -> None:
        headers = {name.replace("_", "-"): value for name, value in headers_of("slow").items()}
        with anyio.fail_after(WAIT_S):
            async with (
                httpx2.AsyncClient(timeout=WAIT_S) as web,
                anyio.create_task_group() as tasks,
            ):

                async def ask() -> None:
                    answer = await web.post(served.url, json=body_of("slow"), headers=headers)
                    assert answer.json()["result"]["content"][0]["text"] == "went"

                tasks.start_soon(ask)
                while not (tmp_path / "began").exists():
                    await anyio.lowlevel.checkpoint()
                served.process.send_signal(number)
                while await accepts(served):
                    pass  # fail_after bounds it
                (tmp_path / "go").write_text("go")

    with serving(tmp_path, "some_tools:tools") as served:
        anyio.run(talk, served)
        assert served.ended() == (0, "")


def test_standing_streams_and_idle_sessions_do_not_hold_it_up(tmp_path: Path) -> None:
    with serving(tmp_path, "some_tools:tools") as served:
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        connection = served.connection()
        given = {"content-type": "application/json"}
        connection.request("POST", "/mcp", json.dumps(hello).encode(), given)
        opened = connection.getresponse()
        opened.read()
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        connection.request("GET", "/mcp", headers=session | {"accept": "text/event-stream"})
        stream = connection.getresponse()
        assert stream.status == 200
        served.process.send_signal(signal.SIGTERM)
        assert stream.read() == b""
        connection.close()
        assert served.ended() == (0, "")


def test_with_a_token_only_who_bears_it_is_served(tmp_path: Path) -> None:
    token = "t" * 24
    with serving(tmp_path, "some_tools:tools", TIDEGATE_TOKEN=token) as served:
        assert served.call("slow")[0] == 401
        assert served.call("slow", authorization=f"Bearer {token}x")[0] == 401
        assert served.ask(b"[]", authorization=f"Bearer {token}")[0] == 400


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--http", "0.0.0.0:0"], "set TIDEGATE_TOKEN"),
        (["--http", "[::]:0"], "set TIDEGATE_TOKEN"),
        (["--http", "9000"], "is not HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["--errors", "loud"], "'loud' is not one of"),
    ],
)
def test_an_address_that_others_reach_needs_a_token_and_what_is_none_is_said(
    options: list[str], words: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tidegate", "mcp", "serve", *options]
    env = {name: value for name, value in os.environ.items() if name != "TIDEGATE_TOKEN"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env=env,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
