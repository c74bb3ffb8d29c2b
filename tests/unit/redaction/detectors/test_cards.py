"""Which lengths and groups of digits can a payment card have?"""

import pytest

from tests.unit.redaction.detectors.finding import check
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.checksums import luhn

DEFAULT = RedactionPolicy.preset("default")
CARD = "[REDACTED_CARD]"


def visa(size: int) -> str:
    """A number that begins with 4, has `size` digits and checks."""
    body = "4" + "0" * (size - 2)
    return next(body + digit for digit in "0123456789" if luhn(body + digit))


@pytest.mark.parametrize("size", range(13, 20))
def test_a_visa_card_has_13_or_16_or_19_digits(size: int) -> None:
    text = f"number {visa(size)}."
    check(DEFAULT, text, f"number {CARD}." if size in {13, 16, 19} else text)


def test_any_length_counts_behind_a_word_for_a_card() -> None:
    check(DEFAULT, f"card {visa(15)}", f"card {CARD}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("order 12 4111 1111 1111 1111", f"order 12 {CARD}"),
        ("1-4111-1111-1111-1111", f"1-{CARD}"),
        ("7 3782 822463 10005", f"7 {CARD}"),
        ("3782822 4631 0005", CARD),
        ("12 4111111111111111", f"12 {CARD}"),
        ("123-3782822-46310005", None),
        ("123-4567890-1234567", None),
        ("1 3782822 4631 0005", None),
    ],
)
def test_unusual_groups_are_a_card_only_if_no_digits_lead_to_them(
    text: str, shown: str | None
) -> None:
    check(DEFAULT, text, text if shown is None else shown)
