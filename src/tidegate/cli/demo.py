"""How is the demo world started, whole or in parts?

Lives here: `tidegate demo` and its parts, each alone in a process of its own. Does not live here:
what they do (demo), the gateway.
"""

import asyncio
import os
import shutil
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import DONE, FAILED, INTERRUPTED
from tidegate.cli.serve import Launch, run_gateway

if TYPE_CHECKING:
    from tidegate.demo.world import World
    from tidegate.gateway.settings import Ready

_PARTS = ("scenes", "mcp-backend", "leaky-provider", "providers")
# Slow enough for the eye to see the text arrive.
_SHOWN_STREAM_S = 1.2
_MAIN_PORT, _ADMIN_PORT = 8080, 8081
_TYPED = "tidegate.demo.typed"


class _Demo(click.Command):
    """Its help is that of the part it is asked about."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remembers what was typed: help is shown before any of it is read."""
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The behaviors of the providers when they are asked about, then the example."""
        if "providers" in ctx.meta.get(_TYPED, ()):
            _write_behaviors(formatter)
        super().format_epilog(ctx, formatter)


def _write_behaviors(formatter: click.HelpFormatter) -> None:
    from tidegate.demo.faults import GROUPS, OPTIONS  # noqa: PLC0415 - only when used

    formatter.write_paragraph()
    formatter.write_text(
        "Providers: point your own gateway at http://127.0.0.1:PORT/primary/v1 and .../backup/v1,"
        " or at the port that each of them has of its own. Change them while they run:"
    )
    with formatter.indentation():
        formatter.write_paragraph()
        formatter.write_text(
            "curl -X POST 'localhost:9201/_set?provider=primary&behaviour=429&times=2'"
        )
        formatter.write_text("curl localhost:9201/_state")
    with formatter.section("Beside provider and behaviour"):
        formatter.write_dl(list(OPTIONS.items()))
    for group, behaviors in GROUPS.items():
        with formatter.section(group):
            formatter.write_dl([(one.name, one.about) for one in behaviors])


@click.command(cls=_Demo, epilog="Example: tidegate demo leaky-provider --port 9101")
@click.argument("part", type=click.Choice(_PARTS), default="scenes")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one."
)
@click.option("--exit", "leave", is_flag=True, help="End after the scenes instead of staying up.")
def demo(part: str, port: int | None, *, leave: bool) -> int:
    """Three scenes through a real gateway, then it stays up until Ctrl-C.

    A stream whose secrets are cut across events, masked; a viewer's admin call, denied; a failing
    primary, answered by the backup. Or one demo upstream alone, for the profiles in examples/:
    `tidegate demo providers --help` lists everything that its two providers can do wrong. Which
    tools the mcp-backend ran is at its /_log: a denied call is not there.
    """
    if part != "scenes":
        return asyncio.run(_alone(part, port))
    # With a port of the user's own the second listener does not insist on its usual one either.
    main_port = _free_near(_MAIN_PORT) if port is None else port
    admin_port = _free_near(_ADMIN_PORT) if port is None else 0
    performance = _Performance(leave=leave)
    code = run_gateway(
        Launch(
            None,
            port=main_port,
            admin_port=admin_port,
            show=performance.play,
            leaky_s=_SHOWN_STREAM_S if sys.stdout.isatty() else 0.15,
            quiet=True,
        )
    )
    if performance.unwritable is not None:
        raise performance.unwritable
    if not leave or code != DONE:
        return code
    if performance.went_well is None:
        return INTERRUPTED
    return DONE if performance.went_well else FAILED


class _Performance:
    """The scenes, then a last word.

    `went_well` is None until they have ended; `unwritable` is why the output took no more.
    """

    def __init__(self, *, leave: bool) -> None:
        self._leave = leave
        self.went_well: bool | None = None
        self.unwritable: OSError | None = None

    async def play(self, ready: "Ready", world: "World") -> None:
        """Plays everything on stdout, then waits or stops the gateway.

        Raises aiohttp.ClientError when the gateway cannot be reached.
        """
        from tidegate.demo.scenes import Theater, play  # noqa: PLC0415 - only when used
        from tidegate.demo.stage import Stage  # noqa: PLC0415 - only when used

        stage = Stage(self._write, color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
        gateway = f"http://{ready.host}:{ready.port}"
        try:
            self.went_well = await play(stage, Theater(gateway, world.ports, _command()))
            stage.say()
            if not self._leave:
                last = f"{gateway} stays up for your requests until Ctrl-C."
                stage.say(stage.paint(last, "bold"))
        except _Unwritable:
            ready.stop()
        else:
            if self._leave:
                ready.stop()

    def _write(self, text: str) -> None:
        try:
            click.echo(text, nl=False)
        except OSError as error:
            self.unwritable = error
            raise _Unwritable from error


class _Unwritable(Exception):
    """Nobody can see the show any more; apart from OSError, which a lost connection is, too."""


def _command() -> str:
    """What to type for `tidegate` in the user's shell: it may be outside the search path."""
    if shutil.which("tidegate"):
        return "tidegate"
    if Path(sys.argv[0]).name == "__main__.py":
        return f"{os.path.relpath(sys.executable)} -m tidegate"
    return os.path.relpath(sys.argv[0])


def _free_near(usual: int) -> int:
    """The usual port, or a free one when another program has it."""
    from tidegate.demo.listener import bind, port_of  # noqa: PLC0415 - only when used

    with bind(usual, fall_back=True) as probe:
        return port_of(probe)


async def _alone(name: str, port: int | None) -> int:
    from tidegate.demo.doors import Doors, own_ports  # noqa: PLC0415 - only when used
    from tidegate.demo.listener import HOST, bind, listening  # noqa: PLC0415 - only when used
    from tidegate.demo.providers import Providers  # noqa: PLC0415 - only when used
    from tidegate.demo.world import PARTS, part  # noqa: PLC0415 - only when used

    usual, path = PARTS[name]
    wanted = usual if port is None else port
    try:
        sock = bind(wanted)
    except OSError as error:
        raise click.ClickException(f"port {wanted}: {error.strerror}") from error
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, ended.set)
    app = part(name)
    async with AsyncExitStack() as running:
        real = await running.enter_async_context(listening(app, sock))
        click.echo(f"{name} at http://{HOST}:{real}{path} (Ctrl-C ends it)")
        if isinstance(app, Providers):
            doors = Doors(app, {} if wanted == 0 else own_ports(wanted))
            await running.enter_async_context(doors)
            for provider, own in doors.ports.items():
                click.echo(f"{provider} alone at http://{HOST}:{own}/v1")
        await ended.wait()
    return 0
