"""Is every change to a chain seen?"""

import hashlib
import json

import pytest
from msgspec import structs

from tidegate.records.chain import GENESIS, Entry, Head, first_break

Chain = list[tuple[Entry, str]]


def chain(length: int, *, boot: str = "b1") -> Chain:
    made: Chain = []
    head = Head()
    for seq in range(1, length + 1):
        body = json.dumps({"é": seq}, ensure_ascii=False, separators=(",", ":"))
        entry = Entry("n1", boot, seq, "end", f"{seq:032x}", 1000 + seq, body, head.hash)
        head = Head(seq, entry.digest)
        made.append((entry, entry.digest))
    return made


def test_the_hash_is_sha_256_over_canonical_json() -> None:
    (entry, digest), *_ = chain(1)
    document = {**structs.asdict(entry), "body": json.loads(entry.body)}
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    assert entry.prev_hash == GENESIS == "0" * 64


def test_a_chain_as_written_holds_from_its_start_and_from_every_pruned_head() -> None:
    whole = chain(6)
    assert first_break(Head(), whole) is None
    for cut in range(1, 7):
        last, digest = whole[cut - 1]
        assert first_break(Head(last.seq, digest), whole[cut:]) is None


def test_every_single_change_is_found_at_its_entry() -> None:
    for at in range(5):
        for change in (
            {"node": "n2"},
            {"boot": "b2"},
            {"seq": 77},
            {"kind": "lost"},
            {"request_id": "x"},
            {"at_ms": 1},
            {"body": "{}"},
            {"prev_hash": "f" * 64},
        ):
            changed = chain(5)
            entry, stored = changed[at]
            changed[at] = (structs.replace(entry, **change), stored)
            assert first_break(Head(), changed) == changed[at][0].seq


@pytest.mark.parametrize("at", range(5))
def test_a_change_with_a_new_hash_is_found_at_the_next_entry(at: int) -> None:
    changed = chain(5)
    forged = structs.replace(changed[at][0], body="{}")
    changed[at] = (forged, forged.digest)
    assert first_break(Head(), changed) == (at + 2 if at < 4 else None)


def test_a_gap_in_the_numbers_is_found_although_every_hash_is_right() -> None:
    (first, digest), *_ = chain(1)
    later = structs.replace(first, seq=3, prev_hash=digest)
    assert first_break(Head(), [(first, digest), (later, later.digest)]) == 3


@pytest.mark.parametrize("at", range(4))
def test_deleting_inserting_and_reordering_are_found(at: int) -> None:
    whole = chain(5)
    deleted = whole[:at] + whole[at + 1 :]
    assert first_break(Head(), deleted) == at + 2
    inserted = whole[: at + 1] + chain(1, boot="other") + whole[at + 1 :]
    assert first_break(Head(), inserted) == 1
    swapped = [*whole[:at], whole[at + 1], whole[at], *whole[at + 2 :]]
    assert first_break(Head(), swapped) == at + 2
