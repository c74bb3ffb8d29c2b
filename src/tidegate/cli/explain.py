"""How is `tidegate explain` called?

Lives here: the arguments, the way from the configuration to the records file, exit codes. Does
not live here: reading and wording (records).
"""

import json
import os
import sys
from pathlib import Path

import click

from tidegate import records
from tidegate.config import load_config


@click.command(epilog="Example: tidegate explain 4f7c0b6e2d6b4a0f9c2f1f0a5f3f9d11")
@click.argument("words", nargs=-1, metavar="ID")
@click.option(
    "--config", "config_path", type=click.Path(path_type=Path), help="The configuration file."
)
@click.option("--json", "as_json", is_flag=True, help="The whole record as JSON.")
def explain(words: tuple[str, ...], config_path: Path | None, *, as_json: bool) -> None:
    """The record of a past request, step by step.

    ID is the x-request-id of its answer. Works while the gateway runs and after it has ended;
    the record holds decisions and numbers, never content.
    """
    if len(words) != 1:
        raise click.UsageError("Give one request id: the x-request-id of the answer.")
    request_id = words[0].strip()
    path = Path(load_config(config_path, os.environ).records.path)
    try:
        record = records.find(path, request_id)
    except records.RecordsUnreadable as error:
        raise click.ClickException(f"No records at {path}: {error}.") from None
    if record is None:
        raise click.ClickException(
            f"No record of request {click.format_filename(request_id)!r} in {path}. Records hold"
            " authenticated requests only, for as many days as records.keep_days says."
        )
    if as_json:
        click.echo(json.dumps(records.as_json(record), indent=2, ensure_ascii=False))
    else:
        click.echo(records.as_text(record), nl=False)
    sys.stdout.flush()
