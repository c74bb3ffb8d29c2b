"""Can every route and every rule still be reached?

Lives here: a route behind an earlier one that takes all its requests, and an allow rule that a
deny rule takes back whole. Does not live here: names that point nowhere (names).
"""

from collections.abc import Sequence

from tidegate.config.findings import Findings
from tidegate.config.globs import all_covered, covers
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.sections.mcp import Allow, Deny
from tidegate.config.sections.routing import Route

_ANY = ("*",)


def check_reach(config: Config, findings: Findings) -> None:
    """Every route and allow rule that can never matter."""
    for index, route in enumerate(config.routes):
        _route(config.routes[:index], route, ("routes", index), findings)
    check_rules(config, findings)


def check_rules(config: Config, findings: Findings) -> None:
    """Every allow rule of `mcp.rules` that can never matter."""
    denies = [
        (index, rule.deny) for index, rule in enumerate(config.mcp.rules) if rule.deny is not None
    ]
    for index, rule in enumerate(config.mcp.rules):
        if rule.allow is not None:
            _allow(denies, rule.allow, ("mcp", "rules", index, "allow"), findings)


def _route(earlier: Sequence[Route], route: Route, path: Path, findings: Findings) -> None:
    if findings.touched((*path, "model"), (*path, "match")):
        return
    for index, other in enumerate(earlier):
        if findings.touched(("routes", index, "model"), ("routes", index, "match")):
            continue
        if (
            covers(other.model, route.model)
            and all_covered(other.match.tenants, route.match.tenants)
            and all_covered(other.match.roles, route.match.roles)
        ):
            line = findings.places.of_value(("routes", index)).line
            name = f"{quoted(other.name)} (line {line})"
            findings.error(
                path,
                f"never reached: the route {name} takes all its requests first",
                "move this route above it, or narrow the other one",
            )
            return


def _allow(
    denies: Sequence[tuple[int, Deny]], allow: Allow, path: Path, findings: Findings
) -> None:
    if findings.touched(path):
        return
    for index, deny in denies:
        if not findings.touched(("mcp", "rules", index)) and _takes_back(deny, allow):
            line = findings.places.of_value(("mcp", "rules", index)).line
            findings.error(
                path,
                f"never in effect: the deny in line {line} covers all of it, and deny beats allow",
                "remove this rule, or narrow the deny (`unless_roles`, `tools`, ...)",
            )
            return


def _takes_back(deny: Deny, allow: Allow) -> bool:
    """Whether the deny refuses, without a condition, whatever the allow could let pass."""
    if deny.when or deny.unless_roles:
        return False
    pairs = (
        (deny.roles, allow.roles),
        (deny.tenants, allow.tenants),
        (deny.servers, allow.servers),
    )
    if not all(all_covered(wide or _ANY, narrow or _ANY) for wide, narrow in pairs):
        return False
    denied, allowed = _subjects(deny), _subjects(allow)
    # Where nothing is allowed nothing is taken back; that is said by itself (shape).
    return any(allowed.values()) and all(
        all_covered(denied[kind], allowed[kind]) for kind in allowed
    )


def _subjects(rule: Allow) -> dict[str, tuple[str, ...]]:
    """Patterns by kind; a rule that names no kind at all speaks of every kind."""
    named = {"tools": rule.tools, "resources": rule.resources, "prompts": rule.prompts}
    if all(patterns is None for patterns in named.values()):
        return dict.fromkeys(named, _ANY)
    return {kind: patterns or () for kind, patterns in named.items()}
