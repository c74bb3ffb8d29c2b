"""When is a server asked whether it has a tool, and what follows for what it has not?"""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mcp.asking import ADMIN, BRIEF, NOBODY, VIEWER, allow, call, deny
from tests.unit.mcp.test_authorize_laws import RULES
from tidegate.mcp import Rule, RuleSet, authorize
from tidegate.mcp.authorize import is_visible, subject_of
from tidegate.mcp.offered import (
    LOOK_S,
    MOST_NAMES,
    Look,
    Offers,
    Standing,
    admits_unknown,
    names_in,
    standing_of,
    step,
)

LISTED, NO_LIST, FAILED = Look(0.0), Look(0.0, has_list=False), Look(0.0, failure="timeout")
LOOKS = [None, LISTED, NO_LIST, FAILED]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
EVERY = list(product(STANDINGS, [False, True], [False, True], [False, True], LOOKS))


@pytest.mark.parametrize(("standing", "is_shown", "is_held", "is_guessable", "look"), EVERY)
def test_every_case_has_one_consequence(
    standing: Standing, look: Look | None, *, is_shown: bool, is_held: bool, is_guessable: bool
) -> None:
    told = step(
        standing, is_shown=is_shown, is_held_back=is_held, is_guessable=is_guessable, look=look
    )
    after = {None: "look", FAILED: "failed", NO_LIST: "goes_on", LISTED: "unknown"}
    match standing, is_shown, is_held, is_guessable:
        case "apart", _, _, _:
            expected = "goes_on"
        case "open", True, False, _:
            expected = "goes_on"
        case "open", True, True, False:
            expected = "goes_on"
        case "open", True, True, True:
            expected = after[look] if look in (None, FAILED) else "goes_on"
        case "open", False, _, _:
            expected = after[look]
        case _, _, _, True:
            expected = after[look] if look != NO_LIST else "unknown"
        case _:
            expected = "unknown"
    assert told == expected


@pytest.mark.parametrize("look", [None, LISTED, FAILED])
@pytest.mark.parametrize("is_shown", [False, True])
def test_a_hidden_name_goes_the_way_of_one_that_was_not_shown(
    look: Look | None, *, is_shown: bool
) -> None:
    """Whether it exists or not. Without any list alone they part: then nobody can know."""
    hidden = step("hidden", is_shown=is_shown, is_held_back=False, is_guessable=True, look=look)
    made_up = step("open", is_shown=False, is_held_back=False, is_guessable=True, look=look)
    assert hidden == made_up


SETS = {
    "nothing": ([], False),
    "everything": ([allow()], True),
    "a pattern": ([allow(tools=("read_*",))], True),
    "one character": ([allow(tools=("read_?",))], True),
    "names that are there": ([allow(tools=("a", "b"))], False),
    "a name that is not": ([allow(tools=("a", "ghost"))], True),
    "with a condition": ([allow(tools=("*",), when=("x < 1",))], True),
    "of others": ([allow(roles=("admin",))], False),
    "of another server": ([allow(servers=("other",))], False),
    "prompts alone": ([allow(prompts=("*",))], False),
    "denies alone": ([deny(tools=("*",))], False),
}


@pytest.mark.parametrize("way", SETS)
def test_an_unknown_name_may_be_allowed_where_a_rule_has_a_pattern_or_names_what_is_not_there(
    way: str,
) -> None:
    rules, expected = SETS[way]
    assert admits_unknown(RuleSet(rules), VIEWER, "backend", {"a", "b"}.__contains__) is expected


NAMES = ["get_status", "get_secret", "admin_reset", "a", "made_up", "read_x"]


@given(RULES, st.sampled_from([VIEWER, ADMIN, NOBODY]), st.sets(st.sampled_from(NAMES)))
def test_whoever_is_allowed_a_name_that_was_not_shown_is_said_to_be(
    rules: list[Rule], principal: object, shown: set[str]
) -> None:
    """So nobody is spared a look who could find out a difference by such a name."""
    ruleset = RuleSet(rules)
    for name in set(NAMES) - shown:
        subject = subject_of(call(name))
        assert subject is not None
        if is_visible(subject, principal, ruleset, server="backend"):  # type: ignore[arg-type]
            assert admits_unknown(ruleset, principal, "backend", shown.__contains__)  # type: ignore[arg-type]


def test_what_may_be_called_with_other_arguments_is_open_and_what_may_not_is_hidden() -> None:
    some = RuleSet([allow(tools=("pay",), when=("amount <= 5",))])
    said = {
        "open": [(call("pay", {"amount": 5}), some), (call("pay", {"amount": 6}), some)],
        "hidden": [(call("admin_x"), BRIEF), (call("other", {}), some)],
        "apart": [(call("odd name"), BRIEF), (call(1), BRIEF), (call("a", 1), BRIEF)],
    }
    for standing, asked in said.items():
        for message, rules in asked:
            assert standing_of(authorize(message, VIEWER, rules)) == standing


def tools(*names: object) -> list[object]:
    return [{"name": name} for name in names]


def test_only_what_has_a_name_is_known_by_it() -> None:
    longest = "x" * 128
    listed = [*tools("a", 1, None, longest, longest + "x", "b"), {}, "c", None, ["d"]]
    assert list(names_in(listed)) == ["a", longest, "b"]


def test_names_add_up_until_something_changes() -> None:
    offers = Offers()
    offers.show("s", 1, tools("a"))
    offers.show("s", 1, tools("b"))
    assert offers.knows("s", 1, "a")
    assert offers.knows("s", 1, "b")
    assert not offers.knows("s", 1, "c")
    assert not offers.knows("other", 1, "a")
    assert not offers.knows("s", 2, "a")
    offers.show("s", 2, tools("c"))
    assert offers.knows("s", 2, "c")
    assert not offers.knows("s", 2, "a")
    assert not offers.knows("s", 1, "a")


def test_no_server_fills_the_memory_and_its_last_list_is_known_whole() -> None:
    offers = Offers()
    offers.show("s", 1, tools(*map(str, range(MOST_NAMES))))
    assert offers.knows("s", 1, "0")
    offers.show("s", 1, tools("x", "y"))
    assert offers.knows("s", 1, "x")
    assert offers.knows("s", 1, "y")
    assert not offers.knows("s", 1, "0")
    offers.show("s", 1, tools(*map(str, range(3 * MOST_NAMES))))
    assert sum(offers.knows("s", 1, str(n)) for n in range(3 * MOST_NAMES)) == MOST_NAMES


def test_a_look_counts_for_a_second_for_its_asker_while_nothing_changes() -> None:
    offers = Offers()
    look = Look(5.0)
    offers.looked(("s", "vera"), 1, look)
    assert offers.recall(("s", "vera"), 1, 5.0 + LOOK_S / 2) is look
    assert offers.recall(("s", "vera"), 1, 5.0 + LOOK_S) is None
    assert offers.recall(("s", "vera"), 2, 5.0) is None
    assert offers.recall(("s", "adam"), 1, 5.0) is None


def test_looks_of_ever_new_askers_push_out_the_oldest() -> None:
    offers = Offers()
    for number in range(2_000):
        offers.looked(number, 1, Look(0.0))
    kept = [number for number in range(2_000) if offers.recall(number, 1, 0.0)]
    assert kept == list(range(2_000 - len(kept), 2_000))
    assert len(kept) == 1_024
