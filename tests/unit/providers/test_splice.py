"""The model's name is replaced and nothing else moves."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.providers.openai import without_usage
from tidegate.providers.splice import member_span, replace_model, without_member

pytestmark = pytest.mark.full

keys = st.sampled_from(["model", "mod", "x", "", 'a"b', "é", "\\", "{", "\n"]) | st.text(max_size=5)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(['"model":"x"', '\\"model\\":', "}", "]", '{"model":1}', "\\", '"'])
    | st.text(max_size=8)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)
spaces = st.text(alphabet=" \t\r\n", max_size=2)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str, str]:
    """A JSON object in three pieces around the value of its top-level "model"."""
    members = draw(st.dictionaries(keys, values, max_size=4))
    members.pop("model", None)
    escape, indent = draw(st.booleans()), draw(st.sampled_from([None, 1]))
    items = [
        f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:{draw(spaces)}"
        f"{json.dumps(value, ensure_ascii=escape, indent=indent)}{draw(spaces)}"
        for key, value in members.items()
    ]
    position = draw(st.integers(0, len(items)))
    name = draw(st.sampled_from(['"model"', '"mod\\u0065l"', '"\\u006dodel"']))
    value = json.dumps(draw(values), ensure_ascii=escape, indent=indent)
    before = ",".join([*items[:position], f"{draw(spaces)}{name}{draw(spaces)}:{draw(spaces)}"])
    after = "".join(f",{item}" for item in items[position:])
    return f"{draw(spaces)}{{{before}", value, f"{draw(spaces)}{after}}}{draw(spaces)}"


@settings(max_examples=120, deadline=None, derandomize=True)
@given(bodies(), st.text(max_size=8))
def test_everything_but_the_value_stays_byte_for_byte(
    pieces: tuple[str, str, str], model: str
) -> None:
    before, old, after = (piece.encode("utf-8", "surrogatepass") for piece in pieces)
    replaced = replace_model(before + old + after, model)
    assert replaced.startswith(before)
    assert replaced.endswith(after)
    assert json.loads(replaced[len(before) : len(replaced) - len(after)]) == model
    span = member_span(before + old + after, "model")
    assert span == (len(before), len(before) + len(old))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.dictionaries(keys, values, max_size=4), st.text(max_size=8))
def test_a_missing_model_is_put_in_front(members: dict[str, object], model: str) -> None:
    members.pop("model", None)
    body = json.dumps(members).encode()
    replaced = replace_model(body, model)
    assert json.loads(replaced) == {"model": model} | members
    assert list(json.loads(replaced)) == ["model", *members]
    assert replaced.endswith(body[1:])


@pytest.mark.parametrize(
    ("body", "replaced"),
    [
        (b"{}", b'{"model":"m"}'),
        (b" { } ", b' {"model":"m" } '),
        (b'{"a":1}', b'{"model":"m","a":1}'),
        (b'{"model":null}', b'{"model":"m"}'),
        (b'{"model" : "x" }', b'{"model" : "m" }'),
        (b'{"a":{"model":"x"},"model":"y"}', b'{"a":{"model":"x"},"model":"m"}'),
        (b'{"a":["model",{"model":[]}],"model":{}}', b'{"a":["model",{"model":[]}],"model":"m"}'),
        (b'{"model":[1,{"a":"]"}],"b":2}', b'{"model":"m","b":2}'),
        (b'{"a":"\\\\","model":"x"}', b'{"a":"\\\\","model":"m"}'),
        (b'{"a":"\\"model\\":\\"z\\"","model":"x"}', b'{"a":"\\"model\\":\\"z\\"","model":"m"}'),
    ],
)  # fmt: skip
def test_by_hand(body: bytes, replaced: bytes) -> None:
    assert replace_model(body, "m") == replaced


def test_a_new_name_is_escaped() -> None:
    name = 'm","stream":true,"x":"\u2028é'
    assert json.loads(replace_model(b'{"model":"a"}', name)) == {"model": name}


@pytest.mark.parametrize("body", [b"[]", b"", b'"model"', b"7", b'["model",{"model":1}]'])
def test_only_an_object_has_a_model(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        replace_model(body, "m")


def test_cut_json_is_an_error_not_a_guess() -> None:
    for body in (b'{"model":["a"', b'{"model":"a', b'{"model":tru', b'{"model":'):
        with pytest.raises(ValueError, match="cut JSON"):
            replace_model(body, "m")


def test_one_very_long_string_is_skipped_whole() -> None:
    text = b'\\"model\\":\\"x\\" ' * 200_000
    body = b'{"messages":[{"content":"' + text + b'"}],"model":"a"}'
    assert replace_model(body, "m") == body[: -len(b'"a"}')] + b'"m"}'


@st.composite
def objects(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Members of an object as they are written, and where "usage" is put among them."""
    members = draw(st.dictionaries(keys, values, max_size=4))
    members.pop("usage", None)
    escape = draw(st.booleans())
    written = [
        f"{json.dumps(key)}{draw(spaces)}:{draw(spaces)}{json.dumps(value, ensure_ascii=escape)}"
        for key, value in members.items()
    ]
    places = draw(st.lists(st.integers(0, len(written)), min_size=1, max_size=2))
    return written, sorted(places, reverse=True)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(objects(), st.sampled_from(['"usage"', '"us\\u0061ge"']), spaces, values)
def test_a_document_without_a_member_is_the_one_that_never_had_it(
    written: tuple[list[str], list[int]],
    name: str,
    space: str,
    value: object,
) -> None:
    members, places = written
    never = "{" + ",".join(members) + "}"
    with_usage = list(members)
    for place in places:
        member = f"{space}{name}{space}:{space}{json.dumps(value)}"
        with_usage.insert(place, member)
    body = "{" + ",".join(with_usage) + "}"
    cut = without_member(body.encode("utf-8", "surrogatepass"), "usage")
    assert cut == never.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"a":1,"usage":null}', b'{"a":1}'),
        (b'{"a": 1, "usage": null}', b'{"a": 1}'),
        (b'{"a": 1, "usage": {"x": ["}"]}, "b": 2}', b'{"a": 1, "b": 2}'),
        (b'{"usage":null,"a":1}', b'{"a":1}'),
        (b'{"usage":null}', b"{}"),
        (b'{"usage":1,"usage":2,"a":3,"usage":4}', b'{"a":3}'),
        (b'{"a":{"usage":1},"b":"\\"usage\\":1"}', b'{"a":{"usage":1},"b":"\\"usage\\":1"}'),
        (b" { } ", b" { } "),
    ],
)  # fmt: skip
def test_members_by_hand(body: bytes, left: bytes) -> None:
    assert without_member(body, "usage") == left


flat = st.sampled_from(
    ['"obfuscation":"ab"', '"service_tier": null ', ' "x":1.5e3', '"a b":true', '"q\\"":"\\""']
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    objects(),
    st.sampled_from(["null", "{}", "1", '"usage"', '{"usage":null}']),
    spaces,
    st.lists(flat, max_size=2),
)
@pytest.mark.full
def test_the_quick_way_to_take_out_usage_is_the_exact_one(
    written: tuple[list[str], list[int]], value: str, space: str, after: list[str]
) -> None:
    members, places = written
    for place in places[: len(after) % 2 + 1]:
        members.insert(place, f'{space}"usage"{space}:{space}{value}{space}')
    body = ("{" + ",".join([*members, *after]) + "}" + space).encode("utf-8", "surrogatepass")
    assert without_usage(body) == without_member(body, "usage")


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[{"delta":{"content":"a"}}],"usage":null}',
        b'{"choices":[{"delta":{"usage":null}}],"b":[1]}',
        b'{"choices":[{"delta":{"usage":null},"x":1}]}',
        b'{"choices":[{"usage":null}],"x":"}"}',
        b'{"a":"\\"usage\\":null","usage":null,"b":1}',
        b'{"a":["usage",null],"usage":null}',
        b'{"usage":null}',
        b'{"usage" : null , "a":1}',
        b'{"a":"usage"}',
        b'{"a":1}',
    ],
)
def test_the_quick_way_by_hand(body: bytes) -> None:
    assert without_usage(body) == without_member(body, "usage")
