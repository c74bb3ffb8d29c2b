"""Which values behind a word such as `password:` are masked, and which are code or prose?"""

import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.samples import BODY, SECRET
from tidegate.redaction import RedactionPolicy

DEFAULT, STRICT = RedactionPolicy.preset("default"), RedactionPolicy.preset("strict")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('db_password     = "hunter2!x"', f'db_password     = "{SECRET}"'),
        ("api_key     = abc123def456", f"api_key     = {SECRET}"),
        ('"password"            : "hunter2!x"', f'"password"            : "{SECRET}"'),
        ("password:              hunter2!x", f"password:              {SECRET}"),
        ("password\t\t\t=\t\thunter2!x", f"password\t\t\t=\t\t{SECRET}"),
        ('c["password"] = "hunter2!x"', f'c["password"] = "{SECRET}"'),
        ("env['API_KEY']='abc123def456'", f"env['API_KEY']='{SECRET}'"),
    ],
)
def test_columns_and_subscripts_hide_no_value(text: str, shown: str) -> None:
    check(DEFAULT, text, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('password: "hunter2!x', f'password: "{SECRET}'),
        ('password: "hunter2!x\nnext', f'password: "{SECRET}\nnext'),
        ('Authorization: "Bearer abc123def', f'Authorization: "Bearer {SECRET}'),
        ('password: "abc1234\\"\n', f'password: "{SECRET}"\n'),
        ('{"password": "a\\"bcdef123", "b": 1}', f'{{"password": "{SECRET}", "b": 1}}'),
        ('{"password": "abcdef123\\\\", "b": 1}', f'{{"password": "{SECRET}", "b": 1}}'),
        ('{\\"password\\": \\"hunter2!x\\"}', f'{{\\"password\\": \\"{SECRET}\\"}}'),
        (
            '{\\"password\\": \\"a\\\\\\"bc123\\", \\"b\\": 1}',
            f'{{\\"password\\": \\"{SECRET}\\", \\"b\\": 1}}',
        ),
        (
            '{\\"authorization\\": \\"Bearer abc123def\\"}',
            f'{{\\"authorization\\": \\"Bearer {SECRET}\\"}}',
        ),
        (
            '{\\\\\\"api_key\\\\\\": \\\\\\"abc123def456\\\\\\"}',
            f'{{\\\\\\"api_key\\\\\\": \\\\\\"{SECRET}\\\\\\"}}',
        ),
        ('password = b"hunter2!x"', f'password = b"{SECRET}"'),
        ("password = rb'hunter2!x'", f"password = rb'{SECRET}'"),
        ('password: "' + BODY * 3, f'password: "{SECRET}'),
    ],
)
@pytest.mark.full
def test_a_quote_that_is_escaped_or_missing_hides_no_value(text: str, shown: str) -> None:
    check(only("keyword", "authorization"), text, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'req.Header.Set("Authorization", "Bearer abcd1234efgh")',
            f'req.Header.Set("Authorization", "Bearer {SECRET}")',
        ),
        (
            "setRequestHeader('Authorization', 'Bearer abcd1234efgh')",
            f"setRequestHeader('Authorization', 'Bearer {SECRET}')",
        ),
        (
            "header(`authorization` ,\n  `Basic abcd1234efgh`)",
            f"header(`authorization` ,\n  `Basic {SECRET}`)",
        ),
        ('add("Authorization","abcd1234efgh")', f'add("Authorization","{SECRET}")'),
        (
            'headers={"Authorization": f"Bearer abcd1234efgh"}',
            f'headers={{"Authorization": f"Bearer {SECRET}"}}',
        ),
        (
            'h["Authorization"] = "token abcd1234efgh"',
            f'h["Authorization"] = "token {SECRET}"',
        ),
    ],
)
def test_credentials_in_code_are_masked(text: str, shown: str) -> None:
    check(DEFAULT, text, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password:\nhunter2!x", f"password:\n{SECRET}"),
        ("password:\r\n  hunter2!x  \r\nnext", f"password:\r\n  {SECRET}  \r\nnext"),
        ("password: |\n  hunter2!x\n", f"password: |\n  {SECRET}\n"),
        ("password: >-\n  hunter2!x\n", f"password: >-\n  {SECRET}\n"),
        ("password: !!str hunter2!x", f"password: !!str {SECRET}"),
        ("password =\n  'hunter2!x'", f"password =\n  '{SECRET}'"),
    ],
)
def test_a_value_may_stand_alone_on_the_line_below(text: str, shown: str) -> None:
    check(DEFAULT, text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n",
        "password: !Ref DbPassword1\ntoken: !secret wifi_token_2",
        "self.password = password1_value",
        "this.token = token2value;",
        "Authorization: Basic authentication is used",
        "Authorization: Bearer tokens, or Basic credentials.",
        'set("Authorization", token1234) f("Authorization", a1b2c3d4)',
        "Authorization, as RFC 9110 says, 'x1y2z3w4'",
        "password:\n  type: string1\n",
        "password:\n  value1:\n    a: b\n",
        "password:\n\nhunter2!x",
        "if password:\n    return2(x1)\n",
        "Which password: is it 123456 or not",
        'print("Your password: ").strip1()\n',
        'x = "password =", y1\n',
        "password: ''\npassword: \"\"\npassword = b''",
        "password = f\"{user}:{pw1}\" + f'{token}'",
    ],
)
def test_tags_members_and_prose_are_no_secrets(text: str) -> None:
    check(DEFAULT, text, text)


@pytest.mark.parametrize(
    "text",
    [
        "password = getpass.getpass()\n",
        "token = next(tokens)",
        'password = input("x")',
        'password = getpass("Password: ").strip()',
        "max_token=12345678 eos_token: 50256",
    ],
)
def test_the_strict_preset_leaves_calls_and_counts_alone(text: str) -> None:
    check(only("keyword"), text, text)
    check(STRICT, text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("(password = abc(12))", f"(password = {SECRET})"),
        ("(password: word)", f"(password: {SECRET})"),
        ("password: [word]x)", None),
    ],
)
def test_a_parenthesis_stays_with_its_partner(text: str, shown: str | None) -> None:
    check(STRICT, text, text if shown is None else shown)
