"""Values that contain barriers, detectors that others bring along, and what values become."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import CARD, EMAIL, SECRET, VISA, jwt, key
from tidegate.redaction import BlockedContent, RedactionPolicy, Redactor
from tidegate.redaction.hits import Anchors, Detector, Hit, SpanningDetector, Verdict
from tidegate.redaction.spans import Kind
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

DEFAULT = RedactionPolicy.preset("default")


@dataclass(frozen=True)
class Badge:
    """`EMP-` and six digits."""

    family = "badge"
    rank = 38
    shortest = 10
    anchors = ((r"\-", "(?<=EMP-)"),)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        for found in re.compile("EMP-[0-9]{6}(?![0-9])").finditer(text, start, end):
            yield Hit(found.start(), found.end(), self.family, "badge", Kind("BADGE", "badge"))


@dataclass(frozen=True)
class Phrase:
    """One literal with spaces; its words are asked for one by one."""

    words: str
    family: str = "phrase"
    rank: int = 39
    everywhere: bool = False

    @property
    def anchors(self) -> Anchors:
        head = self.words.split(" ")[0]
        return () if self.everywhere else ((head[0], f"{head[1:]}[ ]"),)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        for place in range(start, stop):
            seen = text[place:stop]
            if seen.startswith(self.words) or self.words.startswith(seen):
                return place
        return None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        seen = text[start:end]
        if seen.startswith(self.words):
            kind = Kind(self.family.upper(), self.family)
            return Hit(start, start + len(self.words), self.family, "phrase", kind)
        return Verdict.TEXT if ended or not self.words.startswith(seen) else Verdict.WAIT


JANE = Phrase("Jane Doe")
FIRM = Phrase("Doe Holdings Ltd", family="firm")
WITH = DEFAULT.with_detectors(JANE, FIRM, Badge())


def check(policy: RedactionPolicy, text: str, shown: str) -> None:
    whole = policy.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=24):
        assert streamed(policy, pieces) == (shown, whole.spans)


def test_the_two_kinds_of_detector_are_told_apart() -> None:
    assert isinstance(Badge(), Detector)
    assert not isinstance(Badge(), SpanningDetector)
    assert isinstance(JANE, SpanningDetector)
    assert not isinstance(JANE, Detector)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Jane Doe", "[REDACTED_PHRASE]"),
        ("so Jane Doe, and Jane Dot", "so [REDACTED_PHRASE], and Jane Dot"),
        ("Jane Jane Doe Jane", "Jane [REDACTED_PHRASE] Jane"),
        ("JaneJane Doe", "Jane[REDACTED_PHRASE]"),
        ("Doe Holdings Ltd", "[REDACTED_FIRM]"),
        ("EMP-123456 EMP-1234567", "[REDACTED_BADGE] EMP-1234567"),
        ("Jane EMP-123456", "Jane [REDACTED_BADGE]"),
        ("Jane Doe jane@example.com", f"[REDACTED_PHRASE] {EMAIL}"),
        ("password: Jane Doe", "password: [REDACTED_PHRASE]"),
        # A loser that reaches beyond the winner lengthens it.
        ("Jane Doe Holdings Ltd.", "[REDACTED_PHRASE]."),
        ("x@b.co-Jane Doe Holdings Ltd!", f"{EMAIL}!"),
        ("Jane Doe@example.com ok", "[REDACTED_PHRASE] ok"),
        # One that ends inside a value that began first is not counted.
        ("x-Jane", "x-Jane"),
        # A secret begins at a delimiter and ends at one.
        ("password: 1!Jane Doe", f"password: {SECRET} Doe"),
        # Nothing looks for values inside what was written in place of one.
        ("[REDACTED_EMP-123456]", "[REDACTED_[REDACTED_BADGE]]"),
    ],
)
def test_values_with_spaces_are_found_in_every_split(text: str, shown: str) -> None:
    check(WITH, text, shown)


def test_a_value_that_is_decided_leaves_before_a_later_one_is() -> None:
    numbers = Phrase("4 5 6 7", everywhere=True)
    policy = DEFAULT.with_detectors(numbers, Phrase("7 x y", family="firm", everywhere=True))
    check(policy, "a 4 5 6 7 ", "a [REDACTED_PHRASE] ")
    check(policy, "a 4 5 6 7 x", "a [REDACTED_PHRASE] x")
    check(policy, "a 4 5 6 7 x y", "a [REDACTED_PHRASE]")
    check(policy, "a 5 6 7 x y", "a 5 6 [REDACTED_FIRM]")


def test_a_detector_without_anchors_is_asked_about_every_segment() -> None:
    everywhere = Phrase("a b c", everywhere=True)
    check(RedactionPolicy({}).with_detectors(everywhere), "x a b c a b", "x [REDACTED_PHRASE] a b")


def test_a_value_that_reaches_beyond_what_may_be_held_is_no_value() -> None:
    words = "Jane " + "and " * 200
    policy = DEFAULT.with_detectors(Phrase(words))
    for size in (1, 7, 400, 2000):
        pieces = [(words * 2)[i : i + size] for i in range(0, len(words) * 2, size)]
        assert streamed(policy, pieces) == (words * 2, ())


def test_operators_may_give_each_family_its_own_action() -> None:
    text = f"Jane Doe {VISA} EMP-123456"
    policy = DEFAULT.with_detectors(JANE, action="report").with_detectors(Badge())
    check(policy, text, f"Jane Doe {CARD} [REDACTED_BADGE]")
    with pytest.raises(BlockedContent, match="phrase"):
        DEFAULT.with_detectors(JANE, action="block").redact(text)
    assert WITH.with_actions({"phrase": None, "badge": "report"}).redact(text).text == (
        f"Jane Doe {CARD} EMP-123456"
    )


def test_what_is_only_reported_hides_no_other_value() -> None:
    policy = WITH.with_actions({"email": "report", "phrase": "report"})
    check(policy, "x@b.co-Jane Doe Holdings Ltd!", "x@b.co-Jane [REDACTED_FIRM]!")
    spans = policy.redact("x@b.co-Jane Doe Holdings Ltd!").spans
    assert [(s.kind, s.start_in, s.end_in, s.start_out, s.end_out) for s in spans] == [
        ("EMAIL", 0, 12, 0, 12),
        ("FIRM", 12, 28, 12, 27),
    ]


def test_partial_shows_the_last_four_letters_or_digits_of_long_values() -> None:
    policy = WITH.with_actions({"card": "partial", "email": "partial", "phrase": "partial"})
    check(policy, f"{VISA}!", "[REDACTED_CARD_1111]!")
    check(policy, "a jane@example.com b@c.de", "a [REDACTED_EMAIL_ecom] [REDACTED_EMAIL]")
    check(policy, "jos\u00e9@example.com", EMAIL)
    check(policy, "Jane Doe", "[REDACTED_PHRASE]")


def test_hash_is_the_same_for_the_same_value_and_key() -> None:
    policy = WITH.with_actions({"card": "hash", "phrase": "hash"}).with_hash_key(b"k" * 16)
    wide = VISA.translate({ord("0") + i: 0xFF10 + i for i in range(10)})
    text = f"{VISA}, {wide}, Jane Doe"
    shown = policy.redact(text).text
    found = re.fullmatch(
        r"\[REDACTED_CARD_([0-9a-f]{8})\], \[REDACTED_CARD_\1\], \[REDACTED_PHRASE_[0-9a-f]{8}\]",
        shown,
    )
    assert found
    check(policy, text, shown)
    assert policy.redact(shown).text == shown
    assert found[1] not in policy.with_hash_key(b"other").redact(text).text
    with pytest.raises(ValueError, match="needs a key"):
        policy.with_hash_key(b"").redact(text)
    assert "kkk" not in repr(policy)


@pytest.mark.parametrize("action", ["partial", "hash"])
@pytest.mark.parametrize("secret", [key("sk-", 900), jwt(2000)])
def test_a_value_whose_end_is_not_in_sight_gets_the_plain_placeholder(
    action: str, secret: str
) -> None:
    policy = DEFAULT.with_actions({"key": action, "jwt": action})  # type: ignore[dict-item]
    check_long = policy.with_hash_key(b"k")
    for size in (1, 50, 5000):
        pieces = [secret[i : i + size] for i in range(0, len(secret), size)]
        assert streamed(check_long, pieces)[0] == SECRET


def test_a_replacement_gets_kind_and_original_in_text_order() -> None:
    asked: list[tuple[str, str]] = []

    def replace(kind: Kind, value: str) -> str:
        asked.append((kind.word, value))
        return f"<{len(asked)}>"

    text = f"x@b.co Jane Doe, j\u200b@c.de {key('sk-', 900)} {VISA}"
    redactor = Redactor(WITH, replace=replace)
    shown = "".join(redactor.feed(char) for char in text) + redactor.flush()
    assert shown == f"<1> <2>, <3> {SECRET} <4>"
    assert asked == [
        ("EMAIL", "x@b.co"),
        ("PHRASE", "Jane Doe"),
        ("EMAIL", "j\u200b@c.de"),
        ("CARD", VISA),
    ]
    assert WITH.redact("x@b.co", replace=lambda kind, value: value.upper()).text == "X@B.CO"


def test_a_replacement_gets_the_whole_of_a_value_that_another_lengthens() -> None:
    asked: list[str] = []

    def replace(kind: Kind, value: str) -> str:
        asked.append(value)
        return "<>"

    for text, values in [
        ("Jane Doe@example.com ok", ["Jane Doe@example.com"]),
        ("x@b.co-Jane Doe Holdings Ltd!", ["x@b.co-Jane Doe Holdings Ltd"]),
        ("Jane Doe Holdings Ltd.", ["Jane Doe Holdings Ltd"]),
    ]:
        for pieces in every_split(text):
            asked.clear()
            redactor = Redactor(WITH, replace=replace)
            shown = "".join(map(redactor.feed, pieces)) + redactor.flush()
            assert asked == values
            assert shown == text.replace(values[0], "<>")
            span = redactor.spans[0]
            assert text[span.start_in : span.end_in] == values[0]
            assert shown[span.start_out : span.end_out] == "<>"
    hashed = WITH.with_actions({"phrase": "hash"}).with_hash_key(b"k")
    one, other = (hashed.redact(f"Jane Doe{rest}").text for rest in ("@b.co", "@c.de"))
    assert one != other


def test_scan_finds_whatever_the_actions_are() -> None:
    policy = WITH.with_actions({"email": "block"})
    spans = policy.scan("x@b.co Jane Doe")
    assert [(span.kind, span.start_in, span.end_in) for span in spans] == [
        ("EMAIL", 0, 6),
        ("PHRASE", 7, 15),
    ]


@pytest.mark.parametrize(
    "placeholder",
    [EMAIL, "[REDACTED_CARD_1111]", "[REDACTED_KEY_12345678]", "[EMAIL_bcdfghjkmnpqrs]"],
)
def test_placeholders_are_never_found_again(placeholder: str) -> None:
    policy = RedactionPolicy.preset("strict").with_detectors(
        *(Phrase(f"{word} x") for word in ("REDACTED_CARD", "CARD")), Phrase("REDACTED_EMAIL")
    )
    for text in (placeholder, f"password: {placeholder}", f"https://u:{placeholder}@h/"):
        check(policy, text, text)
