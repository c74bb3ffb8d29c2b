"""Is a call traced exactly when somebody collects traces?"""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from mcp import Client

from tidegate.tools import ToolServer
from tidegate.tools.tracing import trace_when_collected

# In a process of its own: a tracer provider is installed once and for all.
PROGRAM = """
import asyncio, contextlib
from mcp import Client
from opentelemetry import trace
from tidegate.tools import StrictInput, ToolServer, strict_tool

spans = []

class Tracer(trace.NoOpTracer):
    @contextlib.contextmanager
    def start_as_current_span(self, name, *args, **kwargs):
        spans.append(name)
        yield trace.INVALID_SPAN

class Provider(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs):
        return Tracer()

class Nothing(StrictInput):
    pass

@strict_tool
async def hello(call: Nothing) -> str:
    return "hello"

async def main():
    async with Client(ToolServer([hello]).server) as client:
        spans.clear()
        said = await client.call_tool("hello", {})
        assert said.content[0].text == "hello"
    print(*sorted(set(spans)), sep="\\n")

INSTALL
asyncio.run(main())
"""


def spans(install: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("INSTALL", install)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.full
def test_a_call_is_traced_where_a_provider_is_installed() -> None:
    assert "tools/call hello" in spans("trace.set_tracer_provider(Provider())")


class OpenTelemetryMiddleware:
    """Stands for the SDK's, by its name."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, context: Any, call_next: Any) -> Any:
        self.seen.append(context.method)
        return await call_next(context)


class Other(OpenTelemetryMiddleware):
    """Somebody else's."""


def test_a_call_is_not_traced_where_none_is_and_other_middleware_runs() -> None:
    traced, other = OpenTelemetryMiddleware(), Other()
    server = ToolServer([]).server
    server.middleware[:] = [traced, other]
    trace_when_collected(server)

    async def body() -> None:
        async with Client(server) as client:
            assert (await client.list_tools()).tools == []

    asyncio.run(body())
    assert traced.seen == []
    assert "tools/list" in other.seen
