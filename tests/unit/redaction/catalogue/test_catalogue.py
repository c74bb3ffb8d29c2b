from functools import cache
from pathlib import Path

import pytest

from tests.unit.redaction.catalogue.entries import (
    BY_POLICY,
    CARDS,
    EMAILS,
    KEPT,
    OTHERS,
    SSNS,
    Row,
)
from tests.unit.redaction.catalogue.protocol import PROTOCOL
from tests.unit.redaction.catalogue.secrets import SECRETS
from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tidegate.redaction import RedactionPolicy
from tidegate.testing.splits import every_split

ROOT = Path(__file__).parents[4]
DEFAULT, STRICT = RedactionPolicy.preset("default"), RedactionPolicy.preset("strict")
ROWS = [*EMAILS, *SSNS, *CARDS, *SECRETS, *OTHERS, *KEPT]


def named(rows: list[Row]) -> list[object]:
    """Each row under the number of its entry and its place there."""
    places = [sum(one.entry == row.entry for one in rows[:n]) for n, row in enumerate(rows, 1)]
    return [
        pytest.param(row, id=f"{row.entry}.{place}")
        for row, place in zip(rows, places, strict=True)
    ]


@cache
def _with(families: tuple[str, ...]) -> RedactionPolicy:
    return DEFAULT.with_actions(dict.fromkeys(families, "mask"))


def with_families(row: Row) -> RedactionPolicy:
    """The preset `default` and what the entry names."""
    return _with(row.families)


@pytest.mark.parametrize("row", named([row for row in ROWS if not row.kept]))
def test_what_an_entry_wants_masked_is_masked(row: Row) -> None:
    assert with_families(row).redact(row.text).text == row.shown


@pytest.mark.parametrize("row", named([row for row in ROWS if not row.kept]))
@pytest.mark.full
def test_what_is_masked_is_masked_by_the_strict_preset_too(row: Row) -> None:
    assert STRICT.redact(row.text).text == row.shown


@pytest.mark.parametrize("row", named([row for row in ROWS if row.kept]))
def test_what_an_entry_wants_kept_is_kept(row: Row) -> None:
    assert DEFAULT.redact(row.text).text == row.text
    if row.entry not in BY_POLICY:
        assert STRICT.redact(row.text).text == row.text


@pytest.mark.parametrize("row", named(ROWS))
def test_an_entry_comes_out_the_same_character_by_character(row: Row) -> None:
    for policy in (with_families(row), STRICT):
        whole = policy.redact(row.text)
        assert streamed(policy, row.text) == (whole.text, whole.spans)


@pytest.mark.full
@pytest.mark.parametrize("row", named(ROWS))
def test_an_entry_comes_out_the_same_in_every_split(row: Row) -> None:
    for policy in (with_families(row), STRICT):
        whole = policy.redact(row.text)
        for pieces in every_split(row.text):
            assert streamed(policy, pieces) == (whole.text, whole.spans)
        rnd = seeded(row.entry)
        for _ in range(500):
            pieces = random_pieces(row.text, rnd)
            assert streamed(policy, pieces) == (whole.text, whole.spans)


def test_published_numbers_and_example_addresses_pass_when_they_are_allowed() -> None:
    allowed = DEFAULT.with_allow("078-05-1120", "219-09-9999", "*@example.com")
    text = "078-05-1120 219-09-9999 jane@example.com"
    assert allowed.redact(text).text == text


def test_private_addresses_are_a_family_of_their_own() -> None:
    texts = [row.text for row in ROWS if row.entry == 98]
    public = DEFAULT.with_actions({"ip": "mask"})
    both = public.with_actions({"ip_private": "mask"})
    assert [public.redact(text).text for text in texts] == texts
    assert all("[REDACTED_IP]" in both.redact(text).text for text in texts)


def test_every_entry_of_the_catalogue_has_its_test_in_one_place() -> None:
    texts = {row.entry for row in ROWS}
    assert texts | set(PROTOCOL) == set(range(1, 121))
    assert texts & set(PROTOCOL) == set()


@pytest.mark.parametrize("entry", PROTOCOL)
def test_an_entry_about_the_wire_names_a_test_that_exists(entry: int) -> None:
    path, name = PROTOCOL[entry].split("::")
    assert f"def {name}(" in (ROOT / path).read_text()
