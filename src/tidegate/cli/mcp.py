"""How are strict tools served from the command line?

Lives here: `tidegate mcp serve`. Does not live here: the tools (demo.support, or your module) and
how they are served (tools).
"""

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from tidegate.cli.mcp_wrap import wrap
from tidegate.tools.stdio import seize_stdio

if TYPE_CHECKING:
    from tidegate.tools import ToolServer


@click.group(epilog="Example: tidegate mcp serve")
def mcp() -> None:
    """Strict MCP tools on stdin and stdout."""


@mcp.command(epilog="Example: tidegate mcp serve my_tools:server")
@click.argument("target", metavar="[MODULE:SERVER]", required=False)
def serve(target: str | None) -> None:
    """Serve MODULE:SERVER, a ToolServer, over stdio; by default the support demo.

    Only protocol messages reach stdout, whatever the tools, their imports or their children
    print. With LEAK_DEMO=1 the demo's refund tool prints on purpose, to show it.
    """
    # First of all: what is imported from here on may print as it likes.
    wire = seize_stdio()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(message)s")
    server = _demo() if target is None else _load(target)
    server.run_stdio(wire)


def _demo() -> "ToolServer":
    from tidegate.demo.support import SupportStore, support_tools  # noqa: PLC0415 - after seizing
    from tidegate.tools import ToolServer  # noqa: PLC0415 - after seizing

    leak = os.environ.get("LEAK_DEMO") == "1"
    return ToolServer(support_tools(SupportStore(), leak=leak), name="support-desk")


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
