"""The estimate is measured on texts that everybody can look at."""

import hashlib
import json
from importlib.resources import files

import pytest

from tidegate.limits.samples import Sample, measured, vocabulary

SAMPLES = measured()
FOLDER = files("tidegate.limits") / "samples"


def test_a_text_that_was_changed_has_to_be_counted_anew() -> None:
    counts = json.loads((FOLDER / "counts.json").read_text(encoding="utf-8"))
    assert vocabulary() == counts["vocabulary"] == "o200k_base"
    for entry in counts["texts"]:
        data = (FOLDER / entry["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], entry["file"]
    named = {entry["file"] for entry in counts["texts"]} | {"counts.json"}
    assert {file.name for file in FOLDER.iterdir()} == named


def test_the_samples_are_of_every_class_that_differs() -> None:
    names = " ".join(sample.name for sample in SAMPLES)
    for kind in ("prose", "code", "json", "chinese", "japanese", "korean", "base64"):
        assert kind in names
    assert all(sample.size_bytes > 600 and sample.tokens > 200 for sample in SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_no_class_of_text_is_far_off(sample: Sample) -> None:
    # Alphabets other than the Latin one differ most between vocabularies: there it is on the
    # safe side. Under the truth it is by a few percent at most.
    assert -0.08 <= sample.error <= 0.45
    assert sample.error <= 0.3 or "russian" in sample.name


def test_characters_divided_by_four_would_be_far_off() -> None:
    naive = [sample.size_bytes / 4 / sample.tokens - 1 for sample in SAMPLES]
    assert min(naive) < -0.5
    assert sum(map(abs, naive)) > 2 * sum(abs(sample.error) for sample in SAMPLES)
