r"""Arguments of tool calls, cut everywhere, against an oracle that reads the whole document.

The oracle decodes the JSON text, masks each string with the naive rules of `oracle.mask`, and a
number if its digits alone would be masked. Keys and structure are to stay.
"""

import json
from typing import Any

import pytest

from tests.unit.redaction.argument_documents import DOCUMENTS
from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.oracle import mask
from tidegate.redaction import RedactionPolicy, Treatment
from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")


def expected(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: expected(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [expected(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        shown = mask(str(value))
        return value if shown == str(value) else shown
    return value


def joined(pieces: list[str]) -> str:
    redactor = ArgumentsRedactor(Treatment(POLICY))
    out = []
    for piece in pieces:
        out.append(redactor.feed(piece))
        assert redactor.pending <= 1024
    return "".join(out) + redactor.flush()


def test_there_are_fifty_documents_and_more() -> None:
    assert len(set(DOCUMENTS)) >= 50


@pytest.mark.parametrize("raw", DOCUMENTS)
def test_every_cut_parses_and_equals_the_oracle(raw: str) -> None:
    whole = joined([raw])
    assert json.loads(whole) == expected(json.loads(raw))
    for pieces in every_split(raw, three_way_max=0):
        assert joined(pieces) == whole
    assert joined(list(raw)) == whole


@pytest.mark.full
@pytest.mark.parametrize("raw", DOCUMENTS)
def test_three_way_and_random_cuts_equal_the_oracle(raw: str) -> None:
    whole = joined([raw])
    for pieces in every_split(raw, three_way_max=60):
        assert joined(pieces) == whole
    for seed in range(500):
        assert joined(random_pieces(raw, seeded(seed))) == whole


@pytest.mark.parametrize("raw", DOCUMENTS)
def test_arguments_that_are_only_counted_keep_every_byte(raw: str) -> None:
    for pieces in ([raw], list(raw)):
        redactor = ArgumentsRedactor(Treatment(POLICY.observing()))
        assert "".join(redactor.feed(piece) for piece in pieces) + redactor.flush() == raw
