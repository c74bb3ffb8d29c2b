"""How is `tidegate providers` called?

Lives here: from the configuration to the admin listener of the gateway that runs with it, and
what to say when that cannot be had. Does not live here: the table (providers_table), the report
(gateway.target_rows).
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli import configuration

if TYPE_CHECKING:
    from tidegate.config.sections.server import Server
    from tidegate.gateway.target_rows import TargetsReport

# The gateway itself waits a second for its workers.
_ANSWER_S = 5.0
_MOST_BYTES = 16_777_216
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to ask, not where to listen


@dataclass(frozen=True, slots=True)
class Address:
    """Where the admin listener of a configuration is, and how to ask there.

    `host` is the value of the Host header where it has to differ from the address.
    """

    url: str
    token: str | None = None
    host: str | None = None


@click.command(epilog="Example: tidegate providers --config tidegate.yaml")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def providers(given: Path | None, *, as_json: bool) -> None:
    """How each target of a running gateway is doing.

    Asks the admin listener that the configuration names. `state` is the circuit breaker's: closed
    (it is asked), open (left alone after failures, and why), half open (one request tries it), or
    cooling after a 429. `free in` is the time until a request may try it again, `first token` its
    moving average. Refusals of single requests count neither as ok nor as failed.
    """
    found = configuration.find(given)
    server = configuration.read_parts(found, "server").server
    report = asyncio.run(_fetched(address_of(server)))
    if as_json:
        import msgspec  # noqa: PLC0415 - the command line stays light

        click.echo(json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False))
        return
    _print(report)


def address_of(server: "Server") -> Address:
    """Where to ask. Raises ClickException when the file does not say."""
    from tidegate.config import is_loopback  # noqa: PLC0415 - the command line stays light

    admin = server.admin
    if admin.port == 0:
        raise click.ClickException(
            "server.admin.port is 0, so the system chose it: only the gateway's log says which."
        )
    name = _ANY.get(admin.host, admin.host)
    named = f"[{name}]" if ":" in name else name
    return Address(
        f"http://{named}:{admin.port}/targets",
        token=admin.token.get_secret_value() if admin.token else None,
        host=server.allowed_hosts[0]
        if server.allowed_hosts and not is_loopback(admin.host)
        else None,
    )


def report_of(address: Address, status: int, body: bytes) -> "TargetsReport":
    """The report in an answer. Raises ClickException with what is wrong with it."""
    import msgspec  # noqa: PLC0415 - the command line stays light

    from tidegate.gateway.target_rows import TargetsReport  # noqa: PLC0415 - as above

    if status == 200:
        try:
            return msgspec.json.decode(body, type=TargetsReport)
        except (msgspec.DecodeError, RecursionError):
            raise _foreign(address) from None
    code = _code(body)
    if code is None:
        raise _foreign(address)
    if code == "gateway.unauthenticated":
        why = (
            "it wants a token, and the file names none as server.admin.token."
            if address.token is None
            else "it does not take the server.admin.token of the file. Was it started with another?"
        )
    elif code == "gateway.not_found":
        why = "that listener has no such page: another listener, or an older release, is there."
    else:
        why = f"it refuses with {status} {code}."
    raise click.ClickException(f"{address.url}: {why}")


def _code(body: bytes) -> str | None:
    """The code of our own error envelope; None if it is none."""
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return code if isinstance(code, str) and code.startswith("gateway.") else None


def _foreign(address: Address) -> click.ClickException:
    return click.ClickException(
        f"{address.url}: what listens there is not the admin listener of tidegate."
    )


async def _fetched(address: Address) -> "TargetsReport":
    import aiohttp  # noqa: PLC0415 - the command line stays light

    headers = {"accept": "application/json"}
    if address.token is not None:
        headers["authorization"] = f"Bearer {address.token}"
    if address.host is not None:
        headers["host"] = address.host
    limits = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(address.url, headers=headers, allow_redirects=False) as answer,
        ):
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise _foreign(address)
            return report_of(address, answer.status, bytes(body))
    except aiohttp.ClientConnectorError as error:
        # The message of the error itself repeats the address.
        number = error.os_error.errno
        why = os.strerror(number) if number and number > 0 else "the name is not known"
        raise click.ClickException(
            f"{address.url}: nothing listens there ({why}). Is the gateway running, with this file?"
        ) from None
    except TimeoutError:
        raise click.ClickException(f"{address.url}: no answer within {_ANSWER_S:.0f} s.") from None
    except (aiohttp.ClientError, OSError):
        raise _foreign(address) from None


def _print(report: "TargetsReport") -> None:
    from tidegate.cli.providers_table import table, wants_color, written  # noqa: PLC0415 - as above

    color = wants_color(os.environ, is_terminal=sys.stdout.isatty())
    for text in written(table(report), color=color):
        click.echo(text, color=color)
    if not report.targets:
        click.echo("The configuration of that gateway has no targets.", err=True)
    for worker in report.missing:
        click.echo(f"Worker {worker} did not answer in time: its view is missing.", err=True)
