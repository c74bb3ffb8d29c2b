"""Which configuration does a command work with, and what if it is wrong?

Lives here: from the options and the environment to a Config, and invalid files as exit code 3.
Does not live here: reading and judging the file (config).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli import CONFIG_INVALID

if TYPE_CHECKING:
    from tidegate.config import Config
    from tidegate.config.demo_world import DemoPorts
    from tidegate.config.load import Overrides


class InvalidConfiguration(click.ClickException):
    """Every problem of the file, one a line."""

    exit_code = CONFIG_INVALID

    def show(self, file: Any = None) -> None:
        """The problems on stderr, without a word around them: editors parse these lines."""
        click.echo(self.message, file=file, err=file is None)


def find(given: Path | None) -> Path | None:
    """The file a command works with; None stands for the demo world."""
    from tidegate.config.load import find_config  # noqa: PLC0415 - the command line stays light

    return find_config(given, os.environ)


def read(
    path: Path | None,
    *,
    overrides: "Overrides | None" = None,
    demo_ports: "DemoPorts | None" = None,
) -> "Config":
    """The configuration in the file `path`, as found by `find`; raises InvalidConfiguration."""
    from tidegate.config import ConfigInvalid, load_config  # noqa: PLC0415 - as above

    try:
        return load_config(path, os.environ, overrides=overrides, demo_ports=demo_ports)
    except ConfigInvalid as error:
        problems = "\n".join(str(problem) for problem in error.problems)
        raise InvalidConfiguration(problems) from None


def refuse_exposed(config: "Config") -> None:
    """Raises InvalidConfiguration when it must not be served on its address."""
    from tidegate.config import serving_problems  # noqa: PLC0415 - as above

    if problems := serving_problems(config):
        raise InvalidConfiguration("\n".join(str(problem) for problem in problems))
