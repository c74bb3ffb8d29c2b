import pytest

from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import BODY, IBAN, SECRET
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.checksums import iban
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
        ("password:\nhunter2!x", f"password:\n{SECRET}"),
        ("password:          hunter2!x", f"password:          {SECRET}"),
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
        ("NL91 ABNA\n0417 1643 00", IBAN),
        ("NL91 ABNA 0417 \r\n  1643 00.", f"{IBAN}."),
        ("NL91ABNA0417\n164300, x", f"{IBAN}, x"),
        ("NL91 ABNA 0417 1643\n\n00", "NL91 ABNA 0417 1643\n\n00"),
        ("NL91 ABNA 04\n17 1643 00", "NL91 ABNA 04\n17 1643 00"),
        ("NL91 ABNA 0417 1643\n01 ABNA", "NL91 ABNA 0417 1643\n01 ABNA"),
        ("NL91 ABNA 0417 1643 00X", "NL91 ABNA 0417 1643 00X"),
        ("NL91  ABNA 0417 1643 00", "NL91  ABNA 0417 1643 00"),
        ("NL91 AB NA04 1716 4300", "NL91 AB NA04 1716 4300"),
        ("NL91 ABNA 0417", "NL91 ABNA 0417"),
        ("de12@example.com DE12 jane@example.com", "[REDACTED_EMAIL] DE12 [REDACTED_EMAIL]"),
        ("de89 " + "x" * 600, "de89 " + "x" * 600),
        ("de89" + "x" * 600, "de89" + "x" * 600),
        ("id-NL91ABNA0417164300", f"id-{IBAN}"),
        ("idNL91ABNA0417164300", "idNL91ABNA0417164300"),
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
