"""Is a denied client told exactly what its profile says, and nothing more?"""

from itertools import product

import pytest

from tests.unit.mcp.asking import ADMIN, BRIEF, NOBODY, VIEWER, allow, ask, call
from tidegate.jsonrpc import Request
from tidegate.mcp import RuleSet, authorize
from tidegate.mcp.authorize import INVALID_CURSOR, METHODS, Subject
from tidegate.mcp.denials import Hiding, Profile, Refusal, refusal, unknown
from tidegate.policy import Deny, Principal

PROFILES: list[Profile] = ["brief", "spec"]
HIDINGS: list[Hiding] = ["off", "list", "full"]


def refused(
    message: Request,
    who: Principal = VIEWER,
    rules: RuleSet = BRIEF,
    *,
    errors: Profile = "brief",
    hide: Hiding = "off",
    modern: bool = False,
) -> Refusal:
    decision = authorize(message, who, rules)
    assert isinstance(decision, Deny)
    return refusal(message, decision, who, errors=errors, hide=hide, modern=modern)


@pytest.mark.parametrize("hide", ["off", "list"])
@pytest.mark.parametrize("modern", [True, False])
def test_the_denial_of_the_brief_profile_is_exact(hide: Hiding, *, modern: bool) -> None:
    assert refused(call("admin_reset_key"), hide=hide, modern=modern) == Refusal(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {
                "code": -32001,
                "message": "Unauthorized Tool Call",
                "data": {
                    "tool": "admin_reset_key",
                    "required_role": "admin",
                    "your_role": "viewer",
                },
            },
        },
        200,
    )


def test_a_name_is_shown_as_sent_up_to_a_bound() -> None:
    for name in (" admin_reset_key", "admin\u200b", "\u0430dmin"):
        error = refused(call(name)).body["error"]
        assert error["data"]["tool"] == name  # type: ignore[index]
    error = refused(call("x" * 5000)).body["error"]
    assert error["data"]["tool"] == "x" * 256  # type: ignore[index]


def test_a_principal_without_roles_has_none_to_show() -> None:
    error = refused(call("x"), NOBODY).body["error"]
    assert error["data"] == {"tool": "x", "required_role": "admin", "your_role": None}  # type: ignore[index]


def test_other_things_are_named_by_what_they_are() -> None:
    denied = RuleSet([])
    error = refused(ask("prompts/get", name="p"), rules=denied).body["error"]
    assert error == {
        "code": -32001,
        "message": "Unauthorized Request",
        "data": {"prompt": "p", "required_role": None, "your_role": "viewer"},
    }
    error = refused(ask("resources/read", uri="a:b"), rules=denied).body["error"]
    assert error["data"]["resource"] == "a:b"  # type: ignore[index]


def test_the_spec_profile_answers_with_a_challenge() -> None:
    answer = refused(call("admin_x"), errors="spec")
    assert answer.status == 403
    assert answer.challenge == 'Bearer error="insufficient_scope", scope="admin"'
    assert answer.body["error"] == {
        "code": -31003,
        "message": "Forbidden",
        "data": {"reason": "tool_denied", "tool": "admin_x", "required_role": "admin"},
    }
    nobody_may = refused(call("admin_x"), errors="spec", rules=RuleSet([]))
    assert nobody_may.challenge == 'Bearer error="insufficient_scope"'


HIDDEN = [call("admin_reset_key"), call("Admin_Reset_Key"), call(" x"), call("x" * 200)]


@pytest.mark.parametrize(
    ("message", "errors", "modern"), list(product(HIDDEN, PROFILES, [True, False]))
)
def test_a_hidden_tool_is_answered_like_one_that_does_not_exist(
    message: Request, errors: Profile, *, modern: bool
) -> None:
    nowhere = unknown(1, Subject("tools", "no_such"), errors=errors, modern=modern)
    assert refused(message, errors=errors, hide="full", modern=modern) == nowhere
    code = -32601 if errors == "brief" else -32602
    assert nowhere.body["error"] == {"code": code, "message": "Unknown tool"}
    assert nowhere.status == (400 if modern and errors == "spec" else 200)


@pytest.mark.parametrize("errors", PROFILES)
def test_a_tool_that_is_listed_is_never_called_unknown(errors: Profile) -> None:
    # Its arguments were denied: the model sees the tool and would take "unknown" for a fault.
    rules = RuleSet([allow(tools=("refund",), when=("amount <= 500",))])
    message = call("refund", {"amount": 900})
    answers = [refused(message, errors=errors, hide=hide, rules=rules) for hide in HIDINGS]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].body["error"]["code"] == (-32001 if errors == "brief" else -31003)


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(
    ("message", "what", "data"),
    [
        (ask("prompts/get", name="p"), "prompt", {}),
        (ask("resources/read", uri="a:b"), "resource", {"data": {"uri": "a:b"}}),
        (ask("resources/read", uri="a:" + "b" * 2047), "resource", {}),
    ],
)
def test_hidden_prompts_and_resources_are_unknown_too(
    message: Request, what: str, data: dict[str, object], *, modern: bool
) -> None:
    answer = refused(message, rules=RuleSet([]), hide="full", modern=modern)
    error = {"code": -32602, "message": f"Unknown {what}"}
    assert answer.body["error"] == {**error, **data}


@pytest.mark.parametrize(("errors", "hide"), list(product(PROFILES, HIDINGS)))
def test_unreadable_messages_are_told_so_in_every_profile(errors: Profile, hide: Hiding) -> None:
    cases = {
        -32601: (ask("no/such"), 404),
        -32602: (ask("tools/call"), 400),
    }
    for code, (message, status) in cases.items():
        for modern in (True, False):
            answer = refused(message, ADMIN, errors=errors, hide=hide, modern=modern)
            assert answer.body["error"]["code"] == code  # type: ignore[index]
            assert answer.status == (status if modern else 200)
    answer = refused(ask("tasks/get", taskId="t"), errors=errors, hide=hide)
    assert answer.body["error"] == {"code": -32602, "message": "Unknown task"}


@pytest.mark.parametrize(("errors", "hide"), list(product(PROFILES, HIDINGS)))
@pytest.mark.parametrize("modern", [True, False])
def test_a_cursor_that_is_not_ones_own_is_invalid_in_every_profile(
    errors: Profile, hide: Hiding, *, modern: bool
) -> None:
    asked, denied = ask("tools/list", cursor="2"), Deny(METHODS, INVALID_CURSOR)
    answer = refusal(asked, denied, VIEWER, errors=errors, hide=hide, modern=modern)
    assert answer.body["error"] == {"code": -32602, "message": "Invalid cursor"}
    assert answer.status == (400 if modern else 200)


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("tasks/list", "tasks"),
    ],
)
@pytest.mark.parametrize("hide", HIDINGS)
def test_a_list_of_nothing_is_an_empty_list(method: str, member: str, hide: Hiding) -> None:
    old = refused(ask(method), rules=RuleSet([]), hide=hide)
    assert old.body == {"jsonrpc": "2.0", "id": 1, "result": {member: []}}
    new = refused(ask(method), rules=RuleSet([]), hide=hide, modern=True)
    assert new.body["result"] == {
        member: [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
