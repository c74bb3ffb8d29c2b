"""How is `tidegate mcp pins` called?

Lives here: from the configuration to the store of the pins, the list of them, and an approval.
Does not live here: how they look (pins_table), what an approval does (mcp.pins).
"""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tidegate.cli import DIFFERENT, configuration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tidegate.cli.pins_table import Row
    from tidegate.config import Config
    from tidegate.mcp.pin_forms import Snapshot
    from tidegate.mcp.pin_store import Kept, PinStore

_MOST_TRIES = 8
_MOST_NAMED = 10
T = TypeVar("T")


@click.group(invoke_without_command=True, epilog="Example: tidegate mcp pins approve files/read")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def pins(context: click.Context, given: Path | None, *, as_json: bool) -> int:
    """Which tool definitions are pinned, and which differ from their pins.

    Reads the store, also while gateways use it, and changes nothing in it. A tool is pinned,
    changed, new (it came after the first list), flagged (new, and written to be overlooked) or
    gone. Exit code 4: something is not as it was approved.
    """
    context.obj = given
    if context.invoked_subcommand is not None:
        return 0
    return _show(_read(given), as_json=as_json)


@pins.command(epilog="Example: tidegate mcp pins approve --show files/read")
@click.argument("target", metavar="SERVER/TOOL")
@click.option("--show", is_flag=True, help="Show the difference and approve nothing.")
@click.option("--digest", metavar="HEX", help="Only if the definition's SHA-256 begins so.")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.pass_obj
def approve(
    inherited: Path | None, target: str, given: Path | None, *, show: bool, digest: str | None
) -> int:
    """Make what SERVER shows of TOOL the pin, and show what that changes.

    Works with or without a running gateway; running ones take it for the next call. For a tool
    that is gone its pin is dropped. SERVER/* approves all but definitions that are flagged: those
    need their names. With --show nothing is approved, and exit code 4 says that it would have
    been; --digest then makes sure that it is that definition which you approve.
    """
    server, slash, tool = target.partition("/")
    if not (server and slash and tool):
        raise click.UsageError("name a tool as SERVER/TOOL, or all of a server as SERVER/*")
    if digest is not None and tool == "*":
        raise click.UsageError("--digest is for one tool")
    config = _configured(given or inherited)
    return _in_store(config, lambda store: approve_in(store, server, tool, digest, show=show))


def _read(given: Path | None) -> "tuple[Config, dict[str, Kept]]":
    config = _configured(given)
    return config, _in_store(config, _books)


def _configured(given: Path | None) -> "Config":
    from tidegate.config import on_redis, store_file  # noqa: PLC0415 - stays light

    found = configuration.find(given)
    config = configuration.read_parts(found, "store", wished=("mcp",))
    url = config.store.url
    if url != "memory:" and store_file(url) is None and not on_redis(url):
        return configuration.read(found)  # which says what is wrong with it
    if url == "memory:":
        raise click.ClickException(
            "The store is memory:, so only the gateway itself knows its pins, and forgets them"
            " when it ends. With sqlite:///PATH or redis:// they last and can be read."
        )
    return config


def _in_store(config: "Config", work: "Callable[[PinStore], Awaitable[T]]") -> T:
    from tidegate.config import store_file, without_secrets  # noqa: PLC0415 - stays light
    from tidegate.errors import StoreUnavailable  # noqa: PLC0415 - as above
    from tidegate.gateway.stores import pin_store_for  # noqa: PLC0415 - as above

    place, file = without_secrets(config.store.url), store_file(config.store.url)
    if file is not None and not Path(file).exists():
        raise click.ClickException(
            f"The store {place} does not exist: a gateway creates it when it starts."
        )

    async def run() -> T:
        store = pin_store_for(config, creates=False)
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except StoreUnavailable as error:
        raise click.ClickException(f"The store {place} cannot be used ({error.detail}).") from None


async def _books(store: "PinStore") -> "dict[str, Kept]":
    found = {server: await store.read(server) for server in await store.marks()}
    return {server: kept for server, kept in found.items() if kept is not None}


def _show(read: "tuple[Config, dict[str, Kept]]", *, as_json: bool) -> int:
    from tidegate.cli.pins_table import MOST_SHOWN, document, rows_of, table  # noqa: PLC0415
    from tidegate.config import without_secrets  # noqa: PLC0415 - the command line stays light

    config, kept = read
    configured = [name for name in config.mcp.servers if name in kept]
    order = [*configured, *sorted(kept.keys() - set(configured))]
    rows = rows_of({server: kept[server].book for server in order})
    differing = sum(row.differs for row in rows)
    if as_json:
        report = {"store": without_secrets(config.store.url), "differing": differing}
        told = json.dumps(report | {"pins": document(rows)}, indent=2, ensure_ascii=True)
        click.echo(told)
    else:
        if rows:
            click.echo("\n".join(table(_most(rows, MOST_SHOWN))))
        _note(config, kept, shown=len(rows))
    return DIFFERENT if differing else 0


def _most(rows: "list[Row]", bound: int) -> "list[Row]":
    """Not more than somebody may want to look at; what differs comes first."""
    if len(rows) > bound:
        click.echo(f"{len(rows) - bound} more lines are left out: --json has all.", err=True)
        rows = sorted(rows, key=lambda row: not row.differs)[:bound]
    return rows


def _note(config: "Config", kept: "dict[str, Kept]", *, shown: int) -> None:
    for name, server in config.mcp.servers.items():
        if server.pin != "off" and name not in kept:
            click.echo(f"No list of the tools of {name} was seen yet.", err=True)
    for name, one in kept.items():
        if one.book.left_out:
            click.echo(f"{name} lists {one.book.left_out} tools too many to be pinned.", err=True)
    if not shown and not config.mcp.servers:
        click.echo("No tools are pinned.", err=True)


async def approve_in(
    store: "PinStore", server: str, tool: str, digest: str | None, *, show: bool
) -> int:
    """Show and approve, in an open store; returns the exit code. Raises ClickException."""
    from tidegate.cli.pins_table import difference, shown_name  # noqa: PLC0415 - stays light
    from tidegate.clock import SystemClock  # noqa: PLC0415 - as above
    from tidegate.mcp.pins import approve as approved  # noqa: PLC0415 - as above

    told: list[Row] | None = None
    for _ in range(_MOST_TRIES):
        kept = await _kept(store, server)
        chosen, left = _chosen(kept, server, tool, digest)
        _check_digest(chosen, digest)
        if told is None:
            for row in chosen:
                click.echo("\n".join(difference(row)))
            for row in left:
                click.echo(f"{server}/{shown_name(row.tool)} is flagged: approve it by its name.")
            told = chosen
        elif [(row.tool, row.pin) for row in told] != [(row.tool, row.pin) for row in chosen]:
            raise click.ClickException("The server shows something else by now: look once more.")
        if not chosen:
            click.echo(f"Nothing to approve at {server}." if not left else "Nothing was approved.")
            return DIFFERENT if left else 0
        if show:
            click.echo("Nothing was approved.")
            return DIFFERENT
        names = [row.tool for row in chosen]
        book = approved(kept.book, names, now_s=SystemClock().now_s())
        if await store.write(server, book, was=kept.mark) is not None:
            shown = ", ".join(map(shown_name, names[:_MOST_NAMED]))
            more = len(names) - _MOST_NAMED
            click.echo(f"Approved: {shown}" + (f" and {more} more" if more > 0 else ""))
            return DIFFERENT if left else 0
    raise click.ClickException("Others write the pins of this server all the time: try again.")


async def _kept(store: "PinStore", server: str) -> "Kept":
    kept = await store.read(server)
    if kept is None:
        known = ", ".join(sorted(await store.marks())) or "none"
        raise click.ClickException(
            f"Nothing is known of a server '{server}'. With pins there are: {known}."
        )
    return kept


def _chosen(
    kept: "Kept", server: str, tool: str, digest: str | None
) -> "tuple[list[Row], list[Row]]":
    """What is to be approved, and what needs its own name for that."""
    from tidegate.cli.pins_table import Row, rows_of, shown_name  # noqa: PLC0415 - stays light

    if tool == "*":
        rows = [row for row in rows_of({server: kept.book}) if row.differs]
        return [r for r in rows if not r.needs_a_look], [r for r in rows if r.needs_a_look]
    names = [name for name in kept.book.pins if tool in (name, shown_name(name))]
    if not names:
        near = ", ".join(map(shown_name, sorted(kept.book.pins)[:_MOST_NAMED]))
        raise click.ClickException(
            f"{server} has no tool '{shown_name(tool)}'. It has: {near or 'none'}."
        )
    pins = kept.book.pins
    # Names that are too long to be shown may begin alike, and one may be written as an escape is.
    if len(names) > 1 and digest is not None:
        names = [name for name in names if _has_digest(pins[name].seen, digest)] or names
    if len(names) > 1:
        raise click.ClickException(
            f"{len(names)} tools of {server} are shown as '{shown_name(tool)}': choose with"
            " --digest (`tidegate mcp pins --json` has their names)."
        )
    row = Row(server, names[0], pins[names[0]])
    return ([row] if row.differs else []), []


def _check_digest(chosen: "list[Row]", digest: str | None) -> None:
    if digest is None or not chosen:
        return
    seen = chosen[0].pin.seen
    if not _has_digest(seen, digest):
        found = "none" if seen is None else seen.digest[:16]
        raise click.ClickException(
            f"The server shows another definition: sha256 {found}, not {digest!r}"
            " (at least 8 digits). Nothing was approved."
        )


def _has_digest(seen: "Snapshot | None", digest: str) -> bool:
    return seen is not None and len(digest) >= 8 and seen.digest.startswith(digest.lower())


__all__ = ["approve_in", "pins"]
