"""How is the gateway started from the command line?

Lives here: from options to a running gateway, with the demo world beside it where the
configuration asks for one. Does not live here: listeners, signals and reload
(gateway.supervise for one process, gateway.workers for several), what the demo shows
(demo.scenes).
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import configuration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tidegate.config import Config
    from tidegate.demo.world import World
    from tidegate.gateway.settings import Ready

    Show = Callable[[Ready, World], Awaitable[None]]


@click.command(epilog="Example: tidegate serve --config tidegate.yaml")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The file to read.")
@click.option("--host", help="Address to listen on instead of the file's.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port instead of the file's; 0: free.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes instead of the file's.")
def serve(path: Path | None, host: str | None, port: int | None, workers: int | None) -> int:
    """Run the gateway until SIGTERM or Ctrl-C.

    Looks for --config, TIDEGATE_CONFIG, ./tidegate.yaml and $XDG_CONFIG_HOME/tidegate/, in this
    order; without any of them it serves the demo world, upstreams included.
    """
    launch = Launch(configuration.find(path), host=host, port=port, workers=workers)
    return run_gateway(launch)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run: the file (None: the demo world), and what the options say instead of it.

    `show` runs once the gateway and the demo world are up; `leaky_s` is how long the world's
    leaky provider takes for one stream; `quiet` logs errors only.
    """

    path: Path | None
    host: str | None = None
    port: int | None = None
    workers: int | None = None
    admin_port: int | None = None
    show: "Show | None" = None
    leaky_s: float = 0.15
    quiet: bool = False


def run_gateway(launch: Launch) -> int:
    """Serves until it is told to stop; returns the exit code."""
    # The command line stays light: what runs the gateway is imported when it is to run.
    from tidegate.config import DemoPorts, Overrides, load_config  # noqa: PLC0415

    overrides = Overrides(
        host=launch.host,
        port=launch.port,
        workers=launch.workers,
        admin_port=launch.admin_port,
    )
    config = configuration.read(launch.path, overrides=overrides)
    configuration.refuse_exposed(config)
    world = _world(launch) if config.demo else None
    ports = world.ports if world is not None else DemoPorts()
    if world is not None:
        config = configuration.read(launch.path, overrides=overrides, demo_ports=ports)
    if launch.quiet:
        telemetry = config.telemetry.model_copy(update={"level": "error"})
        config = config.model_copy(update={"telemetry": telemetry})
    for finding in (*config.warnings, *config.not_in_effect):
        click.echo(f"warning: {finding}", err=True)

    known = config.rules_dir

    def load() -> "Config":
        nonlocal known
        loaded = load_config(
            launch.path,
            os.environ,
            overrides=overrides,
            demo_ports=ports,
            empty_is_demo=False,
            known=known,
        )
        known = loaded.rules_dir
        return loaded

    async def on_ready(ready: "Ready") -> None:
        if world is not None and launch.show is not None:
            await launch.show(ready, world)

    # One process needs no parent, and a parent does not need what serves requests.
    if config.server.workers == 1:
        from tidegate.gateway.supervise import run  # noqa: PLC0415
    else:
        from tidegate.gateway.workers.parent import run  # noqa: PLC0415
    return run(config, load=load, watch=launch.path, companion=world, on_ready=on_ready)


def _world(launch: Launch) -> "World":
    from tidegate.demo.world import World  # noqa: PLC0415 - only the demo pays for it

    return World(leaky_s=launch.leaky_s)
