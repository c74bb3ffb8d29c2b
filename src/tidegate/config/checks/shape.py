"""Do the keys of one entry fit together?

Lives here: exactly one of several keys, keys that exclude each other, bounds between two
numbers. Does not live here: names that point elsewhere (names).
"""

import re

from tidegate.config.findings import Findings, join
from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.sections.identity import UNITS, Limit
from tidegate.config.sections.mcp import Allow, Deny, McpServer, Rule
from tidegate.config.sections.routing import Deadlines, Route
from tidegate.config.shapes import Section, split_url


def check_shape(config: Config, findings: Findings) -> None:
    """Every rule inside one entry."""
    _listeners(config, findings)
    _store(config, findings)
    for index, key in enumerate(config.identity.keys):
        path: Path = ("identity", "keys", index)
        given = [name for name in ("key", "sha256") if getattr(key, name) is not None]
        _one_of(findings, path, given, ("key", "sha256"), "key: ${env:NAME}")
    for index, limit in enumerate(config.limits):
        _limit(limit, ("limits", index), findings)
    for index, route in enumerate(config.routes):
        _route(route, ("routes", index), findings)
    for name, server in config.mcp.servers.items():
        _mcp_server(server, ("mcp", "servers", name), config.server.workers, findings)
    check_rules(config, findings)


def check_rules(config: Config, findings: Findings) -> None:
    """Every rule of `mcp.rules`."""
    for index, rule in enumerate(config.mcp.rules):
        _rule(rule, ("mcp", "rules", index), findings)


def _one_of(
    findings: Findings, path: Path, given: list[str], keys: tuple[str, ...], example: str
) -> None:
    """Report an entry that has none or several of `keys`."""
    if len(given) == 1 or findings.touched(path):
        return
    names = " or ".join(f"`{key}`" for key in keys)
    if not given:
        findings.error(path, f"{names} is missing", f"add one of them, such as `{example}`")
    else:
        both = " and ".join(f"`{key}`" for key in given)
        findings.error((*path, given[1]), f"{both} exclude each other", "keep one", at_key=True)
    findings.spoil(path)


def _listeners(config: Config, findings: Findings) -> None:
    server = config.server
    if server.port and server.port == server.admin.port:
        findings.error(
            ("server", "admin", "port"),
            f"{server.port} is the port of the client listener too",
            "give the two listeners different ports",
        )


def _store(config: Config, findings: Findings) -> None:
    url, path = config.store.url, ("store", "url")
    if url == "memory:":
        if config.server.workers > 1:
            findings.error(
                path,
                f"{config.server.workers} workers cannot share a store in memory",
                "use sqlite:///PATH, or set `server.workers: 1`",
            )
    elif url.startswith(("redis://", "rediss://")):
        parts = split_url(url)
        if parts is None or not re.fullmatch(r"(/[0-9]{0,4})?", parts.path) or parts.query:
            findings.error(
                path, "not the address of a Redis", "write one such as redis://127.0.0.1:6379/0"
            )
    elif not re.fullmatch(r"sqlite:///[^?#\x00-\x1f]+", url):
        findings.error(
            path,
            "this is not a store",
            "write memory:, sqlite:///PATH (four slashes for an absolute path) or redis://HOST:PORT/DB",
        )


def _limit(limit: Limit, path: Path, findings: Findings) -> None:
    given = [unit for unit in UNITS if getattr(limit, unit) is not None]
    if not findings.touched(*((*path, unit) for unit in UNITS)):
        if not given:
            findings.error(path, "this limit has no cap", f"add one of {join(UNITS)}")
        elif len(given) > 1:
            findings.error(
                (*path, given[1]),
                f"{join(given)} in one limit",
                "write one limit for each",
                at_key=True,
            )
    match = limit.match
    if match.routes and (match.servers or match.tools):
        part = "servers" if match.servers else "tools"
        findings.error(
            (*path, "match", part),
            "a limit counts model requests (routes) or tool calls (servers, tools)",
            "write two limits",
            at_key=True,
        )

    elif (match.servers or match.tools) and limit.unit not in ("requests", "concurrent"):
        findings.error(
            (*path, limit.unit),
            "a tool call has no tokens and no price",
            "count `requests` or `concurrent`",
            at_key=True,
        )


def _route(route: Route, path: Path, findings: Findings) -> None:
    breaker, cooling = route.breaker, route.cooling
    if breaker.open_s > breaker.max_open_s:
        findings.error(
            (*path, "breaker", _given(breaker, "open_s", "max_open_s")),
            f"open_s {breaker.open_s:g} is longer than max_open_s {breaker.max_open_s:g}",
            "raise `max_open_s` or lower `open_s`",
        )
    if cooling.on_429_s > cooling.max_s:
        findings.error(
            (*path, "cooling", _given(cooling, "on_429_s", "max_s")),
            f"on_429_s {cooling.on_429_s:g} is longer than max_s {cooling.max_s:g}",
            "raise `max_s` or lower `on_429_s`",
        )
    _weights(route, path, findings)
    _deadlines(route.deadlines, (*path, "deadlines"), findings)
    if "tool_results" in route.redaction.model_fields_set:
        findings.warn(
            (*path, "redaction", "tool_results"),
            "concerns MCP servers, not model requests",
            "for a route write `request` or `response`",
            at_key=True,
        )


_CLOCKS = (
    ("connect_s", "first_token_s", "which ends the attempt first"),
    ("first_token_s", "total_s", "which ends the request first"),
    ("first_token_s", "stream_total_s", "which ends the stream first"),
    ("total_s", "stream_total_s", "so a stream has less time than a plain answer"),
)
"""Pairs of clocks of which the first is not meant to be longer, and what follows if it is."""


def _deadlines(deadlines: Deadlines, path: Path, findings: Findings) -> None:
    """One word about each clock at most, and none where a default stands beside it."""
    told: set[str] = set()
    for first, second, follows in _CLOCKS:
        bound = getattr(deadlines, second)
        if not {first, second} <= deadlines.model_fields_set or first in told:
            continue
        if getattr(deadlines, first) > bound:
            told.add(first)
            findings.warn(
                (*path, first),
                f"longer than `{second}: {bound:g}`, {follows}",
                f"raise `{second}` or lower `{first}`",
            )


def _weights(route: Route, path: Path, findings: Findings) -> None:
    if route.strategy == "weighted" or findings.touched((*path, "strategy")):
        return
    for index, candidate in enumerate(route.candidates):
        if candidate.weight != 1:
            findings.warn(
                (*path, "candidates", index, "weight"),
                f"counts for nothing with `strategy: {route.strategy}`",
                "write `strategy: weighted`, or remove it",
                at_key=True,
            )
            return


def _given(section: Section, first: str, second: str) -> str:
    """Whichever of the two keys the file names, the first if both."""
    return first if first in section.model_fields_set else second


def _mcp_server(server: McpServer, path: Path, workers: int, findings: Findings) -> None:
    given = [name for name, value in (("url", server.url), ("command", server.command)) if value]
    _one_of(findings, path, given, ("url", "command"), "url: http://127.0.0.1:9001/mcp")
    if given == ["command"]:
        if server.credential is not None:
            findings.error(
                (*path, "credential"),
                "a command takes no credential",
                "hand it over as a variable under `env`",
                at_key=True,
            )
        if workers > 1:
            findings.error(
                (*path, "command"),
                f"{workers} workers cannot share a server on stdio",
                "set `server.workers: 1`, or serve it over HTTP and write `url`",
                at_key=True,
            )
    elif given == ["url"]:
        for name in ("env", "cwd"):
            if getattr(server, name):
                findings.error(
                    (*path, name), f"`{name}` belongs to a command", "remove it", at_key=True
                )
    for name in ("request", "response", "logprobs", "tail_comment"):
        if name in server.redaction.model_fields_set:
            findings.warn(
                (*path, "redaction", name),
                "concerns model requests, not tools",
                "for a server write `tool_arguments` or `tool_results`",
                at_key=True,
            )


def _rule(rule: Rule, path: Path, findings: Findings) -> None:
    given = [name for name in ("allow", "deny") if getattr(rule, name) is not None]
    if findings.touched(path):
        return
    if not given:
        right = "write one of them, such as `allow: { roles: [viewer] }`"
        findings.error(path, "this rule has neither `allow` nor `deny`", right)
    elif len(given) > 1:
        findings.error(
            (*path, "deny"), "`allow` and `deny` in one rule", "write two rules", at_key=True
        )
    elif rule.deny is not None and "*" in rule.deny.unless_roles:
        findings.error(
            (*path, "deny", "unless_roles"),
            "'*' spares everyone, so the rule denies nothing",
            "name the roles that are spared",
        )
    if len(given) != 1:
        findings.spoil(path)
    elif (body := rule.deny or rule.allow) is not None:
        _body(body, (*path, given[0]), findings)


def _body(body: Allow, path: Path, findings: Findings) -> None:
    """What a rule covers: nothing may be left empty, for that would mean everything."""
    for key in sorted(body.model_fields_set):
        if getattr(body, key) is None:
            right = f"write a list, or remove `{key}:` if the rule is for all of them"
            findings.error((*path, key), "nothing stands here", right, at_key=True)
    named = {
        kind: patterns
        for kind in ("tools", "resources", "prompts")
        if (patterns := getattr(body, kind)) is not None
    }
    if named and not any(named.values()):
        where = (*path, next(iter(named)))
        if isinstance(body, Deny):
            findings.error(
                where,
                "this list is empty, so the rule denies nothing",
                "name what is denied, or remove the list to deny everything",
            )
        else:
            findings.warn(
                where,
                "this list is empty, so the rule allows no tool, resource or prompt",
                "name what is allowed, or remove the rule",
            )
    elif body.when and [kind for kind, patterns in named.items() if patterns] == ["resources"]:
        findings.error(
            (*path, "when"),
            "conditions read arguments, and resources have none",
            "remove it, or name tools or prompts",
            at_key=True,
        )
