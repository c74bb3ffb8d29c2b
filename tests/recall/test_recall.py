import pytest

from tests.recall.measure import KINDS, Figures, measure
from tests.recall.samples import BROUGHT, FILES, FOLDER, Sample, load, missing
from tests.recall.sources import finds, standard_library
from tidegate.redaction import RedactionPolicy

pytestmark = pytest.mark.full

CARD, SSN = "4111 1111 1111 1111", "536-90-4399"
LABELED = {
    "synth_dataset_v2.json": {
        "CARD": 136,
        "EMAIL": 49,
        "IBAN": 21,
        "IP": 14,
        "PHONE": 92,
        "SSN": 16,
    },
    "generated_large.json": {
        "CARD": 212,
        "EMAIL": 58,
        "IBAN": 28,
        "IP": 11,
        "PHONE": 136,
        "SSN": 44,
    },
}
# Three groups of digits that span an address: a suite, and the number of the house behind it.
WRONG = {"generated_large.json": {"SSN": ["680 36 4022"]}}
UNLABELED = {"synth_dataset_v2.json": 113, "generated_large.json": 202}


def labeled(text: str, *labels: tuple[str, str]) -> Sample:
    places = [(kind, text.index(value), text.index(value) + len(value)) for kind, value in labels]
    return Sample(text, tuple(places))


def test_recall_counts_whole_values_and_precision_counts_hits() -> None:
    report = measure(
        [
            labeled(f"card {CARD} and x", ("CREDIT_CARD", CARD), ("EMAIL_ADDRESS", "x")),
            labeled(f"no {SSN}", ("PERSON", "no")),
            Sample(f"{CARD}", ()),
            Sample("nothing", ()),
        ]
    )
    card, email, ssn = (report.kinds[word] for word in ("CARD", "EMAIL", "SSN"))
    assert (card.labeled, card.masked, card.hits, card.right) == (1, 1, 2, 1)
    assert (card.recall, card.precision, card.wrong) == (1.0, 0.5, [CARD])
    assert (email.recall, email.precision, email.missed) == (0.0, 1.0, ["x"])
    assert (ssn.recall, ssn.precision, ssn.wrong) == (1.0, 0.0, [SSN])
    assert (report.unlabeled_texts, report.hits_in_unlabeled) == (2, ["CARD"])
    assert report.kinds["PHONE"] == Figures()
    assert set(report.kinds) == set(KINDS.values())


@pytest.mark.parametrize("name", FILES)
def test_every_labeled_value_is_masked_and_no_text_without_a_label_is_touched(name: str) -> None:
    if name in missing() and name in BROUGHT:
        pytest.skip(f"{name} is not part of this repository (see the README in {FOLDER})")
    report = measure(load(name))
    figures = report.kinds
    assert {word: figures[word].labeled for word in LABELED[name]} == LABELED[name]
    assert {word: each.missed for word, each in figures.items() if each.missed} == {}
    assert {word: each.wrong for word, each in figures.items() if each.wrong} == WRONG.get(name, {})
    assert (report.unlabeled_texts, report.hits_in_unlabeled) == (UNLABELED[name], [])


# What is found there beside real addresses: a password in an example, which is what it says.
EXPLAINED = {("urllib/request.py", "keyword_value", "geheim$parole")}


@pytest.mark.full
def test_in_the_sources_of_the_standard_library_only_addresses_are_found() -> None:
    size, found = finds(standard_library(), RedactionPolicy.preset("default"))
    other = {(find.file, find.rule, find.shown) for find in found if not find.is_address}
    assert size > 5_000_000
    assert len(other - EXPLAINED) <= 2 * size / 1_000_000, sorted(other - EXPLAINED)
