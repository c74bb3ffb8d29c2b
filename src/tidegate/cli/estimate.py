"""How is `tidegate estimate` called?

Lives here: reading a text or a request, and the two tables. Does not live here: the estimate and
its samples (limits).
"""

import codecs
import json
import os
import stat
import sys
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

import click

_PIECE_BYTES = 65_536
# As much as the gateway reads of a request unless its file says otherwise.
_REQUEST_BYTES = 33_554_432


@click.command(epilog="Example: tidegate estimate request.json")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def estimate(file: Path | None, *, as_json: bool) -> None:
    """What a prompt is estimated at before its call, and how far off that is.

    FILE is a text, or the JSON body of a chat request; - reads stdin, and so does a pipe without
    FILE. With neither only the measured error is shown: the estimate of sample texts beside their
    true tokens. A text of any length is read in pieces, a request up to 32 MiB.

    Limits reserve the estimate and settle what the provider reports. Between calls the gateway
    corrects it by a factor for each tenant and model.
    """
    found = _found(file)
    from tidegate.limits.samples import measured, vocabulary  # noqa: PLC0415 - helps cost nothing

    samples = measured()
    if as_json:
        report: dict[str, object] = {} if found is None else {"estimate": found}
        report["vocabulary"] = vocabulary()
        report["samples"] = [
            {
                "name": sample.name,
                "bytes": sample.size_bytes,
                "tokens": sample.tokens,
                "estimate": sample.estimated,
                "error": round(sample.error, 3),
            }
            for sample in samples
        ]
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    if found is not None:
        click.echo(_sentence(found) + "\n")
    click.echo(f"{'sample':<18}{'bytes':>7}{'tokens':>8}{'estimate':>10}{'error':>8}")
    for sample in samples:
        click.echo(
            f"{sample.name:<18}{sample.size_bytes:>7}{sample.tokens:>8}{sample.estimated:>10}"
            f"{round(sample.error * 100):>+6} %"
        )
    click.echo(f"\ntokens: counted by {vocabulary()}; other models count differently")


def _found(file: Path | None) -> dict[str, object] | None:
    """The estimate of what was given; None if nothing was."""
    if file is None:
        found = _estimated(sys.stdin.buffer, "stdin") if _is_piped() else None
        return found if found is not None and found["bytes"] else None
    if str(file) == "-":
        return _estimated(sys.stdin.buffer, "stdin")
    try:
        with file.open("rb") as source:
            return _estimated(source, str(file))
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror or 'cannot be read'}.") from None


def _is_piped() -> bool:
    """Whether somebody sends us something: not a terminal, and not the nothing of a service."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, UnsupportedOperation, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _estimated(source: BinaryIO, name: str) -> dict[str, object]:
    """The estimate of a text, or of the request that it is; holds no more than one request."""
    from tidegate.limits.estimate import TextMeter, estimate_request  # noqa: PLC0415

    data = source.read(_PIECE_BYTES)
    if data.lstrip().startswith(b"{"):
        data += source.read(_REQUEST_BYTES - len(data))
        if len(data) < _REQUEST_BYTES and (body := _request(data)) is not None:
            need = estimate_request(body)
            found = _report(name, "request", len(data), need.input_tokens)
            return found | {"output_tokens": need.output_tokens}
    meter, size = TextMeter(), 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while data:
            size += len(data)
            meter.add(decoder.decode(data))
            data = source.read(_PIECE_BYTES)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise click.ClickException(f"{name}: not a text in UTF-8.") from None
    return _report(name, "text", size, meter.estimate)


def _report(name: str, kind: str, size: int, tokens: int) -> dict[str, object]:
    return {"file": name, "kind": kind, "bytes": size, "input_tokens": tokens}


def _request(data: bytes) -> dict[str, object] | None:
    """The chat request in `data`; None if it is something else, JSON included."""
    try:
        value: object = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("messages"), list) else None


def _sentence(found: dict[str, object]) -> str:
    sentence = f"{found['file']}: about {found['input_tokens']} tokens"
    if "output_tokens" in found:
        sentence += f" of prompt, up to {found['output_tokens']} of answer"
    return f"{sentence} ({found['bytes']} bytes)"
