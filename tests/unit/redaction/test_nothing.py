"""Does a tree of which a glance says that it holds nothing hold nothing for the walk, too?"""

import random
import re
from typing import Any

import pytest

from tests.unit.redaction.documents import document
from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.samples import BODY, MASKED, VISA, key
from tidegate.redaction import (
    DenyList,
    Literals,
    RedactionPolicy,
    Treatment,
    Vault,
    detector,
    redact_tree,
)
from tidegate.redaction.leaves import MAX_DEPTH
from tidegate.redaction.nothing import holds_nothing
from tidegate.redaction.parts import CONTENT_LISTS
from tidegate.redaction.program import Program
from tidegate.redaction.spans import SSN as SSN_KIND

DEFAULT = RedactionPolicy.preset("default")
STRICT = RedactionPolicy.preset("strict")
OWN = DEFAULT.with_detectors(
    detector("EMPLOYEE_ID", prefix="EMP-", body="[0-9]", min=6, max=8),
    detector("CITY", regex="Os[a-z]{2} city"),
    DenyList(Literals(["Jane Doe", "parcel of"])),
)
POLICIES = {
    "default": DEFAULT,
    "strict": STRICT,
    "code": RedactionPolicy.preset("code"),
    "words": STRICT.with_actions({"email_obfuscated": None}),
    "detect": DEFAULT.observing(),
    "allow": DEFAULT.with_allow("*@example.com", "536-90-*"),
    "own": OWN,
    "block": OWN.with_actions({"email": "block", "card": "block", "key": "block"}),
    "numbers-block": DEFAULT.with_numbers("block"),
    "numbers-count": DEFAULT.with_numbers("count"),
    "empty": RedactionPolicy({}),
}
CALL = [
    {"city": "Oslo", "count": 3},
    {
        "content": [
            {
                "type": "text",
                "text": "The parcel of order 4711 left the warehouse in the morning. ",
            }
        ],
        "resultType": "complete",
        "isError": False,
    },
]
WORDS = (
    "",
    "Oslo",
    "text",
    "a parcel of 3",
    "caf\u00e9 \u4f60\u597d",
    "100 % & more",
    "The order 4711 left the warehouse in the morning, and nobody had called back about it. ",
    "word" * 20,
)
NAMES = (
    *CONTENT_LISTS,
    *("type", "text", "city", "isError", "a b", "$ref", "x-y", "id", "params", "uri", "url"),
    *("resource", "structuredContent", "jsonrpc", "_meta", "progressToken", "mimeType"),
)
NUMBERS = (0, -3, 4711, 2.5, 99_999_999, -99_999_999, 1e-7, float("nan"))
PLANTED_TEXTS = (
    *(text for _, text, _ in MASKED if len(text) < 200),
    *(
        "jane@example.com",
        "jane%40example.com",
        "\uff14111 1111 1111 1111",
        "EMP-123456",
        "Oslo city",
    ),
    *("Jane Doe", key("sk-", 40), f"data:image/png;base64,{BODY[:80]}", BODY[:64], VISA * 5),
)
PLANTED_NUMBERS = (int(VISA.replace(" ", "")), 536904399, -(10**8), 10**8, 1e8, 4111111111111111.0)
PLANTED_NAMES = ("password", "api_key", "data", "blob", "result", "image_url", "jane@example.com")


def exact(tree: object, policy: RedactionPolicy) -> Any:
    """What the walk says and finds: a treatment is never looked at in a glance."""
    shown, counts = redact_tree(tree, Treatment(policy))
    return shown, dict(counts), counts.passed, counts.shown, counts.unscanned, counts.unknown


def leaf(rnd: random.Random) -> Any:
    return rnd.choice((rnd.choice(WORDS), rnd.choice(WORDS), rnd.choice(NUMBERS), True, None))


def tree_of(rnd: random.Random, depth: int) -> Any:
    """A tree in which nothing is found under most policies."""
    if depth == 0 or rnd.random() < 0.2:
        return leaf(rnd)
    size = rnd.randrange(6)
    if rnd.random() < 0.4:
        return [tree_of(rnd, depth - 1) for _ in range(size)]
    return {rnd.choice(NAMES): tree_of(rnd, depth - 1) for _ in range(size)}


def parts_of(text: str, rnd: random.Random) -> Any:
    """`text` cut over the parts of a content list."""
    if len(text) > 60:
        text = text[:60]
    parts: list[Any] = []
    for piece in random_pieces(text, rnd):
        part: Any = rnd.choice((piece, {"type": "text", "text": piece}, {"output": piece}))
        if rnd.random() < 0.3:
            part = {"resource": {"text": piece}}
        parts.append(part)
    if rnd.random() < 0.3:
        parts = [{"text": parts[0], "content": parts[1:]}] if isinstance(parts[0], str) else parts
    return {rnd.choice(sorted(CONTENT_LISTS)): parts}


def planted(rnd: random.Random) -> Any:
    """A tree in which something is found, or is counted, under many policies."""
    text = rnd.choice(PLANTED_TEXTS)
    kind = rnd.randrange(7)
    if kind == 0:
        return text
    if kind == 1:
        return rnd.choice(PLANTED_NUMBERS)
    if kind == 2:
        return {
            rnd.choice(PLANTED_NAMES): rnd.choice((leaf(rnd), [leaf(rnd)], "a1b2c3d4e5", 12345))
        }
    if kind == 3:
        return {text: leaf(rnd)}
    if kind == 4:
        letters = BODY[: rnd.choice((8, 63, 64, 200))]
        return {rnd.choice(("blob", "data", "b64_json", "text")): letters, "mimeType": "a/b"}
    if kind == 5:
        return document(rnd.randrange(200))[:120]
    return parts_of(text, rnd)


def plant(tree: Any, rnd: random.Random) -> Any:
    """`tree` with a planted one somewhere in it."""
    if isinstance(tree, list) and tree:
        place = rnd.randrange(len(tree))
        return [*tree[:place], plant(tree[place], rnd), *tree[place + 1 :]]
    if isinstance(tree, dict) and tree:
        name = rnd.choice(sorted(tree))
        return {**tree, name: plant(tree[name], rnd)}
    return planted(rnd)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_what_a_glance_calls_nothing_is_nothing_for_the_walk(name: str, seed: int) -> None:
    _agree(name, seed, times=600)


@pytest.mark.full
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(100, 120))
def test_what_a_glance_calls_nothing_is_nothing_for_the_walk_in_5000_trees(
    name: str, seed: int
) -> None:
    _agree(name, seed, times=5_000)


def _agree(name: str, seed: int, *, times: int) -> None:
    rnd, policy = seeded(seed), POLICIES[name]
    program = policy.program
    passed = {False: 0, True: 0}
    for _ in range(times):
        is_planted = rnd.random() < 0.6
        tree = tree_of(rnd, 4)
        tree = plant(tree, rnd) if is_planted else tree
        if holds_nothing(tree, program):
            passed[is_planted] += 1
            assert exact(tree, policy) == (tree, {}, {}, {}, 0, 0)
            assert exact(tree, policy)[0] is tree
            shown, counts = redact_tree(tree, policy)
            assert (shown is tree, dict(counts), counts.unscanned) == (True, {}, 0)
    if name != "strict":  # which looks twice at every two words
        assert passed[False] > times / 10
    assert name == "empty" or passed[True] < times / 4


@pytest.mark.parametrize(
    "name", [name for name in POLICIES if name not in ("strict", "words", "own", "block")]
)
def test_a_glance_is_enough_for_an_ordinary_call(name: str) -> None:
    for tree in CALL:
        assert holds_nothing(tree, POLICIES[name].program)


def test_a_glance_is_enough_for_what_only_looks_deep_or_wide() -> None:
    deep: Any = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    assert holds_nothing(deep, DEFAULT.program)
    assert exact(deep, DEFAULT)[0] is deep
    assert holds_nothing({"rows": [{"city": "Oslo", "count": 3}] * 500}, DEFAULT.program)
    assert holds_nothing({"content": [{"text": "one "}, {"text": "two"}]}, DEFAULT.program)


@pytest.mark.parametrize("wrapped", [dict, list])
def test_a_tree_that_is_too_deep_is_refused_by_the_walk(wrapped: type) -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 2):
        deep = {"a": deep} if wrapped is dict else [deep]
    assert not holds_nothing(deep, DEFAULT.program)
    with pytest.raises(ValueError, match="deep"):
        redact_tree(deep, DEFAULT)


@pytest.mark.parametrize(
    "tree",
    [
        {"password": "hunter2hunter2"},
        {"password": ["hunter2hunter2"]},
        {"536-90-4399": 1},
        {"n": 100_000_000},
        {"text": "word " * 1_000},
        {"data": BODY[:64], "mimeType": "image/png"},
        {"image_url": f"data:image/png;base64,{BODY[:80]}"},
        {"content": [{"text": "536-90-"}, {"text": "4399"}]},
        {"content": [{"text": "536-", "content": [{"text": "90-4399"}]}]},
        {"content": [{"resource": {"text": "536-"}, "output": "90-4399"}]},
        {"a": [{"b": ["536-90-4399"]}]},
    ],
)
def test_a_doubt_is_left_to_the_walk(tree: Any) -> None:
    assert not holds_nothing(tree, DEFAULT.program)


def judged(program: Program, names: list[str]) -> list[str]:
    """Those of `names` that are looked at, and not known."""
    asked: list[str] = []
    search = program.anchor

    def counted(text: str, start: int, end: int) -> re.Match[str] | None:
        asked.append(text)
        return search(text, start, end)

    program.anchor = counted
    for name in names:
        program.plain_keys([name])
    program.anchor = search
    return asked


def test_the_names_of_fields_are_judged_once_and_nothing_else_is_remembered() -> None:
    program = RedactionPolicy.preset("default").program
    names = ["city", "count", "isError", "caf\u00e9_2"]
    texts = ["Jane lives in Oslo", "x" * 65, "a-b", "536-90-4399", "password", "api_key"]
    assert judged(program, names) == names
    assert judged(program, names) == []
    assert judged(program, texts) == texts
    assert judged(program, texts) == texts


def test_the_memory_of_names_is_bounded_and_begins_anew() -> None:
    program = RedactionPolicy.preset("default").program
    many = [f"n{place}" for place in range(3_000)]
    judged(program, many)
    assert len(many) - len(judged(program, many[::-1])) <= 1024
    assert judged(program, ["city"] * 9) == ["city"]


def test_a_treatment_is_always_walked() -> None:
    vault = Vault(b"s" * 16)
    tree = {"a": vault.placeholder(SSN_KIND, "536-90-4399")}
    assert holds_nothing(tree, DEFAULT.program)
    assert redact_tree(tree, Treatment(DEFAULT, vault=vault))[0] == {"a": "536-90-4399"}
