"""What of a new configuration can a gateway that runs take over?

Lives here: the parts that only a restart takes over, and what a reload must not switch. Does not
live here: whether the file is right (load), how a running gateway takes it over (gateway).
"""

from tidegate.config.errors import Problem
from tidegate.config.exposure import problem_at
from tidegate.config.models import Config

RESTART_ONLY = ("server", "store", "records", "telemetry")
"""Parts of the file that a running process cannot take over."""


def reload_problems(config: Config, *, running: Config) -> tuple[Problem, ...]:
    """Why a gateway that serves `running` must not take over `config` without a restart.

    One word in a file must not hand a gateway with keys of its own to everybody who knows the
    published ones; and the demo's upstreams live and die with the process. A server on stdio
    belongs to one process, and as many run as did at the start.
    """
    problems = []
    if config.demo is not running.demo:
        wrong = f"a reload cannot switch the demo {'on' if config.demo else 'off'}"
        problems.append(problem_at(config, ("demo",), wrong, "demo needs a restart"))
    if (workers := running.server.workers) > 1:
        problems += [
            problem_at(
                config,
                ("mcp", "servers", name, "command"),
                f"{workers} workers run, and they cannot share a server on stdio",
                "restart with `server.workers: 1`",
            )
            for name, server in config.mcp.servers.items()
            if server.command
        ]
    return tuple(problems)


def restart_parts(config: Config, *, running: Config) -> tuple[str, ...]:
    """The parts in which `config` differs from what a gateway began with, and keeps."""
    return tuple(part for part in RESTART_ONLY if getattr(config, part) != getattr(running, part))


def as_taken_over(config: Config, *, running: Config) -> Config:
    """`config` as a gateway that began with `running` obeys it: with the latter's fixed parts.

    A process that starts later beside it must open the same stores, whatever the file says.
    """
    kept = {part: getattr(running, part) for part in restart_parts(config, running=running)}
    return config.model_copy(update=kept) if kept else config
