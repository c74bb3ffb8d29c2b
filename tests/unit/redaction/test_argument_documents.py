r"""Arguments of tool calls, cut everywhere, against an oracle that reads the whole document.

The oracle decodes the JSON text, masks each string with the naive rules of `oracle.mask`, and a
number if its digits alone would be masked. Keys and structure are to stay.
"""

import json
from itertools import product
from typing import Any

import pytest

from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.oracle import mask
from tests.unit.redaction.samples import jwt, key
from tidegate.redaction import RedactionPolicy, Treatment
from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")

MAIL = "jane.doe@mail.example.com"
MAIL_ESCAPED = "jane\\u002edoe\\u0040mail.ex\\u0061mple.com"
CARD = "4111 1111 1111 1111"
EMOJI = "\\ud83d\\ude00"

PLAIN = [
    "{}",
    "[]",
    '""',
    "0",
    "-0.5e-3",
    "true",
    "null",
    "[[],{},[[]]]",
    '{"a":{"b":{"c":{"d":[1,2,{"e":null}]}}}}',
    ' { "a" : [ 1 , 2.50 , -3e2 ] , "b" : true } ',
    '\n{\r\n\t"a":\n"x"\n}\n',
    '{"":"","a":"","b":[""]}',
    '{"path":"C:\\\\temp\\\\n\\/x","q":"\\"","s":"a\\tb\\nc"}',
    f'{{"e":"{EMOJI}{EMOJI}","k":"\\u00e9\u00e9\u4f60\U0001f600"}}',
    '{"half":"\\ud83d","low":"\\ude00","mixed":"\\ud83d\\u0041"}',
    '{"n":12345678901234567890123456789,"m":0.1234567890123456789}',
    '{"order":1234567890123456,"t":1764500000005,"id":"3f2504e0-4f89-41d3-9a0c-630433107186"}',
    '{"\\u006bey":"v","k\\"2":"w","k\\\\":"x"}',
]
STRINGS = [
    MAIL,
    MAIL_ESCAPED,
    f"to {MAIL}, and a@b.co",
    CARD,
    "4111\\u00201111\\u00a01111 1111",
    "\\uff14111 1111 1111 1111",
    "536-90-4399",
    "5\\u00336-90\\u20114399",
    key("ghp_", 36),
    key("AKIA", 0) + "IOSFODNN7EXAMPLE",
    jwt(300),
    f"{EMOJI}{MAIL}{EMOJI}",
    f"line\\n{MAIL}\\n{CARD}\\tend",
    "jane@exam\\u00adple.com \\ud83d",
    "\u4f60\u597d jane@example.com\u3002",
    "select * from t where a = 'jane@example.com' -- \\\\",
    "4111 1111 1111 1112 and 000-12-3456",
    "git@github.com:o/r.git",
]
SHAPES = [
    '{{"to":"{0}","n":1}}',
    '[["{0}",{{"x":[1,"{0}"]}}],"z"]',
]
NUMBERS = [
    '{"card":4111111111111111}',
    '{"cards":[4111111111111111, 378282246310005 ,5]}',
    "[4111111111111111]",
    "4111111111111111",
    '{"a":{"b":[[4111111111111112,4111111111111111]]},"c":"4111111111111111"}',
]
DOCUMENTS = [
    *PLAIN,
    *(shape.format(text) for text, shape in product(STRINGS, SHAPES)),
    *NUMBERS,
]


def expected(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: expected(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [expected(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        shown = mask(str(value))
        return value if shown == str(value) else shown
    return value


def joined(pieces: list[str]) -> str:
    redactor = ArgumentsRedactor(Treatment(POLICY))
    out = []
    for piece in pieces:
        out.append(redactor.feed(piece))
        assert redactor.pending <= 1024
    return "".join(out) + redactor.flush()


def test_there_are_fifty_documents_and_more() -> None:
    assert len(set(DOCUMENTS)) >= 50


@pytest.mark.parametrize("raw", DOCUMENTS)
def test_every_cut_parses_and_equals_the_oracle(raw: str) -> None:
    whole = joined([raw])
    assert json.loads(whole) == expected(json.loads(raw))
    for pieces in every_split(raw, three_way_max=0):
        assert joined(pieces) == whole
    assert joined(list(raw)) == whole


@pytest.mark.full
@pytest.mark.parametrize("raw", DOCUMENTS)
def test_three_way_and_random_cuts_equal_the_oracle(raw: str) -> None:
    whole = joined([raw])
    for pieces in every_split(raw, three_way_max=60):
        assert joined(pieces) == whole
    for seed in range(500):
        assert joined(random_pieces(raw, seeded(seed))) == whole


@pytest.mark.parametrize("raw", DOCUMENTS)
def test_arguments_that_are_only_counted_keep_every_byte(raw: str) -> None:
    for pieces in ([raw], list(raw)):
        redactor = ArgumentsRedactor(Treatment(POLICY.observing()))
        assert "".join(redactor.feed(piece) for piece in pieces) + redactor.flush() == raw
