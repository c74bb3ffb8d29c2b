import json

import pytest

from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.samples import EMAIL, SECRET, SSN, jwt, key
from tidegate.redaction import BlockedContent, RedactionPolicy
from tidegate.redaction.arguments import ArgumentsRedactor, quoted
from tidegate.redaction.spans import Counts
from tidegate.redaction.treatment import Treatment
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")
AT = "\\u0040"

# Raw argument text, and what its values must read as afterwards.
DOCUMENTS: list[tuple[str, object]] = [
    ('{"to":"jane@example.com","n":1}', {"to": EMAIL, "n": 1}),
    ('{"q":"2"}', {"q": "2"}),
    ("{}", {}),
    ("[]", []),
    ('"jane@example.com"', EMAIL),
    ("12345678901234567890123", 12345678901234567890123),
    ("-1.50e+3", -1500.0),
    ("null", None),
    ('{"a": [true, false, null, 0.1, -2]}', {"a": [True, False, None, 0.1, -2]}),
    (f'{{"to":"jane{AT}example.com"}}', {"to": EMAIL}),
    ('{"to":"jane\\u0040ex\\u0061mple.com, \\u00e9"}', {"to": f"{EMAIL}, \u00e9"}),
    ('{"p":"a\\/b\\\\c\\"d\\n\\te"}', {"p": 'a/b\\c"d\n\te'}),
    (
        '{"s":"\\ud83d\\ude00 jane@example.com \\ud83d\\ude00"}',
        {"s": f"\U0001f600 {EMAIL} \U0001f600"},
    ),
    ('{"s":"\\ud83d x"}', {"s": "\ud83d x"}),
    ('{"s":"\\ud83d\\n\\ude00"}', {"s": "\ud83d\n\ude00"}),
    ('{"s":"\\ud83d"}', {"s": "\ud83d"}),
    (
        '{"ssn":"536-90-4399","card":"4111 1111\\u00a01111 1111"}',
        {"ssn": SSN, "card": "[REDACTED_CARD]"},
    ),
    ('{"card":4111111111111111}', {"card": "[REDACTED_CARD]"}),
    (
        '{"cards":[4111111111111111,4111111111111112 ,"4111111111111111"]}',
        {"cards": ["[REDACTED_CARD]", 4111111111111112, "[REDACTED_CARD]"]},
    ),
    ("4111111111111111", "[REDACTED_CARD]"),
    (
        '{"n":-4.111111111111111e15,"t":1764500000005}',
        {"n": "-[REDACTED_CARD]", "t": 1764500000005},
    ),
    ('{"jane@example.com":"x"}', {"jane@example.com": "x"}),
    (
        '{"k\\"ey":"v","x":{"y":[{"z":"jane@example.com"}]}}',
        {'k"ey': "v", "x": {"y": [{"z": EMAIL}]}},
    ),
    ('[["jane@example.com","a@b.co"],"c@d.co"]', [[EMAIL, EMAIL], EMAIL]),
    ('{"password":"hunter2!x","user":"bob"}', {"password": SECRET, "user": "bob"}),
    ('{"auth":{"api_key": "abcd1234efgh"}}', {"auth": {"api_key": SECRET}}),
    ('{"sql":"select \'jane@example.com\' -- 1"}', {"sql": f"select '{EMAIL}' -- 1"}),
    ('{"code":"x = {\\"a\\": [1, 2]}\\n"}', {"code": 'x = {"a": [1, 2]}\n'}),
    ('{"u":"https://u:p@h/x","e":""}', {"u": f"https://{SECRET}@h/x", "e": ""}),
    ('{"k":"KEY"}'.replace("KEY", key("sk-", 30)), {"k": SECRET}),
    ('{ "b" : "a \\b\\f" , "c" : [ ] }', {"b": "a \b\f", "c": []}),
    ('{"half":"4111 1111 1111 11","rest":"11"}', {"half": "4111 1111 1111 11", "rest": "11"}),
    ('{"\u4f60":"\u597d jane@example.com\u3002"}', {"\u4f60": f"\u597d {EMAIL}\u3002"}),
]


def run(pieces: list[str]) -> tuple[str, Counts]:
    counts = Counts()
    redactor = ArgumentsRedactor(Treatment(POLICY, counts=counts))
    return "".join(redactor.feed(piece) for piece in pieces) + redactor.flush(), counts


@pytest.mark.parametrize(("raw", "value"), DOCUMENTS)
def test_every_cut_of_an_argument_document_reads_the_same(raw: str, value: object) -> None:
    whole, found = run([raw])
    assert json.loads(whole) == value
    for pieces in every_split(raw, three_way_max=16):
        assert run(pieces) == (whole, found)


@pytest.mark.parametrize("raw", [raw for raw, _ in DOCUMENTS])
def test_what_is_not_replaced_keeps_its_spelling(raw: str) -> None:
    off = RedactionPolicy({})
    for pieces in every_split(raw, three_way_max=16):
        redactor = ArgumentsRedactor(Treatment(off))
        assert "".join(redactor.feed(piece) for piece in pieces) + redactor.flush() == raw


def test_a_long_secret_in_arguments_is_swallowed() -> None:
    raw = json.dumps({"t": f"a {jwt(5000)} b", "n": "\u4f60jane@example.com"})
    for seed in range(8):
        out, counts = run(random_pieces(raw, seeded(seed)))
        assert json.loads(out) == {"t": f"a {SECRET} b", "n": f"\u4f60{EMAIL}"}
        assert counts == {"api_key": 1, "email": 1}


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("jane@example.com", EMAIL),
        ("alert@example.com", EMAIL),
        ("true@example.com", EMAIL),
        ("{'to': 'jane@example.com'}", f"{{'to': '{EMAIL}'}}"),
        ("send jane@example.com", f"send {EMAIL}"),
        ("1234-jane@example.com", EMAIL),
        ("nul", "nul"),
        ("9" * 200, "9" * 200),
        ("]}", "]}"),
        ('{"a" "jane@example.com"', f'{{"a" "{EMAIL}"'),
        ('{"a","b":"jane@example.com"}', f'{{"a","b":"{EMAIL}"}}'),
        ('{"jane@exa', '{"jane@exa'),
        ("4111 1111 1111 1111", "[REDACTED_CARD]"),
        ("536 90 4399", SSN),
        ('{"card": 4111 1111 1111 1111}', '{"card": [REDACTED_CARD]}'),
        ('[1 2,"jane@example.com"]', f'[1 2,"{EMAIL}"]'),
        ('{"ssn": 536904399 x}', f'{{"ssn": {SSN} x}}'),
        ('["a" "b","jane@example.com"]', f'["a" "b","{EMAIL}"]'),
        ('{"a":1,}', '{"a":1,}'),
        ('[1,]"jane@example.com"', f'[1,]"{EMAIL}"'),
        ('{"a":[1}"jane@example.com"', f'{{"a":[1}}"{EMAIL}"'),
        ('{"a":1' + " " * 70 + "2}", '{"a":1' + " " * 70 + "2}"),
        ('{"a":"x"]"jane@example.com"', f'{{"a":"x"]"{EMAIL}"'),
        (":,", ":,"),
        ('{"jane@example.com', f'{{"{EMAIL}'),
        ('{"a":"jane@exa', '{"a":"jane@exa'),
        ('{"a":"jane@example.com', f'{{"a":"{EMAIL}'),
        ('{"a":"x\\', '{"a":"x\\'),
        ('{"a":"x\\u00', '{"a":"x\\u00'),
        ('{"a\\', '{"a\\'),
        ('{"a":"\\x y"}', '{"a":"\\x y"}'),
        ('{"a":"\\uZZZZ"}', '{"a":"\\uZZZZ"}'),
        ('{"a":1}{"b":"jane@example.com"}', f'{{"a":1}}{{"b":"{EMAIL}"}}'),
    ],
)
def test_text_that_is_no_json_is_still_redacted(raw: str, shown: str) -> None:
    for pieces in every_split(raw, three_way_max=16):
        assert run(pieces)[0] == shown


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ('{"jane@example.com":{"a":1,"536-90-4399":2}}', 2),
        ('{"jane\\u0040example.com":1}', 1),
        ('{"a\\"b":1,"\\q":2,"c\\\\":"\\\\"}', 0),
        ('{"' + "k" * 513 + '":"jane@example.com","a":1}', 1),
        ('{"' + '\\"' * 300 + '":[1],"b":2}', 1),
        ('{"' + "k" * 511 + '":1}', 0),
    ],
)
def test_keys_stay_and_are_counted(raw: str, found: int) -> None:
    masked = raw.replace('"jane@example.com","a"', f'"{EMAIL}","a"')
    for pieces in every_split(raw, three_way_max=0):
        out, counts = run(pieces)
        assert out == masked
        assert counts.passed == ({"key": found} if found else {})


def test_a_key_that_refuses_does_not_leave_before_it_is_judged() -> None:
    redactor = ArgumentsRedactor(Treatment(POLICY.with_actions({"email": "block"})))
    assert redactor.feed('{"jane@example.com') == '{"'
    assert redactor.pending == 16
    with pytest.raises(BlockedContent, match="email"):
        redactor.feed('"')


def test_a_number_may_be_refused_or_counted() -> None:
    raw = '{"card":4111111111111111}'
    with pytest.raises(BlockedContent, match="card"):
        ArgumentsRedactor(Treatment(POLICY.with_numbers("block"))).feed(raw)
    treatment = Treatment(POLICY.with_numbers("count"))
    assert ArgumentsRedactor(treatment).feed(raw) == raw
    assert (treatment.counts, treatment.counts.passed) == ({}, {"number": 1})


def test_depth_is_bounded() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        run(["[" * 300])


def test_a_number_waits_for_what_follows_and_keeps_its_space() -> None:
    redactor = ArgumentsRedactor(Treatment(POLICY))
    assert redactor.feed('{"a": 12 ') == '{"a": '
    assert redactor.pending == 3
    assert redactor.feed('\n, "b" : [1 ,2 ] } ') == '12 \n, "b" : [1 ,2 ] } '


def test_completeness_and_held_text_are_told() -> None:
    redactor = ArgumentsRedactor(Treatment(POLICY))
    redactor.feed('{"a":"jane@exa')
    assert (redactor.complete, redactor.pending) == (False, 8)
    redactor.feed('mple.com"')
    assert redactor.pending == 0
    redactor.feed("}")
    assert redactor.complete
    redactor.feed(" 12")
    assert redactor.pending == 2
    redactor.feed("x@y.co")
    assert redactor.pending == 8


@pytest.mark.parametrize("text", ["a", '"\\\n', "\u00e9", "\ud83d", "\U0001f600"])
def test_quoted_text_reads_back(text: str) -> None:
    assert json.loads(quoted(text).encode()) == text
