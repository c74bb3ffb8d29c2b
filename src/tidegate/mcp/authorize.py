"""May this principal send this message?

Lives here: the one decision over calls, lists, resources, prompts, completions, subscriptions
and tasks, and the table of methods behind it. Nothing matching denies, a deny beats an allow,
the order of rules is irrelevant. Does not live here: what a rule means (rules), what a denied
client is told (denials), who forwards what was allowed (gateway.tool_traffic).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from msgspec import Struct

from tidegate.jsonrpc import Call, Request
from tidegate.mcp.folding import is_invisible
from tidegate.mcp.patterns import canonical_uri
from tidegate.mcp.predicates import Arguments
from tidegate.mcp.rules import KINDS, CompiledRule, Kind, RuleSet
from tidegate.policy import Allow, Decision, Deny, Principal

OPEN: Final = "open"
"""The rule of what every authenticated principal may send."""
DEFAULT: Final = "default"
"""The rule that denies what no rule allows."""
METHODS: Final = "methods"
"""The rule that refuses what the table of methods does not know or cannot read."""

UNKNOWN_METHOD: Final = "unknown_method"
INVALID_PARAMS: Final = "invalid_params"
INVALID_CURSOR: Final = "invalid_cursor"
UNKNOWN_TASK: Final = "unknown_task"
NOTHING_ALLOWED: Final = "nothing_allowed"
ODD_NAME: Final = "odd_name"
DENIED: Final = "denied"
NO_RULE: Final = "no_rule"
ARGUMENTS: Final = "arguments"
"""The thing itself may be used, with other arguments."""

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_NOTIFICATION: Final = re.compile(r"notifications(?:/[A-Za-z_]{1,64}){1,4}")
_MAX_NAME_CHARS: Final = 256


class Subject(Struct, frozen=True):
    """What a message asks for: a tool, prompt or resource by its name or URI.

    `template`: the name is a URI template and stands for every resource it can make.
    """

    kind: Kind
    name: str
    template: bool = False


class _Question(Struct, frozen=True):
    """Who asks, where."""

    principal: Principal
    rules: RuleSet
    server: str


class _Asked:
    """What is asked for, and which rules speak of it, whoever asks: each is looked at once.

    `arguments` is None when they are not known yet.
    """

    __slots__ = ("_arguments", "_met", "_subject")

    def __init__(self, subject: Subject, arguments: Mapping[str, object] | None) -> None:
        if subject.kind == "resources":
            # A resource has none. Whoever adds some would choose how a condition is answered.
            arguments = {}
        self._subject = subject
        self._arguments = None if arguments is None else Arguments(arguments)
        self._met: dict[CompiledRule, bool] = {}

    def meets(self, rule: CompiledRule) -> bool:
        """Whether the rule names the thing and its conditions hold."""
        met = self._met.get(rule)
        if met is None:
            met = self._met[rule] = self._is_named(rule) and rule.condition_holds(self._arguments)
        return met

    def _is_named(self, rule: CompiledRule) -> bool:
        subject = self._subject
        if subject.template:
            return rule.names_some_of(subject.name)
        return rule.names(subject.kind, subject.name)


def authorize(
    message: Call,
    principal: Principal,
    rules: RuleSet,
    *,
    server: str = "",
    task_tool: str | None = None,
) -> Decision:
    """Allow or Deny, from the message alone: no header, address or session takes part.

    `server` is the configured name of the upstream. `task_tool` is the tool that began the task
    a tasks/* message refers to, if this principal began it; None denies. Pure and total. Cost:
    one look at the message for each rule that concerns the principal, or for a denial some role;
    beside it the rules, times the roles of the configuration for a denial.
    """
    question = _Question(principal, rules, server)
    if message.method in _OPEN or _is_protocol(message):
        return Allow(OPEN)
    if message.method == "logging/setLevel" or _is_notification(message):
        return _anything(question)
    if message.method in LISTED_KIND:
        return _list(question, LISTED_KIND[message.method])
    if message.method in _TASKS:
        return _task(question, message, task_tool)
    if message.method not in _SUBJECTS:
        return Deny(METHODS, UNKNOWN_METHOD)
    subject = subject_of(message)
    if subject is None:
        return Deny(METHODS, INVALID_PARAMS)
    arguments = (message.params or {}).get("arguments", {})
    if not isinstance(arguments, dict):
        return Deny(METHODS, INVALID_PARAMS)
    # A completion is asked for while the arguments are still being written.
    unfinished = message.method == "completion/complete"
    return _decide(question, subject, None if unfinished else arguments)


def subject_of(message: Call) -> Subject | None:
    """What the message asks for; None if its method names nothing or its params do not fit."""
    find = _SUBJECTS.get(message.method)
    return None if find is None else find(message.params or {})


def is_visible(subject: Subject, principal: Principal, rules: RuleSet, *, server: str = "") -> bool:
    """Whether the thing belongs into a list: whether some call of it would be allowed.

    A resource template is visible if some resource of it may be read.
    """
    if _is_odd(subject):
        return False
    verdict = _verdict(_Question(principal, rules, server), _Asked(subject, None))
    return isinstance(verdict, Allow)


def is_denied(subject: Subject, principal: Principal, rules: RuleSet, *, server: str = "") -> bool:
    """Whether a rule denies the thing by its name; what no rule allows is not denied by one."""
    verdict = _verdict(_Question(principal, rules, server), _Asked(subject, None))
    return isinstance(verdict, Deny) and verdict.rule != DEFAULT


def _is_protocol(message: Call) -> bool:
    """Whether it is a notification that the protocol cannot do without."""
    return not isinstance(message, Request) and message.method in _PROTOCOL


def _is_notification(message: Call) -> bool:
    """Whether it is one that a client may have made up; what only servers tell, none has."""
    if isinstance(message, Request) or message.method in _TOLD_BY_SERVERS:
        return False
    return _NOTIFICATION.fullmatch(message.method) is not None


def _anything(question: _Question) -> Decision:
    """What names nothing but may change the server is for whoever may use something of it."""
    for rule in question.rules.allows:
        concerns = rule.concerns(question.principal, question.server)
        if concerns and any(map(rule.speaks_of, KINDS)):
            return Allow(rule.rule.id)
    return Deny(METHODS, UNKNOWN_METHOD)


def _list(question: _Question, kind: Kind) -> Decision:
    """A list is open to whoever may use something of its kind at this server."""
    for rule in question.rules.allows:
        if rule.speaks_of(kind) and rule.concerns(question.principal, question.server):
            return Allow(rule.rule.id)
    return Deny(DEFAULT, NOTHING_ALLOWED)


def _task(question: _Question, message: Call, task_tool: str | None) -> Decision:
    """A task follows the tool that began it."""
    if not isinstance((message.params or {}).get("taskId"), str):
        return Deny(METHODS, INVALID_PARAMS)
    if task_tool is None:
        return Deny(METHODS, UNKNOWN_TASK)
    decision = _decide(question, Subject("tools", task_tool), None)
    return decision if isinstance(decision, Allow) else Deny(decision.rule, UNKNOWN_TASK)


def _decide(
    question: _Question, subject: Subject, arguments: Mapping[str, object] | None
) -> Decision:
    if _is_odd(subject):
        return Deny(METHODS, ODD_NAME)
    asked = _Asked(subject, arguments)
    verdict = _verdict(question, asked)
    if isinstance(verdict, Allow):
        return verdict
    role = _required_role(question, asked)
    is_allowed_otherwise = isinstance(_verdict(question, _Asked(subject, None)), Allow)
    return Deny(verdict.rule, ARGUMENTS if is_allowed_otherwise else verdict.reason, role)


def _verdict(question: _Question, asked: _Asked) -> Decision:
    for rule in question.rules.denies:
        if rule.concerns(question.principal, question.server) and asked.meets(rule):
            return Deny(rule.rule.id, DENIED)
    for rule in question.rules.allows:
        if rule.concerns(question.principal, question.server) and asked.meets(rule):
            return Allow(rule.rule.id)
    return Deny(DEFAULT, NO_RULE)


def _required_role(question: _Question, asked: _Asked) -> str | None:
    """The first role, in configuration order, with which the same call would be allowed."""
    for role in question.rules.roles:
        principal = replace(question.principal, roles=(role,))
        stand_in = _Question(principal, question.rules, question.server)
        if isinstance(_verdict(stand_in, asked), Allow):
            return role
    return None


def _is_odd(subject: Subject) -> bool:
    """Whether the name itself is refused, whoever asks for it."""
    name = subject.name
    if subject.kind == "tools":
        return _TOOL_NAME.fullmatch(name) is None
    if subject.kind == "resources":
        return canonical_uri(name) is None
    if not 0 < len(name) <= _MAX_NAME_CHARS:
        return True
    return name.strip() != name or any(c != " " and is_invisible(c) for c in name)


def _named(kind: Kind, member: str) -> Callable[[Mapping[str, object]], Subject | None]:
    def find(params: Mapping[str, object]) -> Subject | None:
        name = params.get(member)
        return Subject(kind, name) if isinstance(name, str) else None

    return find


def _referred(params: Mapping[str, object]) -> Subject | None:
    """What a completion completes: a prompt by name, or a resource by URI or template."""
    ref = params.get("ref")
    if not isinstance(ref, dict):
        return None
    if ref.get("type") == "ref/prompt":
        return _named("prompts", "name")(ref)
    uri = ref.get("uri")
    if ref.get("type") == "ref/resource" and isinstance(uri, str):
        return Subject("resources", uri, template="{" in uri)
    return None


_PROTOCOL: Final = frozenset(
    {
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)

_TOLD_BY_SERVERS: Final = frozenset(
    {
        "notifications/elicitation/complete",
        "notifications/message",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks/status",
        "notifications/tools/list_changed",
    }
)

_OPEN: Final = frozenset({"initialize", "ping", "server/discover", "subscriptions/listen"})
"""Narrowed rather than denied: subscriptions/listen loses the URIs it may not name (listing)."""

LISTED_KIND: Final[Mapping[str, Kind]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "tasks/list": "tools",
}
"""Methods whose answer is a list, and what is in it."""

LISTED_MEMBER: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}
"""The same methods, and the member of their result that is the list."""

_TASKS: Final = frozenset({"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"})

_SUBJECTS: Final[Mapping[str, Callable[[Mapping[str, object]], Subject | None]]] = {
    "tools/call": _named("tools", "name"),
    "prompts/get": _named("prompts", "name"),
    "resources/read": _named("resources", "uri"),
    "resources/subscribe": _named("resources", "uri"),
    "resources/unsubscribe": _named("resources", "uri"),
    "completion/complete": _referred,
}

__all__ = [
    "ARGUMENTS",
    "DEFAULT",
    "DENIED",
    "INVALID_CURSOR",
    "INVALID_PARAMS",
    "LISTED_KIND",
    "LISTED_MEMBER",
    "METHODS",
    "NOTHING_ALLOWED",
    "NO_RULE",
    "ODD_NAME",
    "OPEN",
    "UNKNOWN_METHOD",
    "UNKNOWN_TASK",
    "Subject",
    "authorize",
    "is_denied",
    "is_visible",
    "subject_of",
]
