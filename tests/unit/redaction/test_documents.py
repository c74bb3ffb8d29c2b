"""Made-up documents: the same in every split, and as the detectors say when read slowly."""

import pytest

from tests.unit.redaction.documents import document
from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tests.unit.redaction.naive import Naive, longest_segment
from tests.unit.redaction.plain_view import view
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import HOLD
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICIES = {name: RedactionPolicy.preset(name) for name in ("default", "strict")}
DOCUMENTS = range(200)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("number", DOCUMENTS[:12])
def test_a_document_is_the_same_in_random_pieces(name: str, number: int) -> None:
    _same(name, number, times=6)


@pytest.mark.full
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("number", DOCUMENTS)
def test_a_document_is_the_same_in_500_random_splits_and_in_every_two_way_split(
    name: str, number: int
) -> None:
    _same(name, number, times=500)
    text = document(number)
    whole = POLICIES[name].redact(text)
    for pieces in every_split(text):
        assert streamed(POLICIES[name], pieces) == (whole.text, whole.spans)


def _same(name: str, number: int, *, times: int) -> None:
    rnd, text, policy = seeded(number), document(number), POLICIES[name]
    whole = policy.redact(text)
    for _ in range(times):
        assert streamed(policy, random_pieces(text, rnd)) == (whole.text, whole.spans)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.full
def test_documents_come_out_as_the_detectors_say_when_read_slowly(name: str) -> None:
    _as_naive(name, range(25))


@pytest.mark.full
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("hundred", range(10))
def test_a_hundred_documents_come_out_as_the_detectors_say_when_read_slowly(
    name: str, hundred: int
) -> None:
    _as_naive(name, range(hundred * 100, hundred * 100 + 100))


def _as_naive(name: str, numbers: range) -> None:
    naive = Naive(POLICIES[name])
    texts = [text for number in numbers if longest_segment(text := document(number)) <= HOLD]
    assert len(texts) > len(numbers) // 2
    for text in texts:
        assert POLICIES[name].redact(text).text == naive.mask(text)


@pytest.mark.parametrize("number", DOCUMENTS[:60])
def test_a_document_without_its_disguises_is_what_a_plain_reading_says(number: int) -> None:
    text = document(number)
    assert fold(text) == "".join(seen.char for seen in view(text))


def test_documents_hold_values_of_every_family() -> None:
    strict = POLICIES["strict"]
    found = {span.family for n in DOCUMENTS for span in strict.redact(document(n)).spans}
    assert found >= {
        *("email", "ssn", "card", "iban", "key", "jwt", "private_key", "url_credentials"),
        *("authorization", "keyword", "phone", "ip", "mac", "wallet", "national_id"),
        *("email_obfuscated", "email_quoted", "email_international", "passport"),
    }
