"""How do an explanation and a self-test of detectors read?

Lives here: the words and the JSON of `tidegate redact --explain` and `--selftest`. Does not live
here: what is found and why (redaction.explain), the laws (redaction.selftest).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from tidegate.redaction import BlockedContent, RedactionPolicy
from tidegate.redaction.denylist import FAMILY as DENY_LIST
from tidegate.redaction.explain import explain
from tidegate.redaction.pattern_detectors import CustomDetector
from tidegate.redaction.selftest import Broken, Report, examine

if TYPE_CHECKING:
    from tidegate.config import Config
    from tidegate.redaction.hits import AnyDetector

_SAMPLES = 6
_SHOWN = 72


@dataclass(frozen=True, slots=True)
class _Trial:
    """Some detectors, their samples, and whether a reader may see the texts made of them."""

    name: str
    policy: RedactionPolicy
    samples: Sequence[str]
    shown: bool = True


def print_explanation(policy: RedactionPolicy, text: str, *, as_json: bool) -> None:
    """The text as it would leave, then what becomes of each place of it, and why."""
    found = explain(policy, text)
    if as_json:
        document = {"shown": _masked(policy, text), "places": [asdict(each) for each in found]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    shown = _masked(policy, text)
    click.echo("Refused as a whole." if shown is None else shown)
    for each in found:
        rule = f"{each.family}/{each.rule}" if each.rule not in ("", each.family) else each.family
        click.echo(f"{each.start}-{each.end}  {rule}  {each.outcome}: {each.reason}")
    if not found:
        click.echo("Nothing in it is, or looks like, what the detectors know.")


def _masked(policy: RedactionPolicy, text: str) -> str | None:
    try:
        return policy.redact(text).text
    except BlockedContent:
        return None


def print_selftest(
    policy: RedactionPolicy, config: "Config", lines: Sequence[str], *, as_json: bool
) -> bool:
    """Try every detector of the operator's own, then all detectors on `lines`; True if fine."""
    reports = [(trial, examine(trial.policy, trial.samples)) for trial in _trials(policy, config)]
    if lines:
        every = _Trial("all detectors, the lines of the file", policy, (), shown=False)
        reports.append((every, examine(policy, (), texts=lines)))
    if as_json:
        click.echo(json.dumps([_document(*pair) for pair in reports], indent=2, ensure_ascii=False))
    else:
        for trial, report in reports:
            for line in _words(trial, report):
                click.echo(line)
        if not reports:
            click.echo("No detectors of your own: add some under `redaction.custom`.")
    return not any(report.broken for _, report in reports)


def _trials(policy: RedactionPolicy, config: "Config") -> Iterator[_Trial]:
    for detector in policy.extra:
        alone = RedactionPolicy({}, hash_key=policy.hash_key).with_detectors(detector)
        if detector.family == DENY_LIST:
            yield _Trial(DENY_LIST, alone, _literals(config), shown=False)
        else:
            yield _Trial(detector.family, alone, _samples(detector))


def _samples(detector: "AnyDetector") -> Sequence[str]:
    """What a detector gives of itself: a method `samples(count)`, or a list."""
    if isinstance(detector, CustomDetector):
        return list(dict.fromkeys(detector.samples(_SAMPLES)))
    given = getattr(detector, "samples", ())
    return [text for text in (given(_SAMPLES) if callable(given) else given) if text]


def _literals(config: "Config") -> list[str]:
    """Some literals of the lists of everybody, spread over them."""
    every = [literal for files in config.deny_files.values() for literal in files.everybody]
    return every[:: max(1, len(every) // _SAMPLES)][:_SAMPLES]


def _words(trial: _Trial, report: Report) -> Iterator[str]:
    verdict = "fine" if not report.broken else "BROKEN"
    if not trial.samples and not report.texts:
        verdict = "not tried: it gives no samples"
    yield f"{trial.name}: {report.texts} texts, {report.splits} splits: {verdict}"
    for broken in report.broken:
        place = f", cut after {broken.cut} characters" if broken.cut is not None else ""
        yield f"  {broken.law}{place}"
        if trial.shown:
            yield f"    text   {_short(broken.text)}"
            if broken.whole != broken.other:
                yield f"    whole  {_short(broken.whole)}"
                yield f"    other  {_short(broken.other)}"


def _short(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=True)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN // 2]} ... {shown[-_SHOWN // 2 :]}"


def _document(trial: _Trial, report: Report) -> dict[str, object]:
    return {
        "detector": trial.name,
        "samples": len(trial.samples),
        "texts": report.texts,
        "splits": report.splits,
        "broken": [_broken(trial, broken) for broken in report.broken],
    }


def _broken(trial: _Trial, broken: Broken) -> dict[str, object]:
    found: dict[str, object] = {"law": broken.law, "cut": broken.cut}
    if trial.shown:
        found |= {"text": broken.text, "whole": broken.whole, "other": broken.other}
    return found
