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


def read_parts(path: Path | None, *parts: str, wished: tuple[str, ...] = ()) -> "Config":
    """The configuration, of which only `parts` have to be right, and `wished` count if they are.

    The secrets of the service are seldom set in the shell of the one who asks at night. Raises
    InvalidConfiguration.
    """
    try:
        return read(path)
    except InvalidConfiguration:
        alone = None if path is None else _parts_alone(path, parts, wished)
        if alone is None:
            raise
        return alone


def _parts_alone(path: Path, parts: tuple[str, ...], wished: tuple[str, ...]) -> "Config | None":
    from pydantic import ValidationError  # noqa: PLC0415 - only for a file that is not right

    from tidegate.config.document import read_document  # noqa: PLC0415 - as above
    from tidegate.config.models import Config  # noqa: PLC0415 - as above
    from tidegate.config.references import follow  # noqa: PLC0415 - as above

    config = Config()
    try:
        document = read_document(path.read_bytes(), str(path))
    except OSError:
        return None
    for part in (*parts, *wished):
        section = follow(document.tree.get(part), os.environ, path.parent)
        is_wrong = bool(document.problems or section.faults)
        try:
            found = Config.model_validate({} if section.tree is None else {part: section.tree})
        except ValidationError:
            is_wrong = True
        else:
            if not is_wrong:
                config = config.model_copy(update={part: getattr(found, part)})
        if is_wrong and part in parts:
            return None
    return config


def refuse_exposed(config: "Config") -> None:
    """Raises InvalidConfiguration when it must not be served on its address."""
    from tidegate.config import serving_problems  # noqa: PLC0415 - as above

    if problems := serving_problems(config):
        raise InvalidConfiguration("\n".join(str(problem) for problem in problems))
