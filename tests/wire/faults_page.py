"""What does docs/failover.md say of each failure? Written from the rows that the matrix runs.

`python -m tests.wire.faults_page` writes the part between its two marks anew; a test tells when it
is stale.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.wire.faults_expected import INTERRUPTED, ROWS, Row, Seen
from tidegate.demo.faults import GROUPS

PAGE = Path(__file__).parents[2] / "docs" / "failover.md"
BEGIN, END = "<!-- faults:begin -->", "<!-- faults:end -->"

# The sixteen faults of failoverbench/failoverbench, and the tests of each.
PUBLIC = (
    ("S01", "429 with `Retry-After`, once", "the backup's answer; the primary is left alone for"
     " exactly that long. Without a backup 503 with the same wait"),
    ("S02", "429 for ever, without `Retry-After`", "the backup's answer; the primary is asked once"
     " per `cooling.on_429_s`"),
    ("S03", "500 once", "the backup's answer; without a backup the primary's, asked once more"),
    ("S04", "503 for ever", "the backup's answer; after five failures the primary is not asked"),
    ("S05", "reset once", "as S03"),
    ("S06", "no response", "the backup's answer after one deadline; the silent one is not asked"
     " again"),
    ("S07", "slow first token", "the answer if it begins within `first_token_s`, or the"
     " backup's"),
    ("S08", "stream cut in the middle", "what arrived, then an error event and no `[DONE]`; a plain"
     " answer comes whole from the backup"),
    ("S09", "stream stalls", "as S08, after `idle_s`"),
    ("S10", "malformed event", "as S08; nothing of it is passed on"),
    ("S11", "no `[DONE]`", "the answer, with its `[DONE]` and its usage"),
    ("S12", "context too long", "the answer of a target with a larger declared window; else 400,"
     " and nobody is asked twice"),
    ("S13", "content filter", "400 `content_filter`; it is never routed around"),
    ("S14", "cut, and the fallback refuses a prefill", "as S08: no prefill is ever made up, so none"
     " can be refused"),
    ("S15", "an outage that ends", "the backup's answers; one probe a pause finds the end of it,"
     " within about ten seconds where failures come at once"),
    ("S16", "accounting", "the backup's answer under its own name; only its usage is charged"),
)  # fmt: skip

_ABOVE = """\
Two targets with the same credential, of which the first fails in one way, as the names of
`tidegate demo providers` ([all of them](reference/faults.md)) have it, and the second is well. "The
backup's answer" comes with `x-tidegate-attempts: primary:OUTCOME,backup:ok`. Every row is run over
real sockets, for a stream and for a plain answer, in `tests/wire/test_faults_matrix.py`, and every
byte is searched for what upstreams said.

"""
_BETWEEN = """

The sixteen faults of the public benchmark failoverbench. `tests/wire/test_faults_public.py` plays
each of them; the benchmark itself has not scored this release. It counts a clean error after half a
stream as safe, not as rescued.

"""
_CHARGED = {
    "": "nothing",
    "usage": "what the answer used",
    "counted": "prompt and text, counted",
}
_LEARNS = {
    "good": "success",
    "bad": "failure",
    "": "nothing",
    "rests": "nothing; the target cools",
    "open": "opens at once",
}


def part() -> str:
    """The lines between the two marks."""
    rows = ["| the primary | client sees, stream | client sees, plain | charged | breaker learns |"]
    rows += ["|---|---|---|---|---|"]
    rows += [f"| {' | '.join(row)} |" for row in _rows()]
    public = ["| public fault | the client gets |", "|---|---|"]
    public += [f"| {number} {fault} | {ends} |" for number, fault, ends in PUBLIC]
    return "".join((_ABOVE, "\n".join(rows), _BETWEEN, "\n".join(public), "\n"))


def _rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Behaviors of one group that end alike share a row."""
    for group in GROUPS.values():
        alike: dict[tuple[Seen, Seen], list[str]] = {}
        for behavior in group:
            row = ROWS[behavior.name]
            alike.setdefault((row.stream, row.plain), []).append(f"`{behavior.name}`")
        for (stream, plain), names in alike.items():
            row = Row(stream, plain)
            yield (
                ", ".join(names),
                _client(stream),
                _client(plain),
                _either(_CHARGED[row.stream.charged], _CHARGED[row.plain.charged]),
                _either(_LEARNS[row.stream.verdict], _LEARNS[row.plain.verdict]),
            )


def _client(seen: Seen) -> str:
    outcome = seen.attempts.split(",")[0].partition(":")[2]
    match seen.text:
        case "primary":
            return "the answer"
        case "backup":
            return f"the backup's answer (`{outcome}`)"
        case "half":
            return f"what arrived, then an error event `{INTERRUPTED}`, no `[DONE]`"
        case _:
            return f"{seen.status} `{seen.code}` (`{outcome}`)"


def _either(stream: str, plain: str) -> str:
    return stream if stream == plain else f"{stream}; plain: {plain}"


def replaced(page: str) -> str:
    """`page` with our part between the marks; raises ValueError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n{part()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text()))
