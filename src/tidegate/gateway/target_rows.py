"""How is each target of the configuration doing, as an operator reads it?

The rows of GET /targets and of `tidegate providers`. Lives here: their form, and how they come
from the routes and what is remembered of their targets. Does not live here: that memory (routing),
the listener (admin), the table on a terminal (cli.providers). A credential is its index in the
file and eight hex digits of its hash, never itself.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct, structs

from tidegate.routing.plan import Route, Target
from tidegate.routing.targets import TargetKey, Targets, key_of

# Whoever reads a report may have asked a stranger.
_Duration = Annotated[float, Meta(ge=0, le=1e12)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]


class Credential(Struct, frozen=True):
    """Which secret of its provider a target presents."""

    index: int
    id: str


class TargetRow(Struct, frozen=True, kw_only=True):
    """One target now. Times are seconds unless they say ms.

    `model` None: the name the client sent is kept; `credential` None: the provider needs none.
    `state` is that of the breaker (closed, half_open, open), `reason` what opened it. `cooling_s`
    is what is left of a rest after a 429 or for want of credit, `wait_s` the time until a request
    may try the target: 0.0 is now. `share` below 1.0: it has just recovered, and for so many
    requests it stands where the strategy puts it. `recent` are the last outcomes, the newest last.
    `worker` is the place of the process that says so, None if there is only one.
    """

    provider: str
    model: str | None
    credential: Credential | None
    routes: tuple[str, ...]
    state: str
    reason: str | None
    cooling_s: _Duration
    wait_s: _Duration
    share: float
    first_token_ms: _Duration | None
    successes: _Count
    failures: _Count
    recent: tuple[str, ...]
    worker: int | None = None


class TargetsReport(Struct, frozen=True, kw_only=True):
    """The body of /targets; `missing` are the workers that did not answer in time."""

    revision: str
    missing: tuple[int, ...] = ()
    targets: tuple[TargetRow, ...]


def target_rows(routes: Iterable[Route], targets: Targets, now_s: float) -> tuple[TargetRow, ...]:
    """A row for every target of `routes`, in their order, also for those never asked.

    Routes that share a target share its row. Cost O(targets).
    """
    found: dict[TargetKey, tuple[Target, list[str]]] = {}
    for route in routes:
        for target in route.targets:
            names = found.setdefault(key_of(target), (target, []))[1]
            if route.name not in names:
                names.append(route.name)
    return tuple(_row(target, names, targets, now_s) for target, names in found.values())


def _row(target: Target, routes: list[str], targets: Targets, now_s: float) -> TargetRow:
    seen = targets.look(target, now_s)
    return TargetRow(
        provider=target.provider,
        model=target.upstream_model,
        credential=Credential(target.credential, target.credential_id)
        if target.credential_id
        else None,
        routes=tuple(routes),
        state=seen.state.value,
        reason=seen.opened_by,
        cooling_s=round(seen.cooling_s, 3),
        wait_s=round(seen.wait_s, 3),
        share=seen.share,
        first_token_ms=None if seen.first_token_s is None else round(seen.first_token_s * 1e3, 1),
        successes=seen.successes,
        failures=seen.failures,
        recent=tuple(outcome.value for outcome in seen.recent),
    )


def resting_routes(routes: Iterable[Route], targets: Targets, now_s: float) -> list[str]:
    """The routes of which no target may be called now."""
    return [
        route.name
        for route in routes
        if route.targets
        and all(targets.look(target, now_s).wait_s > 0.0 for target in route.targets)
    ]


def of_workers(reports: Mapping[int, Iterable[TargetRow]]) -> tuple[TargetRow, ...]:
    """The rows of all workers, by place: for each target those of one worker after the other."""
    by_target: dict[object, list[TargetRow]] = {}
    for place in sorted(reports):
        for row in reports[place]:
            rows = by_target.setdefault((row.provider, row.model, row.credential), [])
            rows.append(structs.replace(row, worker=place))
    return tuple(row for rows in by_target.values() for row in rows)


__all__ = [
    "Credential",
    "TargetRow",
    "TargetsReport",
    "of_workers",
    "resting_routes",
    "target_rows",
]
