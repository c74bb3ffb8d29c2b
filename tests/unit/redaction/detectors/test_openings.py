import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.laws import streamed
from tests.unit.redaction.samples import BODY, SECRET, pem

BEGIN = "-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5
END = "-" * 5 + "END PRIVATE KEY" + "-" * 5
ARMOR = only("private_key")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{BEGIN}\n{BODY[:64]}\n{END} x", f"{SECRET} x"),
        (f"{BEGIN}\\n{BODY[:64]}\\n{END}", SECRET),
        (f"{BEGIN}\n    {BODY[:20]}", SECRET),
        (f"> {BEGIN}\n> {BODY[:64]}\n> {END}", f"> {SECRET}"),
        (f"'{BEGIN}\n' +\n  '{BODY[:64]}'\n{END}", f"'{SECRET}"),
        (f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nx\n{END}", SECRET),
        (f"{BEGIN}\nComment: it\n\nab\n{END}", SECRET),
        (f"{BEGIN}\nabc\n{END}", SECRET),
        (f"{BEGIN} MIIE", SECRET),
        (f"{BEGIN}<br>{BODY[:64]}<br />{BODY[:64]}<br>{END} x", f"{SECRET} x"),
        (f"<p>{BEGIN}</p><p>{BODY[:40]}</p>{END}", f"<p>{SECRET}"),
        (f"// {BEGIN}\n// {BODY[:64]}\n// {END}", f"// {SECRET}"),
        (f"; {BEGIN}\n; {BODY[:64]}\n; {END}", f"; {SECRET}"),
        (f"{BEGIN}\nMIIEvQIB\nADANBgkq\nhkiG9w0B\n{END}.", f"{SECRET}."),
        (f"{BEGIN}\r\n  MIIEv\r\n  QIBAD\r\n  ANBgk\r\n  qhk and so on", SECRET),
        (f"{BEGIN}<br>MIIEvQIB<br/>ADANBgkq<br>hk", SECRET),
        (f"{BEGIN}<br>ab<br>{END}", SECRET),
    ],
)
def test_a_private_key_is_hidden_from_its_opening_line_on(text: str, shown: str) -> None:
    check(ARMOR, text, shown)


@pytest.mark.parametrize(
    "text",
    [
        f"A file that begins with `{BEGIN}` is a key.",
        f'START = b"{BEGIN}"\nEND = b"{END}"\n',
        f"{BEGIN}",
        f"{BEGIN}\n",
        f"{BEGIN} and {END} stand around it",
        f"{BEGIN}\n...\n{END}",
        f"{BEGIN}\nyour\nprivate\nkey\ngoes\nhere\nthen\nit ends.",
        f"{BEGIN}\nThis is how a private\nkey begins, 123 times\n",
        f"{BEGIN}<br>This is how<br>it begins, <b>always</b> 123 times",
        f"{BEGIN}" + " " * 150 + BODY[:64],
        f"{BEGIN}<",
        "-----BEGIN CERTIFICATE-----\n" + BODY[:64] + "\n",
    ],
)
def test_who_writes_about_the_line_is_not_silenced(text: str) -> None:
    check(ARMOR, text, text)


def test_a_long_key_without_an_end_stays_hidden() -> None:
    text = f"x {pem(60).split('-----END')[0]} and so on"
    assert streamed(ARMOR, text)[0] == f"x {SECRET}"


@pytest.mark.parametrize(
    "text",
    [
        "http://user:pass@h http://username:password@h redis://:password@h http://USER:PW@h",
        "redis://[[username]:[password]]@h ldap://[user]:[pass]@h",
        "http://jane@h http://jane:@h",
    ],
)
def test_what_documentation_writes_in_urls_is_no_secret(text: str) -> None:
    check(only("url_credentials"), text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://jane:pass@h", f"http://{SECRET}@h"),
        ("http://user:s3cret@h", f"http://{SECRET}@h"),
        ("redis://:p4ss@h", f"redis://{SECRET}@h"),
    ],
)
def test_a_name_or_a_password_of_ones_own_is_one(text: str, shown: str) -> None:
    check(only("url_credentials"), text, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**Password:** `hunter2!x`", f"**Password:** `{SECRET}`"),
        ("**Password:** hunter2!x", f"**Password:** {SECRET}"),
        ("**Password**: hunter2!x", f"**Password**: {SECRET}"),
        ("- `password`: **hunter2!x**.", f"- `password`: **{SECRET}**."),
        ("secret_access_key = /" + BODY[:39], f"secret_access_key = {SECRET}"),
        ("password: $2b$12$" + BODY[:53], f"password: {SECRET}"),
        ("secret key = /etc/tidegate/keys/production7/of/today", None),
        ("AccountKey=/" + BODY[:85] + "==", f"AccountKey={SECRET}"),
        ("password: $HOME/x1y2z3 ${PW1} $(pass show a1)", None),
        ("AWS Secret Access Key [None]: " + BODY[:40], f"AWS Secret Access Key [None]: {SECRET}"),
        ("secret key [****ab12]: " + BODY[:40], f"secret key [****ab12]: {SECRET}"),
        ("password: ********", None),
        ("**Password:** *required*", None),
        ("x[token]: a1b2c3d4", None),
        ("private_key: Ed25519PrivateKey", None),
        ("token: V1AccessToken", None),
    ],
)
def test_values_in_markdown_and_behind_prompts(text: str, shown: str | None) -> None:
    check(only("keyword"), text, text if shown is None else shown)
