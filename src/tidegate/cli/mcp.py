"""How are strict tools served from the command line?

Lives here: `tidegate mcp serve`. Does not live here: the tools (demo.support, or your module),
how they are served (tools), the listener (mcp_http).
"""

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from tidegate.cli.mcp_connect import connect
from tidegate.cli.mcp_http import serve_http
from tidegate.cli.mcp_pins import pins
from tidegate.cli.mcp_wrap import wrap
from tidegate.tools.stdio import seize_stdio

if TYPE_CHECKING:
    from tidegate.tools import ToolServer
    from tidegate.tools.profiles import Profile

_DEMO_STORE = "tidegate-support.db"


@click.group(epilog="Example: tidegate mcp serve")
def mcp() -> None:
    """Serve strict MCP tools, wrap a server, bridge stdio to HTTP, approve tool definitions."""


@mcp.command(epilog="Example: tidegate mcp serve my_tools:server --http 127.0.0.1:9000")
@click.argument("target", metavar="[MODULE:SERVER]", required=False)
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP; port 0: a free one.")
@click.option("--errors", type=click.Choice(["brief", "spec"]), help="The profile of errors.")
def serve(target: str | None, address: str | None, errors: "Profile | None") -> int:
    """Serve MODULE:SERVER, a ToolServer; by default the support demo on stdio.

    The demo keeps its customers and refunds in tidegate-support.db in the current folder.

    On stdio only protocol messages reach stdout, whatever the tools, their imports or their
    children print. With --http the endpoint is /mcp; an address that other machines reach needs
    TIDEGATE_TOKEN, which callers then bear. --errors says how wrong arguments and unknown tools
    are told: brief, as errors -32602 and -32601, or spec, as MCP 2025-11-25 and later have it.
    """
    # First of all: what is imported from here on may print as it likes.
    wire = seize_stdio() if address is None else None
    _log_to_stderr()
    server = _demo() if target is None else _load(target)
    if errors is not None:
        server.errors = errors
    if address is not None:
        return serve_http(server, address, os.environ.get("TIDEGATE_TOKEN"))
    server.run_stdio(wire, ends_process=True)
    return 0


class _Lines(logging.Formatter):
    """Names the incident that a client was told of, so that its trace is found."""

    def format(self, record: logging.LogRecord) -> str:
        """One record; the incident stands beside the name of the event."""
        incident = getattr(record, "incident", None)
        text = super().format(record)
        first, _, rest = text.partition("\n")
        told = first if incident is None else f"{first} incident={incident}"
        return f"{told}\n{rest}" if rest else told


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(name)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def _demo() -> "ToolServer":
    from tidegate.demo.support import support_tools  # noqa: PLC0415 - after seizing
    from tidegate.demo.support_store import StoreUnusable, SupportStore  # noqa: PLC0415 - as above
    from tidegate.tools import ToolServer  # noqa: PLC0415 - after seizing

    try:
        store = SupportStore(_DEMO_STORE)
    except StoreUnusable as error:
        raise click.ClickException(f"{_DEMO_STORE} in this folder: {error}") from None
    click.get_current_context().call_on_close(store.close)
    leak = os.environ.get("LEAK_DEMO") == "1"
    return ToolServer(support_tools(store, leak=leak), name="support-desk")


def _load(target: str) -> "ToolServer":
    from tidegate.tools import ToolServer  # noqa: PLC0415 - after seizing

    module, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        server = getattr(import_module(module), name or "server", None)
    except ModuleNotFoundError as error:
        raise click.BadParameter(f"no module '{error.name}'") from error
    if not isinstance(server, ToolServer):
        raise click.BadParameter(f"'{target}' is not a ToolServer; name one as MODULE:SERVER")
    return server


mcp.add_command(wrap)
mcp.add_command(connect)
mcp.add_command(pins)
