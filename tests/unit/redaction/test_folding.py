"""What a detector sees in place of odd characters and of escapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tests.unit.redaction.samples import BODY, CARD, EMAIL, IBAN, KEPT, MASKED, SECRET, SSN, VISA
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.folding import OPEN_MAX, fold, is_plain, open_end, resized
from tidegate.redaction.places import Places
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")


@pytest.mark.parametrize("text", ["plain", "caf\u00e9", "\u4f60\u597d", "AT&T 100% C:\\dir &am;"])
def test_text_without_odd_characters_folds_to_itself(text: str) -> None:
    assert fold(text) is text or fold(text) == text
    assert resized(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        (
            "\uff21\u200b1\u00a0\u2011\U0001d7d8\U0001f600\u0664\ufe0f\u3002x\u0301",
            "A1 -0\U0001f6004.x",
        ),
        ("\ufb01\u2469\u2488\u24d0\u2170\U0001f110", "fi101.ai(A)"),
        ("1\ufe0f\u20e34\u0336", "14"),
        ("x\u00b2 \u00bd \u2026", "x\u00b2 \u00bd \u2026"),
        ("%40%2e%7E %25 %2540 %2525252540 %7f %0a %zz %4", "@.~ % @ @ %7f %0a %zz %4"),
        ("&#64; &#064; &#x40; &#X0040; &commat; &amp; &amp;amp;#64;", "@ @ @ @ @ & @"),
        ("&#65312;&#8203;&nbsp;&shy;.", "@ ."),
        (
            "&#64 &#; &#x; &#0; &#99999999; &#55296; &nope; &;",
            "&#64 &#; &#x; &#0; &#99999999; &#55296; &nope; &;",
        ),
        (
            r"\u0040 \\u0040 \x40 \n\t\r \d \u00 \u0022 \x27 \ud83d \u0000",
            "@ @ @ \n\t\r \\d \\u00 \\u0022 \\x27 \\ud83d \\u0000",
        ),
        (
            r"a\_b \-\.\@ \\\\_ \*\[ https\:\/\/x\=1\+2 \(x\)",
            r"a_b -.@ _ \*\[ https://x=1+2 \(x\)",
        ),
        ("\x1b[1;32mx\x1b[0m\x1b[K \x1b[mx\x1b(B", "x x"),
        ("a\x1b[20Gb\x1b[Hc", "a\fb\fc"),
        (r"\u001b[1;31mx \\u001B[0m \x1b[Kx \033[38;2;1;2;3mx \e[mx", "x  x x x"),
        ("\x1b \x1b[ \x1b[3;", " [ [3;"),
        (r"\e \e[a-z] \033 \03 \u001b \u001b[2J", r"\e \e[a-z] \033 \03 \u001b \u001b[2J"),
        ("4\u3164\uffa0\u115f\u1160\u17b4\u180b\u180f\ufff9\ufffc\U0001bca0\U0001d1731", "41"),
        (
            "4\u2800\u05b0\u064b\U000e0fff\x02\x08\x7f\x80\x1b1\0\x01\x07\x1c\x1f1",
            "41\0\x01\x07\x1c\x1f1",
        ),
    ],
)
def test_odd_characters_and_escapes_fold(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert not is_plain(text) or fold(text) is text
    view, units = resized(text)
    assert view == folded
    # Outside of the units one character stands for one.
    places = Places(0, 0)
    for unit in units:
        places.add(unit)
    for at, char in enumerate(view):
        start, end = places.start(at), places.end(at + 1)
        assert 0 <= start < end <= len(text)
        assert char in fold(text[start:end])
        assert not start or places.after(start) <= at
        assert fold(text[end:]) == view[at + 1 :] or len(fold(text[start:end])) > 1


PIECES = [
    "%",
    "25",
    "4",
    "40",
    "2e",
    "&",
    "amp;",
    "#",
    "0",
    "64;",
    "x",
    "40;",
    "comm",
    "at;",
    "\\",
    "u",
    "00",
    "n",
]
PIECES += [
    "53",
    "6a",
    "\uff20",
    "\u200b",
    "a",
    " ",
    "\u0301",
    "\ufb01",
    ";",
    "\x1b",
    "[1m",
    "33",
    "_",
    "\x00",
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_folding_pieces_and_folding_the_whole_agree(pieces: list[str]) -> None:
    text = "".join(pieces)
    for place in range(len(text) + 1):
        cut = open_end(text[:place])
        assert place - cut < OPEN_MAX
        assert fold(text[:cut]) + fold(text[cut:]) == fold(text)


ESCAPED = [
    ("jane&#64;example.com", EMAIL),
    ("an jane&#x40;example&period;com.", f"an {EMAIL}."),
    ("jane&amp;#64;example.com", EMAIL),
    ("x?to=jane%2540example%2Ecom&y", f"x?to={EMAIL}&y"),
    (r'{"a": "jane\u0040example.com"}', f'{{"a": "{EMAIL}"}}'),
    (r'"so\njane@example.com\n"', rf'"so\n{EMAIL}\n"'),
    ("user%40here@relay.example.com", EMAIL),
    ("4111&nbsp;1111&nbsp;1111&nbsp;1111;", f"{CARD};"),
    ("4111%201111%201111%201111", CARD),
    ("LIKE '%536-90-4399%' OR x LIKE '%4111111111111111%'", f"LIKE '%{SSN}%' OR x LIKE '%{CARD}%'"),
    ("%6aane%40example.com %34%31%31%31%201111%201111%201111", f"{EMAIL} {CARD}"),
    ("&#52;&#49;11 1111 1111 1111", CARD),
    ("\u2463\u2460\u2460\u2460 1111 1111 1111", CARD),
    ("\u0336".join(VISA), CARD),
    ("4\ufe0f\u20e3" + VISA[1:] + "\u20e3!", f"{CARD}\u20e3!"),
    ("123%2D45%2D6789", SSN),
    ("GB82%20WEST%201234%205698%207654%2032", IBAN),
    ("password=&quot;hunter2!&quot; ok", f"password=&quot;{SECRET}&quot; ok"),
    ("password%3Dhunter2!x", f"password%3D{SECRET}"),
    (r'"password": "ab\u0022cd1!"', rf'"password": "{SECRET}"'),
    ("https%3A%2F%2Fu%3Apw@h/", f"https%3A%2F%2F{SECRET}@h/"),
    ("https://u:p%40ss@h/", f"https://{SECRET}@h/"),
    ("sk%2D" + BODY[:40], SECRET),
    ("jane@\ufb01rm.com", EMAIL),
    ("\ufb01@example.com", EMAIL),
    ("\u2488a@example.com", "[REDACTED_EMAIL]"),
    ("a \x1b[32m536-90-4399\x1b[0m b", f"a \x1b[32m{SSN}\x1b[0m b"),
    ("\x1b[01;31m\x1b[K4111111111111111\x1b[m\x1b[K", f"\x1b[01;31m\x1b[K{CARD}\x1b[m\x1b[K"),
    ("\x1b[1mgh" + "p_" + BODY[:36] + "\x1b(B\x1b[m.", f"\x1b[1m{SECRET}\x1b(B\x1b[m."),
    ("x\x1b[20G536-90-4399", f"x\x1b[20G{SSN}"),
    ("\x1b[38;2;10;20;30mjane@\x1b[1mexample.com", f"\x1b[38;2;10;20;30m{EMAIL}"),
    ("\x1b[33mpassword\x1b[0m: \x1b[36mhunter2!x", f"\x1b[33mpassword\x1b[0m: \x1b[36m{SECRET}"),
    (r'"\u001b[32m536-90-4399\u001b[0m"', rf'"\u001b[32m{SSN}\u001b[0m"'),
    (r"\033[1mGB82WEST12345698765432\033[0m", rf"\033[1m{IBAN}\033[0m"),
    (r"\e[31mjane@example.com\e[m", rf"\e[31m{EMAIL}\e[m"),
    ("gh" + r"p\_" + BODY[:36], SECRET),
    ("github" + r"\_pat\_" + BODY[:60], SECRET),
    ("sk" + r"\_live\_" + BODY[:24] + ", and", f"{SECRET}, and"),
    ("sk" + r"\-proj\-" + BODY[:40], SECRET),
    (r"jane\_doe\@example\.com", EMAIL),
    (r"536\-90\-4399", SSN),
    (r"password\: hunter2!x", rf"password\: {SECRET}"),
    (r"https:\/\/u:hunter2@h\/", rf"https:\/\/{SECRET}@h\/"),
    ("jane@ex\u3164ample.com", EMAIL),
    ("4111\u115f1111\U0001d1731111\ufff91111", CARD),
    ("a\x00536-90-4399\x00b\x01jane@example.com\x1f", f"a\x00{SSN}\x00b\x01{EMAIL}\x1f"),
    ("A=b\0SSN=536-90-4399\0HOME=/root", f"A=b\0SSN={SSN}\0HOME=/root"),
    ("55=X\x01448=536-90-4399\x0110=1\x01", f"55=X\x01448={SSN}\x0110=1\x01"),
    ("\x1b]0;jane: ~\x07536-90-4399\x1b]8;;\x07", f"\x1b]0;jane: ~\x07{SSN}\x1b]8;;\x07"),
    ("4111\x021111 \x7f1111 1111", CARD),
    ("jane@ex\u3164ample.com", EMAIL),
    ("\x1b[32m536-90-4399\x1b[0m ok", f"\x1b[32m{SSN}\x1b[0m ok"),
    ("\x1b[1;36m" + VISA + "\x1b[m", f"\x1b[1;36m{CARD}\x1b[m"),
    ("ja\x1b[1mne@exa\x1b[0mmple.com", EMAIL),
    (r"\033[32m536-90-4399\x1b[0m \e[mok", rf"\033[32m{SSN}\x1b[0m \e[mok"),
    ("gh" + r"p\_" + BODY[:36], SECRET),
    (r"jane\_doe\@example\.com", EMAIL),
    (r"https:\/\/jane:pw@example.com\/x", rf"https:\/\/{SECRET}@example.com\/x"),
]


@pytest.mark.parametrize(("text", "shown"), ESCAPED)
def test_an_escaped_value_is_masked_whole_in_every_split(text: str, shown: str) -> None:
    whole = POLICY.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=14):
        assert streamed(POLICY, pieces) == (shown, whole.spans)


PLAIN = [sample for sample in MASKED[:8] if "%" not in sample[1]]


@pytest.mark.parametrize("encode", ["%{:02x}", "&#{};", "&#x{:x};", "\\u{:04x}", "&amp;#{:03};"])
@pytest.mark.parametrize(("name", "text", "shown"), PLAIN, ids=[name for name, *_ in PLAIN])
@pytest.mark.full
def test_a_value_that_is_escaped_throughout_leaves_nothing(
    name: str, text: str, shown: str, encode: str
) -> None:
    coded = "".join(
        encode.format(ord(char)) if (char.isascii() and char.isalnum()) or char in "@.-" else char
        for char in text
    )
    whole = POLICY.redact(coded)
    assert fold(whole.text) == shown
    for place in range(len(coded)):
        assert streamed(POLICY, [coded[:place], coded[place:]]) == (whole.text, whole.spans)


@pytest.mark.parametrize("text", KEPT)
def test_kept_samples_stay_when_their_signs_are_escaped(text: str) -> None:
    coded = text.replace("@", "&#64;").replace("-", "%2D").replace(" ", "&nbsp;")
    assert POLICY.redact(coded).text == coded


@pytest.mark.parametrize("seed", range(12))
def test_long_text_full_of_escapes_is_the_same_in_random_pieces(seed: int) -> None:
    rnd = seeded(seed)
    words = [
        *PIECES,
        *(text for text, _ in ESCAPED),
        *("%" * 60, "&" * 9, "\\" * 9, "&#" + "0" * 30),
    ]
    text = "".join(rnd.choice(words) for _ in range(rnd.choice((20, 80, 300))))
    whole = POLICY.redact(text)
    for _ in range(4):
        assert streamed(POLICY, random_pieces(text, rnd)) == (whole.text, whole.spans)
    assert streamed(POLICY, text) == (whole.text, whole.spans)


@pytest.mark.parametrize("invisible", ["\u200b", "\u00ad", "\ufeff", "\u0301", "\U000e0041"])
@pytest.mark.full
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
