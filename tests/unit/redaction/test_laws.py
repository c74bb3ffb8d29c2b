import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.redaction import oracle
from tests.unit.redaction.documents import document
from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tests.unit.redaction.samples import BODY, DEMO, DEMO_MASKED, KEPT, MASKED
from tidegate.redaction import RedactionPolicy, Redactor
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")
ORACLE_FAMILIES = ("email", "ssn", "card", "iban", "key", "jwt")
LOCAL = RedactionPolicy(dict.fromkeys(ORACLE_FAMILIES, "mask"))

# Pieces that begin, continue or break values of every kind.
FRAGMENTS = [
    *("a", "jane", "@", "%40", "example", ".com", ".", "-", "_", "+", "'", " ", "  ", "\n", "\t"),
    *("4111", "1111", "411111111111", "123-45-6789", "123", "45", "6789", "0.1", "9" * 9, "git"),
    *("sk-", "sk-" + "proj-", BODY[:20], "x" * 70, "AK" + "IA", "ABCDEFGH23456789", "gh" + "p_"),
    *("ey" + "J", "hbGciOiJI.", BODY[:210], "3f2504e0-4f89-41d3-9a0c-630433107186", "(", ")"),
    *(
        "\u200b",
        "\u00ad",
        "\uff14",
        "\uff20",
        "\u00a0",
        "\u2011",
        "\u00e9",
        "\u0301",
        "\u00d7",
        "\u1ec5@m\u00fc",
        "\u53f7",
        "[REDACTED_EMAIL]",
        "!",
        ",",
    ),
]
OPENINGS = [
    *("password", "token", "Authorization", ":", "=", "Bearer ", '"', "'", "https://", "user:"),
    *("pw@", "/", "GB82", "WEST", "12345698765432", "1234 5698 7654 32", "SSN", "&", "\\", "${"),
    *("-" * 5 + "BEGIN ", "RSA PRIVATE KEY", "-" * 5, "-" * 5 + "END ", "1 " * 40, "<", "z" * 300),
]


@pytest.mark.parametrize(("name", "text", "shown"), MASKED, ids=[name for name, *_ in MASKED])
def test_masked_sample_is_the_same_in_every_split(name: str, text: str, shown: str) -> None:
    whole = POLICY.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=12):
        assert streamed(POLICY, pieces) == (shown, whole.spans)


@pytest.mark.parametrize("text", KEPT)
def test_kept_sample_is_untouched_in_every_split(text: str) -> None:
    for pieces in every_split(text, three_way_max=12):
        assert streamed(POLICY, pieces) == (text, ())


@pytest.mark.parametrize(
    "text", ["jane@example.com, hello", "x 4111-1111-1111-1111 y", "sk-abcdef"]
)
def test_every_three_way_split_of_a_short_text(text: str) -> None:
    whole = POLICY.redact(text)
    for pieces in every_split(text, three_way_max=60):
        assert streamed(POLICY, pieces) == (whole.text, whole.spans)


def test_demo_text_comes_out_exactly_when_every_value_is_cut() -> None:
    cuts = ["example", "45-67", "4111 1111", "aB3dE5"]
    pieces, rest = [], DEMO
    for cut in cuts:
        place = rest.index(cut) + len(cut) // 2
        pieces.append(rest[:place])
        rest = rest[place:]
    assert streamed(POLICY, [*pieces, rest])[0] == DEMO_MASKED


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.full
def test_long_random_text_is_the_same_in_random_pieces(seed: int) -> None:
    rnd = seeded(seed)
    fragments = FRAGMENTS + OPENINGS
    text = "".join(rnd.choice(fragments) for _ in range(rnd.choice((12, 60, 240))))
    if seed % 4 == 0:
        text += rnd.choice(("\u200b", "a", "1 ", "1", "a.", "-", "ey" + "J")) * 700 + text
    whole = POLICY.redact(text)
    for _ in range(4):
        assert streamed(POLICY, random_pieces(text, rnd)) == (whole.text, whole.spans)
    assert streamed(POLICY, text) == (whole.text, whole.spans)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS + OPENINGS), max_size=12), st.integers(0, 2**32))
def test_any_mixture_of_fragments_is_the_same_in_every_two_pieces(
    fragments: list[str], seed: int
) -> None:
    text = "".join(fragments)
    whole = POLICY.redact(text)
    rnd = seeded(seed)
    for place in rnd.sample(range(len(text) + 1), min(24, len(text) + 1)):
        pieces = [text[:place], text[place:]]
        assert streamed(POLICY, pieces) == (whole.text, whole.spans)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS + OPENINGS[:16]), max_size=9))
def test_whole_text_equals_the_naive_oracle(fragments: list[str]) -> None:
    text = "".join(fragments)
    assert LOCAL.redact(text).text == oracle.mask(text)


@pytest.mark.parametrize("text", [text for _, text, _ in MASKED] + KEPT)
def test_samples_equal_the_naive_oracle(text: str) -> None:
    assert LOCAL.redact(text).text == oracle.mask(text)


@pytest.mark.parametrize("number", range(30))
def test_a_document_equals_the_naive_oracle(number: int) -> None:
    text = document(number)
    assert LOCAL.redact(text).text == oracle.mask(text)


@pytest.mark.full
@pytest.mark.parametrize("hundred", range(20))
def test_a_hundred_documents_equal_the_naive_oracle(hundred: int) -> None:
    for number in range(hundred * 100, hundred * 100 + 100):
        text = document(number)
        assert LOCAL.redact(text).text == oracle.mask(text)


@pytest.mark.full
@settings(max_examples=20_000, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS + OPENINGS[:16]), max_size=9))
def test_any_mixture_equals_the_naive_oracle(fragments: list[str]) -> None:
    text = "".join(fragments)
    assert LOCAL.redact(text).text == oracle.mask(text)


def test_nothing_of_a_value_leaves_before_it_is_decided() -> None:
    values = {
        "jane.doe@example.com": "jane",
        "4111 1111 1111 1111": "4111",
        "536-90-4399": "536-",
        "sk-" + BODY[:40]: "sk-a",
    }
    for value, head in values.items():
        redactor = Redactor(POLICY)
        shown = ""
        for char in f"see {value} there":
            shown += redactor.feed(char)
            assert head not in shown
        assert head not in shown + redactor.flush()


def test_offsets_of_spans_lead_from_the_original_to_the_output() -> None:
    for _, text, shown in MASKED:
        rebuilt, place = [], 0
        for span in POLICY.redact(text).spans:
            rebuilt += [text[place : span.start_in], shown[span.start_out : span.end_out]]
            place = span.end_in
        assert "".join([*rebuilt, text[place:]]) == shown


@pytest.mark.parametrize("text", [text for _, text, _ in MASKED])
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = POLICY.redact(text).text
    assert POLICY.redact(once).text == once
