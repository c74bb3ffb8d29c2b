"""How is `tidegate estimate` called?

Lives here: reading a text or a request, and the two tables. Does not live here: the estimate and
its samples (limits).
"""

import json
import sys
from pathlib import Path

import click


@click.command(epilog="Example: tidegate estimate request.json")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def estimate(file: Path | None, *, as_json: bool) -> None:
    """What a prompt is estimated at before its call, and how far off that is.

    FILE is a text, or the JSON body of a chat request; - reads stdin. Without FILE only the
    measured error is shown: the estimate of sample texts beside their true tokens.

    Limits reserve the estimate and settle what the provider reports. Between calls the gateway
    corrects it by a factor for each tenant and model.
    """
    found = None if file is None else _estimated(file)
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


def _estimated(file: Path) -> dict[str, object]:
    """The estimate of a file: of its text, or of the request that it holds."""
    from tidegate.limits.estimate import estimate_request, estimate_text  # noqa: PLC0415

    data = _read(file)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: not a text in UTF-8.") from None
    body = _request(text)
    if body is None:
        kind, tokens, output = "text", estimate_text(text), None
    else:
        need = estimate_request(body)
        kind, tokens, output = "request", need.input_tokens, need.output_tokens
    found: dict[str, object] = {
        "file": "stdin" if str(file) == "-" else str(file),
        "kind": kind,
        "bytes": len(data),
        "input_tokens": tokens,
    }
    if output is not None:
        found["output_tokens"] = output
    return found


def _read(file: Path) -> bytes:
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror or 'cannot be read'}.") from None


def _request(text: str) -> dict[str, object] | None:
    """The chat request in `text`; None if it is something else, JSON included."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("messages"), list) else None


def _sentence(found: dict[str, object]) -> str:
    sentence = f"{found['file']}: about {found['input_tokens']} tokens"
    if "output_tokens" in found:
        sentence += f" of prompt, up to {found['output_tokens']} of answer"
    return f"{sentence} ({found['bytes']} bytes)"
