"""Is every name and URI in a message said in the words of whoever reads it?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mcp.asking import ask, call, tell
from tidegate.mcp.federation import Federation
from tidegate.mcp.federation_messages import Aimed, Shown, aimed, names_something, wished

TABLE = Federation(("billing", "CRM_eu"))
SERVERS = st.sampled_from(TABLE.names)
TOOL = st.text("abc_.-", min_size=1, max_size=10)
URI = st.sampled_from(["file:///a/b", "git+https://x/y", "db://z", "test://{id}/x"])
OTHER = st.sampled_from([None, 1, "text", [], {"uri": "file:///in/there"}, [{"name": "x"}]])


def named(server: str) -> Shown:
    return Shown(TABLE, server)


def completion(kind: str, name: object) -> Any:
    member = "name" if kind == "ref/prompt" else "uri"
    return ask("completion/complete", ref={"type": kind, member: name}, argument={"name": "a"})


ASKED = {
    "tools/call": lambda name, _: call(name, {"name": "not__this"}),
    "prompts/get": lambda name, _: ask("prompts/get", name=name),
    "resources/read": lambda _, uri: ask("resources/read", uri=uri),
    "resources/subscribe": lambda _, uri: ask("resources/subscribe", uri=uri),
    "resources/unsubscribe": lambda _, uri: ask("resources/unsubscribe", uri=uri),
    "completion of a prompt": lambda name, _: completion("ref/prompt", name),
    "completion of a resource": lambda _, uri: completion("ref/resource", uri),
}


@pytest.mark.full
@pytest.mark.parametrize("way", ASKED)
@given(SERVERS, TOOL, URI)
def test_what_a_client_writes_reaches_its_server_in_the_servers_words(
    way: str, server: str, tool: str, uri: str
) -> None:
    shown = ASKED[way](f"{server}__{tool}", TABLE.shown_uri(server, uri))
    assert names_something(shown)
    assert aimed(shown, TABLE) == Aimed(server, ASKED[way](tool, uri))


@pytest.mark.parametrize("way", ASKED)
@pytest.mark.parametrize("name", ["plain", "nobody__x", "Billing__x", "file:///a", "x+file:///a"])
def test_what_is_of_no_server_stays_as_it_is(way: str, name: str) -> None:
    message = ASKED[way](name, name)
    assert aimed(message, TABLE) == Aimed(None, message)


@pytest.mark.parametrize(
    "message",
    [
        call(7),
        call(None),
        ask("tools/call"),
        ask("resources/read", uri=["billing+x"]),
        ask("completion/complete"),
        ask("completion/complete", ref="billing__x"),
        ask("completion/complete", ref={"type": "ref/prompt"}),
        ask("completion/complete", ref={"type": "ref/resource", "uri": 1}),
    ],
)
def test_params_that_do_not_fit_are_for_nobody(message: Any) -> None:
    assert aimed(message, TABLE) == Aimed(None, message)


def test_the_clients_own_message_is_never_written_to() -> None:
    message = completion("ref/prompt", "billing__x")
    before = repr(message)
    aimed(message, TABLE)
    assert repr(message) == before


def test_a_notification_that_names_a_tool_stays_a_notification() -> None:
    found = aimed(tell("tools/call", name="billing__refund"), TABLE)
    assert found == Aimed("billing", tell("tools/call", name="refund"))


ITEM = st.fixed_dictionaries({}, optional={"name": TOOL, "uri": URI, "title": TOOL, "x": OTHER})
RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.lists(ITEM, max_size=3),
        "prompts": st.lists(ITEM, max_size=3),
        "resources": st.lists(ITEM, max_size=3),
        "contents": st.lists(ITEM, max_size=3),
        "structuredContent": OTHER,
        "nextCursor": TOOL,
        "other": OTHER,
    },
)


@pytest.mark.full
@given(SERVERS, RESULTS)
def test_every_thing_in_a_result_can_be_asked_for_by_the_name_it_is_shown_under(
    server: str, result: Any
) -> None:
    before = repr(result)
    shown: Any = named(server).result(result)
    assert repr(result) == before
    assert shown.keys() == result.keys()
    for member in ("tools", "prompts"):
        kept = [item for item in result.get(member, ()) if isinstance(item.get("name"), str)]
        back = [TABLE.own_name(item["name"]) for item in shown.get(member, ())]
        assert back == [(server, item["name"]) for item in kept]
    for member in ("resources", "contents"):
        for old, new in zip(result.get(member, ()), shown.get(member, ()), strict=True):
            if "uri" in old:
                assert TABLE.own_uri(new["uri"]) == (server, old["uri"])
            assert {k: v for k, v in new.items() if k != "uri"} == {
                k: v for k, v in old.items() if k != "uri"
            }
    for member in ("structuredContent", "nextCursor", "other"):
        assert shown.get(member) is result.get(member)


LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
WEB = {"type": "resource_link", "uri": "HTTPS://other.example/a", "name": "a"}
HELD = {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}
TEXT = {"type": "text", "text": "read file:///a"}
SHOWN_LINK = {**LINK, "uri": "crm.eu+file:///a"}
SHOWN_HELD = {"type": "resource", "resource": {"uri": "crm.eu+file:///a", "text": "t"}}


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (
            {"content": [TEXT, LINK, WEB, HELD, {"type": "resource_link"}]},
            {"content": [TEXT, SHOWN_LINK, WEB, SHOWN_HELD, {"type": "resource_link"}]},
        ),
        (
            {"messages": [{"role": "user", "content": HELD}]},
            {"messages": [{"role": "user", "content": SHOWN_HELD}]},
        ),
        (
            {"messages": [{"role": "user", "content": [TEXT, LINK]}]},
            {"messages": [{"role": "user", "content": [TEXT, SHOWN_LINK]}]},
        ),
        (
            {"resourceTemplates": [{"uriTemplate": "file:///{p}", "name": "n"}]},
            {"resourceTemplates": [{"uriTemplate": "crm.eu+file:///{p}", "name": "n"}]},
        ),
        (
            {"tools": [{"name": "t", "_meta": {"ui/resourceUri": "ui://w", "k": 1}}]},
            {
                "tools": [
                    {"name": "CRM_eu__t", "_meta": {"ui/resourceUri": "crm.eu+ui://w", "k": 1}}
                ]
            },
        ),
        (
            {"tools": [{"name": "t", "_meta": {"ui": {"resourceUri": "ui://w", "v": 1}}}]},
            {
                "tools": [
                    {
                        "name": "CRM_eu__t",
                        "_meta": {"ui": {"resourceUri": "crm.eu+ui://w", "v": 1}},
                    }
                ]
            },
        ),
        ({"tools": "none"}, {"tools": "none"}),
        ({"content": ["text", None, {"type": "resource"}]}, None),
        ({"messages": ["text", {"role": "user"}]}, None),
        ("text", "text"),
        (None, None),
    ],
)
def test_each_place_of_a_result(result: Any, shown: Any) -> None:
    expected = result if shown is None and result is not None else shown
    if result == {"content": ["text", None, {"type": "resource"}]}:
        expected = {"content": ["text", {"type": "resource", "resource": None}]}
    assert named("CRM_eu").result(result) == expected


def test_what_has_no_usable_name_is_left_out_and_counted() -> None:
    view = named("billing")
    tools = [{"name": "ok"}, {"name": "two words"}, {"name": "x" * 120}, {}, "t", {"name": 1}]
    assert view.result({"tools": tools}) == {"tools": [{"name": "billing__ok"}]}
    assert view.unusable == 5


@pytest.mark.parametrize(
    ("method", "params", "shown"),
    [
        (
            "notifications/resources/updated",
            {"uri": "file:///a", "title": "t"},
            {"uri": "crm.eu+file:///a", "title": "t"},
        ),
        (
            "notifications/subscriptions/acknowledged",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a:b", 1]}},
            {
                "notifications": {
                    "toolsListChanged": True,
                    "resourceSubscriptions": ["crm.eu+a:b"],
                }
            },
        ),
        ("notifications/subscriptions/acknowledged", {"notifications": {}}, {"notifications": {}}),
        ("notifications/progress", {"uri": "file:///a"}, {"uri": "file:///a"}),
        ("notifications/resources/updated", None, None),
        ("notifications/resources/updated", {}, {}),
    ],
)
def test_each_notification(method: str, params: Any, shown: Any) -> None:
    assert named("CRM_eu").params(method, params) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            {"code": -32002, "data": {"uri": "a:b", "x": 1}},
            {"code": -32002, "data": {"uri": "crm.eu+a:b", "x": 1}},
        ),
        ({"code": -32602, "message": "m"}, {"code": -32602, "message": "m"}),
        ({"code": -32602, "data": "a:b"}, {"code": -32602, "data": "a:b"}),
        (None, None),
    ],
)
def test_each_error(error: Any, shown: Any) -> None:
    assert named("CRM_eu").error(error) == shown


@pytest.mark.full
@given(
    st.lists(st.tuples(SERVERS, URI), max_size=5),
    st.dictionaries(st.sampled_from(["toolsListChanged", "promptsListChanged"]), st.booleans()),
)
def test_a_subscription_is_split_into_what_concerns_each_server(
    subscribed: list[tuple[str, str]], flags: dict[str, bool]
) -> None:
    uris = [TABLE.shown_uri(server, uri) for server, uri in subscribed]
    found = wished({"notifications": {**flags, "resourceSubscriptions": [*uris, "x:y"]}}, TABLE)
    assert found is not None
    assert tuple(found) == TABLE.names
    for server, wish in found.items():
        own = [uri for name, uri in subscribed if name == server]
        assert wish.get("resourceSubscriptions", []) == own
        assert {key: wish[key] for key in flags} == flags


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"resourceSubscriptions": "a:b"}},
        {"notifications": {"resourceSubscriptions": [1]}},
        {"notifications": {"resourceSubscriptions": ["a:b"] * 1_001}},
    ],
)
def test_a_subscription_that_does_not_fit_is_malformed(params: Any) -> None:
    assert wished(params, TABLE) is None
