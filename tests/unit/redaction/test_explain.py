import pytest

from tests.unit.redaction.catalogue.entries import CARDS, EMAILS, KEPT, OTHERS, SSNS, Row
from tests.unit.redaction.catalogue.secrets import SECRETS
from tests.unit.redaction.samples import BODY, VISA, jwt, key, pem
from tidegate.redaction import RedactionPolicy, detector
from tidegate.redaction.explain import Explanation, explain

pytestmark = pytest.mark.full

DEFAULT, STRICT = RedactionPolicy.preset("default"), RedactionPolicy.preset("strict")
ROWS = [*EMAILS, *SSNS, *CARDS, *SECRETS, *OTHERS, *KEPT]
CHECKED = "gh" + "p_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"


@pytest.mark.parametrize(
    ("text", "family", "rule", "reason"),
    [
        (VISA, "card", "card", "16 digits, Luhn check right, a prefix of a card network"),
        (
            "card 503802053770",
            "card",
            "card",
            "12 digits, Luhn check right, behind a word for a card",
        ),
        ("jane@example.com", "email", "email", "a local part, @ and a domain with a top level"),
        ("536-90-4399", "ssn", "ssn", "three, two and four digits, all in ranges that are issued"),
        ("SSN 536904399", "ssn", "ssn_context", 'nine digits behind a word such as "SSN"'),
        ("DE89370400440532013000", "iban", "iban", "check digits that are right"),
        (key("sk-", 25), "key", "sk_key", "prefix sk- and 25 characters"),
        (CHECKED, "key", "github_token", "prefix ghp_ and 36 characters, check sum right"),
        (f"{CHECKED[:-1]}8", "key", "github_token", "check sum wrong, hidden all the same"),
        (jwt(100), "jwt", "jwt", "begins like a JSON object in base64"),
        (pem(3), "private_key", "private_key", "the opening line of a private key"),
        ("http://u:s3cret@h", "url_credentials", "url_credentials", "in front of the @ of a URL"),
        ("password: hunter2!x", "keyword", "keyword_value", "behind a word such as"),
        ("Authorization: Basic YTpi", "authorization", "authorization", "and its scheme"),
        ("123456789:A" + BODY[:34], "key", "telegram_token", "a number, a colon, A and"),
        ("&sig=" + BODY[:43] + "=", "key", "url_signature", "the signature of a URL"),
        ("+1 415 555 2671", "phone", "phone_international", "a calling code"),
        ("(415) 555-2671", "phone", "phone_national", "written as numbers are in"),
        ("phone 467 3395", "phone", "phone_context", "digits beside a word such as"),
        ("8.8.8.8", "ip", "ipv4", "four parts up to 255"),
        ("10.0.0.1", "ip_private", "ipv4", "four parts up to 255"),
        ("00:1A:2B:3C:4D:5E", "mac", "mac", "six pairs of hexadecimal digits"),
        ("12345678Z", "national_id", "es_dni", "the layout of es_dni"),
        ("passport X1234567", "passport", "passport", "behind a word for a passport"),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "wallet", "base58", "the check sum of Base58Check"),
        ("jane [at] example [dot] com", "email_obfuscated", "email_words", "with dot in words"),
    ],
)
def test_a_value_is_explained_by_its_detector_and_rule(
    text: str, family: str, rule: str, reason: str
) -> None:
    (taken,) = [each for each in explain(STRICT, text) if each.outcome != "kept"]
    assert (taken.family, taken.rule, taken.outcome) == (family, rule, "mask")
    assert reason in taken.reason


@pytest.mark.parametrize(
    ("text", "family", "reason"),
    [
        ("1234567890123456", "card", "16 digits, Luhn check failed"),
        ("7000000000000005", "card", "no card network issues such numbers: an order number"),
        ("9400111899223197428490", "card", "22 digits, a card has 19 at most"),
        ("0.4111111111111111", "card", "decimal fraction"),
        ("40111111-1111-4111-8111-111111111111", "card", "part of a UUID"),
        ("41 111111 11111111", "card", "not grouped like one number"),
        ("sk-abc123xyz", "key", "prefix sk- but only 9 characters behind it"),
        ("sk-learn-contrib-extras-package", "key", "too short or words"),
        ("ghp_short", "key", "prefix ghp_ but only 5 characters behind it"),
        ("eyJust", "jwt", "no second part follows"),
        ("jane@localhost", "email", "no top level"),
        ("@dataclass", "email", "nothing in front of the @"),
        ("jane@ x", "email", "nothing behind the @"),
        ("git@github.com:o/r", "email", "git@ names a repository"),
        ("react@18.2.0", "email", "the number of a release"),
        ("jane@host.123", "email", "the top level is not made of letters"),
        ("\u4f60@example.com", "email", "in Latin letters"),
        ("666-12-3456", "ssn", "areas 000, 666 and from 900 on were never issued"),
        ("123-00-6789", "ssn", "group 00 and serial 0000 were never issued"),
        ("1-123-45-6789", "ssn", "part of a longer number"),
        ("536904399", "ssn", 'without a word such as "SSN"'),
        ("GB82 WEST 1234 5698 7654 33", "iban", "modulus 97) are wrong"),
        ("x = 'GB82WEST12345698765433'", "iban", "modulus 97) are wrong"),
        ("id_GB82 WEST 1234\n5698 7654 33", "iban", "modulus 97) are wrong"),
        ("GB82 WEST 1234 56", "iban", "of that country has 22 characters"),
        ("XX12 3456 7890 1234", "iban", "no country"),
        ("GB82 WEST 1234 5698 7654 32X", "iban", "right for 22 characters"),
        ("password: required", "keyword", "letters only"),
        ("password: $PASSWORD", "keyword", "a template or a placeholder"),
        ("pwd: a1", "keyword", "2 characters; behind this word a secret has 6 or more"),
        ("token=settings.api_token", "keyword", "a name of code"),
        ("Authorization: required", "authorization", "letters only"),
        ("https://user:pass@h/", "url_credentials", "what documentation writes"),
        ("https://jane@h/", "url_credentials", "a user name without a password"),
        ("-----BEGIN CERTIFICATE-----", "private_key", "not a private key"),
        ("-----BEGIN PRIVATE KEY----- is what", "private_key", "nothing like a key follows"),
    ],
)
def test_a_near_miss_says_why_it_is_none(text: str, family: str, reason: str) -> None:
    near = [each for each in explain(DEFAULT, text) if each.family == family]
    assert any(reason in each.reason for each in near), near
    assert {(each.outcome, each.rule) for each in near} == {("kept", "")}


@pytest.mark.parametrize(
    ("text", "family", "reason"),
    [
        ("4155552671", "phone", 'no word such as "phone"'),
        ("30.11.2026 ", "phone", "reads like a date"),
        ("415-555-2671-99", "phone", "no calling code"),
        ("999.1.1.1", "ip", "a part above 255"),
        ("1.2.3.4.5", "ip", "more than four parts"),
        ("version 1.2.3.4", "ip", "counts releases"),
        ("12:30:45", "ip", "too few groups"),
        ("00:1A:2B:3C:4D", "mac", "5 pairs, a MAC address has 6"),
        ("ff:ff:ff:ff:ff:ff", "mac", "nobody's address, or everybody's"),
        ("00:1A-2B:3C:4D:5E", "mac", "not joined by one sign"),
        ("BSN 111222334", "national_id", "nl_bsn: the check digit is wrong"),
        ("111222333", "national_id", "nl_bsn: counts only behind its word, or if NL"),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "wallet", "the check sum is wrong"),
        ("0x" + "ab" * 20, "wallet", "no word such as wallet"),
        ("AB1234567", "passport", "no word for a passport"),
    ],
)
def test_a_near_miss_of_the_opt_in_says_why_it_is_none(text: str, family: str, reason: str) -> None:
    near = [each.reason for each in explain(STRICT, text) if each.family == family]
    assert any(reason in each for each in near), near


def test_the_action_of_the_policy_is_the_outcome() -> None:
    policy = DEFAULT.with_actions({"email": "block", "card": "report", "ssn": "partial"})
    outcomes = {
        each.family: each.outcome
        for each in explain(policy, f"jane@example.com {VISA}, 536-90-4399")
    }
    assert outcomes == {"email": "block", "card": "report", "ssn": "partial"}


def test_what_is_allowed_and_what_is_off_is_said() -> None:
    policy = DEFAULT.with_allow("*@example.com")
    allowed, off = explain(policy, "jane@example.com 8.8.8.8")
    assert (allowed.outcome, allowed.rule) == ("kept", "email")
    assert allowed.reason.startswith("allowed by the policy; otherwise: a local part")
    assert (off.family, off.rule, off.outcome) == ("ip", "ipv4", "kept")
    assert off.reason.startswith("the detector ip is off; it would see: four parts")


def test_a_detector_of_the_operators_own_is_explained_too() -> None:
    badge = detector("BADGE", prefix="EMP-", body="[0-9]", min=6, max=8)
    policy = RedactionPolicy({}).with_detectors(badge)
    taken, near = explain(policy, "EMP-123456 EMP-123")
    assert (taken.family, taken.outcome) == ("badge", "mask")
    assert (near.family, near.outcome) == ("badge", "kept")


def test_places_are_those_of_the_text_as_it_came() -> None:
    text = "a\u200bb jane&#64;localhost, \uff14\uff11\uff11\uff11 1111 1111 1112"
    email, card = explain(DEFAULT, text)
    assert text[email.start : email.end] == "jane&#64;localhost"
    assert text[card.start : card.end] == "\uff14\uff11\uff11\uff11 1111 1111 1112"


@pytest.mark.parametrize("preset", [DEFAULT, STRICT], ids=["default", "strict"])
def test_explanations_agree_with_the_scan_and_never_repeat_a_value(
    preset: RedactionPolicy,
) -> None:
    for row in ROWS:
        found = explain(preset, row.text)
        taken = [(each.start, each.end) for each in found if each.outcome == "mask"]
        assert taken == [(span.start_in, span.end_in) for span in preset.scan(row.text)]
        assert found == sorted(found, key=lambda each: (each.start, each.end))
        for each in found:
            value = row.text[each.start : each.end]
            assert len(value) < 6 or value not in each.reason
            assert 0 <= each.start < each.end <= len(row.text), (row, each)


def test_nothing_is_said_about_nothing() -> None:
    assert explain(STRICT, "") == []
    assert explain(STRICT, "The quick brown fox jumps.") == []
    assert Explanation(0, 1, "card", "", "kept", "x") == Explanation(0, 1, "card", "", "kept", "x")


def test_every_row_of_the_catalogue_is_a_row() -> None:
    assert all(isinstance(row, Row) for row in ROWS)
