"""Is an intent on disk from its line in the journal on, and in the database exactly once?"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.records.traffic import request_id
from tidegate.records import broken_chains, find
from tidegate.records.database import Database
from tidegate.records.journal import (
    Journal,
    Journaled,
    boots_with_any,
    discard,
    journal_path,
    left_behind,
    of_request,
)
from tidegate.records.rows import Draft, OpenRequest


def line(number: int) -> Journaled:
    return Journaled(1000 + number, request_id(number), f'{{"steps":[{number}]}}')


def test_what_was_appended_is_found_in_its_order(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    assert all(made.append(line(number)) for number in range(3))
    assert left_behind(records, "b1") == [line(0), line(1), line(2)]
    assert of_request(records, request_id(1)) == ("b1", line(1))
    assert of_request(records, request_id(7)) is None
    assert journal_path(records, "b1").stat().st_mode & 0o777 == 0o600


def test_with_the_last_one_in_the_database_the_file_is_empty(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    for number in range(3):
        made.append(line(number))
    made.written(2)
    assert len(left_behind(records, "b1")) == 3, "the third may be anywhere in it"
    made.written(1)
    assert left_behind(records, "b1") == []
    made.append(line(4))
    assert left_behind(records, "b1") == [line(4)]


@pytest.mark.parametrize("written", [0, 1])
def test_at_the_end_only_what_the_database_lacks_stays_on_disk(
    tmp_path: Path, written: int
) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    made.append(line(1))
    made.written(written)
    made.close()
    assert journal_path(records, "b1").exists() == (written == 0)


def test_a_line_that_was_torn_is_none_and_those_before_it_are_whole(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    for number in range(3):
        made.append(line(number))
    whole = journal_path(records, "b1").read_bytes()
    ends = [0, *(place + 1 for place, byte in enumerate(whole) if byte == 0x0A)]
    for cut in range(len(whole) + 1):
        journal_path(records, "b2").write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends) - 1
        assert left_behind(records, "b2") == [line(number) for number in range(complete)]


JUNK = [b"\n\n", b"x y z\n", b"12\n", b"\xff\xfe 1 {}\n", b"5 abc\n", b"5 abc {\n", b"5 abc []\n"]


@pytest.mark.parametrize("junk", [*JUNK, b"\0" * 40 + b"\n", b'5 abc {"a":6 abc {}\n'])
def test_what_is_no_intent_is_left_out(tmp_path: Path, junk: bytes) -> None:
    journal_path(tmp_path / "r.db", "b1").write_bytes(junk)
    assert left_behind(tmp_path / "r.db", "b1") == []


def test_after_its_end_nothing_goes_to_a_file_that_may_be_another_one(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    made.append(line(1))
    assert not made.close()
    before = journal_path(records, "b1").read_bytes()
    with (tmp_path / "other").open("wb+") as other:  # gets the number of the one that was closed
        other.write(b"x")
        other.flush()
        assert not made.append(line(2))
        made.written(1)
        other.seek(0)
        assert other.read() == b"x"
    assert journal_path(records, "b1").read_bytes() == before


def test_without_room_nothing_is_done(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1", most_bytes=100)
    made.append(line(1))
    assert not made.append(line(2))
    assert left_behind(records, "b1") == [line(1)]
    made.written(1)
    assert made.append(line(3))
    assert left_behind(records, "b1") == [line(3)]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may grow beyond this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_ends_early_leaves_nothing(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    made = Journal(records, "b1")
    made.append(line(1))
    size = journal_path(records, "b1").stat().st_size
    with room_for(size + 9):
        assert not made.append(line(2))
    assert journal_path(records, "b1").stat().st_size == size
    with room_for(size), pytest.raises(OSError, match="too large"):
        made.append(line(3))
    made.append(line(4))
    assert left_behind(records, "b1") == [line(1), line(4)]


EVENTS = st.lists(st.sampled_from(["intent", "end", "commit"]), max_size=25)


def recovered(records: Path, boot: str) -> Database:
    """The next process, which has taken over what is there."""
    database = Database(records, boot, busy_s=5.0)
    journals = boots_with_any(records)
    database.begin_boot(2, lambda _boot: False, lambda each: left_behind(records, each), journals)
    for each in journals:
        discard(records, each)
    return database


@given(history=EVENTS, ends=st.sampled_from(["killed", "stopped", "said to have ended"]))
@settings(max_examples=60, deadline=None)
def test_however_a_process_ends_each_intent_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, history: list[str], ends: str
) -> None:
    records = tmp_path_factory.mktemp("died") / "r.db"
    first, made = Database(records, "b1", busy_s=5.0), Journal(records, "b1")
    first.begin_boot(1, lambda _boot: False, lambda _boot: [])
    waiting: list[Draft] = []
    intents, ended, committed, number = [], [], set[str](), 0
    for event in history:
        match event:
            case "intent":
                number += 1
                made.append(line(number))
                intents.append(request_id(number))
                waiting.append(Draft("intent", request_id(number), 1, line(number).body))
            case "end" if len(ended) < len(intents):
                ended.append(intents[len(ended)])
                waiting.append(Draft("end", ended[-1], 1, "{}"))
            case "commit":
                opened = [
                    OpenRequest(d.request_id, 1, "intent", d.body)
                    for d in waiting
                    if d.kind == "intent" and d.request_id not in ended
                ]
                closed = [d.request_id for d in waiting if d.kind == "end"]
                first.append(waiting, opened, closed)
                committed.update(closed)
                made.written(sum(d.kind == "intent" for d in waiting))
                waiting = []
    if ends != "killed":
        is_whole = made.close()
        first.close(2, is_whole=is_whole or ends != "stopped")
    second = recovered(records, "b2")
    for each in intents:
        found = find(records, each)
        assert found is not None
        kinds = [entry.entry.kind for entry in found.entries]
        assert kinds == ["intent", "end" if each in committed else "lost"]
        assert found.open is None
        assert found.entries[0].entry.boot == "b1"
    assert broken_chains(records) == {}
    second.close(3)
    assert boots_with_any(records) == []
    if ends == "killed":
        first.close(3)


def test_what_was_pruned_since_is_not_brought_back(tmp_path: Path) -> None:
    records = tmp_path / "r.db"
    first, made = Database(records, "b1", busy_s=5.0), Journal(records, "b1")
    first.begin_boot(1, lambda _boot: False, lambda _boot: [])
    for number in range(4):
        made.append(line(number))
        intent = Draft("intent", request_id(number), 1000 + number, line(number).body)
        first.append([intent, Draft("end", request_id(number), 1000 + number, "{}")], [], [])
    first.prune(older_than_ms=1002, max_bytes=1 << 30, limit=100)
    second = recovered(records, "b2")
    found = [find(records, request_id(number)) for number in range(4)]
    assert found[:2] == [None, None]
    kinds = [[e.entry.kind for e in each.entries] for each in found if each is not None]
    assert kinds == [["intent", "end"]] * 2
    assert broken_chains(records) == {}
    second.close(3)
    first.close(3)
