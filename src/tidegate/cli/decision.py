"""What would the gateway decide about this MCP message, by the file alone?

Lives here: `tidegate explain --as`: from the options to a decision of the gateway's own function,
where its rule stands, and what the client would be told. Does not live here: the decision
(mcp.authorize), the rules that had a say (mcp.dry_run), records of past requests (explain).
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate import strictjson
from tidegate.cli import configuration
from tidegate.config import Config, ConfigInvalid, values
from tidegate.config.load import load_part
from tidegate.jsonrpc import Call, Request, has_oversized_integer
from tidegate.mcp import authorize
from tidegate.mcp.authorize import LISTED_KIND, NO_RULE, subject_of
from tidegate.mcp.denials import Profile, Refusal, refusal, unknown
from tidegate.mcp.dry_run import TASKS, Weighed, message_of, weigh
from tidegate.mcp.federation import Federation
from tidegate.mcp.federation_messages import Aimed, aimed, names_something
from tidegate.mcp.rules import without_rules
from tidegate.policy import Allow, Decision, Deny, Principal

if TYPE_CHECKING:
    from tidegate.mcp.rules import RuleSet

_PROFILES: tuple[Profile, ...] = ("brief", "spec")


@dataclass(frozen=True, slots=True)
class DryRun:
    """One question and its answer; `rules` are those of the tenant.

    `message` is the client's, `asked` what the server `server` would get of it: "" for a name of
    no server. `among`: of a list, what is decided at each of several servers.
    """

    config: Config
    message: Call
    principal: Principal
    rules: "RuleSet"
    name: str | None
    asked: Call
    server: str
    task_tool: str | None
    decision: Decision
    among: tuple[tuple[str, Decision], ...] = ()

    @property
    def weighed(self) -> tuple[Weighed, ...]:
        """The rules that had a say."""
        if not self.server:
            return ()
        return weigh(
            self.asked,
            self.principal,
            self.rules,
            server=self.server,
            task_tool=self.task_tool,
        )


def dry_run(config: Config, principal: Principal, words: tuple[str, ...]) -> DryRun:
    """The decision over METHOD [NAME [JSON]]; the same function as in the gateway.

    Raises click.UsageError.
    """
    method, name = words[0], words[1] if len(words) > 1 else None
    message = message_of(method, name, _arguments(words[2]) if len(words) > 2 else None)
    rules = values.tool_rules(config).of(principal.tenant)
    servers = tuple(config.mcp.servers)
    of = partial(DryRun, config, message, principal, rules, name)
    if len(servers) > 1:
        return _among(of, message, principal, rules, (servers, name))
    server = next(iter(servers), "")
    task_tool = name if method in TASKS else None
    decision = authorize(message, principal, rules, server=server, task_tool=task_tool)
    return of(message, server, task_tool, decision)


def _among(
    of: "partial[DryRun]",
    message: Call,
    principal: Principal,
    rules: "RuleSet",
    named: tuple[tuple[str, ...], str | None],
) -> DryRun:
    """The same with several servers, whose things have the names that clients see."""
    servers, name = named
    if message.method in LISTED_KIND or message.method == "logging/setLevel":
        each = [(s, authorize(message, principal, rules, server=s)) for s in servers]
        allowed = [pair for pair in each if isinstance(pair[1], Allow)]
        server, decision = (allowed or each)[0]
        return of(message, server, None, decision, tuple(each))
    tool, found = None, Aimed(None, message)
    if message.method in TASKS and name is not None:
        own = Federation(servers).own_name(name)
        found, tool = (
            (Aimed(None, message), None) if own is None else (Aimed(own[0], message), own[1])
        )
    elif names_something(message):
        found = aimed(message, Federation(servers))
    if found.server is None:
        decision = authorize(message, principal, without_rules(rules))
        return of(message, "", None, decision)
    decision = authorize(found.message, principal, rules, server=found.server, task_tool=tool)
    return of(found.message, found.server, tool, decision)


def _arguments(text: str) -> Mapping[str, object]:
    data = text.encode("utf-8", "surrogateescape")
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as error:
        raise click.UsageError(f"The arguments are no JSON a gateway takes: {error.reason}.") from (
            None
        )
    if not isinstance(value, dict) or has_oversized_integer(data, value):
        raise click.UsageError("The arguments must be a JSON object, such as '{\"amount\": 50}'.")
    return value


def read_config(path: Path | None) -> Config:
    """The configuration, or its part `mcp` where the rest needs what this shell lacks.

    Raises InvalidConfiguration.
    """
    try:
        return configuration.read(path)
    except configuration.InvalidConfiguration as invalid:
        if path is None:
            raise
        try:
            part = load_part(path, os.environ, "mcp")
        except ConfigInvalid:
            raise invalid from None
        problem = invalid.message.partition("\n")[0]
        click.echo(f"warning: only the part mcp counts here: {problem}", err=True)
        return part


def caller(config: Config, roles: str, tenant: str | None) -> Principal:
    """Somebody with these roles. Raises click.UsageError if it must be said of which tenant."""
    known = sorted({each.tenant for each in values.callers(config)})
    if tenant is None and len(known) > 1:
        raise click.UsageError(f"Give --tenant: callers are of {', '.join(known)}.")
    if tenant is None and (config.identity.jwt or not known) and _tell_tenants_apart(config):
        raise click.UsageError("Give --tenant: the rules are not the same for each.")
    of = tenant if tenant is not None else (known[0] if known else "")
    named = tuple(role for role in (each.strip() for each in roles.split(",")) if role)
    return Principal("dry-run", of, named, "dry-run")


def _tell_tenants_apart(config: Config) -> bool:
    bodies = [rule.allow or rule.deny for rule in config.mcp.rules]
    named = any(body is not None and body.tenants is not None for body in bodies)
    return named or bool(config.rules_dir.files)


def place_of(config: Config, rule: str) -> str | None:
    """Where a rule stands, as file:line; None for one that is built in."""
    for index in range(len(config.mcp.rules)):
        if rule == f"mcp.rules[{index}]":
            place = ("mcp", "rules", index)
            if not config.origin.document.holds(place):
                return config.source
            return f"{config.source}:{config.origin.document.of_value(place).line}"
    for file in config.rules_dir.files.values():
        for name, line in zip(values.rule_names(file), file.lines, strict=True):
            if rule == name:
                return f"{file.file}:{line}"
    return None


def as_json(run: DryRun) -> dict[str, object]:
    """Everything, for programs."""
    denied = run.decision if isinstance(run.decision, Deny) else None
    return {
        "verdict": "allowed" if denied is None else "denied",
        "method": run.message.method,
        "roles": list(run.principal.roles),
        "tenant": run.principal.tenant,
        "server": run.server,
        "servers": [
            {
                "server": server,
                "verdict": "allowed" if isinstance(each, Allow) else "denied",
                "rule": each.rule,
            }
            for server, each in run.among
        ],
        "rule": run.decision.rule,
        "place": place_of(run.config, run.decision.rule),
        "reason": denied.reason if denied else None,
        "required_role": denied.required_role if denied else None,
        "your_role": run.principal.first_role,
        "weighed": [
            {
                "rule": each.rule,
                "place": place_of(run.config, each.rule),
                "effect": each.effect,
                "applies": each.applies,
                "operands": [
                    {"condition": one.condition, "value": one.value, "holds": one.holds}
                    for one in each.operands
                ],
            }
            for each in run.weighed
        ],
        "hide_denied": run.config.mcp.hide_denied,
        "client_sees": {profile: _sees(run, profile) for profile in _PROFILES},
        "revision": run.config.revision,
    }


def _sees(run: DryRun, profile: Profile) -> dict[str, object] | None:
    """The refusal in a profile, before and since 2026-07-28; None for what is forwarded."""
    if isinstance(run.decision, Allow):
        return None
    if not isinstance(run.message, Request):
        return {
            "status": 202,
            "status_2026_07_28": 202,
            "body": None,
            "body_2026_07_28": None,
            "www_authenticate": None,
        }
    legacy, modern = (_refusal(run, run.decision, profile, modern=era) for era in (False, True))
    return {
        "status": legacy.status,
        "status_2026_07_28": modern.status,
        "body": legacy.body,
        "body_2026_07_28": modern.body,
        "www_authenticate": modern.challenge,
    }


def _refusal(run: DryRun, deny: Deny, profile: Profile, *, modern: bool) -> Refusal:
    assert isinstance(run.message, Request)  # noqa: S101 - looked at before
    subject = subject_of(run.message)
    if not run.server and len(run.config.mcp.servers) > 1 and deny.reason == NO_RULE and subject:
        return unknown(run.message.id, subject, errors=profile, modern=modern)
    return refusal(
        run.message,
        deny,
        run.principal,
        errors=profile,
        hide=run.config.mcp.hide_denied,
        modern=modern,
    )


def as_text(run: DryRun) -> str:
    """The same for people."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: DryRun) -> Iterator[str]:
    decision, who = run.decision, run.principal
    roles = ", ".join(who.roles) or "no role"
    verdict = "allowed" if isinstance(decision, Allow) else "denied"
    what = " ".join(filter(None, (run.message.method, run.name)))
    yield f"{verdict:<10} {what} as {roles} of tenant {who.tenant or '(none)'}"
    place = place_of(run.config, decision.rule)
    why = f" ({decision.reason})" if isinstance(decision, Deny) else ""
    yield f"{'rule':<10} {decision.rule}{f' at {place}' if place else ''}{why}"
    if run.server and len(run.config.mcp.servers) > 1 and not run.among:
        yield f"{'server':<10} {run.server}"
    for server, each_of in run.among:
        of = "allowed" if isinstance(each_of, Allow) else "denied"
        yield f"{'server':<10} {server}: {of} by {each_of.rule}"
    if isinstance(decision, Deny):
        yield f"{'needs':<10} required_role {decision.required_role}, your_role {who.first_role}"
    for each in run.weighed:
        found = place_of(run.config, each.rule)
        says = "applies" if each.applies else "does not apply"
        yield f"{'weighed':<10} {each.effect} {each.rule} at {found}: {says}"
        for one in each.operands:
            value = json.dumps(one.value, ensure_ascii=False)
            yield f"{'':<10}   {one.condition}: {'yes' if one.holds else 'no'}, with {value}"
    for profile in _PROFILES:
        yield f"{profile:<10} {_said(run, profile)}"


def _said(run: DryRun, profile: Profile) -> str:
    seen = _sees(run, profile)
    if seen is None:
        if run.message.method == "subscriptions/listen":
            return "what the server answers, for the resources that may be read"
        hides = run.message.method in LISTED_KIND and run.config.mcp.hide_denied != "off"
        return "what the server answers" + (", without what may not be used" if hides else "")
    status, modern = seen["status"], seen["status_2026_07_28"]
    words = f"HTTP {status}" if status == modern else f"HTTP {status} ({modern} in 2026-07-28)"
    if seen["www_authenticate"] is not None:
        words += f", WWW-Authenticate: {seen['www_authenticate']}"
    if seen["body"] is None:
        return f"{words}, and nothing is forwarded"
    return f"{words} {json.dumps(seen['body'], ensure_ascii=False)}"


__all__ = ["DryRun", "as_json", "as_text", "caller", "dry_run", "place_of", "read_config"]
