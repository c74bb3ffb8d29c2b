"""Does the program itself serve tools from servers on stdio, and take them along when it goes?

The program, its file and its signals; the server is the nasty one of tests/wire.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import WAIT_S, Running, serving, tidegate
from tests.acceptance.worlds import ADMIN_KEY, JSON, KEY, configuration, write
from tests.wire.stdio_servers import NASTY, is_alive, is_gone, value_of
from tidegate.testing.sockets import request_bytes

pytestmark = pytest.mark.full
COMMAND = [sys.executable, NASTY]
CANARY = "-".join(("canary", "of", "the", "tests"))


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 120))


def world(**servers: Any) -> dict[str, Any]:
    """A file with these servers; a server is a command line with its keys."""
    parts: dict[str, Any] = {
        "hide_denied": "off",
        "servers": {name: {"command": COMMAND, "pin": "off", **server} for name, server in
                    servers.items()},
        "rules": [
            {"deny": {"tools": ["die"], "unless_roles": ["admin"]}},
            {"allow": {"roles": ["tenant", "admin"]}},
        ],
    }  # fmt: skip
    return configuration("http://127.0.0.1:9", mcp=parts)


def asked(
    name: str, key: str, identifier: Any, arguments: Any, *, modern: bool = False
) -> dict[str, Any]:
    """The request of a call, in one of the two eras."""
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}
    headers = [
        JSON,
        ("Authorization", f"Bearer {key}"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28" if modern else "2025-11-25"),
    ]
    if modern:
        headers += [("Mcp-Method", "tools/call"), ("Mcp-Name", name)]
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {"headers": tuple(headers), "body": json.dumps(message).encode()}


async def ask(
    gateway: Running, name: str, key: str = KEY, identifier: Any = 1, **arguments: Any
) -> Any:
    """What the whole answer to a call of a tool is."""
    answer = await gateway.ask("POST", "/mcp", **asked(name, key, identifier, arguments))
    assert answer.status == 200
    told = json.loads(answer.body)
    assert (told["id"], type(told["id"])) == (identifier, type(identifier))
    return told


async def call(gateway: Running, name: str, key: str = KEY, **arguments: Any) -> Any:
    return value_of(await ask(gateway, name, key, **arguments))


def test_two_principals_with_the_same_ids_at_once_have_their_own_answers(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path, environ={"SOME_TOKEN": CANARY}) as gateway:
            calls = [
                asyncio.ensure_future(ask(gateway, "echo", key, identifier, who=f"{key} {n}"))
                for n in range(10)
                for key in (KEY, ADMIN_KEY)
                for identifier in (1, "1")
            ]
            answers = [value_of(told)["who"] for told in await asyncio.gather(*calls)]
            assert answers == [f"{key} {n}" for n in range(10) for key in (KEY, ADMIN_KEY)
                               for _ in range(2)]  # fmt: skip
            surroundings = await call(gateway, "surroundings")
            assert CANARY not in str(surroundings)
            assert KEY not in str(surroundings)
            denied = await ask(gateway, "die")
            assert denied["error"]["code"] == -32001
            assert (await call(gateway, "surroundings"))["pid"] == surroundings["pid"]

    run(body())


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_a_client_that_leaves_cancels_its_call_and_nobody_elses(
    *, modern: bool, tmp_path: Path
) -> None:
    async def cancelled(gateway: Running) -> list[Any]:
        seen = await call(gateway, "seen")
        held = [m["id"] for m in seen if m.get("params", {}).get("name") == "hold"]
        told = [m for m in seen if m["method"] == "notifications/cancelled"]
        assert [m["params"]["requestId"] for m in told] in ([], held[:1])
        return told

    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path) as gateway:
            await call(gateway, "echo")
            left, stays = await gateway.client(), await gateway.client()
            await left.send(
                request_bytes("POST", "/mcp", **asked("hold", KEY, 7, {"key": "a"}, modern=modern))
            )
            while not [m for m in await call(gateway, "seen") if "hold" in str(m)]:
                pass
            waiting = asyncio.ensure_future(
                stays.ask("POST", "/mcp", **asked("hold", KEY, 8, {"key": "b"}, modern=modern))
            )
            await left.close()
            async with asyncio.timeout(WAIT_S):
                while not await cancelled(gateway):
                    pass
            await call(gateway, "release", keys=["b"])
            assert value_of(json.loads((await waiting).body)) == "b"

    run(body())


def test_a_cancelled_call_ends_at_once_though_its_server_says_nothing_more(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path) as gateway:
            await call(gateway, "echo")
            waiting = asyncio.ensure_future(
                gateway.ask("POST", "/mcp", **asked("hold", KEY, 7, {"key": "a"}))
            )
            while not [m for m in await call(gateway, "seen") if "hold" in str(m)]:
                pass
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            told = asked("", KEY, 0, {})
            told["body"] = json.dumps({**cancel, "params": {"requestId": 7}}).encode()
            assert (await gateway.ask("POST", "/mcp", **told)).status == 202
            answer = await waiting
            assert (answer.status, answer.body) == (200, b"")
            seen = await call(gateway, "seen")
            assert [m["method"] for m in seen].count(cancel["method"]) == 1

    run(body())


def test_a_crash_is_one_generic_error_and_the_next_call_works(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path) as gateway:
            first = (await call(gateway, "surroundings"))["pid"]
            crashed = await ask(gateway, "die", ADMIN_KEY)
            assert crashed["error"]["code"] == -32603
            assert set(crashed["error"]["data"]) == {"request_id"}
            second = (await call(gateway, "surroundings"))["pid"]
            assert second != first
            assert (await gateway.event("tool_server_ended"))["status"] == 3
            shown = (await gateway.admin("/metrics")).body.decode().splitlines()
            assert 'tidegate_tool_server_starts_total{result="ok",server="files"} 2.0' in shown
            assert 'tidegate_tool_server_ends_total{reason="failed",server="files"} 1.0' in shown
            assert 'tidegate_tool_server_processes{server="files"} 1.0' in shown

    run(body())


def test_sigterm_lets_a_call_end_and_then_ends_the_process_and_all_it_started(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path) as gateway:
            pids = [(await call(gateway, "surroundings"))["pid"], await call(gateway, "fork")]
            await call(gateway, "stubborn")
            client = await gateway.client()
            slow = asyncio.ensure_future(
                client.ask("POST", "/mcp", **asked("slow", KEY, 1, {"seconds": 1.0}))
            )
            await asyncio.wait((slow,), timeout=0.2)
            assert await gateway.stop() == 0
            assert value_of(json.loads((await slow).body)) == "late"
        for pid in pids:
            await is_gone(pid)

    run(body())


def test_a_kill_leaves_nothing_behind(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path, environ={"PYTHONUNBUFFERED": ""}) as gateway:
            pids = [(await call(gateway, "surroundings"))["pid"], await call(gateway, "fork")]
            await call(gateway, "stubborn")
            await gateway.kill()
        for pid in pids:
            await is_gone(pid)

    run(body())


def test_a_reload_replaces_what_changed_and_leaves_the_rest(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(one={"env": {"A": "1"}}, two={}))
        async with serving(tmp_path) as gateway:
            before = await call(gateway, "one__surroundings")
            kept = (await call(gateway, "two__surroundings"))["pid"]
            write(tmp_path, world(one={"env": {"A": "2"}}, two={}))
            await gateway.event("reloaded")
            after = await call(gateway, "one__surroundings")
            assert (before["env"]["A"], after["env"]["A"]) == ("1", "2")
            await is_gone(before["pid"])
            assert (await call(gateway, "two__surroundings"))["pid"] == kept

            write(tmp_path, world(two={}))
            await gateway.event("reloaded", times=2)
            await is_gone(after["pid"])
            assert is_alive(kept)

    run(body())


def test_a_command_that_cannot_be_started_is_told_and_the_others_serve(tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(one={"command": ["no-such-program-anywhere"]}, two={}))
        checked = tidegate(tmp_path, "check")
        assert "mcp.servers.one.command[0]: the program no-such-program-anywhere" in checked.stdout
        async with serving(tmp_path) as gateway:
            failed = await ask(gateway, "one__echo")
            assert failed["error"]["code"] == -32603
            assert await call(gateway, "two__echo", n=1) == {"n": 1}
            told = await gateway.event("tool_server_not_started")
            assert told["problem"] == "the program no-such-program-anywhere was not found"

    run(body())


def test_several_workers_are_refused_with_the_place(tmp_path: Path) -> None:
    write(tmp_path, {**world(files={}), "server": {"workers": 2}})
    checked = tidegate(tmp_path, "check")
    assert checked.returncode == 3
    assert "mcp.servers.files.command: 2 workers cannot share a server on stdio" in checked.stderr
    assert checked.stderr.startswith("tidegate.yaml:")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_waits_for_no_server(number: signal.Signals, tmp_path: Path) -> None:
    async def body() -> None:
        write(tmp_path, world(files={}))
        async with serving(tmp_path) as gateway:
            pid = (await call(gateway, "surroundings"))["pid"]
            client = await gateway.client()
            waiting = asyncio.ensure_future(
                client.ask("POST", "/mcp", **asked("hold", KEY, 1, {"key": "a"}))
            )
            await asyncio.wait((waiting,), timeout=0.2)
            gateway.signal(number)
            await gateway.event("draining")
            gateway.signal(number)
            await gateway.ended()
            waiting.cancel()
        await is_gone(pid)

    run(body())
