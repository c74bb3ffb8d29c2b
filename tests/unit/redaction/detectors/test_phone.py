import pytest

from tests.unit.redaction.detectors.finding import check, only
from tidegate.redaction.detectors import KNOWN_REGIONS
from tidegate.redaction.detectors.phone_table import PLANS

pytestmark = pytest.mark.full

PHONE = "[REDACTED_PHONE]"
ANY = only("phone")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # international
        ("+44 20 7946 0958", PHONE),
        ("+14155552671", PHONE),
        ("+1 (415) 555-2671", PHONE),
        ("(+44) 20 7946 0958", PHONE),
        ("+46 (0)8 928 571 38 now", f"{PHONE} now"),
        ("0041 44 668 18 00", PHONE),
        ("001-518-640-0854", PHONE),
        ("tel:+4915123456789;x", f"tel:{PHONE};x"),
        # the ways of countries
        ("(415) 555-2671", PHONE),
        ("(415)555-2671.", f"{PHONE}."),
        ("415-555-2671", PHONE),
        ("415.555.2671", PHONE),
        ("1-800-555-0199", PHONE),
        ("01.84.17.61.18", PHONE),
        ("01 84 17 61 18", PHONE),
        ("07700 900123", PHONE),
        ("020 7946 0958", PHONE),
        ("(020) 7946-0958", PHONE),
        ("030/1234567", PHONE),
        ("0341 8387176", PHONE),
        ("03-1234-5678", PHONE),
        ("(11) 98765-4321", PHONE),
        ("(0131) 4960651", PHONE),
        ("(02) 3468 3673", PHONE),
        ("(032)-0600113", PHONE),
        ("a 415-555-2671, b 020 7946 0958!", f"a {PHONE}, b {PHONE}!"),
        # extensions belong to the number
        ("415-555-2671 ext. 123", PHONE),
        ("415-555-2671x123 ok", f"{PHONE} ok"),
        ("+1 415 555 2671, extension 9.", f"{PHONE}."),
        ("415-555-2671 extra", f"{PHONE} extra"),
        # beside a word
        ("call me at 467 3395", f"call me at {PHONE}"),
        ("Phone: 4155552671", f"Phone: {PHONE}"),
        ("Phone:\n60-56-85-91\n", f"Phone:\n{PHONE}\n"),
        ("T\u00e9l\u00e9phone : 78 65 14 50", f"T\u00e9l\u00e9phone : {PHONE}"),
        ("781 1704 office", f"{PHONE} office"),
        ("78 651 450-Fax", f"{PHONE}-Fax"),
        ("WhatsApp 98765 43210", f"WhatsApp {PHONE}"),
    ],
)
def test_a_number_that_is_told_by_its_form_or_by_a_word_is_masked(text: str, shown: str) -> None:
    check(ANY, text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "(",
        "(415)",
        "(415) 555",
        "+1 415",
        "4155552671",
        "415 555 2671",
        "123-456-7890",  # no area begins with 1
        "415-155-2671",  # no exchange does
        "100-200-3000",
        "415-555-2671-99",
        "a415-555-2671",
        "415-555-26711",
        "1600 000 000",
        "699 956 915",
        "07 08",
        "2026-11-30 2026-12-01",
        "call on 30.11.2026",
        "phone 2026-11-30",
        "call 192.168.1.1",
        "vol. (20) 1999-2000",
        "02139-4307 536-90-4399 054-28-6917",
        "2026-11-30T16:25:00.123456+02:00",
        "3f2504e0-4f89-41d3-9a0c-630433107186",
        "+35236450.6 +999123456789",
        "f(1234) g(020) x[0]",
        "call 911",
        "call a taxi to 14 3684 Court Street",
        "office 365 of 2019",
        "01 02 03 04 05 06 07 08",
        "012345678901234567890123",
        "$1,234,567.89",
        "0010 0000 and 0100 0000",
    ],
)
def test_what_only_looks_like_a_number_is_left_alone(text: str) -> None:
    check(ANY, text, text)


@pytest.mark.parametrize(
    ("country", "text"),
    [
        ("US", "4155552671"),
        ("US", "415 555 2671"),
        ("CA", "604 696 5272"),
        ("GB", "02079460958"),
        ("FR", "0184176118"),
        ("DE", "03012345678"),
        ("IT", "312 345 6789"),
        ("ES", "699 956 915"),
        ("ES", "912 34 56 78"),
        ("PT", "912345678"),
        ("PT", "(351) 935 958 278"),
        ("PL", "501 234 567"),
        ("DK", "72 12 88 27"),
        ("NO", "434 14 557"),
        ("AU", "0412345678"),
        ("AU", "1300 123 456"),
        ("IN", "98765 43210"),
        ("IN", "04629042924"),
        ("CN", "138 1234 5678"),
        ("BR", "11 98765-4321"),
        ("MX", "55 1234 5678"),
        ("RU", "8-495-123-45-67"),
        ("RU", "(495) 123-45-67"),
        ("SG", "9123 4567"),
        ("HK", "2345 6789"),
        ("GR", "2101 234 567"),
        ("CZ", "601 234 567"),
        ("HU", "06 1 234 5678"),
        ("CH", "0446681800"),
    ],
)
def test_a_country_that_is_named_has_its_plain_writings_too(country: str, text: str) -> None:
    check(ANY.with_regions("phone", country), text, PHONE)


def test_a_country_that_is_not_named_is_not_looked_for() -> None:
    british = ANY.with_regions("phone", "GB")
    check(british, "415-555-2671", "415-555-2671")
    check(british, "+1 415 555 2671", PHONE)
    check(british, "phone 415-555-2671", f"phone {PHONE}")


def test_every_country_of_the_table_is_known_by_name() -> None:
    assert {plan.country for plan in PLANS} == set(KNOWN_REGIONS["phone"])
    assert len({plan.country for plan in PLANS}) == len(PLANS)
