"""How is a key made?

Lives here: `tidegate keys new`, its secret and the line for the file. Does not live here: how
keys are compared (identity), where they stand in the file (config).
"""

import hashlib
import json
import re
import secrets

import click

_BYTES = 32
_PREFIX = "tg-"
# What YAML reads as a name without quotes, and not as a truth value or nothing.
_PLAIN = re.compile(r"(?!(?i:true|false|yes|no|on|off|y|n|null)$)[A-Za-z][A-Za-z0-9_-]*")


@click.group(epilog="Example: tidegate keys new --principal vera --tenant acme --roles viewer")
def keys() -> None:
    """Keys of callers."""


@keys.command(epilog="Example: tidegate keys new --principal vera --tenant acme --roles viewer")
@click.option("--principal", required=True, help="Name of the caller.")
@click.option("--tenant", required=True, help="The customer or team the caller belongs to.")
@click.option("--roles", default="", help="Roles, with commas between them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def new(principal: str, tenant: str, roles: str, *, as_json: bool) -> None:
    """Make a key of 256 random bits, shown this once, and its line for the file.

    The file holds only the SHA-256 of the key: put the line under `identity.keys`, and hand the
    key to its owner. A running gateway takes the file over within seconds. Remove the line to
    revoke the key.
    """
    names = tuple(role.strip() for role in roles.split(",") if role.strip())
    # In hex, so that a double click selects it whole.
    key = _PREFIX + secrets.token_hex(_BYTES)
    digest = hashlib.sha256(key.encode("ascii")).hexdigest()
    _check(digest, principal, tenant, names)
    line = _line(digest, principal, tenant, names)
    if as_json:
        report = {
            "key": key,
            "sha256": digest,
            "principal": principal,
            "tenant": tenant,
            "roles": names,
            "line": line,
        }
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    # Words beside the two lines go to stderr, so that what is piped is the key and its line.
    click.echo("The key, for its owner; it is not shown again and stands nowhere:", err=True)
    click.echo(key)
    click.echo("The line for identity.keys in the file:", err=True)
    click.echo(f"    {line}")


def _check(digest: str, principal: str, tenant: str, roles: tuple[str, ...]) -> None:
    """Raises UsageError for names that the file would refuse."""
    from pydantic import ValidationError  # noqa: PLC0415 - the command line stays light

    from tidegate.config.sections.identity import Key  # noqa: PLC0415 - as above

    values = {"sha256": digest, "principal": principal, "tenant": tenant, "roles": roles}
    try:
        Key.model_validate(values)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        context = error.get("ctx", {})
        wrong = f"{error['input']!r} {context.get('wrong', 'is not usable here')}"
        right = context.get("right", "rename it")
        raise click.UsageError(f"--{error['loc'][0]}: {wrong}: {right}.") from None


def _line(digest: str, principal: str, tenant: str, roles: tuple[str, ...]) -> str:
    parts = [
        f'sha256: "{digest}"',
        f"principal: {_yaml(principal)}",
        f"tenant: {_yaml(tenant)}",
        f"roles: [{', '.join(map(_yaml, roles))}]",
    ]
    return f"- {{ {', '.join(parts)} }}"


def _yaml(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)
