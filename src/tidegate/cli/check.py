"""Is this configuration right, and what does it come to?

Lives here: `tidegate check` and `tidegate schema`. Does not live here: the findings themselves
(config).
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click

from tidegate.cli import configuration
from tidegate.config import (
    Config,
    ConfigInvalid,
    NotInEffect,
    Problem,
    exposure_problems,
    load_config,
    missing_packages,
)
from tidegate.config.revision import canonical
from tidegate.config.rulefiles import TenantFile

_INVALID = 3


@click.command(epilog="Example: tidegate check --config tidegate.yaml --show")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The file to read.")
@click.option("--show", is_flag=True, help="Print the effective values and their origins.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(path: Path | None, *, show: bool, as_json: bool) -> None:
    """Validate the configuration and report all problems at once.

    Looks for --config, TIDEGATE_CONFIG, ./tidegate.yaml and $XDG_CONFIG_HOME/tidegate/, in this
    order; without any of them it reports on the demo world. Exit code 3: `serve` would refuse.
    """
    try:
        config = load_config(configuration.find(path), os.environ)
    except ConfigInvalid as invalid:
        _print_problems(invalid.problems, as_json=as_json)
        raise click.exceptions.Exit(_INVALID) from None
    exposed = (*exposure_problems(config), *missing_packages(config))
    if as_json:
        click.echo(json.dumps(_document(config, exposed, show=show), indent=2, ensure_ascii=False))
    else:
        _print_text(config, exposed, show=show)
    if exposed:
        raise click.exceptions.Exit(_INVALID)


@click.command(epilog="Example: tidegate schema > tidegate.schema.json")
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors.

    With the YAML extension of an editor, name it in the first line of the file:
    # yaml-language-server: $schema=tidegate.schema.json
    """
    from tidegate.config.schema import json_schema  # noqa: PLC0415 - `check` needs none of it

    click.echo(json.dumps(json_schema(), indent=2))


def _print_problems(problems: tuple[Problem, ...], *, as_json: bool) -> None:
    if as_json:
        report = {"valid": False, "problems": [_problem(problem) for problem in problems]}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    for problem in problems:
        click.echo(str(problem), err=True)


def _print_text(config: Config, exposed: tuple[Problem, ...], *, show: bool) -> None:
    from tidegate.config.show import as_yaml  # noqa: PLC0415 - only with --show

    # With --show everything else is a comment, so that the output is a file again.
    mark = "# " if show else ""
    for problem in exposed:
        click.echo(f"{mark}{problem}")
    for warning in config.warnings:
        click.echo(f"{mark}warning: {warning}")
    for idle in sorted(config.not_in_effect, key=lambda entry: not entry.weakens):
        click.echo(f"{mark}{idle}")
    verdict = "refused by serve" if exposed else "valid"
    click.echo(f"{mark}{config.source}: {verdict}, revision {config.revision}")
    for line in _tenants(config, show=show):
        click.echo(f"{mark}{line}")
    if show:
        click.echo(as_yaml(config), nl=False)


def _tenants(config: Config, *, show: bool) -> Iterator[str]:
    """The folder of tenants' rules in a line, with --show each file and each rule."""
    files = config.rules_dir.files.values()
    if config.mcp.rules_dir is not None:
        rules = sum(len(file.rules) for file in files)
        yield f"{config.mcp.rules_dir}: {len(files)} tenants with {rules} rules of their own"
    for file in files if show else ():
        yield f"{file.file}: tenant {file.tenant}, {len(file.rules)} rules, digest {file.digest}"
        for rule, line in zip(file.rules, file.lines, strict=True):
            yield f"  {json.dumps(canonical(rule, {}), ensure_ascii=False)}  # {file.file}:{line}"


def _document(config: Config, exposed: tuple[Problem, ...], *, show: bool) -> dict[str, object]:
    from tidegate.config.show import effective, origins  # noqa: PLC0415 - only with --show

    report: dict[str, object] = {
        "valid": not exposed,
        "source": config.source,
        "revision": config.revision,
        "problems": [_problem(problem) for problem in exposed],
        "warnings": [_problem(warning) for warning in config.warnings],
        "not_in_effect": [_idle(idle) for idle in config.not_in_effect],
    }
    if show:
        report |= {"configuration": effective(config), "origins": origins(config)}
        report["tenant_rules"] = {
            file.tenant: _file(file) for file in config.rules_dir.files.values()
        }
    return report


def _file(file: TenantFile) -> dict[str, object]:
    return {
        "file": file.file,
        "digest": file.digest,
        "lines": list(file.lines),
        "rules": [canonical(rule, {}) for rule in file.rules],
    }


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.file,
        "line": problem.line,
        "col": problem.col,
        "path": problem.path,
        "wrong": problem.wrong,
        "right": problem.right,
    }


def _idle(idle: NotInEffect) -> dict[str, object]:
    return {
        "file": idle.file,
        "line": idle.line,
        "col": idle.col,
        "path": idle.path,
        "now": idle.now,
        "weakens": idle.weakens,
    }
