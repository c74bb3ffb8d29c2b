"""Why did this request end as it did?

Lives here: the words and the JSON form of one record. Does not live here: reading it (reading),
the command (cli.explain).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

from tidegate.records.reading import FoundEntry, Record
from tidegate.records.why import why

_Body = Mapping[str, object]


def as_json(record: Record) -> dict[str, object]:
    """The record as a JSON value: its state, every entry as written, and what is still open."""
    found: dict[str, object] = {
        "request_id": record.request_id,
        "state": _state(record),
        "why": _MEANING.get(_state(record)) or why(_latest(record)),
        "entries": [
            {
                "kind": e.entry.kind,
                "at": _time(e.entry.at_ms),
                "node": e.entry.node,
                "boot": e.entry.boot,
                "seq": e.entry.seq,
                "prev_hash": e.entry.prev_hash,
                "hash": e.entry.digest,
                "intact": e.intact,
                "body": e.body,
            }
            for e in record.entries
        ],
    }
    if record.open is not None:
        found["open"] = {
            "at": _time(record.open.at_ms),
            "state": record.open.state,
            "running": record.open.running,
            "body": record.open.body,
        }
    return found


def as_text(record: Record) -> str:
    """The record for a terminal, step by step; ends with a line feed, free of control codes."""
    return "".join(_visible(line) + "\n" for line in _lines(record))


def _lines(record: Record) -> Iterator[str]:
    body = _latest(record)
    state = _state(record)
    how = [str(body.get("surface", "")), state]
    if "outcome" in body:
        how = [str(body["surface"]), str(body["outcome"])]
        if body.get("status"):
            how.append(f"HTTP {body['status']}")
        if "duration_ms" in body:
            how.append(f"{body['duration_ms']} ms")
    yield f"request    {record.request_id}"
    yield f"outcome    {', '.join(how)}"
    if sentence := _MEANING.get(state) or why(body):
        yield f"           {sentence}"
    yield from _who(body)
    yield from _moments(record)
    yield ""
    yield from _steps(body)
    yield ""
    yield from _evidence(record)


_MEANING = {
    "lost": "The gateway's process ended before the request did; what followed is not known.",
    "running": "The request has not ended yet; these are the steps so far.",
    "cut off": "The gateway's process is gone; its next start will mark the request as lost.",
}


def _state(record: Record) -> str:
    kinds = {e.entry.kind for e in record.entries}
    if "end" in kinds:
        return "ended"
    if "lost" in kinds:
        return "lost"
    return "running" if record.open is not None and record.open.running else "cut off"


def _latest(record: Record) -> _Body:
    """The fullest account: the end, else what was known of a lost one, else the beginning."""
    for kind in ("end", "lost", "intent"):
        for found in reversed(record.entries):
            if found.entry.kind == kind:
                return cast("_Body", found.body["known"]) if kind == "lost" else found.body
    return record.open.body if record.open is not None else {}


def _who(body: _Body) -> Iterator[str]:
    roles = ", ".join(str(role) for role in cast("list[object]", body.get("roles", [])))
    yield (
        f"principal  {body.get('principal')} of tenant {body.get('tenant')},"
        f" roles {roles or 'none'}, key {body.get('key_id')}"
    )
    if "issuer" in body:
        yield f"issuer     {body['issuer']}"
    yield f"revision   {body.get('revision')}"
    if "client_request_id" in body:
        yield f"client id  {body['client_request_id']}"


def _moments(record: Record) -> Iterator[str]:
    words = {
        "intent": "intent committed, before anything was passed on",
        "end": "ended",
        "lost": "found lost",
    }
    for found in record.entries:
        if found.entry.kind == "lost" and found.body["last_state"] == "begun":
            yield f"{_time(cast('int', found.body['last_ms']))}  begun"
        yield f"{_time(found.entry.at_ms)}  {words.get(found.entry.kind, found.entry.kind)}"
    if record.open is not None and record.open.state == "begun":
        yield f"{_time(record.open.at_ms)}  begun"


def _steps(body: _Body) -> Iterator[str]:
    steps = cast("list[_Body]", body.get("steps", []))
    cells = [
        (str(step["stage"]), str(step["verdict"]), str(step.get("rule", "")), _numbers(step))
        for step in steps
    ]
    widths = [max((len(row[i]) for row in cells), default=0) for i in range(3)]
    for number, row in enumerate(cells, start=1):
        columns = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"{number:>4}  {columns}  {row[3]}".rstrip()


def _numbers(step: _Body) -> str:
    values = cast("_Body", step.get("values", {}))
    operands = cast("_Body", step.get("operands", {}))
    found = cast("_Body", step.get("found", {}))
    parts = [
        *(f"{name} {value}" for name, value in values.items()),
        *(f"{name} = {value}" for name, value in operands.items()),
        *(f"{label} x{count}" for label, count in found.items()),
    ]
    if "dropped" in step:
        parts.append(f"({step['dropped']} not recorded)")
    return ", ".join(parts)


def _evidence(record: Record) -> Iterator[str]:
    for found in record.entries:
        yield f"{found.entry.kind:<9}  {_place(found)}"


def _place(found: FoundEntry) -> str:
    entry = found.entry
    holds = "follows its predecessor" if found.intact else "WAS CHANGED OR DOES NOT FOLLOW"
    return f"entry {entry.seq} of chain {entry.boot}, hash {entry.digest[:16]}, {holds}"


def _time(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d} UTC"


def _visible(line: str) -> str:
    # Names come from files and tokens: none may move the cursor or rename the terminal.
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line)


__all__ = ["as_json", "as_text"]
