import json

import pytest

from tests.unit.redaction.chat import content, run
from tests.unit.redaction.samples import VISA
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy
from tidegate.redaction.splice import dump, load, renumbered, rewritten, without_padding
from tidegate.redaction.template import Template

POLICY = RedactionPolicy.preset("default")


def y_for_x(value: object) -> object:
    if isinstance(value, list):
        return [y_for_x(inner) for inner in value]
    return "y" if value == "x" else value


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ('{"a" : "x", "n":1.10}', '{"a" : "y", "n":1.10}'),
        ('["x","z",{"k":["x"]}]', '["y","z",{"k":["y"]}]'),
        ('{"x":"\\u0078","b":"\\"x\\""}', '{"x":"y","b":"\\"x\\""}'),
    ],
)
def test_only_changed_strings_are_written_anew(data: str, shown: str) -> None:
    old = load(data.encode())
    new = json.loads(data, object_pairs_hook=lambda pairs: {k: y_for_x(v) for k, v in pairs})
    new = [y_for_x(value) for value in new] if isinstance(new, list) else new
    assert rewritten(data.encode(), old, new).decode() == shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": "x"}, {"a": None}),
        ({"a": "x"}, {"b": "x"}),
        (["x"], ["x", "y"]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_other_differences_write_the_whole_text_anew(old: object, new: object) -> None:
    assert rewritten(dump(old), old, new) == dump(new)


def test_a_text_that_does_not_match_its_value_is_written_anew() -> None:
    assert rewritten(b'{"a":"x","a":"x"}', {"a": "x"}, {"a": "y"}) == b'{"a":"y"}'


def test_numbers_that_are_not_finite_are_not_written() -> None:
    with pytest.raises(ValueError, match=r".+"):
        rewritten(b'{"a":1e999,"b":1}', {"a": float("inf"), "b": 1}, {"a": float("inf"), "b": 2})


def made(data: bytes, value: str) -> Template | None:
    return Template.of(data, "content", value, str)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"content":"two","x":1}', "two"),
        (b'{"content":"t\\"w\\u00e9\\n","x":1}', 't"w\u00e9\n'),
        ('{"content":"\u00e9","x":1}'.encode(), "\u00e9"),
        (b'{"content":"","x":1}', ""),
        (b'{"content":"a","y":"b","x":1}', None),
        (b'{"content":"a\\","x":1}', None),
        (b'{"content":"a\nb","x":1}', None),
        (b'{"content":"\xff","x":1}', None),
        (b'{"content":"one","x":2}', None),
        (b'{"content":"', None),
        (b'{"content": "one","x":1}', None),
    ],
)
def test_an_event_fits_only_if_nothing_but_its_text_differs(data: bytes, text: str | None) -> None:
    template = made(b'{"content":"one","x":1}', "one")
    assert template is not None
    assert template.text_of(data) == text
    if text is not None:
        assert json.loads(template.event("new \u00e9\n")) == {
            "content": "new \u00e9\n",
            "x": 1,
        }


@pytest.mark.parametrize(
    ("data", "bare"),
    [
        ('{"a":1,"obfuscation":"aB3"}', '{"a":1}'),
        ('{"obfuscation":"","a":1}', '{"a":1}'),
        ('{"a":1 , "obfuscation" : "x" , "b":"c"}', '{"a":1 , "b":"c"}'),
        ('{"a":{"b":1,"obfuscation":"x"},"c":2}', '{"a":{"b":1},"c":2}'),
        ('{"a":",\\"obfuscation\\":\\"x\\""}', '{"a":",\\"obfuscation\\":\\"x\\""}'),
        ('{"a":",","obfuscation":"x"}', '{"a":","}'),
        ('{"a":1,"obfuscation":5}', '{"a":1,"obfuscation":5}'),
        ('["obfuscation",":"]', '["obfuscation",":"]'),
    ],
)
def test_padding_is_dropped_and_nothing_else(data: str, bare: str) -> None:
    assert without_padding(data.encode()).decode() == bare
    json.loads(bare)


def test_padding_does_not_reach_a_client() -> None:
    event = content("one ")[:-1] + b',"obfuscation":"aB3"}'
    redactor = ChatStreamRedactor(POLICY)
    assert redactor.feed(event) == [content("one ")]
    assert redactor.feed(event) == [content("one ")]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"content":"one","z":{"content":"two"}}', "one"),
        (b'{"other":"one"}', "one"),
        (b'["content","one"]', "one"),
        (b'{"content":"one"}', "other"),
        (b'{"content":null}', "one"),
    ],
)
def test_no_template_where_the_place_of_the_text_is_not_certain(data: bytes, value: str) -> None:
    assert made(data, value) is None


def test_the_short_way_and_the_long_way_agree() -> None:
    def padded(text: str, padding: str) -> bytes:
        return content(text)[:-1] + f',"obfuscation":"{padding}"}}'.encode()

    text = f'to jane@example.com, {VISA} \u00e9\u4f60 "q" \\ \n and 536-90-4399, done. '
    for size in (1, 3, 8):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        short, _ = run([content(piece) for piece in pieces])
        assert short.texts == {0: POLICY.redact(text).text}
        random_pads, _ = run([padded(piece, "ab1" * (len(piece) % 4)) for piece in pieces])
        assert random_pads.texts == short.texts
        changing = [content(piece).replace(b'"c1"', b'"c%d"' % i) for i, piece in enumerate(pieces)]
        long, _ = run(changing)
        assert long.texts == short.texts


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ('{"n":7,"x":0.10}', '{"n":9,"x":0.10}'),
        ('{"x":0.10, "n" : 7 }', '{"x":0.10, "n" : 9 }'),
        ('{"n":7,"x":"\\"n\\":7"}', '{"n":9,"x":"\\"n\\":7"}'),
        ('{"x":"\\"n","n":7}', '{"x":"\\"n","n":9}'),
        ('{"n":7,"x":{"n":7}}', '{"n":9,"x":{"n":7}}'),
        ('{"x":{"n":5},"n":7}', '{"x":{"n":5},"n":9}'),
        ('{"n":7e0}', '{"n":9}'),
        ("[7]", "[7]"),
    ],
)
def test_a_number_is_moved_on_and_nothing_else(data: str, shown: str) -> None:
    assert renumbered(data.encode(), "n", 7, 2).decode() == shown
    assert renumbered(data.encode(), "n", 7, 0).decode() == data
