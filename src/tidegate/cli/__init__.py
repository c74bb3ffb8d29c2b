"""Which commands are there, and what do their exit codes mean?

Lives here: the list of commands and the way out of each. Does not live here: the commands
themselves (one module a group, imported when it is used, so that `--help` costs nothing).
"""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from tidegate import __version__

DONE, FAILED, USAGE, CONFIG_INVALID, DIFFERENT, INTERRUPTED = 0, 1, 2, 3, 4, 130

# Name, home of the command, one line of help.
COMMANDS = {
    "serve": ("tidegate.cli.serve:serve", "Run the gateway; without a file, the demo world."),
    "demo": ("tidegate.cli.demo:demo", "Three scenes live, then stay up; or one part alone."),
    "check": ("tidegate.cli.check:check", "Validate the configuration, all errors at once."),
    "schema": ("tidegate.cli.check:schema", "JSON Schema of the configuration, for editors."),
    "explain": (
        "tidegate.cli.explain:explain",
        "A past request step by step, or a dry run of MCP rules.",
    ),
    "redact": ("tidegate.cli.redact:redact", "Mask personal data and secrets; why; self-test."),
    "limits": ("tidegate.cli.limits:limits", "What limits have used, reserved and free."),
    "keys": ("tidegate.cli.keys:keys", "Make a key for a caller, shown once."),
    "estimate": ("tidegate.cli.estimate:estimate", "Token estimate, and how far off it is."),
    "providers": ("tidegate.cli.providers:providers", "How each target of a gateway is doing."),
    "mcp": ("tidegate.cli.mcp:mcp", "MCP: serve tools, wrap a server, bridge to HTTP, pins."),
}
_LATER = frozenset(
    [
        "clients",
        "init",
        "tail",
        "replay",
        "audit",
        "doctor",
        "version",
    ]
)
# What a write to an output says that is full, closed or gone.
_UNWRITABLE = frozenset(
    {errno.EPIPE, errno.ECONNRESET, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
)
_EXAMPLE = "Example: tidegate demo"


class _Commands(click.Group):
    """Imports a command when it is used, and knows which ones this release does not have."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands of this release, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its own module."""
        if cmd_name in _LATER:
            raise click.UsageError(f"'{cmd_name}' comes with a later release.")
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list with its one-line helps, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_Commands, epilog=_EXAMPLE, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="tidegate", message="%(prog)s %(version)s")
def command_line() -> None:
    """One policy layer in front of language models and MCP tools.

    Exits: 0 done, 1 failed, 2 usage, 3 bad file, 4 difference, 130 stopped.
    """


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code; whatever goes wrong is said on stderr."""
    try:
        result = command_line.main(list(arguments), prog_name="tidegate", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:
        # How click leaves when the reader of our output has left (`| head`): nothing to say.
        return FAILED
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        if error.errno != errno.EPIPE:
            with suppress(OSError):
                click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
        return FAILED
    return result if isinstance(result, int) else DONE


def main() -> None:
    """The console script."""
    _fill_missing_streams()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        # `run` has reported it; the interpreter would try once more and complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    sys.exit(code)


def _fill_missing_streams() -> None:
    """Open what the shell closed (`>&-`), or the next socket would be the standard output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - stays open


__all__ = ["COMMANDS", "main", "run"]
