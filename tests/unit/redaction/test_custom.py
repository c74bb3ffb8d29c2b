import itertools
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tidegate.redaction import RedactionPolicy, Redactor
from tidegate.redaction.checksums import CHECKS
from tidegate.redaction.custom import UnusableDetector, detector
from tidegate.redaction.pattern_detectors import CustomDetector, SpanningCustomDetector
from tidegate.redaction.stream import HOLD
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

SHOWN = "[REDACTED_BADGE]"
DIGITS = "1234567890" * 120


def policy(**description: Any) -> RedactionPolicy:
    return RedactionPolicy({}).with_detectors(detector("BADGE", **description))


EMPLOYEE: dict[str, Any] = {"prefix": "EMP-", "body": "[0-9]", "min": 6, "max": 8}
ENDLESS: dict[str, Any] = {"prefix": "EMP-", "body": "[0-9]", "min": 6}
SPACED: dict[str, Any] = {"prefix": "Account No. ", "body": "[0-9 ]", "min": 6, "max": 12}
PHONE: dict[str, Any] = {"regex": r"\(\d{3}\) \d{3}-\d{4}"}
ROOM: dict[str, Any] = {"regex": r"[A-Z][a-z]{1,10}(?: [A-Z][a-z]{1,10})? \d{3}"}
CHECKED: dict[str, Any] = {"body": "[0-9]", "min": 10, "max": 10, "validate": "luhn"}
SCRIPT: dict[str, Any] = {"regex": "[\u4e00-\u9fff]{3}\u53f7"}

# What is described, a text, the text as it may be shown.
CASES: list[tuple[dict[str, Any], str, str]] = [
    (EMPLOYEE, "EMP-123456 x", f"{SHOWN} x"),
    (EMPLOYEE, "(EMP-1234567), EMP-654321.", f"({SHOWN}), {SHOWN}."),
    (EMPLOYEE, "EMP-12345", "EMP-12345"),
    (EMPLOYEE, "EMP-1234567890", "EMP-1234567890"),
    (EMPLOYEE, "TEMP-123456 EMP-123456abc", "TEMP-123456 EMP-123456abc"),
    (EMPLOYEE, "_EMP-123456_ \u90eeEMP-123456\u90ee", f"_{SHOWN}_ \u90ee{SHOWN}\u90ee"),
    (EMPLOYEE, "\uff25\uff2d\uff30\u2011\uff11\uff12\uff13456", SHOWN),
    (EMPLOYEE, "EM\u200bP-12\u00ad3456 x", f"{SHOWN} x"),
    (ENDLESS, "EMP-123456abc", f"{SHOWN}abc"),
    (ENDLESS, f"EMP-{DIGITS[:900]} x", f"{SHOWN} x"),
    (ENDLESS, "z" * 600 + "EMP-123456", "z" * 600 + "EMP-123456"),
    (ENDLESS, "z" * 600 + "_EMP-123456", "z" * 600 + f"_{SHOWN}"),
    (SPACED, "Account No. 12 34 56, x", f"{SHOWN}, x"),
    (SPACED, "my Account No. 123456  x", f"my {SHOWN}  x"),
    (SPACED, "Account No. 1234567890 123", "Account No. 1234567890 123"),
    (SPACED, "Account No. \u0661\u0662\u00a034 56", SHOWN),
    ({**SPACED, "max": None}, f"Account No. {'1 ' * 400}x", f"{SHOWN}x"),
    ({**SPACED, "max": None}, "Account No. 123 456 x", f"{SHOWN} x"),
    (PHONE, "call ((415) 555-2671 now", f"call ({SHOWN} now"),
    (PHONE, "(415) 555-26712 (415) 555-267", "(415) 555-26712 (415) 555-267"),
    (PHONE, "(415) 555-2671(415) 555-2671", SHOWN * 2),
    (ROOM, "In Hall North 123 or Ab 12", f"In {SHOWN} or Ab 12"),
    (ROOM, "in Hall  North 123", f"in Hall  {SHOWN}"),
    (
        CHECKED,
        "4539319503 1234567897 1234567890",
        f"4539319503 {SHOWN} 1234567890",
    ),
    (CHECKED, "x1234567897 12345678974", "x1234567897 12345678974"),
    (
        {"prefix": "A1", "body": r"\d", "min": 10, "max": 10, "validate": "luhn"},
        "A11234567897",
        SHOWN,
    ),
    (
        SCRIPT,
        "\u6211\u7684\u793e\u54e1\u756a\u53f7\u3067\u3059",
        f"\u6211\u7684{SHOWN}\u3067\u3059",
    ),
    ({"regex": "x[ab ]{1,900}y"}, "x" + "ab " * 100 + "y z", f"{SHOWN} z"),
    ({"regex": "x[ab ]{1,900}y"}, "x" + "ab " * 250 + "z z", f"{SHOWN}z z"),
    ({"regex": "(?i)case [a-z]{2,4}"}, "CaSe Ab", SHOWN),
    ({"regex": "a[^x]{3}"}, "a\n\n\nx", f"{SHOWN}\n\n\nx"),
]


@pytest.mark.parametrize(("description", "text", "shown"), CASES)
def test_a_value_is_masked_whole_in_every_split(
    description: dict[str, Any], text: str, shown: str
) -> None:
    made = policy(**description)
    whole = made.redact(text)
    assert whole.text == shown
    splits = every_split(text, three_way_max=16) if len(text) < 100 else _some_splits(text)
    for pieces in splits:
        assert streamed(made, pieces) == (shown, whole.spans)


def _some_splits(text: str) -> list[list[str]]:
    rnd = seeded(len(text))
    places = [HOLD - 1, HOLD, HOLD + 1, *rnd.sample(range(len(text)), 20)]
    return [[text[:place], text[place:]] for place in places] + [list(text)]


# ---- against a plain search over the whole text --------------------------------------------------

ORACLES: list[tuple[dict[str, Any], str]] = [
    (EMPLOYEE, "EMP-[0-9]{6,8}(?![0-9])"),
    (ENDLESS, "EMP-[0-9]{6,}"),
    (SPACED, "Account No[.] [0-9 ]{6,12}(?![0-9 ])"),
    (PHONE, r"\([0-9]{3}\) [0-9]{3}-[0-9]{4}"),
    (ROOM, "[A-Z][a-z]{1,10}(?: [A-Z][a-z]{1,10})? [0-9]{3}"),
    (CHECKED, "(?<![0-9])[0-9]{10}(?![0-9])"),
    ({"regex": "(?:ab|a b c)-?[ -]{0,2}x"}, "(?:ab|a b c)-?[ -]{0,2}x"),
]
FRAGMENTS = [
    *("EMP-", "EM", "P-", "123456", "12", "345", "6", "78", "Account No. ", "Account", " ", "  "),
    *("(415) ", "(", ")", "555-2671", "-", "Hall ", "North", " 123", "a", "b", " c", "x", "ab"),
    *("1234567897", "\n", ".", ",", "\u200b", "\u90ee", "Z", "_", "No. ", "4539319503"),
]


def masked_by_search(text: str, pattern: str, description: dict[str, Any]) -> str | None:
    """The text without the values; None if two of them overlap, for then the rule is another."""
    edge = "(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9]))"
    right = "" if description is ENDLESS else edge
    plain = re.compile(f"(?={edge}({pattern}){right})")
    kept = [(place, char) for place, char in enumerate(text) if char != "\u200b"]
    view = "".join(char for _, char in kept)
    spans = []
    for found in plain.finditer(view):
        value = found[1].rstrip()
        if "validate" not in description or CHECKS["luhn"](value):
            spans.append((found.start(), found.start() + len(value)))
    if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans)):
        return None
    out, place = [], 0
    for start, end in spans:
        out += [text[place : kept[start][0]], SHOWN]
        place = kept[end - 1][0] + 1
    return "".join([*out, text[place:]])


@pytest.mark.parametrize(("description", "pattern"), ORACLES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=10))
@pytest.mark.full
def test_any_text_is_masked_as_by_a_plain_search(
    description: dict[str, Any], pattern: str, fragments: list[str]
) -> None:
    text, made = "".join(fragments), policy(**description)
    shown = masked_by_search(text, pattern, description)
    assume(shown is not None)
    assert made.redact(text).text == shown
    for place in range(0, len(text) + 1, 3):
        assert streamed(made, [text[:place], text[place:]])[0] == shown


@pytest.mark.full
@pytest.mark.parametrize(("description", "pattern"), ORACLES)
@settings(max_examples=1500, deadline=None, derandomize=True)
@given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_many_texts_are_masked_as_by_a_plain_search(
    description: dict[str, Any], pattern: str, fragments: list[str]
) -> None:
    text = "".join(fragments)
    shown = masked_by_search(text, pattern, description)
    assume(shown is not None)
    assert policy(**description).redact(text).text == shown


@pytest.mark.parametrize(("description", "pattern"), ORACLES)
def test_long_random_text_is_the_same_in_random_pieces(
    description: dict[str, Any], pattern: str
) -> None:
    rnd = seeded(len(pattern))
    text = "".join(rnd.choice(FRAGMENTS) for _ in range(500)) + "a" * 600 + "EMP-" + DIGITS[:700]
    made = policy(**description)
    whole = made.redact(text)
    for _ in range(4):
        assert streamed(made, random_pieces(text, rnd)) == (whole.text, whole.spans)


# ---- what the engine is told ---------------------------------------------------------------------


def test_only_a_value_that_may_hold_a_barrier_or_is_wide_spans_segments() -> None:
    assert type(detector("A", **EMPLOYEE)) is CustomDetector
    for description in (SPACED, PHONE, SCRIPT, {"body": "[a-z]", "max": 301}):
        assert type(detector("A", **description)) is SpanningCustomDetector


@pytest.mark.parametrize(("description", "_pattern"), ORACLES)
def test_samples_are_values(description: dict[str, Any], _pattern: str) -> None:
    made = detector("BADGE", **description)
    samples = list(made.samples(5))
    assert len(set(samples)) >= 3
    for text in samples:
        assert RedactionPolicy({}).with_detectors(made).redact(text).text.strip() == SHOWN


def test_a_check_may_be_a_function() -> None:
    made = policy(body="[0-9]", min=4, max=4, validate=lambda digits: digits.startswith("7"))
    assert made.redact("7123 8123").text == f"{SHOWN} 8123"


def test_a_check_sees_letters_and_digits_in_upper_case_without_the_prefix() -> None:
    seen: list[str] = []

    def check(value: str) -> bool:
        seen.append(value)
        return False

    policy(prefix="x9-", body="[a-z0-9-]", min=5, max=9, validate=check).redact("x9-ab-12")
    assert seen == ["AB12"]


@pytest.mark.parametrize("action", ["mask", "partial", "hash", "report"])
def test_every_action_works_for_a_kind_of_the_operator(action: str) -> None:
    made = RedactionPolicy({}).with_detectors(detector("BADGE", **EMPLOYEE), action=action)  # type: ignore[arg-type]
    made = made.with_hash_key(b"k")
    text = "one EMP-123456 two"
    whole = made.redact(text)
    assert streamed(made, list(text)) == (whole.text, whole.spans)
    expected = {"mask": SHOWN, "partial": "[REDACTED_BADGE_3456]", "report": "EMP-123456"}
    assert expected.get(action, "[REDACTED_BADGE_") in whole.text
    assert whole.spans[0].label == "badge"


def test_the_operator_knows_better_than_a_built_in_detector() -> None:
    made = RedactionPolicy.preset("default").with_detectors(
        detector("BADGE", body="[0-9]", min=16, max=16, validate="luhn")
    )
    assert made.redact("4111111111111111").text == SHOWN


def test_what_adversaries_repeat_takes_steps_in_proportion_to_its_length() -> None:
    """Counted as calls of a check, for a search itself cannot be counted."""
    calls = 0

    def check(_: str) -> bool:
        nonlocal calls
        calls += 1
        return False

    made = policy(regex="[0-9 ]{1,60}[.]", validate=check)
    counted = []
    for size in (400, 800, 1600):
        calls = 0
        redactor = Redactor(made)
        for piece in "1 2." * size:
            redactor.feed(piece)
        redactor.flush()
        counted.append(calls)
    assert counted[1] <= 2.6 * counted[0]
    assert counted[2] <= 2.6 * counted[1]


@pytest.mark.parametrize(
    ("description", "text", "why"),
    [
        (EMPLOYEE, "a EMP-12345 b", "5 characters behind the prefix, a value has 6 or more"),
        (EMPLOYEE, "EMP-123456789", "9 characters behind the prefix, a value has 8 at most"),
        (EMPLOYEE, "TEMP-123456", "a letter or digit stands in front of it"),
        (EMPLOYEE, "EMP-123456x", "a letter or digit stands behind it"),
        (CHECKED, "no 1234567890", "its check fails"),
        (PHONE, "(415) 555-26712", "a letter or digit stands behind it"),
        (EMPLOYEE, "EMP-123456, x", None),
        (CHECKED, "1234567897", None),
    ],
)
def test_what_only_looks_like_a_value_is_explained(
    description: dict[str, Any], text: str, why: str | None
) -> None:
    reasons = [reason for _, _, reason in detector("BADGE", **description).near(text)]
    assert reasons == ([] if why is None else [why])


# ---- descriptions that make no detector ----------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "key", "wrong"),
    [
        ({"prefix": "EMP-"}, "", "neither a pattern nor a regex"),
        ({}, "", "neither a pattern nor a regex"),
        ({"body": "[0-9]"}, "", "neither a prefix nor an upper bound"),
        ({"body": "[0-9]", "min": 6}, "", "neither a prefix nor an upper bound"),
        ({"body": "[0-9]{2}", "max": 4}, "body", "not one class"),
        ({"body": "[9-0]", "max": 4}, "body", "range"),
        ({"body": "[0-9]", "min": 8, "max": 4}, "max", "smaller than `min: 8`"),
        ({"body": "[0-9]", "min": 0, "max": 4}, "min", "out of range"),
        ({"body": "[0-9]", "max": 1025}, "max", "wider than 1024"),
        ({"prefix": "ab", "body": "[0-9]", "max": 1023}, "max", "wider than 1024"),
        ({"prefix": "a" * 65, "body": "[0-9]", "max": 3}, "prefix", "too long"),
        ({"prefix": "a\u200b", "body": "[0-9]", "max": 3}, "prefix", "invisible"),
        ({"prefix": "a", "body": "[0-9]", "validate": "luhn"}, "validate", "whole value"),
        ({"body": "[0-9]", "max": 5, "validate": "lunh"}, "validate", "not a check"),
        ({"body": "[0-9]", "max": 301, "validate": "luhn"}, "max", "too wide for a check"),
        ({"regex": "[0-9]{301}", "validate": "luhn"}, "regex", "too wide for a check"),
        ({"regex": "x", "prefix": "a"}, "prefix", "exclude each other"),
        ({"regex": "x", "body": "a"}, "body", "exclude each other"),
        ({"regex": "x", "min": 1}, "min", "exclude each other"),
        ({"regex": "x", "max": 1}, "max", "exclude each other"),
        ({"regex": "[0-9]+"}, "regex", "greatest width"),
        ({"regex": "[0-9]?"}, "regex", "empty text"),
        ({"regex": ""}, "regex", "empty text"),
        ({"regex": "[a]{600}[b]{600}"}, "regex", "wider than 1024"),
        ({"regex": "a{0,90}a{0,90}b"}, "regex", "could take too long"),
        ({"regex": "(?:a|a){12}b"}, "regex", "could take too long"),
    ],
)
def test_a_description_that_makes_no_detector_says_why(
    description: dict[str, Any], key: str, wrong: str
) -> None:
    with pytest.raises(UnusableDetector) as refused:
        detector("BADGE", **description)
    assert (refused.value.key, wrong in refused.value.wrong) == (key, True), str(refused.value)
    assert refused.value.right
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    "kind", ["badge", "", "BADGE-1", "1BADGE", "A" * 17, "A_B_C_D_E", "A__B", "A_1", "_A", "A_"]
)
def test_a_kind_is_a_word_that_a_placeholder_can_carry(kind: str) -> None:
    with pytest.raises(UnusableDetector) as refused:
        detector(kind, **EMPLOYEE)
    assert refused.value.key == "kind"


@pytest.mark.parametrize("kind", ["EMAIL", "CARD", "SECRET", "PHONE", "IP_PRIVATE", "KEYWORD"])
def test_the_kind_of_a_built_in_detector_is_not_free(kind: str) -> None:
    with pytest.raises(UnusableDetector) as refused:
        detector(kind, **EMPLOYEE)
    assert (refused.value.key, refused.value.right) == ("kind", f"write OWN_{kind}")


@pytest.mark.parametrize("kind", ["A", "EMPLOYEE_ID", "A1_B2_C3_D4", "A" * 16])
def test_the_placeholder_of_a_kind_is_never_matched_again(kind: str) -> None:
    made = RedactionPolicy.preset("strict").with_detectors(detector(kind, **EMPLOYEE))
    once = made.redact("password: EMP-123456 x").text
    assert once.startswith("password: [REDACTED_")
    assert made.redact(once).text == once


def test_where_reading_a_pattern_stopped_is_told() -> None:
    with pytest.raises(UnusableDetector) as refused:
        detector("BADGE", regex="ab[0-9]+")
    assert refused.value.at == 7
