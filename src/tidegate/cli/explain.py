"""What happened to this request, or what would happen to this MCP message?

Lives here: the arguments, the way from the configuration to the records file, exit codes. Does
not live here: reading and wording (records), decisions that were not made yet (decision).
"""

import json
from pathlib import Path

import click

from tidegate import records
from tidegate.cli import DIFFERENT, DONE, configuration

_METHOD = "Give METHOD NAME [JSON], such as: tools/call refund '{\"amount\": 50}'."


@click.command(epilog="Example: tidegate explain --as viewer tools/call admin_reset_key")
@click.argument("words", nargs=-1, metavar="ID | METHOD [NAME [JSON]]")
@click.option("--as", "roles", metavar="ROLE[,ROLE]...", help="Decide as for these roles.")
@click.option("--tenant", help="With --as: the tenant of the caller.")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def explain(
    words: tuple[str, ...],
    roles: str | None,
    tenant: str | None,
    given: Path | None,
    *,
    as_json: bool,
) -> int:
    """The record of a past request, step by step, or a decision that is yet to come.

    ID is the x-request-id of an answer. Works while the gateway runs and after it has ended.
    Records hold decisions and numbers, never content.

    With --as nothing is sent: METHOD is one of MCP, NAME a tool, prompt or URI (for tasks/*: the
    tool that began it), JSON the arguments. Exit code 0: allowed, 4: denied.
    """
    if roles is not None:
        return _decision(words, roles, tenant, given, as_json=as_json)
    if tenant is not None:
        raise click.UsageError("--tenant goes with --as.")
    _record(words, given, as_json=as_json)
    return DONE


def _decision(
    words: tuple[str, ...],
    roles: str,
    tenant: str | None,
    given: Path | None,
    *,
    as_json: bool,
) -> int:
    from tidegate.cli import decision  # noqa: PLC0415 - a record needs none of it

    if not 1 <= len(words) <= 3:
        raise click.UsageError(_METHOD)
    config = decision.read_config(configuration.find(given))
    run = decision.dry_run(config, decision.caller(config, roles, tenant), words)
    document = decision.as_json(run)
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(decision.as_text(run), nl=False)
    return DONE if document["verdict"] == "allowed" else DIFFERENT


def _record(words: tuple[str, ...], given: Path | None, *, as_json: bool) -> None:
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
