"""How does a client on stdio reach an MCP server on HTTP?

Lives here: `tidegate mcp connect`. Does not live here: what it does (bridges).
"""

import os

import click

from tidegate.tools.stdio import MAX_LINE_BYTES, seize_stdio

_SERVER_LINE_BYTES = 4 * MAX_LINE_BYTES


@click.command(
    epilog="Example: TIDEGATE_TOKEN=... tidegate mcp connect https://mcp.example.com/mcp"
)
@click.argument("url", metavar="URL")
@click.option("--insecure", is_flag=True, help="Permit http to another machine, token and all.")
@click.option(
    "--max-line-bytes",
    type=click.IntRange(min=1024),
    help="Longest message of either side; default 4 MiB for the client's, 16 MiB for the server's.",
)
def connect(url: str, *, insecure: bool, max_line_bytes: int | None) -> int:
    """Be an MCP server on stdio whose answers come from the server at URL.

    For clients that can start a command only. Speaks every revision of Streamable HTTP. The token
    comes from TIDEGATE_TOKEN and goes to URL alone: redirects are not followed. What HTTP refuses
    becomes an error for the call that asked.
    """
    wire = seize_stdio()
    from tidegate.bridges.connect import run_connected  # noqa: PLC0415 - after seizing
    from tidegate.bridges.endpoint import BadEndpoint, endpoint  # noqa: PLC0415 - after seizing

    try:
        server = endpoint(url, os.environ.get("TIDEGATE_TOKEN"), insecure=insecure)
    except BadEndpoint as error:
        raise click.BadParameter(str(error), param_hint="URL") from error
    return run_connected(
        server,
        wire,
        client_line_bytes=max_line_bytes or MAX_LINE_BYTES,
        server_line_bytes=max_line_bytes or _SERVER_LINE_BYTES,
    )
