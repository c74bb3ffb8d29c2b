"""How is `tidegate explain` called?

Lives here: the arguments, the way from the configuration to the records file, exit codes. Does
not live here: reading and wording (records).
"""

import json
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
    found = configuration.find(given)
    path = Path(configuration.read_parts(found, "records").records.path)
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
