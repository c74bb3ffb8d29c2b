"""Which configuration does a case want?

Lives here: the words of `config` as keys of the product's own file, on top of a base for each
kind of case. Cases with the same configuration share a gateway process; each has principals, a
route and a provider of its own, so that no limit, breaker or session passes from one to another.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.casebook.cases import Case
from tests.casebook.rules.words import seconds

PROVIDER_KEY = "-".join(("case", "provider", "key"))
SERVICE_KEY = "-".join(("case", "service", "credential"))
ROLES = ("viewer", "admin")
ENFORCED = {
    "request": "enforce",
    "response": "enforce",
    "tool_arguments": "enforce",
    "logprobs": "drop",
}
# Keys of `config` that are parts of the product's file themselves.
_PARTS = frozenset(
    ["server", "store", "identity", "limits", "prices", "redaction", "providers", "routes"]
) | {"mcp", "records", "telemetry"}


# Keys of the sections below, which `config` may name without their section.
_INSIDE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("preset", "request", "response", "tool_arguments"), ("redaction",)),
    **dict.fromkeys(("tool_results", "logprobs", "tail_comment", "allow"), ("redaction",)),
    **dict.fromkeys(("errors", "hide_denied", "rules"), ("mcp",)),
    **dict.fromkeys(("allowed_hosts", "allowed_origins"), ("server",)),
    **dict.fromkeys(("header_bytes", "header_timeout_s", "body_idle_s"), ("server", "caps")),
    **dict.fromkeys(("llm_body_bytes", "mcp_body_bytes"), ("server", "caps")),
    **dict.fromkeys(("upstream_event_bytes", "before_commit_bytes"), ("server", "caps")),
}
# Words for parts of every route.
_ROUTE: Mapping[str, tuple[str, str]] = {
    "attempt_deadline_s": ("deadlines", "first_token_s"),
    "request_deadline_s": ("deadlines", "total_s"),
    "idle_s": ("deadlines", "idle_s"),
    "breaker_threshold": ("breaker", "consecutive"),
}
_FAMILIES = ("email", "ssn", "card", "iban", "key", "jwt")


class CannotConfigure(ValueError):
    """Words of `config` that no rule reads."""


@dataclass(frozen=True)
class Wanted:
    """A configuration on top of the base, and the environment of the process."""

    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    route: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Equal for cases that can share a process."""
        return json.dumps([self.config, self.environment, self.route], sort_keys=True)


def slot(case: Case) -> str:
    """The name that a case has in a configuration."""
    return re.sub(r"[^a-z0-9]+", "-", case.id.lower()).strip("-")


def key_of(name: str, role: str = "tenant") -> str:
    """The key of one role of one case."""
    return "-".join(("case", "key", name, role))


def wanted(words: Mapping[str, Any], profile: str = "brief") -> Wanted:
    """What the words of `config` ask for; raises CannotConfigure."""
    made: dict[str, Any] = {}
    environment: dict[str, str] = {}
    route: dict[str, Any] = {}
    for name, value in words.items():
        if name == "hide_admin_tools":
            environment |= {"HIDE_ADMIN_TOOLS": "1"} if value else {}
        elif name in _PARTS:
            merge(made, {name: value})
        elif name in _WORDS:
            merge(made, _WORDS[name](value))
        elif name in _INSIDE:
            merge(made, _nested((*_INSIDE[name], name), value))
        elif name in _ROUTE:
            merge(route, _nested(_ROUTE[name], value))
        else:
            raise CannotConfigure(f"config.{name}")
    if profile != "brief":
        merge(made, {"mcp": {"errors": profile}})
    return Wanted(made, environment, route)


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Deep: objects are joined, everything else is replaced."""
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = json.loads(json.dumps(value))
    return into


def _nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def limit(words: str) -> dict[str, Any]:
    """A limit such as "10000 tokens / 60 s"."""
    found = re.fullmatch(
        r"(?P<cap>\d+) (?P<unit>input tokens|output tokens|tokens|requests|concurrent)"
        r"(?: (?:/|per|in) (?P<window>.+))?",
        words.strip(),
    )
    if found is None:
        raise CannotConfigure(f"limit {words!r}")
    made: dict[str, Any] = {
        "name": "case-limit",
        "per": "tenant",
        found["unit"].replace(" ", "_"): int(found["cap"]),
    }
    if found["window"]:
        text = found["window"].replace("minute", "60 s")
        made["window_s"] = seconds(text)
    return made


def _limits(value: Any) -> dict[str, Any]:
    return {"limits": [limit(str(value))]}


def _parallel(value: Any) -> dict[str, Any]:
    return {"limits": [limit(f"{value} concurrent")]}


def _cors(value: Any) -> dict[str, Any]:
    return {"server": {"allowed_origins": list(value.get("allow_origins", []))}}


def _log_level(value: Any) -> dict[str, Any]:
    return {"telemetry": {"level": str(value)}}


_DETECTORS = {"credit_card": "card", "api_key": "key", "secret": "key"}


def _detectors(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and all(_DETECTORS.get(n, n) in _FAMILIES for n in value):
        on = {_DETECTORS.get(name, name) for name in value}
        value = {name: "mask" if name in on else "off" for name in _FAMILIES}
    if not isinstance(value, Mapping):
        raise CannotConfigure("config.detectors in words")
    actions = {_DETECTORS.get(n, n): {"action": action} for n, action in value.items()}
    return {"redaction": {"detectors": actions}}


def _redact(value: Any) -> dict[str, Any]:
    return {"redaction": dict(value)}


_WORDS = {
    "limit": _limits,
    "max_parallel": _parallel,
    "cors": _cors,
    "log_level": _log_level,
    "detectors": _detectors,
    "redact": _redact,
}


def for_chat(names: Sequence[str], url: Mapping[str, str], more: Wanted) -> dict[str, Any]:
    """A gateway for chat cases: each with its own tenant, route and provider at `url[name]`."""
    config: dict[str, Any] = {
        "identity": {
            "keys": [
                {"key": key_of(name), "principal": name, "tenant": name, "roles": ["tenant"]}
                for name in names
            ]
        },
        "limits": [{"name": "plenty", "per": "tenant", "tokens": 100_000_000}],
        "redaction": dict(ENFORCED),
        "providers": {
            name: {"base_url": f"{url[name]}/v1", "credentials": [PROVIDER_KEY]} for name in names
        },
        "routes": [
            {
                "name": name,
                "match": {"tenants": [name]},
                "candidates": [{"provider": name}],
                **more.route,
            }
            for name in names
        ],
    }
    return merge(config, more.config)


def for_tools(names: Sequence[str], url: str, more: Wanted) -> dict[str, Any]:
    """A gateway for MCP cases with the rules of the brief's task 2."""
    config: dict[str, Any] = {
        "identity": {
            "keys": [
                {
                    "key": key_of(name, role),
                    "principal": f"{name}-{role}",
                    "tenant": name,
                    "roles": [role],
                }
                for name in names
                for role in ROLES
            ]
        },
        "mcp": {
            "hide_denied": "off",
            # What reaches the server is counted there.
            "servers": {"backend": {"url": f"{url}/mcp", "credential": SERVICE_KEY, "pin": "off"}},
            "rules": [
                {"deny": {"tools": ["admin_*"], "unless_roles": ["admin"]}},
                {"allow": {"roles": list(ROLES)}},
            ],
        },
        "redaction": {"tool_arguments": "off", "tool_results": "off"},
    }
    return merge(config, more.config)
