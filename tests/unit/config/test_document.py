import pytest
import yaml

from tidegate.config.document import MOST_BYTES, MOST_DEPTH, Tree, read_document
from tidegate.config.places import Mark, spell
from tidegate.config.syntax import syntax_problem


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("---\n...\n", {}),
        ("null", {}),
        ("a: 1\nb: [x, 'y', 2.5]\n", {"a": 1, "b": ("x", "y", 2.5)}),
        ("a: {b: {c: ~}}\n", {"a": {"b": {"c": None}}}),
        ("a: True\nb: FALSE\n", {"a": True, "b": False}),
        ("a: 1e3\nb: .5\nc: -7\nd: +7\n", {"a": 1000.0, "b": 0.5, "c": -7, "d": 7}),
        ("a: '1'\nb: \"no\"\nc: |\n  two\n  lines\n", {"a": "1", "b": "no", "c": "two\nlines\n"}),
        ("a: 2026-11-30\nb: 1.2.3\nc: v1\n", {"a": "2026-11-30", "b": "1.2.3", "c": "v1"}),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}),
        ("a: http://x:80/y?z=[1]\n", {"a": "http://x:80/y?z=[1]"}),
    ],
)
def test_text_becomes_plain_values(text: str, tree: Tree) -> None:
    document = read_document(text.encode(), "f")
    assert document.problems == ()
    assert document.tree == tree


def test_every_key_and_value_knows_its_line_and_column() -> None:
    document = read_document(b"server:\n  port: 8080\nlist:\n  - a\n  - {b: c}\n", "f")
    places = document.places
    assert places.of_key(("server", "port")) == Mark(2, 3)
    assert places.of_value(("server", "port")) == Mark(2, 9)
    assert places.of_value(("list", 1, "b")) == Mark(5, 9)
    assert places.of_value(("list", 1, "missing")) == Mark(5, 5)
    assert places.of_value(("server", "host")) == Mark(1, 1)
    assert places.of_value(("elsewhere",)) == Mark(1, 1)


def test_columns_count_characters_and_a_byte_order_mark_counts_nothing() -> None:
    document = read_document("\ufeffä: {ü: x}\n".encode(), "f")
    assert document.places.of_key(("ä", "ü")) == Mark(1, 5)


def test_a_duplicate_keeps_the_first_value_and_the_rest_is_still_read() -> None:
    document = read_document(b"a: 1\na: {b: [1, 2]}\nc: 3\n", "f")
    assert document.tree == {"a": 1, "c": 3}
    assert len(document.problems) == 1


def test_a_file_that_is_too_large_is_not_even_parsed() -> None:
    (problem,) = read_document(b"a: " + b"x" * MOST_BYTES, "f").problems
    assert f"{MOST_BYTES + 3} bytes" in problem.wrong


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_hostile_nesting_ends_in_one_problem_and_not_on_the_stack(opening: str) -> None:
    document = read_document(("a: " * (opening == "[") + opening * 5000).encode(), "f")
    assert len(document.problems) == 1


def test_the_deepest_allowed_nesting_is_read() -> None:
    depth = MOST_DEPTH - 1
    document = read_document(("a: " + "[" * depth + "]" * depth).encode(), "f")
    assert document.problems == ()


def test_noise_is_cut_off_after_some_hundred_problems() -> None:
    document = read_document(b"".join(b"a: %d\n" % n for n in range(1000)), "f")
    assert len(document.problems) == 200


def test_paths_are_spelled_as_people_write_them() -> None:
    path = ("providers", "a", "models", "*", 0, "x-y", "a\x07b")
    assert spell(path) == 'providers.a.models["*"][0].x-y["a\\x07b"]'
    assert spell(()) == ""


def test_a_complaint_of_the_parser_that_nobody_foresaw_still_has_a_place_and_an_advice() -> None:
    where = yaml.Mark("f", 7, 1, 3, "a: b\nc: d", 7)
    mark, (wrong, right) = syntax_problem(
        yaml.MarkedYAMLError("", None, "odd", where), "a: b\nc: d"
    )
    assert mark == Mark(2, 4)
    assert wrong == "this is not valid YAML"
    assert right
    assert syntax_problem(yaml.MarkedYAMLError("", None, "odd", None), "")[0] == Mark(1, 1)
