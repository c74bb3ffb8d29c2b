"""What do the operator's rules mean?

Lives here: one rule as a frozen value, its compiled form, and the set of all rules with the
order of the roles they name. Does not live here: YAML and line numbers (config), the decision
over a message (authorize), the language of conditions (predicates).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import unquote

from tidegate.mcp.folding import fold, is_short
from tidegate.mcp.patterns import (
    canonical_uri,
    glob,
    joined_by_ampersands,
    literal_prefix,
    loose_uris,
)
from tidegate.mcp.predicates import Arguments, Condition, Given, value_at
from tidegate.mcp.url_prefixes import places_beside
from tidegate.policy import Principal

Kind = Literal["tools", "prompts", "resources"]
KINDS: Final[tuple[Kind, ...]] = ("tools", "prompts", "resources")
_ANY: Final = ("*",)
_MOST_REMEMBERED: Final = 16


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it stands in the configuration; every tuple but `when` holds globs.

    `id` names it in records, such as "mcp.rules[0]". `tools`, `resources` and `prompts`: None
    means that the rule does not speak of that kind, unless all three are None, which means all
    of them. `when` is compiled (predicates.compile_condition) and reads the arguments of tools
    and prompts; all of it must hold. Resources have no arguments: for them an allow with `when`
    never holds and a deny always does. A rule does not touch principals that have one of
    `unless_roles`.
    """

    id: str
    effect: Literal["allow", "deny"]
    roles: tuple[str, ...] = _ANY
    unless_roles: tuple[str, ...] = ()
    tenants: tuple[str, ...] = _ANY
    servers: tuple[str, ...] = _ANY
    tools: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    prompts: tuple[str, ...] | None = None
    when: tuple[Condition, ...] = ()

    def patterns(self, kind: Kind) -> tuple[str, ...]:
        """The globs for names of `kind`; empty if the rule does not speak of it."""
        named: Mapping[Kind, tuple[str, ...] | None] = {
            "tools": self.tools,
            "prompts": self.prompts,
            "resources": self.resources,
        }
        if all(patterns is None for patterns in named.values()):
            return _ANY
        return named[kind] or ()


_Test = Callable[[str], bool]


def _any_of(patterns: Iterable[str]) -> _Test:
    tests = tuple(glob(pattern) for pattern in patterns)
    if len(tests) == 1:
        return tests[0]
    return lambda text: any(test(text) for test in tests)


_plain = lru_cache(_MOST_REMEMBERED)(canonical_uri)


@lru_cache(_MOST_REMEMBERED)
def _readings(uri: str) -> tuple[tuple[str, str], ...] | None:
    """The URI as it is, as it should be, and as careless servers may take it; each folded, too.

    None for one that is too long to have any. Remembered, since every deny rule asks about the
    same one.
    """
    if not is_short(uri):
        return None
    plain = _plain(uri) or uri
    loose = loose_uris(plain)
    loose |= places_beside(plain)
    readings = {uri, plain, unquote(plain), *loose, *(each.removesuffix("/") for each in loose)}
    if plain.startswith("file://") and not plain.startswith("file:///"):
        # A host as the first folder: so a reader takes it that cuts the scheme off.
        readings |= loose_uris(f"file:///{plain[7:]}")
    return tuple((reading, fold(reading)) for reading in readings)


def _plain_pattern(pattern: str) -> str:
    """A glob of URIs in the spelling that URIs are compared in, if it has one."""
    return _unless_wider(canonical_uri(pattern) or pattern, pattern)


def _without_escapes(pattern: str) -> str:
    """The same glob for a reader that decodes whatever is escaped."""
    return _unless_wider(unquote(pattern), pattern)


def _unless_wider(other: str, pattern: str) -> str:
    # An escaped star stands for itself; decoded it would stand for anything.
    signs = [sum(map(text.count, "*?")) for text in (other, pattern)]
    return other if signs[0] == signs[1] else pattern


class CompiledRule:
    """A rule ready to be asked; immutable after construction."""

    __slots__ = (
        "_exact",
        "_folded",
        "_patterns",
        "_prefixes",
        "_roles",
        "_server",
        "_spared",
        "_tenant",
        "rule",
    )

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._roles = _any_of(rule.roles)
        self._spared = _any_of(rule.unless_roles)
        self._tenant = _any_of(rule.tenants)
        self._server = _any_of(rule.servers)
        patterns = {kind: rule.patterns(kind) for kind in KINDS}
        patterns["resources"] = tuple(map(_plain_pattern, patterns["resources"]))
        if rule.effect == "deny":
            meant = {*patterns["resources"], *map(_without_escapes, patterns["resources"])}
            spelled = map(joined_by_ampersands, meant)
            patterns["resources"] = tuple(sorted(set().union(*spelled)))
        self._patterns = patterns
        self._exact = {kind: _any_of(globs) for kind, globs in patterns.items()}
        self._folded = {kind: _any_of(map(fold, globs)) for kind, globs in patterns.items()}
        self._prefixes = {kind: tuple(map(literal_prefix, patterns[kind])) for kind in KINDS}

    def concerns(self, principal: Principal, server: str) -> bool:
        """Whether it speaks of this principal at this server at all."""
        if not self._server(server) or not self._tenant(principal.tenant):
            return False
        if any(map(self._spared, principal.roles)):
            return False
        # A rule for every role is also for a principal that has none.
        return "*" in self.rule.roles or any(map(self._roles, principal.roles))

    def names(self, kind: Kind, name: str) -> bool:
        """Whether it names the thing: exactly for an allow, in any disguise for a deny.

        A deny names whatever is too long to be folded.
        """
        if not self._patterns[kind]:
            return False
        exact, folded = self._exact[kind], self._folded[kind]
        if self.rule.effect == "allow":
            return exact((_plain(name) or "") if kind == "resources" else name)
        if "*" in self._patterns[kind] or not is_short(name):
            return True
        if kind != "resources":
            return exact(name) or folded(fold(name))
        readings = _readings(name)
        return readings is None or any(exact(text) or folded(seen) for text, seen in readings)

    def names_some_of(self, template: str) -> bool:
        """Whether a resource of the URI template could be named.

        For a deny: whether every one is, so that the template promises nothing.
        """
        start = template.split("{", 1)[0]
        prefixes = self._prefixes["resources"]
        if self.rule.effect == "allow":
            return any(p.startswith(start) or start.startswith(p) for p in prefixes)
        whole = [
            prefix
            for pattern, prefix in zip(self._patterns["resources"], prefixes, strict=True)
            if pattern == f"{prefix}*"
        ]
        if not whole:
            return False
        readings = _readings(start)
        starts = tuple(map(fold, whole))
        return readings is None or any(seen.startswith(starts) for _, seen in readings)

    def speaks_of(self, kind: Kind) -> bool:
        """Whether it names anything of this kind."""
        return bool(self.rule.patterns(kind))

    def condition_holds(self, arguments: Given | None) -> bool:
        """Whether all conditions are met; None stands for arguments that are not known yet.

        Unknown arguments leave an allow possible and a deny avoidable: what can be called with
        some arguments is listed.
        """
        allowing = self.rule.effect == "allow"
        if arguments is None:
            return allowing or not self.rule.when
        if allowing:
            return all(condition.allows(arguments) for condition in self.rule.when)
        return all(condition.denies(arguments) for condition in self.rule.when)


class RuleSet:
    """All rules, and `roles` in configuration order; immutable, one per configuration revision."""

    __slots__ = ("_operands", "allows", "denies", "roles")

    def __init__(
        self, rules: Sequence[Rule], *, roles: Sequence[str] = (), base: "RuleSet | None" = None
    ) -> None:
        """`roles`: further role names the configuration knows, after those of the rules.

        `base`: rules that hold as well, compiled already; their roles come first.
        """
        compiled = [CompiledRule(rule) for rule in rules]
        self._operands = {rule.id: [c.operand for c in rule.when] for rule in rules if rule.when}
        self.allows = tuple(rule for rule in compiled if rule.rule.effect == "allow")
        self.denies = tuple(rule for rule in compiled if rule.rule.effect == "deny")
        named = (role for rule in rules for role in (*rule.unless_roles, *rule.roles))
        literal = [role for role in (*named, *roles) if not set("*?") & set(role)]
        if base is not None:
            self._operands = {**base._operands, **self._operands}  # noqa: SLF001 - one of us
            self.allows = (*base.allows, *self.allows)
            self.denies = (*base.denies, *self.denies)
            literal = [*base.roles, *literal]
        self.roles: tuple[str, ...] = tuple(dict.fromkeys(literal))

    def of(self, tenant: str) -> "RuleSet":
        """The rules for a caller of `tenant`: these (see TenantRules)."""
        del tenant
        return self

    def operands(self, rule_id: str, arguments: Mapping[str, object]) -> dict[str, object]:
        """What the conditions of a rule looked at in `arguments`, by operand; for the record."""
        given = Arguments(arguments)
        return {path: value_at(given, path) for path in self._operands.get(rule_id, ())}


def without_rules(rules: RuleSet) -> RuleSet:
    """The same roles and not one rule: what is judged by it is denied like a thing that no rule
    names."""
    return RuleSet((), roles=rules.roles)


class TenantRules:
    """The rules of everybody and, beside them, those that single tenants have of their own.

    Both hold together, as if they stood in one list: a deny of either beats every allow. Whose
    the own ones are is looked up by the exact name of the tenant, so that no pattern in them can
    speak for another.
    """

    __slots__ = ("_made", "_own", "everybody")

    def __init__(self, everybody: RuleSet, own: Mapping[str, Callable[[], Sequence[Rule]]]) -> None:
        """`own` makes the rules of a tenant when its first message comes, and once."""
        self.everybody = everybody
        self._own = own
        self._made: dict[str, RuleSet] = {}

    def of(self, tenant: str) -> RuleSet:
        """The rules for a caller of `tenant`."""
        made = self._made.get(tenant)
        if made is None:
            if tenant not in self._own:
                return self.everybody
            made = self._made[tenant] = RuleSet(self._own[tenant](), base=self.everybody)
        return made


__all__ = [
    "KINDS",
    "CompiledRule",
    "Kind",
    "Rule",
    "RuleSet",
    "TenantRules",
    "without_rules",
]
