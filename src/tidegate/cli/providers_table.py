"""How do the targets of a gateway look on a terminal?

Lives here: from the report to the cells of a table and the words in them. Pure. Does not live
here: getting the report (providers), what is in it (gateway.target_rows).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tidegate.gateway.limit_headers import duration
from tidegate.gateway.target_rows import TargetRow, TargetsReport

HEADINGS = (
    "target",
    "credential",
    "state",
    "free in",
    "first token",
    "ok",
    "failed",
    "last outcomes",
    "routes",
)
_RIGHT = frozenset({"free in", "first token", "ok", "failed"})
_WHY = {
    "consecutive": "failures in a row",
    "ratio": "too many failures",
    "slow": "too slow",
    "ramp": "failed again after recovery",
    "probe": "the probe failed",
    "trip": "refused what only you can mend",
}
_NOTHING = "-"
_COLORS = {"good": 32, "careful": 33, "bad": 31}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; `mood` is good, careful, bad, or "" for headings."""

    cells: tuple[str, ...]
    mood: str = ""


def table(report: TargetsReport) -> list[Line]:
    """The headings and a line for each target; with several workers theirs, too, if they differ.

    Free of control codes: what answered may not be ours.
    """
    return [Line(tuple(map(_visible, line.cells)), line.mood) for line in _lines(report)]


def _lines(report: TargetsReport) -> list[Line]:
    lines = [Line(HEADINGS)]
    for _, group in groupby(report.targets, key=_identity):
        rows = list(group)
        if len(rows) == 1:
            lines.append(_line(_name(rows[0]), rows[0]))
            continue
        lines.append(_together(rows))
        if len({_condition(row) for row in rows}) > 1:
            lines += [_line(f"  worker {row.worker}", row) for row in rows]
    return lines


def padded(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """The cells of `lines` as wide as their columns; the last one is not filled up."""
    widths = [max(len(line.cells[column]) for line in lines) for column in range(len(HEADINGS))]
    return [
        tuple(
            text.rjust(width) if heading in _RIGHT else text.ljust(width)
            for text, width, heading in zip(line.cells, widths, HEADINGS, strict=True)
        )
        for line in lines
    ]


def written(lines: Sequence[Line], *, color: bool) -> list[str]:
    """`lines` as text; with `color` the state is green, yellow or red."""
    at = HEADINGS.index("state")
    texts = []
    for line, cells in zip(lines, padded(lines), strict=True):
        words = list(cells)
        if color and line.mood:
            words[at] = f"\x1b[{_COLORS[line.mood]}m{words[at]}\x1b[0m"
        texts.append("  ".join(words).rstrip())
    return texts


def wants_color(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether who reads it can see colors and wants them. Source: no-color.org."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _identity(row: TargetRow) -> tuple[object, ...]:
    return row.provider, row.model, row.credential


def _name(row: TargetRow) -> str:
    return row.provider if row.model is None else f"{row.provider}/{row.model}"


def _line(name: str, row: TargetRow) -> Line:
    first_token = _NOTHING if row.first_token_ms is None else _ms(row.first_token_ms)
    condition = _condition(row)
    return Line(
        (
            name,
            _credential(row),
            condition,
            _wait(row.wait_s),
            first_token,
            str(row.successes),
            str(row.failures),
            _in_order(row.recent),
            ", ".join(row.routes),
        ),
        _mood(row),
    )


def _together(rows: Sequence[TargetRow]) -> Line:
    """One target as all workers see it: the worst of them, and what they come to."""
    counts = Counter(_condition(row) for row in rows)
    worst = max(rows, key=_badness)
    condition = _condition(worst)
    if len(counts) > 1:
        condition += f" in {counts[condition]} of {len(rows)} workers"
    waits = [row.wait_s for row in rows]
    times = sorted(row.first_token_ms for row in rows if row.first_token_ms is not None)
    first_token = _NOTHING
    if times:
        low, high = _ms(times[0]), _ms(times[-1])
        first_token = low if low == high else f"{low} to {high}"
    return Line(
        (
            _name(worst),
            _credential(worst),
            condition,
            _wait(max(waits)),
            first_token,
            str(sum(row.successes for row in rows)),
            str(sum(row.failures for row in rows)),
            _counted(outcome for row in rows for outcome in row.recent),
            ", ".join(worst.routes),
        ),
        _mood(worst),
    )


def _condition(row: TargetRow) -> str:
    if row.state == "open":
        return f"open: {_WHY.get(row.reason or '', row.reason or 'unknown')}"
    if row.state == "half_open":
        return "half open: probing" if row.wait_s > 0 else "half open: next is a probe"
    if row.cooling_s > 0:
        return "cooling"
    return "closed" if row.share >= 1 else f"closed: recovering, {row.share:.0%}"


def _badness(row: TargetRow) -> tuple[int, float]:
    order = {"open": 3, "half_open": 2}.get(row.state, 1 if row.cooling_s > 0 else 0)
    return order, row.wait_s


def _mood(row: TargetRow) -> str:
    if row.state == "open":
        return "bad"
    is_well = row.state == "closed" and row.cooling_s <= 0 and row.share >= 1
    return "good" if is_well else "careful"


def _credential(row: TargetRow) -> str:
    return _NOTHING if row.credential is None else f"#{row.credential.index} {row.credential.id}"


def _wait(seconds: float) -> str:
    return duration(seconds) if seconds > 0 else _NOTHING


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms"


def _in_order(recent: Iterable[str]) -> str:
    runs = [(outcome, len(list(run))) for outcome, run in groupby(recent)]
    return ", ".join(_times(*run) for run in runs) or "never asked"


def _counted(recent: Iterable[str]) -> str:
    return ", ".join(_times(*run) for run in Counter(recent).most_common()) or "never asked"


def _times(outcome: str, count: int) -> str:
    return outcome if count == 1 else f"{outcome} x{count}"


__all__ = ["HEADINGS", "Line", "padded", "table", "wants_color", "written"]
