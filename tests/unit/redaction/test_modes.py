import pytest

from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import BODY, IBAN, SECRET
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.checksums import iban
from tidegate.redaction.folding import fold, kept_places
from tidegate.testing.splits import every_split

POLICY = RedactionPolicy.preset("default")
LONG = BODY[:400]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # keyword values
        ('password => "hunter2!x"', f'password => "{SECRET}"'),
        ("password := hunter2!x", f"password := {SECRET}"),
        ("password == 'hunter2!x'", f"password == '{SECRET}'"),
        ("password: hunter2!x, next", f"password: {SECRET}, next"),
        ("(password: hunter2!x)", f"(password: {SECRET})"),
        ("{password:hunter2!x,user:bob}", f"{{password:{SECRET},user:bob}}"),
        ("password:\thunter2!x", f"password:\t{SECRET}"),
        ("password:\nhunter2!x", "password:\nhunter2!x"),
        ("password:          hunter2!x", "password:          hunter2!x"),
        ('password: "no closing hunter2', 'password: "no closing hunter2'),
        ('password: "two\nlines1"', 'password: "two\nlines1"'),
        (f'password: "{"a1 " * 100}"', f'password: "{"a1 " * 100}"'),
        (f"password: {LONG} z", f"password: {SECRET} z"),
        (f"password: {LONG}", f"password: {SECRET}"),
        (f"token: {'word' * 100} z", f"token: {'word' * 100} z"),
        ("password: ", "password: "),
        ("password:", "password:"),
        ("the password is hunter2!x", "the password is hunter2!x"),
        ("password: 4111 1111 1111 1111 ", "password: [REDACTED_CARD] "),
        ("ssn token: 536-90-4399", "ssn token: [REDACTED_SSN]"),
        ("password: a:b password: hunter2!x", f"password: a:b password: {SECRET}"),
        ("token:token:token:a1b2c3d4", f"token:{SECRET}"),
        # authorization
        ("Authorization: Token a1, b", f"Authorization: Token {SECRET}, b"),
        ("Authorization: a1b2c3d4e5", f"Authorization: {SECRET}"),
        ("Authorization: Bearer {token}", "Authorization: Bearer {token}"),
        ("Authorization: Bearer      x", "Authorization: Bearer      x"),
        ("Authorization='Basic YTpi'", f"Authorization='Basic {SECRET}'"),
        ("Authorization: 'Bearer $T'", "Authorization: 'Bearer $T'"),
        ("Authorization: 'Bearer '", "Authorization: 'Bearer '"),
        # URLs
        ("ftp://u:p@h ftp://u:@h ftp://u@h", f"ftp://{SECRET}@h ftp://u:@h ftp://u@h"),
        ("http://${U}:${P}@h http://u:***@h", "http://${U}:${P}@h http://u:***@h"),
        (f"http://u:{LONG}@h", f"http://{SECRET}@h"),
        (f"http://u:{LONG} z", f"http://{SECRET} z"),
        (f"http://{LONG}/x", f"http://{LONG}/x"),
        (f"http://{LONG}:80/x", f"http://{LONG}:80/x"),
        ("://u:p@h", "://u:p@h"),
        ("http://jane@example.com/", "http://[REDACTED_EMAIL]/"),
        # IBAN
        ("NL91ABNA0417164300.", f"{IBAN}."),
        ("IBAN:NL91 ABNA 0417 1643 00", f"IBAN:{IBAN}"),
        ("NL91 ABNA 0417 1643 00X", "NL91 ABNA 0417 1643 00X"),
        ("NL91  ABNA 0417 1643 00", "NL91  ABNA 0417 1643 00"),
        ("NL91 AB NA04 1716 4300", "NL91 AB NA04 1716 4300"),
        ("NL91 ABNA 0417", "NL91 ABNA 0417"),
        ("de12@example.com DE12 jane@example.com", "[REDACTED_EMAIL] DE12 [REDACTED_EMAIL]"),
        ("de89 " + "x" * 600, "de89 " + "x" * 600),
        ("de89" + "x" * 600, "de89" + "x" * 600),
        ("id-NL91ABNA0417164300", "id-NL91ABNA0417164300"),
        ("GB82 4111 1111 1111 1111 ", "GB82 [REDACTED_CARD] "),
        # PEM
        ("-----BEGIN X-----", "-----BEGIN X-----"),
        ("-----BEGIN -----", "-----BEGIN -----"),
        ("-----BEGIN RSA private", "-----BEGIN RSA private"),
        (f"-----BEGIN {'A ' * 40}-----", f"-----BEGIN {'A ' * 40}-----"),
        ("a-----BEGIN PRIVATE KEY-----b", f"a{SECRET}"),
        (
            "-----BEGIN CERTIFICATE----- jane@example.com",
            "-----BEGIN CERTIFICATE----- [REDACTED_EMAIL]",
        ),
    ],
)
def test_an_opening_decides_alike_in_every_split(text: str, shown: str) -> None:
    whole = POLICY.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=14):
        assert streamed(POLICY, pieces) == (shown, whole.spans)


def test_iban_check_digits() -> None:
    assert iban("GB82WEST12345698765432")
    assert not iban("GB83WEST12345698765432")


@pytest.mark.parametrize("text", ["plain", "caf\u00e9", "\u4f60\u597d"])
def test_text_without_odd_characters_folds_to_itself(text: str) -> None:
    assert fold(text) is text


def test_folding_pieces_and_folding_the_whole_agree() -> None:
    text = "\uff21\u200b1\u00a0\u2011\U0001d7d8\U0001f600\u0664\ufe0f\u3002x\u0301"
    assert fold(text) == "A1 -0\U0001f6004.x\u0301"
    assert "".join(fold(char) for char in text) == fold(text)
    assert [fold(text[place]) for place in kept_places(text)] == list(fold(text))


@pytest.mark.parametrize("invisible", ["\u200b", "\u00ad", "\ufeff", "\u2060", "\U000e0041"])
def test_invisible_characters_inside_and_around_values(invisible: str) -> None:
    for value, shown in [
        ("jane@example.com", "[REDACTED_EMAIL]"),
        ("536-90-4399", "[REDACTED_SSN]"),
        ("ey" + "JhbGciOi" + BODY[:700], SECRET),
    ]:
        spaced = invisible.join(value)
        text = f"{invisible}a{invisible} {spaced}{invisible} b{invisible}"
        whole = POLICY.redact(text)
        assert whole.text.replace(invisible, "") == f"a {shown} b"
        for place in range(0, len(text), 7):
            assert streamed(POLICY, [text[:place], text[place:]]) == (whole.text, whole.spans)
        assert streamed(POLICY, text) == (whole.text, whole.spans)


@pytest.mark.parametrize("size", [140, 480, 495, 500, 620, 1100])
@pytest.mark.parametrize(
    "value", ["DE89 3704 0044 0532 0130 00", "jane@example.com", "-----BEGIN PRIVATE KEY-----x"]
)
def test_a_value_after_many_invisible_characters(value: str, size: int) -> None:
    for text in (f"user:{chr(0x200B) * size}{value} z", f"a{chr(0x200B) * size}{value}"):
        whole = POLICY.redact(text)
        for step in (1, 3, 100):
            pieces = [text[i : i + step] for i in range(0, len(text), step)]
            assert streamed(POLICY, pieces) == (whole.text, whole.spans)


def test_invisible_characters_alone_are_passed_on() -> None:
    text = "\u200b" * 1200
    assert streamed(POLICY, text) == (text, ())
    assert streamed(POLICY, [text]) == (text, ())
