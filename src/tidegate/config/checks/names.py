"""Does every name point at something, and at one thing only?

Lives here: dangling and doubled names, patterns that no name of the file matches, conditions of
rules that do not compile, roles and tenants that nobody has. Does not live here: what the
patterns of two rules mean together (reach).
"""

from collections.abc import Iterable, Iterator, Sequence

from tidegate.config.findings import Findings, join
from tidegate.config.globs import matches
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.sections.mcp import Allow, Deny
from tidegate.config.wording import nearest
from tidegate.mcp.predicates import BrokenCondition, compile_condition


def check_names(config: Config, findings: Findings) -> None:
    """Every name that refers to another part of the file."""
    _keys(config, findings)
    _issuers(config, findings)
    _unique(findings, [(("limits", i, "name"), x.name) for i, x in enumerate(config.limits)])
    _unique(findings, [(("routes", i, "name"), x.name) for i, x in enumerate(config.routes)])
    _candidates(config, findings)
    _limits(config, findings)
    for provider in config.prices:
        _known(findings, ("prices", provider), provider, config.providers, "providers")
    check_rules(config, findings)
    _callers(config, findings)


def _unique(findings: Findings, named: Iterable[tuple[Path, str]]) -> None:
    seen: dict[str, Path] = {}
    for path, name in named:
        if findings.inside_broken(path):
            continue
        if name in seen:
            line = findings.places.of_value(seen[name]).line
            findings.error(path, f"the name {quoted(name)} is taken (line {line})", "rename one")
        seen.setdefault(name, path)


def _known(findings: Findings, path: Path, name: str, known: Iterable[str], section: str) -> None:
    """Report `name` unless it stands under the top-level part `section`."""
    pool = list(known)
    if name in pool or findings.inside_broken((section,)):
        return
    close = nearest(name, pool)
    right = f"did you mean {quoted(close)}?" if close else f"known there: {join(pool)}"
    if not pool:
        right = f"add it under `{section}`"
    findings.error(path, f"{quoted(name)} is not one of the {section}", right)


def _keys(config: Config, findings: Findings) -> None:
    """Two entries for one key: which of the two callers it names would be chance."""
    seen: dict[str, int] = {}
    for index, key in enumerate(config.identity.keys):
        digest = key.digest
        path: Path = ("identity", "keys", index)
        if digest is None or findings.touched((*path, "key"), (*path, "sha256")):
            continue
        if digest in seen:
            place: Path = (*path, "key" if key.key is not None else "sha256")
            findings.error(
                place,
                f"the same key as identity.keys[{seen[digest]}]",
                "give every caller a key of its own",
            )
        seen.setdefault(digest, index)


def _issuers(config: Config, findings: Findings) -> None:
    """Two entries for one issuer: which of the two sets of keys holds would be chance."""
    seen: dict[str, int] = {}
    for index, entry in enumerate(config.identity.jwt):
        path: Path = ("identity", "jwt", index, "issuer")
        if findings.touched(path):
            continue
        if entry.issuer in seen:
            findings.error(
                path,
                f"the same issuer as identity.jwt[{seen[entry.issuer]}]",
                "write one entry for each issuer",
            )
        seen.setdefault(entry.issuer, index)


def _candidates(config: Config, findings: Findings) -> None:
    for number, route in enumerate(config.routes):
        seen: set[tuple[str, str | None]] = set()
        for index, candidate in enumerate(route.candidates):
            path: Path = ("routes", number, "candidates", index)
            _known(findings, (*path, "provider"), candidate.provider, config.providers, "providers")
            target = (candidate.provider, candidate.model)
            if target in seen and not findings.touched((*path, "model")):
                model = f" with the model {quoted(candidate.model)}" if candidate.model else ""
                findings.error(
                    (*path, "provider"),
                    f"{quoted(candidate.provider)} is listed twice{model}",
                    "remove one of the two" if model else "remove one, or give each its `model`",
                )
            seen.add(target)


def _limits(config: Config, findings: Findings) -> None:
    routes = [route.name for route in config.routes]
    for index, limit in enumerate(config.limits):
        path: Path = ("limits", index, "match")
        _patterns(findings, (*path, "routes"), limit.match.routes, routes, "routes")
        servers = tuple(config.mcp.servers)
        _patterns(findings, (*path, "servers"), limit.match.servers, servers, "mcp.servers")


def _patterns(
    findings: Findings, path: Path, patterns: Sequence[str], known: Sequence[str], section: str
) -> None:
    """Report patterns that no name of `section` matches; "*" may also match nothing."""
    if findings.inside_broken(tuple(section.split("."))):
        return
    for index, pattern in enumerate(patterns):
        if pattern == "*" or any(matches(pattern, name) for name in known):
            continue
        close = nearest(pattern, known)
        right = f"did you mean {quoted(close)}?" if close else f"known there: {join(known)}"
        if not known:
            right = f"add it under `{section}`, or remove it here"
        findings.error(
            (*path, index), f"{quoted(pattern)} matches nothing under `{section}`", right
        )


def check_rules(config: Config, findings: Findings) -> None:
    """Servers and conditions that the rules of `mcp.rules` name."""
    servers = tuple(config.mcp.servers)
    for path, body in _bodies(config):
        _patterns(findings, (*path, "servers"), body.servers or (), servers, "mcp.servers")
        for number, condition in enumerate(body.when):
            _condition(findings, (*path, "when", number), condition)


def _bodies(config: Config) -> Iterator[tuple[Path, Allow]]:
    """What stands under `allow` and `deny`, rule by rule."""
    for index, rule in enumerate(config.mcp.rules):
        if rule.allow is not None:
            yield ("mcp", "rules", index, "allow"), rule.allow
        if rule.deny is not None:
            yield ("mcp", "rules", index, "deny"), rule.deny


def _condition(findings: Findings, path: Path, text: str) -> None:
    try:
        compile_condition(text)
    except BrokenCondition as error:
        reason = str(error)
        if reason.startswith("write: "):
            right = reason.replace("write: ", "write ", 1)
            findings.error(path, "not a condition", f'{right}, such as "amount <= 500"')
        else:
            findings.error(path, f"not a condition ({reason})", 'write one such as "amount <= 500"')


def _callers(config: Config, findings: Findings) -> None:
    """Warn of roles and tenants that no caller can have."""
    identity = config.identity
    if identity.jwt or findings.touched(("identity",)):
        return
    callers = [*identity.keys, *([identity.anonymous] if identity.anonymous else [])]
    if not callers:
        findings.warn(
            ("identity",),
            "nobody can call: no key, and no anonymous principal",
            "add `keys`, or `demo: true` to look around with the demo's keys",
            at_key=True,
        )
        return
    roles = sorted({role for caller in callers for role in caller.roles})
    tenants = sorted({caller.tenant for caller in callers})
    for path, kind, patterns in _caller_patterns(config):
        known = roles if kind == "role" else tenants
        for index, pattern in enumerate(patterns):
            if pattern == "*" or any(matches(pattern, name) for name in known):
                continue
            close = nearest(pattern, known)
            right = f"did you mean {quoted(close)}?" if close else f"known: {join(known)}"
            findings.warn((*path, index), f"no caller has the {kind} {quoted(pattern)}", right)


def _caller_patterns(config: Config) -> Iterator[tuple[Path, str, Sequence[str]]]:
    """Every place that names roles or tenants."""
    for index, limit in enumerate(config.limits):
        yield ("limits", index, "match", "roles"), "role", limit.match.roles
        yield ("limits", index, "match", "tenants"), "tenant", limit.match.tenants
    for index, route in enumerate(config.routes):
        yield ("routes", index, "match", "roles"), "role", route.match.roles
        yield ("routes", index, "match", "tenants"), "tenant", route.match.tenants
    for path, body in _bodies(config):
        yield (*path, "roles"), "role", body.roles or ()
        yield (*path, "tenants"), "tenant", body.tenants or ()
        if isinstance(body, Deny):
            yield (*path, "unless_roles"), "role", body.unless_roles
