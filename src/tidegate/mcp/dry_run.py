"""What would be decided about a message, and which rules had a say?

Lives here: the message that a method and a name come to, and the rules that speak of what it
asks for with the operands of their conditions. Does not live here: the decision itself
(authorize), which rules there are (rules), how it is shown (cli.decision).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tidegate.jsonrpc import Call, Notification, Request, Tree
from tidegate.mcp.authorize import Subject, subject_of
from tidegate.mcp.predicates import Condition, value_at
from tidegate.mcp.rules import CompiledRule, RuleSet
from tidegate.policy import Principal

TASKS: Final = frozenset({"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"})
"""Methods whose NAME is the tool that began the task: a task follows it."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One condition of a rule, the value that it read (None: none), and whether it holds."""

    condition: str
    value: object
    holds: bool


@dataclass(frozen=True, slots=True)
class Weighed:
    """One rule that names the thing and concerns the caller. `applies`: all of it holds."""

    rule: str
    effect: str
    applies: bool
    operands: tuple[Operand, ...]


def message_of(method: str, name: str | None, arguments: Mapping[str, object] | None) -> Call:
    """The message with this method about the thing called `name`; its id is 1."""
    params: Tree = {}
    if name is not None:
        params = _naming(method, name)
    if arguments is not None:
        params["arguments"] = dict(arguments)
    if method.startswith("notifications/"):
        return Notification(method, params or None)
    return Request(1, method, params or None)


def _naming(method: str, name: str) -> Tree:
    if method.startswith("resources/"):
        return {"uri": name}
    if method in TASKS:
        return {"taskId": "dry-run"}
    if method != "completion/complete":
        return {"name": name}
    # Prompts have names, resources have a scheme.
    is_uri = "://" in name
    ref: Tree = {"type": "ref/resource", "uri": name}
    return {"ref": ref if is_uri else {"type": "ref/prompt", "name": name}}


def weigh(
    message: Call, principal: Principal, rules: RuleSet, *, server: str, task_tool: str | None
) -> tuple[Weighed, ...]:
    """Every rule that names what the message asks for and concerns `principal`, denies first."""
    subject = subject_of(message)
    if message.method in TASKS and task_tool is not None:
        subject = Subject("tools", task_tool)
    if subject is None:
        return ()
    given = (message.params or {}).get("arguments", {})
    known = isinstance(given, dict) and message.method not in (*TASKS, "completion/complete")
    arguments = given if known and isinstance(given, dict) else None
    if subject.kind == "resources":
        arguments = {}
    return tuple(
        Weighed(
            rule.rule.id,
            rule.rule.effect,
            rule.condition_holds(arguments),
            tuple(_operands(rule, arguments)),
        )
        for rule in (*rules.denies, *rules.allows)
        if _names(rule, subject) and rule.concerns(principal, server)
    )


def _names(rule: CompiledRule, subject: Subject) -> bool:
    if subject.template:
        return rule.names_some_of(subject.name)
    return rule.names(subject.kind, subject.name)


def _operands(rule: CompiledRule, arguments: Mapping[str, object] | None) -> Iterator[Operand]:
    if arguments is None:
        return
    for condition in rule.rule.when:
        yield Operand(
            condition.text,
            value_at(arguments, condition.operand),
            _holds(rule, condition, arguments),
        )


def _holds(rule: CompiledRule, condition: Condition, arguments: Mapping[str, object]) -> bool:
    if rule.rule.effect == "allow":
        return condition.allows(arguments)
    return condition.denies(arguments)


__all__ = ["TASKS", "Operand", "Weighed", "message_of", "weigh"]
