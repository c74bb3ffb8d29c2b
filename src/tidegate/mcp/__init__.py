"""Which MCP message may pass to which server, and what of the answer may come back?

Everything that decides is pure (authorize, rules, batch, listing, eras, answers); the only state
is in sessions. Sockets belong to the gateway floor.
"""

from tidegate.mcp.authorize import authorize
from tidegate.mcp.predicates import BrokenCondition, Condition, compile_condition
from tidegate.mcp.rules import Rule, RuleSet, TenantRules

__all__ = [
    "BrokenCondition",
    "Condition",
    "Rule",
    "RuleSet",
    "TenantRules",
    "authorize",
    "compile_condition",
]
