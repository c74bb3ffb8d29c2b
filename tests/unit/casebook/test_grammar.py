"""How are sentences taken apart, and which part of what was seen does a clause speak about?"""

import pytest

from tests.casebook.rules.grammar import Node, View, without_remarks
from tests.casebook.rules.library import parser
from tests.casebook.seen import Exchange, Mismatch
from tests.unit.casebook.observations import rpc, seen, tools_call, web


def parsed(kind: str, sentence: str) -> Node:
    node = parser(kind).parse(sentence)
    assert node is not None, sentence
    return node


def names(kind: str, sentence: str) -> list[str]:
    return [rule.name for rule in parsed(kind, sentence).rules()]


def statuses(*codes: int) -> View:
    return View.of(seen("http", *(web({}, status=code) for code in codes)))


def test_a_list_of_codes_is_one_thing_and_not_two_alternatives() -> None:
    assert names("http", "200 or 204 with Access-Control-Allow-Origin") == [
        "status",
        "header there",
    ]


def test_alternatives_are_judged_for_each_exchange_by_itself() -> None:
    node = parsed("http", "202 with empty body, or 400")
    node.judge(View.of(seen("http", web(None, status=202), web({}, status=400))))
    with pytest.raises(Mismatch):
        node.judge(View.of(seen("http", web(None, status=202), web({}, status=200))))


def test_a_semicolon_ends_the_reach_of_a_scope() -> None:
    node = parsed("http", "1: 401; 2: 404")
    node.judge(statuses(401, 404))
    with pytest.raises(Mismatch):
        node.judge(statuses(404, 401))


@pytest.mark.parametrize(
    ("words", "right", "wrong"),
    [
        ("1 and 3: 401", [401, 200, 401], [401, 401, 200]),
        ("2 to 3: 401", [200, 401, 401], [401, 401, 200]),
        ("request 2: 401", [200, 401], [401, 200]),
        ("first two: 401", [401, 401, 200], [401, 200, 401]),
        ("last two: 401", [200, 401, 401], [401, 401, 200]),
        ("second: 401", [200, 401], [401, 200]),
        ("401 in the first and third", [401, 200, 401], [401, 401, 200]),
        ("401 in all three", [401, 401, 401], [401, 401]),
        ("both 401", [401, 401], [401, 200]),
        ("in all requests 401", [401, 401], [401, 200]),
        ("each gets 401", [401, 401], [401, 200]),
    ],
)
def test_words_choose_the_exchanges(words: str, right: list[int], wrong: list[int]) -> None:
    node = parsed("http", words)
    node.judge(statuses(*right))
    with pytest.raises(Mismatch):
        node.judge(statuses(*wrong))


def special(**words: str) -> Exchange:
    exchange = web({}, status=403, asked={"origin": words["Origin"]} if "Origin" in words else {})
    exchange.variant = words
    return exchange


@pytest.mark.parametrize(
    ("words", "variant"),
    [
        ("foreign Origin", {"Origin": "http://evil.example"}),
        ("Origin null", {"Origin": "null"}),
        ("foreign Host when bound to loopback", {"Host": "evil.example"}),
        ("text/plain", {"Content-Type": "text/plain"}),
        ("utf-16", {"body_encoding": "utf-16"}),
        ("BOM", {"body_prefix": "\ufeff"}),
        ("compressed body", {"Content-Encoding": "gzip"}),
    ],
)
def test_words_choose_a_variant_by_what_is_special_about_it(
    words: str, variant: dict[str, str]
) -> None:
    node = parsed("mcp", f"{words}: 403")
    node.judge(View.of(seen("mcp", web({}), variants=[special(**variant)])))
    with pytest.raises(Mismatch):
        node.judge(View.of(seen("mcp", web({}), variants=[special(Accept="*/*")])))


def test_labels_roles_pages_and_ids_choose_too() -> None:
    lettered = seen("llm", web({}, label="a"), web(status=400, label="b"))
    parsed("llm", "(b) 400").judge(View.of(lettered))
    roles = seen("mcp", web({}), given={"as": "viewer"}, others={"admin": [web(status=403)]})
    parsed("mcp", "admin: 403").judge(View.of(roles))
    parsed("mcp", "the viewer gets 200").judge(View.of(roles))
    by_id = seen("mcp", web(rpc(7, error=-32601), sent=tools_call("x", 7)))
    parsed("mcp", "7: -32601").judge(View.of(by_id))


def test_a_scope_that_names_nothing_fails() -> None:
    with pytest.raises(Mismatch):
        parsed("http", "third: 401").judge(statuses(401))


def test_quotes_and_brackets_are_not_taken_apart() -> None:
    assert names("llm", 'joined text "a, b and c; d or e"') == ["text is"]
    assert names("llm", 'joined arguments equal {"a":"b, c","d":1}') == ["arguments are"]


def test_remarks_in_parentheses_may_be_left_out() -> None:
    assert without_remarks("401 (so that the page can read it), 2") == "401, 2"
    assert names("http", "401 (so that the page can read the error)") == ["status"]


def test_the_version_of_the_session_chooses_between_two_readings() -> None:
    sentence = "{} or, for a session at {}, an array with both replies"
    assert names("stdio", sentence.format("one reply", "2025-03-26")) == ["replies"]
    assert names("stdio", sentence.format("one reply", "2025-06-18")) == ["array"]


@pytest.mark.parametrize("kind", ["stdio", "llm", "mcp", "http"])
def test_a_sentence_without_a_rule_for_every_part_is_not_read(kind: str) -> None:
    assert parser(kind).parse("the moon is full") is None
    assert parser(kind).parse("401; the moon is full") is None
    assert parser(kind).parse("") is None
