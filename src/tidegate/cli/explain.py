"""How is `tidegate explain` called?

Lives here: the arguments, the way from the configuration to the records file, exit codes. Does
not live here: reading and wording (records).
"""

import json
import os
from pathlib import Path

import click

from tidegate import records
from tidegate.cli import configuration


@click.command(epilog="Example: tidegate explain 4f7c0b6e2d6b4a0f9c2f1f0a5f3f9d11")
@click.argument("words", nargs=-1, metavar="ID")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--json", "as_json", is_flag=True, help="The whole record as one JSON document.")
def explain(words: tuple[str, ...], given: Path | None, *, as_json: bool) -> None:
    """The record of a past request, step by step.

    ID is the x-request-id of its answer. Works while the gateway runs and after it has ended.
    Records hold decisions and numbers, never content.
    """
    if len(words) != 1:
        raise click.UsageError("Give one request id: the x-request-id of an answer.")
    path = _records_path(given)
    try:
        record = records.find(path, words[0])
    except records.RecordsUnreadable as error:
        raise click.ClickException(f"No records at {path}: {error}.") from None
    if record is None:
        raise click.ClickException(
            f"No record of the request {words[0]!r} in {path}. Authenticated requests have one,"
            " for as long as records.keep_days and records.max_bytes say."
        )
    if as_json:
        click.echo(json.dumps(records.as_json(record), indent=2, ensure_ascii=False))
    else:
        click.echo(records.as_text(record), nl=False)


def _records_path(given: Path | None) -> Path:
    found = configuration.find(given)
    try:
        return Path(configuration.read(found).records.path)
    except configuration.InvalidConfiguration:
        # The secrets of the service are seldom set in the shell of the one who asks at night.
        path = None if found is None else _path_alone(found)
        if path is None:
            raise
        return path


def _path_alone(found: Path) -> Path | None:
    """records.path of a file of which only that part has to be right; None if it is not."""
    from pydantic import ValidationError  # noqa: PLC0415 - only for a file that is not right

    from tidegate.config.document import read_document  # noqa: PLC0415
    from tidegate.config.references import follow  # noqa: PLC0415
    from tidegate.config.sections.server import Records  # noqa: PLC0415

    try:
        document = read_document(found.read_bytes(), str(found))
        section = follow(document.tree.get("records", {}), os.environ, found.parent)
        if document.problems or section.faults:
            return None
        return Path(Records.model_validate(section.tree).path)
    except (OSError, ValidationError):
        return None
