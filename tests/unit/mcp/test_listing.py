"""Does a list show what may be called, and keep everything beside it?"""

from collections.abc import Collection
from itertools import product

import pytest

from tests.unit.mcp.asking import ask, tell
from tidegate.gateway.beside import LARGE_BYTES
from tidegate.jsonrpc import Notification, Request
from tidegate.mcp.authorize import LISTED_MEMBER, Subject
from tidegate.mcp.listing import (
    effort,
    filter_result,
    filter_tasks,
    is_list,
    is_of_own_task,
    made_private,
    may_hear,
    narrow_subscription,
    readable,
    subscribed_tasks,
    with_usable_offer,
    without_offer,
)


def visible(subject: Subject) -> bool:
    return "secret" not in subject.name


MEMBERS = {
    "tools": ("name", Subject("tools", "x")),
    "prompts": ("name", Subject("prompts", "x")),
    "resources": ("uri", Subject("resources", "x")),
    "resourceTemplates": ("uriTemplate", Subject("resources", "x", template=True)),
}


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("names", list(product(["a", "secret"], repeat=3)))
def test_a_list_keeps_what_is_visible_in_its_order(member: str, names: tuple[str, ...]) -> None:
    key, _ = MEMBERS[member]
    items = [{key: f"{name}{n}", "x": [n]} for n, name in enumerate(names)]
    result = {member: items, "nextCursor": "c", "_meta": {"k": 1}, "cacheScope": "public"}
    kept = [item for item in items if "secret" not in str(item[key])]
    shown = filter_result(result, visible)
    assert shown == {**result, member: kept}
    assert (shown is result) is (len(kept) == len(items))


@pytest.mark.parametrize("member", MEMBERS)
def test_the_filter_asks_about_the_right_kind(member: str) -> None:
    key, subject = MEMBERS[member]
    asked: list[Subject] = []
    filter_result({member: [{key: "x"}]}, lambda each: not asked.append(each))
    assert asked == [subject]


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("item", [None, "a", 1, [], {}, {"name": 1, "uri": None}, {"Name": "a"}])
def test_an_element_without_a_readable_name_is_hidden(member: str, item: object) -> None:
    assert filter_result({member: [item]}, visible) == {member: []}


@pytest.mark.parametrize("result", [None, [], "x", {}, {"tools": None}, {"tool": {"a": 1}}])
def test_what_is_no_list_is_left_alone(result: object) -> None:
    assert filter_result(result, visible) is result


@pytest.mark.parametrize(
    "member", ["Tools", "TOOLS", "tool\u017f", "\uff54ools", "resourcetemplates"]
)
def test_a_list_under_a_name_that_a_careless_client_would_read_is_hidden(member: str) -> None:
    shown = filter_result({member: [{"name": "secret"}], "tools": [], "x": 1}, visible)
    assert shown == {"tools": [], "x": 1}


@pytest.mark.parametrize("odd", [{"secret": {}}, "secret", 1])
def test_a_list_in_a_form_that_nobody_can_filter_is_hidden(odd: object) -> None:
    assert filter_result({"tools": odd, "x": 1}, visible) == {"x": 1}


ANSWERS = [*LISTED_MEMBER.items()]
ODD_LISTS: list[object] = [None, {}, "a", 1, True, {"0": {}}, [None], ["a"], [[]], [{}, 1]]


@pytest.mark.parametrize(("method", "member"), ANSWERS)
def test_objects_in_the_member_of_that_name_are_a_list(method: str, member: str) -> None:
    others = {"nextCursor": "c", "_meta": {}, "other": 1, "x" * 100: 1}
    for items in ([], [{}], [{"name": "a"}, {"uri": 1}]):
        assert is_list(method, {member: items, **others})


@pytest.mark.parametrize(("method", "member"), ANSWERS)
@pytest.mark.parametrize("odd", ODD_LISTS)
def test_what_is_not_objects_in_that_member_is_no_list(
    method: str, member: str, odd: object
) -> None:
    assert not is_list(method, {member: odd})
    assert not is_list(method, {})
    assert not is_list(method, odd)


@pytest.mark.parametrize(("method", "member"), ANSWERS)
def test_a_list_that_somebody_would_read_under_another_name_is_none(
    method: str, member: str
) -> None:
    spelled = [
        member.capitalize(),
        member.upper(),
        member.swapcase(),
        member.replace("s", "\u017f"),
        "".join(chr(ord(c) + 0xFEE0) for c in member),
        f"{member}\u200b",
        f"\ufeff{member}",
        f" {member}",
        f"{member}\x00" + "\u200b" * 20,
    ]
    for name in spelled:
        assert name != member
        assert not is_list(method, {name: []})
        assert not is_list(method, {member: [], name: []})
    assert is_list(method, {member: [], f"x{member}": []})


MANY = {f"\ufdfa{number}": 0 for number in range(300)}


def test_among_more_odd_names_than_anybody_looks_at_there_is_no_list() -> None:
    few = dict(list(MANY.items())[:100])
    for method, member in ANSWERS:
        assert is_list(method, {member: [], **few})
        assert not is_list(method, {member: [], **MANY})
    result = {"tools": [{"name": "a"}], "Prompts": [], "plain": 1, **MANY}
    assert filter_result(result, visible) == {"tools": [{"name": "a"}], "plain": 1}
    assert filter_result({"plain": 1, **few}, visible) == {"plain": 1, **few}


def test_every_list_in_a_result_is_filtered() -> None:
    result = {"tools": [{"name": "secret"}], "prompts": [{"name": "secret"}, {"name": "a"}]}
    assert filter_result(result, visible) == {"tools": [], "prompts": [{"name": "a"}]}


def test_tasks_are_listed_for_their_owner() -> None:
    result = {"tasks": [{"taskId": "mine"}, {"taskId": "other"}, {}, "x"], "nextCursor": "c"}
    shown = filter_tasks(result, lambda task_id: task_id == "mine")
    assert shown == {"tasks": [{"taskId": "mine"}], "nextCursor": "c"}
    assert filter_tasks(shown, lambda task_id: task_id == "mine") is shown
    for other in ({}, {"tasks": 1}, None):
        assert filter_tasks(other, lambda _: False) is other


def test_nothing_leaves_as_public() -> None:
    assert made_private({"cacheScope": "public", "a": 1}) == {"cacheScope": "private", "a": 1}
    for result in ({"cacheScope": "private"}, {}, None, [1]):
        assert made_private(result) is result


def subscription(notifications: object) -> Request:
    return ask("subscriptions/listen", notifications=notifications, _meta={"a": 1})


def narrow(
    asked: Request, lists: Collection[str] = ("tools/list", "prompts/list")
) -> Request | None:
    return narrow_subscription(
        asked, visible, lists=lists.__contains__, owned=lambda task_id: task_id == "mine"
    )


def test_a_subscription_loses_the_uris_that_may_not_be_read() -> None:
    asked = subscription({"toolsListChanged": True, "resourceSubscriptions": ["a:1", "a:secret"]})
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a:1"]}
    assert narrow(asked) == subscription(wanted)


def test_a_subscription_loses_what_is_not_the_callers_to_hear_of() -> None:
    tasks = ["mine", "hers", 1]
    asked = subscription(
        {"toolsListChanged": True, "promptsListChanged": False, "taskIds": tasks, "other": ["x"]}
    )
    assert narrow(asked) == subscription(
        {"toolsListChanged": True, "promptsListChanged": False, "taskIds": ["mine"]}
    )
    assert narrow(asked, lists=("prompts/list",)) == subscription(
        {"promptsListChanged": False, "taskIds": ["mine"]}
    )
    assert narrow(subscription({"taskIds": "mine"})) == subscription({"taskIds": []})
    many = subscription({"taskIds": ["mine"] * 200})
    assert len(subscribed_tasks(many)) == 100
    assert narrow(many) == subscription({"taskIds": ["mine"] * 100})


@pytest.mark.parametrize("method", ["notifications/tasks", "notifications/tasks/status"])
def test_news_of_a_task_is_for_its_owner(method: str) -> None:
    def owned(task_id: str) -> bool:
        return task_id == "mine"

    assert is_of_own_task(tell(method, taskId="mine"), owned)
    for named in ({"taskId": "hers"}, {"taskId": 1}, {}):
        assert not is_of_own_task(tell(method, **named), owned)
    assert is_of_own_task(tell("notifications/message", taskId="hers"), owned)


def test_what_names_resources_is_judged_beside_the_loop_sooner() -> None:
    assert effort("tools/list", 5_000) == effort("tools/call", 5_000) == 5_000
    for method in ("resources/list", "resources/templates/list", "resources/read"):
        assert effort(method, 5_000) > LARGE_BYTES > effort(method, 1_000)


def test_of_what_a_read_brings_along_nothing_is_seen_that_is_denied() -> None:
    parts = [{"uri": f"file:///{name}", "text": name} for name in ("a", "secret", "b")]
    result = {"contents": [*parts, {"text": "no uri"}, "odd"], "ttlMs": 1}

    def denied(subject: Subject) -> bool:
        assert subject.kind == "resources"
        return "secret" in subject.name

    kept = {**result, "contents": [parts[0], parts[2], {"text": "no uri"}, "odd"]}
    assert readable(result, "file:///", denied) == kept
    assert readable(result, "file:///secret", denied) is result, "it was asked for, and allowed"
    assert readable(kept, "file:///", denied) is kept
    for other in (None, [], {"contents": {}}, {"contents": None}):
        assert readable(other, "file:///", denied) is other


def test_who_may_use_nothing_is_offered_nothing() -> None:
    said = {"protocolVersion": "v", "capabilities": {"tools": {}}, "instructions": "secret"}
    assert without_offer(said) == {"protocolVersion": "v", "capabilities": {}}
    for other in ({}, {"a": 1}, None, [1]):
        assert without_offer(other) == other


@pytest.mark.parametrize(
    ("lists", "gone"),
    [
        (["tools/list", "prompts/list", "resources/list", "tasks/list"], []),
        (["tools/list", "tasks/list"], ["prompts", "resources", "completions"]),
        (["prompts/list"], ["tools", "tasks", "resources"]),
        (["resources/list"], ["tools", "tasks", "prompts"]),
        ([], ["tools", "tasks", "prompts", "resources", "completions"]),
    ],
)
def test_a_capability_is_offered_to_whoever_may_ask_for_a_list_of_its_kind(
    lists: list[str], gone: list[str]
) -> None:
    kinds = ("tools", "prompts", "resources", "completions", "tasks")
    others = {"logging": {}, "experimental": {"x": {}}, "extensions": {"a/b": {}}, "zz": 1}
    said = {"capabilities": {**{kind: {"a": 1} for kind in kinds}, **others}, "instructions": "i"}
    shown = with_usable_offer(said, lists.__contains__)
    kept = {kind: {"a": 1} for kind in kinds if kind not in gone} | others
    assert shown == {**said, "capabilities": kept}
    assert (shown is said) is (not gone)
    for other in ({}, {"capabilities": [1]}, None, [1]):
        assert with_usable_offer(other, lists.__contains__) is other


def test_a_subscription_without_hidden_uris_is_the_same() -> None:
    for wanted in ({}, {"toolsListChanged": True}, {"resourceSubscriptions": ["a:1"]}):
        asked = subscription(wanted)
        assert narrow(asked) is asked


@pytest.mark.parametrize(
    "wanted", [None, [], "x", {"resourceSubscriptions": "a:1"}, {"resourceSubscriptions": [1]}]
)
def test_a_malformed_subscription_is_none(wanted: object) -> None:
    assert narrow(subscription(wanted)) is None
    assert narrow(ask("subscriptions/listen")) is None


@pytest.mark.parametrize(
    ("notification", "heard"),
    [
        (tell("notifications/message", data="secret"), True),
        (tell("notifications/resources/updated", uri="a:1"), True),
        (tell("notifications/resources/updated", uri="a:secret"), False),
        (tell("notifications/resources/updated", uri=1), False),
        (tell("notifications/resources/updated"), False),
    ],
)
def test_news_of_a_hidden_resource_is_not_heard(notification: Notification, *, heard: bool) -> None:
    assert may_hear(notification, visible) is heard
