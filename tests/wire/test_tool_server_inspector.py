"""Does the MCP inspector's command line drive the demo tools, over stdio and over HTTP?

`make conformance` installs it, and the Node that it needs, into .venv/conformance.
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.harness import NODE, PLACE
from tests.conformance.serving import ROOT, served

INSPECTOR = PLACE / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
LONGEST_S = 30.0
IS_ERROR, NO_SUCH_TOOL, PROTOCOL = 5, 5, 1
"""Exit codes of the inspector."""
STDIO = (sys.executable, "-m", "tidegate", "mcp", "serve")

pytestmark = pytest.mark.full
eras = pytest.mark.parametrize("era", ["legacy", "modern"])


@dataclass(frozen=True)
class Said:
    code: int
    result: Any
    error: str


async def inspect(folder: Path, target: tuple[str, ...], *options: str) -> Said:
    """One call of the inspector; it keeps its files in `folder`."""
    assert NODE.exists(), "the inspector is not installed: make conformance does it"
    assert INSPECTOR.exists(), "the inspector is not installed: make conformance does it"
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), str(INSPECTOR), "--cli", *target, "--format", "json", *options),
        cwd=folder,
        env={**kept, "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            out, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    result = json.loads(out)["result"] if out.strip() else None
    return Said(process.returncode, result, error.decode())


def call(tool: str, **arguments: Any) -> tuple[str, ...]:
    return (
        *("--method", "tools/call", "--tool-name", tool),
        *("--tool-args-json", json.dumps(arguments)),
    )


async def drives(folder: Path, target: tuple[str, ...], era: str) -> None:
    """What both eras and both transports have to do alike, in the profile `spec`."""
    told = ("--protocol-era", era)
    listed = await inspect(folder, target, *told, "--method", "tools/list", "--strict")
    assert listed.code == 0, listed.error
    assert [tool["name"] for tool in listed.result["tools"]] == [
        "get_customer_record",
        "trigger_refund",
    ]
    known = await inspect(
        folder, target, *told, *call("get_customer_record", customer_id="CUST-10001")
    )
    assert (known.code, known.result["isError"]) == (0, False)
    assert known.result["structuredContent"]["name"] == "Jane Doe"
    wrong = await inspect(folder, target, *told, *call("get_customer_record", customer_id="CUST"))
    assert (wrong.code, wrong.result["isError"]) == (IS_ERROR, True)
    assert "/customer_id" in wrong.result["content"][0]["text"]
    unknown = await inspect(folder, target, *told, *call("drop_table"))
    assert unknown.code == NO_SUCH_TOOL
    refund = {"customer_id": "CUST-10003", "amount": 10, "reason": "arrived broken"}
    refused = await inspect(folder, target, *told, *call("trigger_refund", **refund))
    assert (refused.code, refused.result["isError"]) == (IS_ERROR, True)
    refund["customer_id"] = "CUST-10001"
    done = await inspect(folder, target, *told, *call("trigger_refund", **refund))
    assert done.code == 0, done.error
    assert done.result["structuredContent"]["refunded"] == "10.00"


@eras
def test_the_inspector_lists_calls_and_is_refused_over_stdio(era: str, tmp_path: Path) -> None:
    asyncio.run(drives(tmp_path, (*STDIO, "--errors", "spec"), era))


@eras
def test_the_inspector_lists_calls_and_is_refused_over_http(era: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with served(None) as url:
            await drives(tmp_path, (url, "--transport", "http"), era)

    asyncio.run(body())


@eras
def test_the_inspector_shows_an_error_where_the_brief_profile_has_one(
    era: str, tmp_path: Path
) -> None:
    async def body() -> None:
        target = (*STDIO, "--errors", "brief")
        asked = call("get_customer_record", customer_id="CUST")
        wrong = await inspect(tmp_path, target, "--protocol-era", era, *asked)
        assert (wrong.code, wrong.result) == (PROTOCOL, None)
        assert "/customer_id" in wrong.error

    asyncio.run(body())


def test_junk_of_a_tool_does_not_disturb_the_inspector(tmp_path: Path) -> None:
    async def body() -> None:
        refund = {"customer_id": "CUST-10001", "amount": 10, "reason": "arrived broken"}
        leak = ("-e", "LEAK_DEMO=1")
        done = await inspect(tmp_path, STDIO, *leak, *call("trigger_refund", **refund))
        assert done.code == 0, done.error
        assert done.result["structuredContent"]["refunded"] == "10.00"
        assert "junk: os.write" in done.error

    asyncio.run(body())
