"""Short ways to write principals, rules and messages for the tests of MCP."""

from tidegate.jsonrpc import Notification, Request
from tidegate.mcp import Rule, RuleSet, compile_condition
from tidegate.policy import Principal

VIEWER = Principal("vera", "acme", ("viewer",), "k1")
ADMIN = Principal("adam", "acme", ("admin",), "k2")
NOBODY = Principal("nobody", "acme", (), "k3")
STRANGER = Principal("stranger", "other", ("guest",), "k4")

BRIEF = RuleSet(
    [
        Rule("rules[0]", "deny", tools=("admin_*",), unless_roles=("admin",)),
        Rule("rules[1]", "allow", roles=("viewer", "admin")),
    ]
)
"""What the first example of the documentation says."""


def call(name: object, arguments: object = None, **params: object) -> Request:
    """A tools/call with id 1."""
    if arguments is not None:
        params["arguments"] = arguments
    return Request(1, "tools/call", {"name": name, **params})


def ask(method: str, **params: object) -> Request:
    """A request with id 1."""
    return Request(1, method, params or None)


def tell(method: str, **params: object) -> Notification:
    """A notification."""
    return Notification(method, params or None)


def allow(*, when: tuple[str, ...] = (), **parts: tuple[str, ...]) -> Rule:
    """An allow rule."""
    return Rule("allow", "allow", when=tuple(map(compile_condition, when)), **parts)


def deny(*, when: tuple[str, ...] = (), **parts: tuple[str, ...]) -> Rule:
    """A deny rule."""
    return Rule("deny", "deny", when=tuple(map(compile_condition, when)), **parts)
