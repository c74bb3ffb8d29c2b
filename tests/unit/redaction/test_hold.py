import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from tests.unit.redaction.laws import seeded, streamed
from tests.unit.redaction.samples import BODY, EMAIL, SECRET, jwt, key, pem
from tidegate.redaction import RedactionPolicy, Redactor
from tidegate.redaction.hits import Hit
from tidegate.redaction.stream import HOLD

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


UNITS = [
    "x",
    "1 ",
    "4111 1111 ",
    "a.b@",
    "\u200b",
    "e" + "yJ",
    "\u53f7",
    "\uff11",
    "\u00e9",
    "\u00e9@\u00e9.",
    "password=",
    "//u:",
]


@pytest.mark.parametrize(
    ("unit", "size", "total"),
    [("An ordinary sentence, with jane@example.com in it. ", 10, 450_000)]
    + [("x", 4096, 450_000), ("e" + "yJ", 10, 450_000), ("a.", 64, 60_000)]
    + [(unit, size, 6_000) for unit in UNITS for size in (1, 10, 5000)],
)
def test_held_text_is_bounded_however_long_the_text(unit: str, size: int, total: int) -> None:
    redactor = Redactor(POLICY, keep_spans=False)
    for piece in pieces(unit * (total // len(unit)), size):
        redactor.feed(piece)
        assert redactor.pending <= HOLD
    redactor.flush()
    assert redactor.pending == 0


@pytest.mark.parametrize(
    "secret",
    [
        key("sk-" + "proj-", 156),
        key("sk-", 1200),
        jwt(700),
        jwt(9_000),
        "ey" + "J" + BODY * 8,
        pem(200),
        key("gh" + "p_", 900),
        key("py" + "pi-", 1100),
        "l" * 64 + "@" + "d" * 60 + "." + "e" * 60 + "." + "f" * 55 + ".com",
    ],
    ids=["project", "key", "jwt", "jwt9k", "header", "pem", "github", "pypi", "address"],
)
@pytest.mark.parametrize("size", [1, 10, 64, 5000])
def test_a_secret_longer_than_what_may_be_held_is_one_placeholder(secret: str, size: int) -> None:
    shown, spans = streamed(POLICY, pieces(f"before {secret} after", size))
    placeholder = EMAIL if "@" in secret else SECRET
    assert shown == f"before {placeholder} after"
    assert len(spans) == 1
    assert (spans[0].start_in, spans[0].end_in) == (7, 7 + len(secret))


@pytest.mark.parametrize("lead", ["", "x" * 100 + "-", "x" * 490 + "-", "a.b-c " * 200, "k." * 300])
def test_a_long_token_is_certain_within_512_characters_of_its_start(lead: str) -> None:
    secret = jwt(3000)
    redactor = Redactor(POLICY)
    shown = redactor.feed(lead)
    for place, char in enumerate(secret):
        shown += redactor.feed(char)
        if shown.endswith(SECRET):
            assert place < 512
            break
    else:
        pytest.fail("no placeholder")
    assert shown == lead + SECRET


def test_a_private_key_without_an_end_stays_hidden() -> None:
    text = "x " + pem(50).split("-----END")[0]
    assert streamed(POLICY, pieces(text, 7))[0] == f"x {SECRET}"


def test_a_stream_that_ends_inside_a_value_shows_only_what_is_no_value() -> None:
    assert streamed(POLICY, ["Call 4111 1111 11"])[0] == "Call 4111 1111 11"
    assert streamed(POLICY, ["Call 4111 1111 1111 11", "11"])[0] == "Call [REDACTED_CARD]"
    assert streamed(POLICY, ["https://jane:pw"])[0] == "https://jane:pw"
    assert streamed(POLICY, ["password: hunter2!x"])[0] == f"password: {SECRET}"
    assert streamed(POLICY, ["-----BEGIN RSA PRIVATE KE"])[0] == "-----BEGIN RSA PRIVATE KE"
    assert streamed(POLICY, ["Authorization: Bearer "])[0] == "Authorization: Bearer "


def test_a_word_leaves_with_the_first_character_that_ends_it() -> None:
    redactor = Redactor(POLICY)
    assert redactor.feed("Hello") == ""
    assert redactor.feed("!") == "Hello!"
    assert redactor.feed(" How") == " "
    assert redactor.feed(" are") == "How "
    assert redactor.feed("\n") == "are\n"
    assert redactor.feed("near 4 ") == "near "
    assert redactor.feed("tall ") == "4 tall "


def test_after_a_flush_a_new_text_begins() -> None:
    redactor = Redactor(POLICY)
    assert redactor.feed("jane@exam") + redactor.flush() == "jane@exam"
    assert redactor.feed("ple.com ") + redactor.flush() == "ple.com "
    assert redactor.feed("jane@example.com ") == f"{EMAIL} "
    assert redactor.spans[0].start_in == len("jane@example.com ")


def test_dropped_text_never_leaves() -> None:
    redactor = Redactor(POLICY)
    redactor.feed("so jane@exam")
    assert redactor.pending == 9
    redactor.drop()
    assert (redactor.pending, redactor.flush(), redactor.feed("ok ")) == (0, "", "ok ")


def test_long_plain_text_in_short_pieces_and_in_one_piece_is_the_same() -> None:
    text = "plain words only, nothing else here; " * 1200
    assert streamed(POLICY, pieces(text, 5)) == (text, ())
    assert streamed(POLICY, [text]) == (text, ())
    assert streamed(POLICY, [text, "jane@example.com ", text])[0] == f"{text}{EMAIL} {text}"


def test_several_values_in_one_endless_segment_are_all_found() -> None:
    run = "_".join(["a@b.co"] * 3 + ["x" * 30]) + "_"
    text = "+".join([run + "4111111111111111+" + "y" * 90] * 12)
    whole, spans = streamed(POLICY, [text])
    assert (whole.count(EMAIL), whole.count("[REDACTED_CARD]")) == (36, 12)
    for size in (1, 3, 50):
        assert streamed(POLICY, pieces(text, size)) == (whole, spans)


def test_an_address_that_reaches_beyond_the_stride_is_whole() -> None:
    address = "l" * 60 + "@" + ".".join(["d" * 60] * 3) + ".com"
    text = "-" * 140 + address + "!" + "+" * 140 + address + "_" * 400
    whole, spans = streamed(POLICY, [text])
    assert whole == "-" * 140 + EMAIL + "!" + "+" * 140 + EMAIL + "_" * 400
    assert streamed(POLICY, pieces(text, 9)) == (whole, spans)


def operations(call: Callable[[], object]) -> int:
    """Calls of functions, ours and built-in, while `call` runs."""
    count = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


ADVERSARIAL = [
    *("1", "1 ", "12-", "1.", "a", "a.", "a.a@", "@", "sk-", "e" + "yJ", "e" + "yJ.", "-", "--"),
    *("GB82 ", "GB82 WEST ", "+1(", "redis://:", "https://", "password:", "token=", "a@a.", "%40"),
    *(
        "4111 ",
        "\uff11",
        "\u200b",
        "123-45-",
        "-----BEGIN ",
        "Authorization: ",
        "_",
        "'",
        "\u53f71",
        "\u00e9",
        "\u00e9@",
        "\u00e9.\u00e9@",
    ),
]


class Work:
    """Counts calls, and the characters that detectors are asked to look at."""

    def __init__(self, chars: int, unit: str) -> None:
        self.seen = 0
        text = (unit * (chars // len(unit) + 1))[:chars]
        policy = RedactionPolicy.preset("default")
        find = policy.program.find

        def counted(text: str, start: int, end: int) -> list[Hit]:
            self.seen += end - start
            return find(text, start, end)

        policy.program.find = counted  # type: ignore[method-assign]
        redactor = Redactor(policy, keep_spans=False)
        self.calls = operations(lambda: [redactor.feed(piece) for piece in pieces(text, 4)])


@pytest.mark.parametrize("unit", ADVERSARIAL)
@pytest.mark.full
def test_work_grows_in_step_with_the_text(unit: str) -> None:
    small, large = Work(1_500, unit), Work(3_000, unit)
    assert large.calls <= 2.6 * small.calls
    assert large.seen <= 2.6 * max(small.seen, HOLD)
    # However hostile the text, a character costs a bounded amount of work.
    assert large.calls <= 60 * 3_000
    assert large.seen <= 6 * 3_000


@pytest.mark.parametrize("seed", range(6))
def test_nothing_waits_for_a_piece_without_text(seed: int) -> None:
    rnd = seeded(seed)
    words = [
        "password:",
        " hunter2!x",
        "jane@b.co",
        pem(2),
        "\nafter",
        " ",
        "GB82 WEST 1234 5698",
        "1",
    ]
    redactor = Redactor(POLICY)
    for _ in range(300):
        redactor.feed(rnd.choice(words))
        assert redactor.feed("") == ""
