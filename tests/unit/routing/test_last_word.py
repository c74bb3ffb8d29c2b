"""What the client is told after two targets: the whole table of pairs, written out by hand."""

import pytest

from tests.unit.routing.walks import given_up, route
from tidegate.routing import Cooling, Failover, GiveUp, Outcome, Target, Targets, Try

FIRST, SECOND = Target("a", credential_id="ka"), Target("b", credential_id="kb")

# Columns: what the second target said, or that it could not be asked. Cells: 502 and 503 are
# gateway.all_providers_failed; cred, rej, filt and ctx stand for the codes below.
TABLE = """
-            rate_limited quota server_error timeout malformed not_found transient \
             credential forbidden rejected content_filter context_too_long cooling open
rate_limited 503 503 502 502 502 502 502 cred cred rej filt 503 503 503
quota        503 503 502 502 502 502 502 cred cred rej filt 503 503 503
server_error 502 502 502 502 502 502 502 cred cred rej filt 502 502 502
timeout      502 502 502 502 502 502 502 cred cred rej filt 502 502 502
malformed    502 502 502 502 502 502 502 cred cred rej filt 502 502 502
not_found    502 502 502 502 502 502 502 cred cred rej filt 502 502 502
transient    502 502 502 502 502 502 502 cred cred rej filt 502 502 502
credential   503 503 502 502 502 502 502 cred cred rej filt cred 503 503
forbidden    503 503 502 502 502 502 502 cred cred rej filt cred 503 503
cooling      503 503 502 502 502 502 502 cred cred rej filt 503 503 503
open         503 503 502 502 502 502 502 cred cred rej filt 503 503 503
"""
SHORT = {
    "gateway.upstream_credential": "cred",
    "gateway.upstream_rejected_request": "rej",
    "content_filter": "filt",
    "context_length_exceeded": "ctx",
}
HEAD, *ROWS = (line.split() for line in TABLE.strip().splitlines())
CELLS = [
    (row[0], column, cell) for row in ROWS for column, cell in zip(HEAD[1:], row[1:], strict=True)
]


def after(*words: str) -> str:
    """What the client gets when the two targets say so; a 503 must name a return."""
    of = route(FIRST, SECOND, cooling=Cooling(5.0), failover_on_credential_error=True)
    targets = Targets()
    for target, word in zip((FIRST, SECOND), words, strict=True):
        state = targets.state(target, of.breaker)
        if word == "cooling":
            state.cool(0.0, 9.0)
        elif word == "open":
            permit = state.breaker.permit(0.0)
            assert permit is not None
            state.breaker.trip(permit, 0.0)
    failover = Failover(of, targets, started_s=0.0, total_s=10.0)
    step = failover.start(0.0)
    for word in words:
        if isinstance(step, Try) and word not in ("cooling", "open"):
            step = failover.on(Outcome(word), 0.1)
    assert isinstance(step, GiveUp)
    assert failover.header == f"a:{words[0]},b:{words[1]}"
    error = given_up(step)
    assert (error.retry_after_s is not None) == (error.status == 503)
    return SHORT.get(error.code, str(error.status))


@pytest.mark.parametrize("first", dict.fromkeys(cell[0] for cell in CELLS))
def test_after_two_targets_the_table_decides(first: str) -> None:
    row = {column: cell for name, column, cell in CELLS if name == first}
    assert {column: after(first, column) for column in row} == row


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome.CONTEXT, "ctx"),
        (Outcome.FILTERED, "filt"),
        (Outcome.REJECTED, "rej"),
    ],
)
def test_what_ends_the_walk_is_the_last_word_whoever_is_left(outcome: Outcome, told: str) -> None:
    failover = Failover(route(FIRST, SECOND), Targets(), started_s=0.0, total_s=10.0)
    failover.start(0.0)
    error = given_up(failover.on(outcome, 0.1))
    assert SHORT[error.code] == told
