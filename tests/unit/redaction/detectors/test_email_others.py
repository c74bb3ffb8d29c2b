"""Which words with an `@` are addresses, and which are files, units, packages or code?"""

import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.samples import SECRET
from tidegate.redaction import RedactionPolicy
from tidegate.redaction.explain import explain

pytestmark = pytest.mark.full

DEFAULT = RedactionPolicy.preset("default")
EMAIL = "[REDACTED_EMAIL]"


@pytest.mark.parametrize(
    "text",
    [
        "logo@2x.png, icon@3x.webp icon@2X.PNG (img@2x.min.svg)",
        "getty@tty1.service user@1000.service postgresql@14-main.service wg-quick@wg0.service.",
        "https://cdn.jsdelivr.net/npm/vue@next.global.js",
        "style@media.css react@latest.min.js",
        "q@k.transpose(-2, -1)",
        "self.q@self.k.mT.view(1) foo@bar.baz()",
        "https://user:password@example.com https://user:password@example.com/x",
        "postgres://$USER:$PASSWORD@db.example.com/x mysql://root:%s@db.example.com",
    ],
)
def test_files_units_products_and_examples_are_no_addresses(text: str) -> None:
    check(DEFAULT, text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jane@example.sh jane@example.py x@y.md a@b.zip a@b.app", " ".join([EMAIL] * 5)),
        ("a@b.rs a@b.services a@b.page a@b.target a@b.ms", " ".join([EMAIL] * 5)),
        ("avatars/jane@example.com.png", f"avatars/{EMAIL}"),
        ("jane.doe@mail.example.co.json", EMAIL),
        ("jane@example.com(work) jane@firma.berlin(x)", f"{EMAIL}(work) {EMAIL}(x)"),
        ("jane-d@example.transpose(x) jane@ex-ample.view(x)", f"{EMAIL}(x) {EMAIL}(x)"),
        ("jane@example.transpose", EMAIL),
        ("jane@example.com.", f"{EMAIL}."),
        ("https://user:hunter2@example.com", f"https://{SECRET}@example.com"),
        ("https://jane@example.com", f"https://{EMAIL}"),
        ("mailto:password@example.com user:password@example.com", f"mailto:{EMAIL} user:{EMAIL}"),
    ],
)
def test_addresses_stay_addresses(text: str, shown: str) -> None:
    check(DEFAULT, text, shown)


def test_what_imitates_a_file_over_a_long_name_is_masked() -> None:
    check(only("email"), f"x@{'a' * 70}.png", EMAIL)


def test_an_explanation_says_that_a_file_is_none() -> None:
    reasons = [each.reason for each in explain(DEFAULT, "see logo@2x.png now")]
    assert reasons == ["a file, a unit or a call: no mail is delivered under that top level"]
