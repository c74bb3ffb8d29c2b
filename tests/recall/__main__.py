"""Prints recall and precision by kind, and the false hits in the standard library."""

import sys
from pathlib import Path

from tests.recall.measure import Report, measure
from tests.recall.samples import BROUGHT, FILES, FOLDER, load, missing
from tests.recall.sources import finds, standard_library
from tidegate.redaction import RedactionPolicy


def line(text: str) -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")


def show(name: str, report: Report) -> None:
    line(f"\n{name}")
    line(
        f"  {'kind':12} {'masked':>13} {'recall':>8} {'right':>13} {'precision':>10}  missed, wrong"
    )
    for kind, figures in sorted(report.kinds.items()):
        odd = [*figures.missed[:12], *(f"+{value!r}" for value in figures.wrong[:6])]
        line(
            f"  {kind:12} {figures.masked:5} of {figures.labeled:4} {figures.recall:8.1%}"
            f" {figures.right:5} of {figures.hits:4} {figures.precision:10.1%}  {', '.join(odd)}"
        )
    line(
        f"  texts without any label: {report.unlabeled_texts},"
        f" hits in them: {len(report.hits_in_unlabeled)}"
    )


def main(folder: Path) -> int:
    absent = missing(folder)
    for name in absent:
        line(
            f"not measured: {name} is not in {folder} (see tests/data/presidio_research/README.md)"
        )
    for name in FILES:
        if name not in absent:
            show(name, measure(load(name, folder)))
    size, found = finds(standard_library(), RedactionPolicy.preset("default"))
    other = [find for find in found if not find.is_address]
    line(
        f"\nstandard library, preset default: {size / 1e6:.1f} MB, {len(found) - len(other)} e-mail"
        f" addresses, {len(other)} other hits ({len(other) / (size / 1e6):.2f} per MB)"
    )
    for find in other:
        line(f"  {find.file}:{find.line}: {find.rule}: {find.shown!r}")
    return 1 if set(absent) - BROUGHT else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
