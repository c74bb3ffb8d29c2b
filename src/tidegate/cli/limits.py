"""How is `tidegate limits` called?

Lives here: from the configuration to the rows of the table. Does not live here: the store that is
read (gateway.stores), what the numbers mean (limits).
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import configuration

if TYPE_CHECKING:
    from tidegate.config import Config
    from tidegate.limits.ledger import Limit, Usage

_MOST_SHOWN = 1_000
_HEADINGS = ("limit", "scope", "cap", "used", "reserved", "free", "next free", "overrun")


@dataclass(frozen=True, slots=True)
class Row:
    """One limit in one scope, now."""

    limit: "Limit"
    scope_key: str
    usage: "Usage"


@click.command(epilog="Example: tidegate limits acme")
@click.argument("tenant", required=False)
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def limits(tenant: str | None, given: Path | None, *, as_json: bool) -> None:
    """What each limit has used, reserved and free, and when something leaves its window.

    Reads the store, also while gateways use it, and changes nothing in it. Shows every caller of
    the file and everybody the store knows; with TENANT those of that tenant, and what all
    tenants share. `overrun` is the part of `used` that exceeded its reservation. Of more than a
    thousand lines the table shows the fullest; --json has all.
    """
    found = configuration.find(given)
    config = configuration.read_parts(found, "store", "limits", wished=("identity",))
    rows = _rows(config, tenant)
    if tenant is not None and not rows:
        raise click.ClickException(f"No limit and no counter concerns the tenant {tenant!r}.")
    if as_json:
        click.echo(json.dumps(_document(config, tenant, rows), indent=2, ensure_ascii=False))
    elif rows:
        _print(_fullest(rows))
    else:
        click.echo("No limits are configured.", err=True)


def _rows(config: "Config", tenant: str | None) -> list[Row]:
    from tidegate.errors import StoreUnavailable  # noqa: PLC0415 - the command line stays light

    if config.store.url == "memory:":
        raise click.ClickException(
            "The store is memory:, so only the gateway itself knows its counts."
            " With sqlite:///PATH or redis:// they can be read from outside."
        )
    try:
        return asyncio.run(_read(config, tenant))
    except StoreUnavailable as error:
        from tidegate.config import store_file, without_secrets  # noqa: PLC0415 - as above

        file = store_file(config.store.url)
        why = f"cannot be read ({error.detail})"
        if file is not None and not Path(file).exists():
            why = "does not exist: a gateway creates it when it starts"
        place = without_secrets(config.store.url)
        raise click.ClickException(f"The store {place} {why}.") from None


async def _read(config: "Config", tenant: str | None) -> list[Row]:
    from tidegate.clock import SystemClock  # noqa: PLC0415 - the command line stays light
    from tidegate.config import values  # noqa: PLC0415 - as above
    from tidegate.gateway.stores import reader_for  # noqa: PLC0415 - as above
    from tidegate.limits.ledger import scope_names  # noqa: PLC0415 - as above

    table = values.limit_table(config)
    order = {limit.name: number for number, limit in enumerate(table.limits)}
    async with reader_for(config, SystemClock()) as reader:
        known = {pair for caller in values.callers(config) for pair in table.scopes(caller)}
        known.update(await reader.scopes(table.limits))
        wanted = [
            (limit, scope_key)
            for limit, scope_key in known
            if tenant is None or scope_names(scope_key)[1:2] in ((), (tenant,))
        ]
        wanted.sort(key=lambda pair: (order[pair[0].name], pair[1]))
        found = await reader.usages(wanted)
        return [Row(*each, usage) for each, usage in zip(wanted, found, strict=True)]


def _fullest(rows: list[Row]) -> list[Row]:
    """As many as somebody may want to look at: those with the least left, in their order."""
    if (more := len(rows) - _MOST_SHOWN) <= 0:
        return rows
    click.echo(f"{more} more lines have more left: name a tenant, or take --json.", err=True)
    left = sorted(range(len(rows)), key=lambda at: rows[at].usage.free / rows[at].limit.cap)
    return [rows[at] for at in sorted(left[:_MOST_SHOWN])]


def _document(config: "Config", tenant: str | None, rows: Iterable[Row]) -> dict[str, object]:
    from tidegate.config import without_secrets  # noqa: PLC0415 - the command line stays light
    from tidegate.limits.ledger import scope_names  # noqa: PLC0415 - as above

    return {
        "store": without_secrets(config.store.url),
        "tenant": tenant,
        "limits": [
            {
                "limit": row.limit.name,
                "unit": row.limit.unit,
                "window_s": None if row.limit.unit == "concurrent" else row.limit.window_s,
                "per": row.limit.per,
                "scope": scope_names(row.scope_key)[1:],
                "cap": row.limit.cap,
                "used": row.usage.used,
                "reserved": row.usage.reserved,
                "free": row.usage.free,
                "overrun": row.usage.overrun,
                "next_free_s": row.usage.next_free_s,
            }
            for row in rows
        ],
    }


def _print(rows: Sequence[Row]) -> None:
    from tidegate.gateway.limit_headers import duration  # noqa: PLC0415 - as above
    from tidegate.limits.ledger import scope_names  # noqa: PLC0415 - as above

    cells = [_HEADINGS]
    for row in rows:
        usage = row.usage
        kind, *names = scope_names(row.scope_key)
        unit = row.limit.unit.replace("_", " ")
        free = "-" if usage.next_free_s is None else duration(usage.next_free_s)
        cells.append(
            (
                f"{row.limit.name} ({unit})",
                " ".join((kind, "/".join(names))).rstrip(),
                str(row.limit.cap),
                str(usage.used),
                str(usage.reserved),
                str(usage.free),
                free,
                str(usage.overrun),
            )
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    for line in cells:
        words = [
            text.ljust(width) if column < 2 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(words).rstrip())
