"""How is a third-party stdio server run with a clean wire?

Lives here: `tidegate mcp wrap`. Does not live here: what it does (bridges).
"""

import click

from tidegate.tools.stdio import MAX_LINE_BYTES, seize_stdio

_SERVER_LINE_BYTES = 4 * MAX_LINE_BYTES


@click.command(
    epilog="Example: tidegate mcp wrap -- npx -y some-mcp-server --verbose",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--max-line-bytes",
    type=click.IntRange(min=1024),
    help="Longest message of either side; default 4 MiB for the client's, 16 MiB for the server's.",
)
def wrap(command: tuple[str, ...], max_line_bytes: int | None) -> int:
    """Run CMD, an MCP server on stdio, and let only its messages reach stdout.

    What else it prints goes to stderr and is counted. An answer passes only to a call that is
    open; every open call is answered with an error when CMD ends. Signals and the end of stdin
    are passed on, CMD and its children are gone two seconds later, and the exit code is CMD's.
    """
    wire = seize_stdio()
    from tidegate.bridges.wrap import run_wrapped  # noqa: PLC0415 - after seizing

    try:
        return run_wrapped(
            command,
            wire,
            client_line_bytes=max_line_bytes or MAX_LINE_BYTES,
            server_line_bytes=max_line_bytes or _SERVER_LINE_BYTES,
        )
    except OSError as error:
        raise click.ClickException(f"cannot run '{command[0]}': {error.strerror}") from error
