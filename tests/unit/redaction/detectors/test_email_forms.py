import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.laws import streamed

EMAIL = "[REDACTED_EMAIL]"
ANA = "\u0430\u043d\u0430@\u043f\u043e\u0447\u0442\u0430.\u0440\u0444"
ASTRAL = "\U00020000\U00020001@\u4f8b\u5b50.\u4e2d\u56fd"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"jane doe"@example.com', EMAIL),
        ('mail "jane.(doe)"@example.com, ok', f"mail {EMAIL}, ok"),
        ('"a\\"b"@example.com.', f"{EMAIL}."),
        ('<"jane doe"@m\u00fcller.de>', f"<{EMAIL}>"),
    ],
)
def test_a_quoted_local_part_goes_with_its_quotes(text: str, shown: str) -> None:
    check(only("email_quoted"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        'say "hello there" and "bye"',
        '"jane doe"@localhost',
        '"jane\ndoe"@example.com',
        '"jane doe" @example.com',
        'x"jane doe"@example.com',
        f'"{"j" * 65}"@example.com',
        '"',
        '"jane',
        '"jane doe"@',
    ],
)
def test_other_quotes_are_left_alone(text: str) -> None:
    check(only("email_quoted"), text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a", EMAIL),
        (f"to {ANA}, \u0434\u0430", f"to {EMAIL}, \u0434\u0430"),
        ("jane@\u4f8b\u5b50.\u4e2d\u56fd", EMAIL),
        ("\u7528\u6237@example.com", EMAIL),
        ("\u7528\u62371@example.com!", f"{EMAIL}!"),
        ("\u0e08\u0e2d\u0e19@example.co.th", EMAIL),
        (ASTRAL, EMAIL),
        (
            "\u90ae\u7bb1\uff1a\u7528\u6237@\u4f8b\u5b50.com\u3002",
            f"\u90ae\u7bb1\uff1a{EMAIL}\u3002",
        ),
        ("\u03bd\u03b9\u03ba\u03bf\u03c2@\u03c4\u03b5\u03c3\u03c4.xn--qxa6a", EMAIL),
    ],
)
def test_addresses_in_any_script_are_masked(text: str, shown: str) -> None:
    check(only("email_international"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "jane@example.com",  # the usual detector's
        "\u7528\u6237@\u4f8b\u5b50",
        "\u7528\u6237 @ \u4f8b\u5b50.\u4e2d\u56fd",
        "\u4f60\u597d\uff0c\u4e16\u754c",
        "\u043f\u0440\u0438\u0432\u0435\u0442",
        "\U0001f600@\U0001f600.com",
    ],
)
def test_text_in_any_script_is_left_alone(text: str) -> None:
    check(only("email_international"), text, text)


def test_a_sentence_before_a_plain_address_is_no_part_of_it() -> None:
    text = "\u90ae\u7bb1\u662fjane@example.com\u53d1\u7ed9"
    shown = f"\u90ae\u7bb1\u662f{EMAIL}\u53d1\u7ed9"
    check(only("email", "email_international"), text, shown)


def test_of_a_long_word_only_the_last_64_characters_can_be_a_local_part() -> None:
    text = "\u7528" * 70 + "@\u4f8b\u5b50.\u4e2d\u56fd"
    assert streamed(only("email_international"), text)[0] == "\u7528" * 6 + EMAIL
    assert streamed(only("email_international"), [text])[0] == "\u7528" * 6 + EMAIL


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jane dot doe at example dot com", EMAIL),
        ("jane at example dot co dot uk now", f"{EMAIL} now"),
        ("write jane.doe at example dot com.", f"write {EMAIL}."),
        ("jane [at] example [dot] com", EMAIL),
        ("jane [at] example.com", EMAIL),
        ("jane(at)example(dot)com", EMAIL),
        ("jane {at} example {dot} com", EMAIL),
        ("jane <at> example <dot> com", EMAIL),
        ("jane AT example DOT org!", f"{EMAIL}!"),
        ("jane [@] example [.] com", EMAIL),
        ("jane @ example.com", EMAIL),
        ("mail: jane_doe99 at mail-box dot example dot io", f"mail: {EMAIL}"),
        ("jane arroba example punto es", EMAIL),
    ],
)
def test_addresses_in_words_are_masked(text: str, shown: str) -> None:
    check(only("email_obfuscated"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "meet us at example dot com",
        "look at example.com for more",
        "arrive at noon",
        "jane at example",
        "jane at example dot",
        "jane dot doe",
        "jane at example dot qzx9",
        "jane (the boss) at work",
        "jane [x] example [dot] com",
        "a [at] b",
        "at dot at dot",
        "",
        "jane at ",
        "f(a) at (b)",
        "the dots at the end dot the i",
        "reinserted at another point in time",
    ],
)
def test_sentences_with_at_and_dot_are_left_alone(text: str) -> None:
    check(only("email_obfuscated"), text, text)
