"""Is the gateway as a whole ready, and why not?

What each worker says on /readyz becomes one answer of the same form. Pure. Does not live here:
what a worker says (admin), who asks (parent).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.gateway.workers.actions import Standing

Report = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Own:
    """What the parent knows without asking."""

    revision: str
    reload_failed: bool
    demo: bool


def whole(reports: Sequence[Report], standing: Standing, own: Own) -> dict[str, object]:
    """The body of /readyz, from the `reports` of the workers that answered.

    One worker that cannot do its work makes the whole unready: nobody can choose another. One
    that is missing does not: the others take its connections.
    """
    together = merged(reports)
    reasons = _reasons(reports, standing)
    ready = bool(reports) and not standing.draining and all(r.get("ready") for r in reports)
    if own.reload_failed:
        reasons.append("config_reload_failed")
    return {
        **together,
        "ready": ready and standing.accepting > 0,
        "reasons": reasons,
        "config": {
            "revision": own.revision,
            "last_reload": "failed" if own.reload_failed else "ok",
        },
        "draining": standing.draining,
        "demo": own.demo,
        "workers": {
            "wanted": standing.wanted,
            "accepting": standing.accepting,
            "starting": standing.starting,
            "silent": list(standing.silent),
            "crash_loop": list(standing.looping),
        },
    }


def merged(reports: Sequence[Report]) -> dict[str, object]:
    """One report of several: yes if any says so, counts summed, lists joined, the first word.

    Of seconds (`*_s`) the one farthest from 0: each worker speaks of the same thing.
    """
    names = dict.fromkeys(name for report in reports for name in report)
    return {name: _merged(name, [r[name] for r in reports if name in r]) for name in names}


def _merged(name: str, values: Sequence[object]) -> object:
    first = values[0]
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, int | float):
        numbers = [value for value in values if isinstance(value, int | float)]
        return max(numbers, key=abs) if name.endswith("_s") else sum(numbers)
    if isinstance(first, Mapping):
        return merged([value for value in values if isinstance(value, Mapping)])
    if isinstance(first, list):
        joined: list[object] = []
        for value in values:
            if isinstance(value, list):
                joined += [each for each in value if each not in joined]
        return joined
    return first


def _reasons(reports: Sequence[Report], standing: Standing) -> list[str]:
    said = merged(reports).get("reasons")
    known = {
        "draining": standing.draining,
        "no_worker": not (standing.accepting and reports) and not standing.draining,
        "worker_missing": standing.accepting < standing.wanted and not standing.draining,
        "worker_silent": bool(standing.silent),
        "worker_crash_loop": bool(standing.looping),
    }
    found = [reason for reason, holds in known.items() if holds]
    return found + [
        str(each) for each in (said if isinstance(said, list) else []) if each not in found
    ]


__all__ = ["Own", "Report", "merged", "whole"]
