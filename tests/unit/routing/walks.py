"""Walks over a few targets, in the words of the tests."""

from tidegate.errors import TidegateError
from tidegate.routing import (
    Cooling,
    Deadlines,
    Failover,
    GiveUp,
    Outcome,
    Route,
    Step,
    Target,
    Targets,
    Try,
)

PRIMARY, BACKUP, THIRD = Target("primary"), Target("backup"), Target("third")
BRIEF = Deadlines(first_token_s=3.0, total_s=10.0)
NO_COOLING = Cooling(on_429_s=0.0)
FAILURES = tuple(
    o for o in Outcome if o not in {Outcome.OK, Outcome.CANCELLED, Outcome.OPEN, Outcome.COOLING}
)


def route(*targets: Target, **options: object) -> Route:
    options = {"deadlines": BRIEF, "cooling": NO_COOLING} | options
    return Route(name="r", targets=targets or (PRIMARY, BACKUP), **options)  # type: ignore[arg-type]


def walk(of: Route, targets: Targets | None = None, *, stream: bool = True) -> Failover:
    targets = Targets() if targets is None else targets
    return Failover(of, targets, started_s=0.0, total_s=of.deadlines.total_s, stream=stream)


def tried(step: Step) -> Try:
    assert isinstance(step, Try)
    return step


def given_up(step: Step) -> TidegateError:
    assert isinstance(step, GiveUp)
    return step.error


def play(of: Route, *outcomes: Outcome, targets: Targets | None = None) -> tuple[str, Step]:
    """Walk through `outcomes` at time 0; the header and the last step."""
    failover = walk(of, targets)
    step = failover.start(0.0)
    for outcome in outcomes:
        assert isinstance(step, Try), f"no attempt left for {outcome}"
        if outcome is Outcome.OK:
            failover.commit()
            failover.finished(Outcome.OK, 0.0)
        else:
            step = failover.on(outcome, 0.0)
    return failover.header, step


LARGE = Target("large", context_tokens=1_000_000)
SMALL = Target("small", context_tokens=8_000)
SAME_KEY = Target("small", context_tokens=8_000, upstream_model="other")
