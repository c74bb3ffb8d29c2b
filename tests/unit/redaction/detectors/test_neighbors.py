"""Which signs may touch a value without hiding it?

Quotes, brackets, dashes, emphasis and separators stand right before and behind values in source
code, logs, tables and prose. Only a letter or a digit, or what a longer value of another sort is
made of, makes a value the part of something else.
"""

import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import BODY
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.spans import PLACEHOLDER

pytestmark = pytest.mark.full

STRICT = RedactionPolicy.preset("strict")
SIGNS = (
    *"'\"`_-+~([{<=:,;|/*#!?&^$>)]}",
    *("\u2013", "\u2014", "\u2019", "\u201c", "\u00ab", "\u2022", "\u2192", "\u20ac", "\u00a0"),
    *("__", "**", "--", "...", "'''", "<b>", "\t", "=> "),
)
# By family: a value, and the signs that make it another thing before or behind it.
VALUES = {
    "ssn": ("536-90-4399", "", ""),
    "card": ("4111111111111111", "", ""),
    "iban": ("GB82WEST12345698765432", "", ""),
    "key": ("gh" + "p_" + BODY[:36], "", "_-\u2013"),
    "jwt": ("ey" + "J" + BODY[:20] + "." + BODY[:20], "", "_-\u2013"),
    "phone": ("+44 20 7946 0958", "", ""),
    "ip": ("93.184.216.34", "", ""),
    "mac": ("00:1A:2B:3C:4D:5E", "", ""),
    "national_id": ("111.444.777-35", "", ""),
    "wallet": ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "", ""),
    "email_quoted": ('"jane doe"@example.com', '".!?', "_-\u2013"),
    "email_obfuscated": ("jane dot doe at example dot com", "", ""),
}
WORDS = {"jwt": "SECRET", "key": "SECRET", "email_quoted": "EMAIL", "email_obfuscated": "EMAIL"}


# Every split of all of them would take long and say no more: the rest comes character by character.
SPLIT = frozenset(("'", "_", "-", "\u2013", "(", "..."))


def _check(family: str, sign: str, text: str, shown: str) -> None:
    if sign in SPLIT:
        check(only(family), text, shown)
        return
    whole = only(family).redact(text)
    assert whole.text == shown
    assert streamed(only(family), text) == (shown, whole.spans)


def _masked(family: str) -> str:
    return f"[REDACTED_{WORDS.get(family, family.upper())}]"


@pytest.mark.parametrize("family", VALUES)
def test_a_sign_right_before_a_value_does_not_hide_it(family: str) -> None:
    value, others, _ = VALUES[family]
    for sign in SIGNS:
        if sign[-1] not in others:
            _check(family, sign, f"x {sign}{value} y", f"x {sign}{_masked(family)} y")


@pytest.mark.parametrize("family", VALUES)
def test_a_sign_right_behind_a_value_does_not_hide_it(family: str) -> None:
    value, _, others = VALUES[family]
    for sign in SIGNS:
        if sign[0] not in others:
            _check(family, sign, f"x {value}{sign} y", f"x {_masked(family)}{sign} y")


@pytest.mark.parametrize(
    ("family", "text", "shown"),
    [
        ("iban", "iban = 'GB82WEST12345698765432'", "iban = '[REDACTED_IBAN]'"),
        ("iban", "id_de89 3704 0044 0532 0130 00", "id_[REDACTED_IBAN]"),
        ("iban", "a-GB82 WEST 1234 5698 7654 32.", "a-[REDACTED_IBAN]."),
        ("iban", "xGB82WEST12345698765432", None),
        ("iban", "1GB82WEST12345698765432", None),
        ("iban", "GB82WEST12345698765432x", None),
        ("iban", "3f2504e0-ad12-41d3-9a0c-630433107186", None),
        ("phone", "a-+44 20 7946 0958", "a-[REDACTED_PHONE]"),
        ("phone", "x-020 7946 0958 a.020 7946 0958 2_020 7946 0958", None),
        ("ip", "ec2-93.184.216.34 a_93.184.216.34 93.184.216.34-b 93.184.216.34_b", None),
        ("mac", "1-00:1A:2B:3C:4D:5E", None),
        ("passport", "passport_no: _X1234567_", "passport_no: _[REDACTED_PASSPORT]_"),
        ("passport", "Passport 'X1234567', -X1234567", "Passport '[REDACTED_PASSPORT]', -X1234567"),
        ("passport", "passport part-X1234567 X1234567-b", None),
        ("email_obfuscated", "'jane at example dot com'", "'[REDACTED_EMAIL]'"),
        ("email_quoted", 'he said "hi there"@noon.x', None),
    ],
)
def test_what_belongs_to_a_longer_word_decides(family: str, text: str, shown: str | None) -> None:
    check(only(family), text, text if shown is None else shown)


@pytest.mark.parametrize(
    "text",
    [
        "[REDACTED_EMAIL]",
        "[REDACTED_CARD_1111]",
        "[REDACTED_IBAN_3f9a1c02]",
        "[REDACTED_ID2_OF_X3]",
        "[NATIONAL_ID_bcdfghjkmnpqrs]",
        "[A1B2C3_bcdfghjkmnpqrs]",
    ],
)
def test_a_placeholder_is_no_value(text: str) -> None:
    assert PLACEHOLDER.fullmatch(text)
    check(STRICT, f"password: {text}", f"password: {text}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[REDACTED_NO9386011117947]", "[REDACTED_[REDACTED_IBAN]]"),
        ("[BE68539007547034_bcdfghjkmnpqrs]", "[[REDACTED_IBAN]_bcdfghjkmnpqrs]"),
        ("[REDACTED_X_NO9386011117947_1234]", "[REDACTED_X_[REDACTED_IBAN]_1234]"),
        ("[REDACTED_RSSMRA85T10A562S]", "[REDACTED_[REDACTED_NATIONAL_ID]]"),
    ],
)
def test_a_value_in_the_shape_of_a_placeholder_is_found(text: str, shown: str) -> None:
    check(only("iban", "national_id"), text, shown)
