"""Is exactly one reading of a document accepted, and everything else refused?"""

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.strictjson import StrictJSONError, dumps, loads

VALID = {
    b"null": None,
    b"true": True,
    b" \t\r\n false \n": False,
    b'""': "",
    b"{}": {},
    b"[]": [],
    b"0": 0,
    b"-0": 0,
    b"-1": -1,
    b"1.5": 1.5,
    b"1e2": 100.0,
    b"1E-2": 0.01,
    b"1e-999": 0.0,
    b"1.7976931348623157e308": 1.7976931348623157e308,
    b"9007199254740993": 9007199254740993,
    b"123456789012345678901234567890": 123456789012345678901234567890,
    b'{"a":{"a":1},"b":[{"a":2}]}': {"a": {"a": 1}, "b": [{"a": 2}]},
    b'{"a":1,"A":2," a":3}': {"a": 1, "A": 2, " a": 3},
    b'{"":1}': {"": 1},
    b'"\\u0041\\n\\"\\\\\\/"': 'A\n"\\/',
    b'"\\ud83d\\ude00"': "\U0001f600",
    b'"\\uD83D\\uDE00\\ud83d\\uDE00"': "\U0001f600\U0001f600",
    b'"\\\\ud83d"': "\\ud83d",
    b'"\\u0000"': "\0",
    '"é\u2028\u2029\U0001f600\ufeff"'.encode(): "é\u2028\u2029\U0001f600\ufeff",
}

SYNTAX = {
    "empty": [b""],
    "blank": [b" ", b"\n\t"],
    "byte order mark": [b"\xef\xbb\xbf{}", b"\xef\xbb\xbf"],
    "utf-16 and utf-32": [
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        "{}".encode("utf-16-be"),
        "{}".encode("utf-32"),
        "{}".encode("utf-32-le"),
    ],
    "not utf-8": [
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xe2\x82"',
        b'"\xf8\x88\x80\x80\x80"',
        b'{"\xe9":1}',
    ],
    "raw surrogate": [b'"\xed\xa0\x80"', b'"\xed\xa0\xbd\xed\xb8\x80"'],
    "escaped lone surrogate in a value": [
        b'"\\ud800"',
        b'"\\uDFFF"',
        b'"\\udbff "',
        b'"\\ude00\\ud83d"',
        b'"\\ud83d\\ud83d\\ude00"',
        b'"\\ud83d\\ude00\\ude00"',
        b'"\\ud83dA"',
        b'"\\ud83d\\\\ude00"',
        b'"\\ud83d","\\ude00"',
        b'["\\ud83d","\\ude00"]',
        b'[["x",{"a":"\\\\\\uD912"}]]',
    ],
    "escaped lone surrogate in a key": [b'{"\\ud800":1}', b'[{"a":{"\\uDC00":1}}]'],
    "not a number": [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":[NaN]}',
        b"nan",
        b"inf",
        b"+Infinity",
    ],
    "infinite": [b"1e999", b"-1e999", b"[1.0e400]", b'{"a":1E+309}', b"9" * 400 + b".0"],
    "too many digits": [b"9" * 4301, b'{"a":-' + b"1" * 5000 + b"}"],
    "bad number": [b"01", b"-", b"+1", b".5", b"1.", b"1e", b"0x10", b"1_000", b"1.e1", b"--1"],
    "non-ascii digits": ["٣".encode(), "1٣".encode(), "[\uff11]".encode()],
    "control character": [b'"\n"', b'"\t"', b'"\x00"', b'{"a\x1f":1}'],
    "bad escape": [b'"\\x41"', b'"\\u12"', b'"\\u+123"', b'"\\u 123"', b'"\\U0041"', b'"\\\'"'],
    "unfinished": [b"{", b"[", b'"', b'{"a"', b'{"a":', b'{"a":1', b"[1,", b"tru", b'"\\'],
    "trailing": [b"{}{}", b"1 2", b"{}x", b"[],", b"{}\x00", b'{"a":1}\n{"a":1}', b"null\xc2\xa0"],
    "loose": [b"{a:1}", b"{'a':1}", b"[1,]", b'{"a":1,}', b"[,1]", b"// x\n1", b"/**/1", b"True"],
    "wrong bracket": [b"[}", b"{]", b"]", b'{"a":1]', b"[1}"],
    "foreign space": [b"\x0c1", b"\xc2\xa01", b"\x0b[]", "\u2028{}".encode(), "\ufeff1".encode()],
}

AMBIGUOUS = [
    b'{"a":1,"a":1}',
    b'{"a":1,"b":2,"a":3}',
    b'{"name":"x","n\\u0061me":"y"}',
    b'{"\\u0061":1,"\\u0041":2,"a":3}',
    b'{"/":1,"\\/":2}',
    b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":2}',
    b'{"":1,"":2}',
    b'{"params":{"name":"a","name":"b"}}',
    b'[[{"x":{"y":1,"y":{}}}]]',
    b'{"a":{"b":1,"b":2},"a":3}',
]


@pytest.mark.parametrize("data", VALID)
def test_a_strict_document_reads_as_the_standard_library_reads_it(data: bytes) -> None:
    value = loads(data)
    assert value == VALID[data] == json.loads(data)
    assert type(value) is type(VALID[data])


@pytest.mark.parametrize("data", [data for group in SYNTAX.values() for data in group])
def test_what_no_strict_parser_reads_is_a_syntax_error(data: bytes) -> None:
    with pytest.raises(StrictJSONError) as caught:
        loads(data)
    assert caught.value.kind == "syntax"


@pytest.mark.parametrize("data", AMBIGUOUS)
def test_a_key_given_twice_is_ambiguous_however_it_is_spelled(data: bytes) -> None:
    with pytest.raises(StrictJSONError) as caught:
        loads(data)
    assert caught.value.kind == "ambiguous"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the body is empty"),
        (b"\xef\xbb\xbf{}", "the body begins with a byte order mark"),
        (b'"\xff"', "the body is not UTF-8"),
        (b"{canary", "the body is not valid JSON"),
        (b'"canary"1', "there is data after the document"),
        (b"[NaN]", "NaN and Infinity are not JSON"),
        (b"1e999", "a number is too large"),
        (b"9" * 4301, "a number is too large"),
        (b'"canary\\ud800"', "a string holds half a surrogate pair"),
        (b"[" * 65 + b"]" * 65, "the document is nested too deeply"),
        (b'{"canary":1,"canary":2}', "an object has the same key twice"),
    ],
)
def test_the_reason_is_a_constant_that_shows_nothing_of_the_document(
    data: bytes, reason: str
) -> None:
    with pytest.raises(StrictJSONError) as caught:
        loads(data)
    assert (caught.value.reason, str(caught.value)) == (reason, reason)
    # JSONDecodeError.doc and UnicodeError.object would carry the document into a debugger's log.
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("max_depth", [1, 2, 63, 64, 65])
def test_depth_is_counted_in_open_containers(opening: bytes, max_depth: int) -> None:
    closing = bytes({91: 93, 123: 125}[byte] for byte in reversed(opening) if byte in b"[{")
    per_step = len(closing)
    for steps in range(1, 67):
        data = opening * steps + b"0" + closing * steps
        if steps * per_step <= max_depth:
            assert loads(data, max_depth=max_depth) == json.loads(data)
        else:
            with pytest.raises(StrictJSONError, match="nested too deeply"):
                loads(data, max_depth=max_depth)


def test_siblings_do_not_add_up_to_depth() -> None:
    data = json.dumps([[{"a": [i]}, [[]]] for i in range(500)]).encode()
    assert loads(data, max_depth=4) == json.loads(data)
    with pytest.raises(StrictJSONError, match="nested too deeply"):
        loads(data, max_depth=3)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200,
        "{" * 200,
        '"[' * 200,
        '\\"[' * 200,
        '\\\\"[' * 100,
        '[\\\\\\"[{' * 100,
        "\\[" * 200,
        "]" * 200 + "[" * 200,
    ],
)
def test_brackets_inside_strings_and_keys_are_not_depth(text: str) -> None:
    for value in (text, [text, [[text]]], {text: {text: [text]}}):
        assert loads(dumps(value), max_depth=3) == value
        assert loads(json.dumps(value).encode(), max_depth=3) == value


@pytest.mark.parametrize("byte", [b"[", b'{"a":', b"[{", b'"[', b'\\"[', b"]["])
def test_a_bomb_of_brackets_is_refused_before_it_is_parsed(byte: bytes) -> None:
    with pytest.raises(StrictJSONError) as caught:
        loads(byte * 200_000)
    assert caught.value.kind == "syntax"


def test_a_depth_beyond_the_interpreters_own_ends_in_the_same_refusal() -> None:
    with pytest.raises(StrictJSONError, match="nested too deeply"):
        loads(b"[" * 100_000 + b"]" * 100_000, max_depth=200_000)


def test_integers_are_exact_up_to_4300_digits() -> None:
    for digits in (1, 18, 19, 20, 309, 4300):
        for sign in (1, -1):
            value = sign * (10**digits - 1)
            assert loads(str(value).encode()) == value
            assert dumps(loads(str(value).encode())) == str(value).encode()


def test_dumps_is_compact_utf_8() -> None:
    assert dumps({"a": [1, 2.0, None, True], "é": "\u2028\U0001f600/"}) == (
        '{"a":[1,2.0,null,true],"é":"\u2028\U0001f600/"}'.encode()
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, ["\ud800"], {"\udc00": 1}])
def test_dumps_refuses_what_loads_would_refuse(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - two kinds, one meaning
        dumps(value)


def test_refusing_a_large_document_keeps_none_of_it() -> None:
    data = b'{"a":"' + b"x" * 1_000_000 + b'","a":1}'
    tracemalloc.start()
    try:
        for _round in range(3):
            with pytest.raises(StrictJSONError):
                loads(data)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sampled_from([{}, {"ensure_ascii": False}, {"indent": 1}, {"indent": "\t"}]))
@pytest.mark.full
def test_every_valid_document_round_trips(value: object, style: dict[str, Any]) -> None:
    data = json.dumps(value, **style).encode()
    assert repr(loads(data)) == repr(json.loads(data)) == repr(value)
    assert repr(loads(dumps(value))) == repr(value)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["\\ud83d", "\\ude00", "\\\\", "\\n", "x", "\\u0041", "\\uDbFf"])))
@example(["\\ud83d", "\\\\", "\\ude00"])
def test_half_a_pair_is_refused_and_a_pair_is_not(pieces: list[str]) -> None:
    data = ('"' + "".join(pieces) + '"').encode()
    try:
        json.loads(data).encode()
    except UnicodeEncodeError:
        with pytest.raises(StrictJSONError, match="surrogate"):
            loads(data)
    else:
        assert loads(data) == json.loads(data)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"[]{}:,", '"', '\\"', "\\\\", "\\", '"a"', "1", "NaN", "1e999", " "]),
        max_size=24,
    ),
    st.integers(min_value=1, max_value=4),
)
@pytest.mark.full
def test_noise_is_read_like_json_or_refused_and_nothing_else(
    pieces: list[str], max_depth: int
) -> None:
    data = "".join(pieces).encode()
    try:
        value = loads(data, max_depth=max_depth)
    except StrictJSONError:
        return
    assert value == json.loads(data)
    assert _depth(value) <= max_depth


def _depth(value: object) -> int:
    match value:
        case dict():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
        case _:
            return 0
