"""What is personal or secret in this text, and how does it look without that?

Lives here: `tidegate redact`: the filter, and which detectors it uses. Does not live here: what
is found (redaction), the section of the file (config), --explain and --selftest in words
(redact_report).
"""

import codecs
import io
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Protocol, cast

import click

from tidegate.cli import DIFFERENT, DONE, FAILED, configuration

if TYPE_CHECKING:
    from tidegate.config import Config
    from tidegate.redaction import RedactionPolicy, Redactor
    from tidegate.redaction.hits import AnyDetector

_PIECE_BYTES = 65_536
_OTHER_ENCODINGS = frozenset((b"\xff\xfe", b"\xfe\xff"))
_PRESETS = ("default", "strict", "code")


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    file: Path | None
    config: Path | None
    preset: str | None
    tenant: str | None
    detector: str | None
    explain: str | None
    selftest: bool
    summary: bool
    as_json: bool


@click.command(epilog="Example: tidegate redact --preset strict < chat.log > clean.log")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--config", type=click.Path(path_type=Path), help="The file with the detectors.")
@click.option("--preset", type=click.Choice(_PRESETS), help="These instead of a file's.")
@click.option("--tenant", help="With the deny lists of this tenant.")
@click.option("--detector", metavar="MODULE:NAME", help="One more detector, an object of yours.")
@click.option("--explain", metavar="TEXT", help="What is found in TEXT, by which rule, or why not.")
@click.option("--selftest", is_flag=True, help="Try the laws of streams on detectors of your own.")
@click.option("--summary", is_flag=True, help="Counts on stderr at the end.")
@click.option("--json", "as_json", is_flag=True, help="Counts (stderr) or report as JSON.")
@click.pass_context
def redact(context: click.Context, /, **_: object) -> int:
    """Mask personal data and secrets in FILE, or in stdin, as it comes.

    What is no UTF-8 passes unchanged, except that a text which begins as UTF-16 is refused. A
    detector with the action `block` ends the output before what it found: exit code 1. --selftest
    tries every line of FILE, too; exit code 4 if one breaks a law of streams.
    """
    options = Options(**context.params)
    _refuse_what_excludes(options)
    config = _configuration(options)
    policy = _policy(options, config)
    if options.explain is not None:
        from tidegate.cli.redact_report import print_explanation  # noqa: PLC0415 - only then

        print_explanation(policy, options.explain, as_json=options.as_json)
        return DONE
    if options.selftest:
        from tidegate.cli.redact_report import print_selftest  # noqa: PLC0415 - only then

        lines = _lines(options.file) if options.file is not None else []
        fine = print_selftest(policy, config, lines, as_json=options.as_json)
        return DONE if fine else DIFFERENT
    with ExitStack() as stack:
        if options.file is None or str(options.file) == "-":
            return _filter(cast("Source", sys.stdin.buffer), policy, options)
        return _filter(stack.enter_context(_opened(options.file)), policy, options)


def _refuse_what_excludes(options: Options) -> None:
    if options.preset is not None and (options.config is not None or options.tenant is not None):
        raise click.UsageError(
            "--preset takes the place of a file: leave --config and --tenant out."
        )
    if options.explain is not None and (options.selftest or options.file is not None):
        raise click.UsageError("--explain takes a text, and neither FILE nor --selftest.")


def _configuration(options: Options) -> "Config":
    from tidegate.config import Config, ConfigInvalid  # noqa: PLC0415 - the command line stays light
    from tidegate.config.load import load_part  # noqa: PLC0415
    from tidegate.config.sections.redaction import Redaction  # noqa: PLC0415

    path = configuration.find(options.config) if options.preset is None else None
    if path is None:
        return Config(redaction=Redaction.model_validate({"preset": options.preset or "default"}))
    try:
        return load_part(path, os.environ, "redaction")
    except ConfigInvalid as error:
        problems = "\n".join(str(problem) for problem in error.problems)
        raise configuration.InvalidConfiguration(problems) from None


def _policy(options: Options, config: "Config") -> "RedactionPolicy":
    from tidegate.config.policies import Policies  # noqa: PLC0415 - as above

    policies = Policies(config.deny_files, hash_key=token_bytes(32)).of(config.redaction)
    policy = policies.everybody
    if options.tenant is not None:
        if options.tenant not in policies.tenants:
            click.echo(f"No deny list belongs to the tenant '{options.tenant}'.", err=True)
        policy = policies.for_tenant(options.tenant)
    if options.detector is not None:
        policy = policy.with_detectors(_load(options.detector))
    return policy


def _load(target: str) -> "AnyDetector":
    from tidegate.redaction.hits import Detector, SpanningDetector  # noqa: PLC0415 - as above

    module, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), name, None) if name else None
    except ModuleNotFoundError as error:
        raise click.BadParameter(f"no module '{error.name}'") from error
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Detector | SpanningDetector):
        raise click.BadParameter(f"'{target}' is not a detector; name one as MODULE:NAME")
    return made


# ---- the filter -------------------------------------------------------------------------------


class Source(Protocol):
    """Where bytes come from, as soon as there are some."""

    def read1(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""


def _opened(file: Path) -> io.BufferedReader:
    try:
        return file.open("rb")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


def _filter(source: Source, policy: "RedactionPolicy", options: Options) -> int:
    from tidegate.redaction import BlockedContent, Redactor  # noqa: PLC0415 - as above
    from tidegate.redaction.selftest import BUGS  # noqa: PLC0415

    redactor = Redactor(policy, keep_spans=False)
    blocked: str | None = None
    try:
        _copy(source, redactor)
    except BlockedContent as refused:
        blocked = refused.kind
    except BUGS as bug:
        # Not the words of the exception: they could hold what the detector was looking at.
        wrong = (
            f"A detector failed ({type(bug).__name__}); the output ends before what it looked at."
        )
        raise click.ClickException(wrong) from None
    if blocked is not None and not options.as_json:
        click.echo(f"Blocked: the detector '{blocked}' found something; nothing follows.", err=True)
    if options.as_json:
        click.echo(json.dumps({"found": redactor.counts, "blocked": blocked}), err=True)
    elif options.summary:
        found = ", ".join(f"{count} {label}" for label, count in redactor.counts.items())
        click.echo(f"Found: {found or 'nothing'}.", err=True)
    return DONE if blocked is None else FAILED


def _copy(source: Source, redactor: "Redactor") -> None:
    """Everything from `source` to stdout; what is held when it breaks off never leaves."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    first = source.read1(_PIECE_BYTES)
    if len(first) == 1:
        first += source.read1(_PIECE_BYTES)
    if first[:2] in _OTHER_ENCODINGS and b"\0" in first:
        # Every second byte is zero there, so nothing would be found.
        wrong = "The input is UTF-16 or UTF-32: convert it first (iconv -f UTF-16 -t UTF-8)."
        raise click.ClickException(wrong)
    _write(redactor.feed(decoder.decode(first)))
    while data := source.read1(_PIECE_BYTES):
        _write(redactor.feed(decoder.decode(data)))
    _write(redactor.feed(decoder.decode(b"", final=True)) + redactor.flush())


def _write(text: str) -> None:
    if text:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()


def _lines(file: Path) -> list[str]:
    with _opened(file) as source:
        return [line for line in source.read().decode("utf-8", "replace").splitlines() if line]
