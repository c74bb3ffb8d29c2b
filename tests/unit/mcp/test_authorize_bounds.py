"""Is a decision little work for each byte, whatever the bytes are and however many rules ask?

Counted is what is normalized and looked up, since that is what a text is made expensive by.
"""

import unicodedata
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.mcp.asking import VIEWER, allow, ask, deny
from tidegate.mcp import Rule, RuleSet, authorize
from tidegate.mcp import folding as folded
from tidegate.mcp.predicates import Condition
from tidegate.policy import Deny

LIGATURE = "\ufdfa"
MOST_CHARS = 60_000
"""Some ten milliseconds."""
NUMBERS = count()


@pytest.fixture(name="normalized")
def _normalized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The characters that each step of the work was about."""
    made: list[int] = []

    def normalize(form: Any, text: str) -> str:
        result = unicodedata.normalize(form, text)
        made.append(max(len(text), len(result)))
        return result

    def category(character: str) -> str:
        made.append(1)
        return unicodedata.category(character)

    counting = SimpleNamespace(
        normalize=normalize, combining=unicodedata.combining, category=category
    )
    monkeypatch.setattr(folded, "unicodedata", counting)
    return made


def own(text: str) -> str:
    """The text with a number in it: nothing is remembered of it from another test."""
    return f"{next(NUMBERS)}{text}"


def many(length: int, names: int) -> dict[str, object]:
    return {LIGATURE * length + chr(0x4E00 + number): 1 for number in range(names)}


def values(text: str) -> dict[str, object]:
    return {"amount": 1, **{name: own(text) for name in ("path", "dest", "cwd")}}


CASES: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "refund", "arguments": {"amount": 1000, **many(14, 990)}}),
    ("tools/call", {"name": "refund", "arguments": {"amount": 1000, **many(1, 190)}}),
    ("tools/call", {"name": "refund", "arguments": {**values("/x"), **many(1, 190)}}),
    ("tools/call", {"name": "refund", "arguments": values(LIGATURE * 1000)}),
    ("tools/call", {"name": "refund", "arguments": values(LIGATURE * 56)}),
    ("tools/call", {"name": "refund", "arguments": values("\u00e9" * 1000)}),
    ("tools/call", {"name": "refund", "arguments": values("https://a@b@c@" + "\u00e9;/..;" * 140)}),
    ("prompts/get", {"name": own(LIGATURE * 250)}),
    ("prompts/get", {"name": "\u00e9" * 1_000_000}),
    ("resources/read", {"uri": "db:" + "\u00e9" * 1_000_000}),
    ("resources/read", {"uri": f"https://1.2.3.4/{own(LIGATURE * 900)}"}),
    ("resources/read", {"uri": f"https://a@b@c@0x1/{own(LIGATURE * 110)}"}),
    ("resources/read", {"uri": f"https://a@b@c@0x1/{own('%EF%B7%BA' * 110)}"}),
]
CONDITIONS = (
    "amount > 5000",
    "path startswith 'https://intern.example/'",
    "dest startswith '/etc/'",
    "cwd matches '[a-z]{1,200}'",
    "path == 'a'",
    "dest in ['a', 'b']",
)


def rules(times: int) -> RuleSet:
    """The conditions in so many rules each, for so many roles."""
    roles = [f"role{number}" for number in range(times)]
    made: list[Rule] = [allow(roles=("admin",)), *(allow(roles=(role,)) for role in roles)]
    for number in range(times):
        made += [deny(when=(text,)) for text in CONDITIONS[number % 2 :]]
        made += [deny(prompts=(f"x{number}",)), deny(resources=(f"https://intern{number}/*",))]
        made += [allow(roles=(role,), when=CONDITIONS) for role in roles]
    return RuleSet(made)


@pytest.mark.parametrize(("method", "params"), CASES)
def test_a_decision_costs_little_and_no_more_with_many_rules_and_roles(
    normalized: list[int], method: str, params: dict[str, Any]
) -> None:
    costs = []
    for times in (1, 8):
        asked = rules(times)
        normalized.clear()
        folded._remembered_fold.cache_clear()
        folded._remembered_spelling.cache_clear()
        authorize(ask(method, **params), VIEWER, asked)
        costs.append(sum(normalized))
    assert max(costs) < MOST_CHARS


def test_a_condition_is_looked_at_once_for_all_roles() -> None:
    asked: list[object] = []

    def never(value: object) -> bool:
        asked.append(value)
        return False

    condition = Condition("x", "x", never, never)
    roles = [f"role{number}" for number in range(20)]
    made = RuleSet(
        [Rule("deny", "deny", when=(condition,)), *(allow(roles=(r,), tools=("b",)) for r in roles)]
    )
    decision = authorize(ask("tools/call", name="a", arguments={"x": 1}), VIEWER, made)
    assert isinstance(decision, Deny)
    assert asked == [1, 1], "exactly, and as a careless reader would"
