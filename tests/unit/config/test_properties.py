"""Whatever stands in the file, the answer is a configuration or a list of problems."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.config.corpus import BROKEN, ENVIRON, VALID, load
from tidegate.config import Config, ConfigInvalid, Problem, load_config_text, serving_problems
from tidegate.config.models import Config as Root
from tidegate.config.show import as_yaml

QUICK = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = sorted(
    {
        key
        for schema in [Root.model_json_schema()]
        for part in [schema, *schema["$defs"].values()]
        for key in part["properties"]
    }
)
WORDS = st.sampled_from(
    [
        *("*", "a*", "", "primary", "default", "no", "${env:ACME_KEY}", "${env:NONE}", "${"),
        *("1:30", "http://a/b", "https://b.example/v1", "enforce", "off", "openai", "x y"),
        *("redis://h/1", "amount <= 5", "127.0.0.1", "memory:", "admin_*", "viewer-token-xyz"),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=8),
    WORDS,
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), WORDS), inner, max_size=4),
    ),
    max_leaves=25,
)
FULL: dict[str, Any] = yaml.safe_load((VALID[0].parent / "every_key.yaml").read_text())
TEXTS = [path.read_bytes() for path in (*BROKEN, *VALID)]


def settle(text: str) -> Config | None:
    """Load it; anything but ConfigInvalid fails the test."""
    problems: tuple[Problem, ...] = ()
    try:
        return load_config_text(text, ENVIRON, name="f", folder=Path(__file__).parent)
    except ConfigInvalid as invalid:
        problems = invalid.problems
    assert problems
    assert all(problem.wrong and problem.right for problem in problems)
    said = "\n".join(map(str, problems))
    assert [value for value in ENVIRON.values() if len(value) > 8 and value in said] == []
    return None


def places(tree: Any) -> list[tuple[Any, ...]]:
    """The path of every value in a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for step, value in items:
        found.append((step,))
        if isinstance(value, dict | list):
            found += [(step, *rest) for rest in places(value)]
    return found


@QUICK
@given(st.text(max_size=200))
def test_any_text_is_settled(text: str) -> None:
    settle(text)


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_are_settled(data: bytes) -> None:
    settle(data.decode("utf-8", "surrogateescape"))


@QUICK
@given(TREES)
def test_any_tree_of_known_words_is_settled(tree: object) -> None:
    settle(yaml.safe_dump(tree, allow_unicode=True))


@QUICK
@given(st.sampled_from(places(FULL)), TREES)
@pytest.mark.full
def test_a_full_file_with_one_part_replaced_is_settled(path: tuple[Any, ...], part: object) -> None:
    tree = copy.deepcopy(FULL)
    node: Any = tree
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = part
    settle(yaml.safe_dump(tree, allow_unicode=True))


@QUICK
@given(st.sampled_from(places(FULL)))
@pytest.mark.full
def test_a_full_file_with_one_part_missing_is_settled(path: tuple[Any, ...]) -> None:
    tree = copy.deepcopy(FULL)
    node: Any = tree
    for step in path[:-1]:
        node = node[step]
    del node[path[-1]]
    settle(yaml.safe_dump(tree, allow_unicode=True))


@QUICK
@given(st.sampled_from(TEXTS), st.data())
def test_a_file_of_the_corpus_with_a_piece_cut_out_is_settled(text: bytes, data: Any) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    settle((text[:start] + text[end:]).decode("utf-8", "surrogateescape"))


@pytest.mark.full
def test_what_is_shown_can_be_loaded_again_and_comes_to_the_same() -> None:
    for path in VALID:
        config = load(path)
        if "(literal)" in as_yaml(config):
            continue
        again = load_config_text(as_yaml(config), ENVIRON, name=path.name, folder=path.parent)
        assert again.revision == config.revision, path.name
        assert [str(p).split(": ", 1)[1] for p in serving_problems(again)] == [
            str(p).split(": ", 1)[1] for p in serving_problems(config)
        ]
