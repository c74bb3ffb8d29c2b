"""Do custom detectors, lists and rules of thumb hold the laws beside all built-in detectors?"""

import pytest

from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tests.unit.redaction.samples import MASKED
from tidegate.redaction import DenyList, Literals, RedactionPolicy, detector
from tidegate.redaction.cues import CUES
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

LITERALS = [
    "Jane Doe",
    "Jane",
    "Jos\u00e9 Garc\u00eda",
    "\u7530\u4e2d\u592a\u90ce",
    "ACME-4711",
    "+44 20 7946",
]
OWN = [
    detector("EMPLOYEE_ID", prefix="EMP-", body="[0-9]", min=6, max=8),
    detector("BUILD_TOKEN", prefix="acme_bt_", body="[A-Za-z0-9]", min=20),
    detector("ACCOUNT", prefix="Account No. ", body="[0-9 ]", min=6, max=14),
    detector("PHONE_US", regex=r"\(\d{3}\) \d{3}-\d{4}"),
    detector("MEMBER", body="[0-9]", min=10, max=10, validate="luhn"),
    detector("WIDE_ONE", regex="x[ab ]{1,600}y"),
]
POLICY = (
    RedactionPolicy.preset("strict")
    .with_actions(dict.fromkeys(CUES, "mask"))
    .with_detectors(*OWN, DenyList(Literals(LITERALS)))
)
FRAGMENTS = [
    *(sample for made in OWN for sample in list(made.samples(2))),
    *(text for _, text, _ in MASKED if len(text) < 90),
    *("my name is Jane Roe", "Dear Mr. ", "DOB: 12/03/1984", "12 Main St, Springfield, OR 97403"),
    *LITERALS,
    *(
        " ",
        "  ",
        "\n",
        ".",
        ",",
        "-",
        "(",
        ")",
        "@",
        ":",
        "1",
        "12",
        "a",
        "EMP-",
        "Jane",
        "Jos\u00e9",
    ),
    *(
        "\u200b",
        "\u00ad",
        "\u0301",
        "\u7530",
        "Account No. 12 ",
        "x" + "ab " * 60,
        "z" * 200,
        "&#64;",
    ),
]


def document(seed: int, size: int) -> str:
    rnd = seeded(seed)
    return "".join(rnd.choice(FRAGMENTS) for _ in range(size))


@pytest.mark.parametrize("seed", range(5))
def test_a_mixture_is_the_same_in_random_pieces(seed: int) -> None:
    text = document(seed, 40)
    whole = POLICY.redact(text)
    rnd = seeded(seed)
    for _ in range(3):
        assert streamed(POLICY, random_pieces(text, rnd)) == (whole.text, whole.spans)
    assert streamed(POLICY, text) == (whole.text, whole.spans)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_short_mixture_is_the_same_in_every_split(seed: int) -> None:
    text = document(seed, 4)
    whole = POLICY.redact(text)
    for pieces in every_split(text, three_way_max=60):
        assert streamed(POLICY, pieces) == (whole.text, whole.spans)


@pytest.mark.full
def test_a_long_mixture_is_the_same_in_500_random_splits() -> None:
    text = document(7, 90)
    whole = POLICY.redact(text)
    rnd = seeded(7)
    for _ in range(500):
        assert streamed(POLICY, random_pieces(text, rnd)) == (whole.text, whole.spans)
