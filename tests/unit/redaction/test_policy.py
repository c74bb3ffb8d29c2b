import pytest

from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import EMAIL, SECRET, key
from tidegate.redaction import (
    FAMILIES,
    BlockedContent,
    RedactionPolicy,
    Redactor,
    RedactorSet,
    Span,
)
from tidegate.testing.splits import every_split, split_at

DEFAULT = RedactionPolicy.preset("default")
ADDRESS = "jane@example.com"


OPT_IN = {
    "email_quoted",
    "email_international",
    "email_obfuscated",
    "phone",
    "ip",
    "ip_private",
    "mac",
    "national_id",
    "passport",
    "wallet",
}
CUES = {"names", "addresses", "birth_dates"}


def test_presets_are_default_strict_and_code() -> None:
    assert set(DEFAULT.actions) == set(FAMILIES) - OPT_IN - CUES
    assert set(RedactionPolicy.preset("strict").actions) == set(FAMILIES) - CUES
    assert set(RedactionPolicy.preset("code").actions) == set(DEFAULT.actions) - {"email"}
    assert RedactionPolicy.preset() == DEFAULT
    with pytest.raises(ValueError, match="there are code, default, strict"):
        RedactionPolicy.preset("lax")


def test_regions_narrow_a_family_to_countries_that_are_asked_for() -> None:
    policy = RedactionPolicy({"phone": "mask", "national_id": "mask"})
    dutch = policy.with_regions("national_id", "NL").with_regions("phone", "US")
    assert dutch.redact("nr 111222333").text == "nr [REDACTED_NATIONAL_ID]"
    assert policy.redact("nr 111222333").text == "nr 111222333"
    assert dutch.redact("020 7946 0958").text == "020 7946 0958"
    assert policy.redact("020 7946 0958").text == "[REDACTED_PHONE]"
    assert dutch.with_regions("national_id").redact("nr 111222333").text == "nr 111222333"


@pytest.mark.parametrize(
    ("family", "country", "message"),
    [
        ("card", "US", "'card' has no regions; national_id, phone have"),
        ("phone", "XX", "no region 'XX'; phone knows AT, AU"),
        ("national_id", "us", "no region 'us'"),
    ],
)
def test_unknown_regions_are_refused(family: str, country: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DEFAULT.with_regions(family, country)


def test_code_preset_leaves_addresses_and_masks_secrets() -> None:
    code = RedactionPolicy.preset("code")
    assert code.redact(f"{ADDRESS} {key('sk-', 30)}").text == f"{ADDRESS} {SECRET}"


@pytest.mark.parametrize(
    ("text", "default", "strict"),
    [
        ("password: letmein", False, True),
        ("password='open sesame'", False, True),
        ("pwd: abc", False, False),
        ("token: abcdef", False, True),
        ("password: ******", False, False),
        ("password: hunter2", True, True),
        ("password = 123456", True, True),
        ("secret = 12345678", False, True),
        ("api_key = settings.api_key", False, True),
        ("password = get_password(1)", False, True),
        ("password: see#note1", True, True),
    ],
)
def test_strict_reads_keyword_values_more_strictly(
    text: str, *, default: bool, strict: bool
) -> None:
    assert (SECRET in DEFAULT.redact(text).text) is default
    assert (SECRET in RedactionPolicy.preset("strict").redact(text).text) is strict


def test_block_names_the_family_and_never_the_value() -> None:
    policy = DEFAULT.with_actions({"card": "block"})
    with pytest.raises(BlockedContent) as caught:
        policy.redact("card 4111 1111 1111 1111 here")
    assert (caught.value.kind, str(caught.value)) == ("card", "card")
    redactor = Redactor(policy)
    redactor.feed("card 4111 1111 ")
    with pytest.raises(BlockedContent):
        redactor.feed("1111 1111, ")


def test_block_in_a_mode_raises_too() -> None:
    with pytest.raises(BlockedContent):
        DEFAULT.with_actions({"keyword": "block"}).redact("password: hunter2!x")


@pytest.mark.parametrize("body", [ADDRESS, key("sk-", 900), "password: hunter2!x"])
def test_report_counts_and_changes_nothing(body: str) -> None:
    policy = DEFAULT.observing()
    text = f"so {body} then"
    whole = policy.redact(text)
    assert whole.text == text
    assert [(span.start_in, span.end_in) for span in whole.spans] == [
        (span.start_out, span.end_out) for span in whole.spans
    ]
    assert len(whole.spans) == 1
    for pieces in every_split(text):
        assert streamed(policy, pieces) == (text, whole.spans)
    assert policy.observing() == policy
    assert DEFAULT.observing() is DEFAULT.observing()


def test_a_family_can_be_switched_off() -> None:
    assert DEFAULT.with_actions({"email": None}).redact(ADDRESS).text == ADDRESS
    nothing = RedactionPolicy({})
    text = f"{ADDRESS} password: hunter2!x https://u:p@h/ GB82 WEST 1234 5698 7654 32"
    assert nothing.redact(text).text == text
    assert streamed(nothing, text) == (text, ())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_works_alone(family: str) -> None:
    samples = {
        "email": ADDRESS,
        "ssn": "536-90-4399",
        "card": "4111 1111 1111 1111",
        "iban": "GB82 WEST 1234 5698 7654 32",
        "key": key("sk-", 30),
        "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.abcdefghijkl",
        "private_key": "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
        "url_credentials": "redis://u:p@h",
        "authorization": "authorization: Bearer abc",
        "keyword": "password: hunter2!x",
        "email_quoted": '"jane doe"@example.com',
        "email_international": "\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a",
        "email_obfuscated": "jane [at] example [dot] com",
        "phone": "+1 415 555 2671",
        "ip": "93.184.216.34",
        "ip_private": "10.0.0.12",
        "mac": "00:1A:2B:3C:4D:5E",
        "national_id": "12345678Z",
        "passport": "passport X1234567",
        "wallet": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    }
    alone = RedactionPolicy({family: "mask"})
    for name, text in samples.items():
        found = [span.kind for span in alone.redact(text).spans]
        assert bool(found) is (name == family), name


@pytest.mark.parametrize(
    ("actions", "message"),
    [({"mail": "mask"}, "no detector 'mail'"), ({"email": "drop"}, "no action 'drop'")],
)
def test_unknown_detectors_and_actions_are_refused(actions: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DEFAULT.with_actions(actions)  # type: ignore[arg-type]


def test_allowed_values_stay() -> None:
    policy = DEFAULT.with_allow("*@example.com", "4111 1111 1111 1111", "hunter2!x", "u:p")
    policy = policy.with_allow("GB82 WEST*")
    text = (
        f"{ADDRESS} jane@example.org 4111 1111 1111 1111 password: hunter2!x http://u:p@h/ "
        "GB82 WEST 1234 5698 7654 32"
    )
    shown = text.replace("jane@example.org", EMAIL)
    assert policy.redact(text).text == shown
    for place in range(len(text)):
        assert streamed(policy, split_at(text, [place]))[0] == shown


def test_overlapping_values_leave_nothing_of_either() -> None:
    token = "gh" + "p_" + "aB3d" * 9
    assert DEFAULT.redact(f"x@a.{token} y").text == f"{EMAIL} y"
    assert DEFAULT.redact(f"{token}@example.com").text == SECRET
    assert DEFAULT.redact("no.4111-1111-1111-1111@example.com").text == EMAIL


def test_spans_tell_kind_label_place_and_rule() -> None:
    spans = DEFAULT.redact(f"a {ADDRESS} b 536-90-4399").spans
    assert spans == (
        Span("EMAIL", "email", 2, 18, 2, 18, "email"),
        Span("SSN", "ssn", 21, 32, 21, 35, "ssn"),
    )


def test_labels_are_those_of_the_counts() -> None:
    redactor = Redactor(DEFAULT)
    redactor.feed(f"{ADDRESS} 536-90-4399 4111111111111111 {key('sk-', 30)} password: hunter2!x ")
    redactor.feed("GB82 WEST 1234 5698 7654 32 ")
    redactor.flush()
    assert list(redactor.counts.items()) == [
        ("email", 1),
        ("ssn", 1),
        ("credit_card", 1),
        ("api_key", 2),
        ("iban", 1),
    ]


def test_without_spans_only_counts_are_kept() -> None:
    redactor = Redactor(DEFAULT, keep_spans=False)
    redactor.feed(f"{ADDRESS} {key('sk-', 2000)} ")
    assert (redactor.spans, redactor.counts) == ((), {"email": 1, "api_key": 1})


def test_a_set_keeps_one_state_for_each_key() -> None:
    redactors = RedactorSet(DEFAULT)
    assert redactors.feed(0, "a 4111 1111 ") == "a "
    assert redactors.feed(1, "b jane@exa") == "b "
    assert redactors.feed(0, "1111 1111 z") == "[REDACTED_CARD] "
    assert redactors.feed(1, "mple.com y") == f"{EMAIL} "
    assert redactors.flush(0) == "z"
    assert redactors.flush("unknown") == ""
    assert redactors.flush_all() == {1: "y"}
    assert redactors.counts == {"credit_card": 1, "email": 1}
    assert [span.kind for span in redactors.spans[0]] == ["CARD"]


def test_a_lead_is_context_and_no_text() -> None:
    redactor = Redactor(DEFAULT, lead="password:")
    assert redactor.feed("hunter2!x") == ""
    assert redactor.flush() == SECRET
    assert redactor.spans[0].start_in == 0
    assert Redactor(DEFAULT, lead="name:").feed("hunter2!x ") == "hunter2!x "


def test_splits_cover_every_cut() -> None:
    assert list(every_split(b"abc")) == [
        [b"abc"],
        [b"a", b"b", b"c"],
        [b"a", b"bc"],
        [b"ab", b"c"],
        [b"a", b"b", b"c"],
    ]
    assert len(list(every_split("x" * 61))) == 2 + 60
    assert all("".join(pieces) == "abcdef" for pieces in every_split("abcdef"))
    assert split_at("abcdef", [4, 0, 2, 9, 4]) == ["ab", "cd", "ef"]
