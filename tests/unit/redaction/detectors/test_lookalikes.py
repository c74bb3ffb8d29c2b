"""Which numbers look like personal data for the strict preset, and count or measure something?"""

import pytest

from tests.unit.redaction.detectors.finding import check
from tidegate.redaction import RedactionPolicy

STRICT = RedactionPolicy.preset("strict")


@pytest.mark.parametrize(
    "text",
    [
        "300-400-5000 units in stock",
        "about 300-400-5000 Items",
        "time 12:34:56:78:90:12",
        "Timestamp: 12:34:56:78:90:12.",
        "Node.js is at 5.0.71.32 and Policy 8.12.0.4, firmware 5.1.2.3",
        "At passport control 123456789 people; passport photos 12345678",
    ],
)
def test_counts_times_and_releases_are_nobodys(text: str) -> None:
    check(STRICT, text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("300-400-5000 is mine", "[REDACTED_PHONE] is mine"),
        ("phone 300-400-5000 units", "phone [REDACTED_PHONE] units"),
        ("300-400-5000 united", "[REDACTED_PHONE] united"),
        ("time 12:34:56:78:9a:12", "time [REDACTED_MAC]"),
        ("device 12:34:56:78:90:12", "device [REDACTED_MAC]"),
        ("node 5.0.71.32, host 5.0.71.32", "node 5.0.71.32, host [REDACTED_IP]"),
        ("passport holder 123456789", "passport holder [REDACTED_PASSPORT]"),
    ],
)
def test_the_words_around_a_number_take_nothing_else_away(text: str, shown: str) -> None:
    check(STRICT, text, shown)
