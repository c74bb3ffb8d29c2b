"""What is known of requests whose process died?"""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect

import pytest

from tests.unit.records.traffic import answered, begun, called, finish, request_id
from tidegate.clock import SystemClock
from tidegate.records import Record, Recorder, as_json, broken_chains, find
from tidegate.records.liveness import LifeLock, is_running, lock_path

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]


@contextmanager
def gateway(path: Path, mode: str = "traffic") -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.wire.records_process", str(path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(30)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def found(path: Path, number: int) -> Record:
    record = find(path, request_id(number))
    assert record is not None
    return record


def states(path: Path) -> list[object]:
    return [as_json(found(path, number))["state"] for number in (1, 2, 3, 4)]


def recover(path: Path) -> int:
    async def body() -> int:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        answered(recorder, 100)
        await recorder.close()
        return recorder.lost

    return asyncio.run(body())


def test_killed_under_traffic_the_records_are_readable_and_unfinished_ones_become_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    with gateway(path) as process:
        assert said(process) == "ready"
        assert states(path) == ["ended", "ended", "running", "running"]
    assert states(path) == ["ended", "ended", "cut off", "cut off"]
    assert recover(path) == 2
    assert states(path) == ["ended", "ended", "lost", "lost"]
    assert [e.entry.kind for e in found(path, 4).entries] == ["intent", "lost"]
    (lost,) = found(path, 3).entries
    known = lost.body["known"]
    assert isinstance(known, dict)
    assert (known["principal"], known["surface"]) == ("acme", "chat")
    assert lost.body["last_state"] == "begun"
    assert broken_chains(path) == {}
    assert recover(path) == 0, "found lost once"
    assert {file.name for file in tmp_path.iterdir()} == {"r.db", "r.db.lock"}


def test_killed_before_an_intent_is_in_the_database_it_is_found_and_goes_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    with gateway(path, "sudden") as process:
        assert said(process) == "ready"
        assert [as_json(found(path, number))["state"] for number in (1, 4, 5)] == [
            "ended",
            "running",
            "running",
        ]
    assert as_json(found(path, 4))["state"] == "cut off"
    assert found(path, 4).entries == ()
    assert recover(path) == 2
    for number in (4, 5):
        assert [(e.entry.kind, e.intact) for e in found(path, number).entries] == [
            ("intent", True),
            ("lost", True),
        ]
    first, intent = found(path, 1).entries[0].entry, found(path, 4).entries[0].entry
    assert intent.boot == first.boot, "in the chain of the process whose it is"
    assert broken_chains(path) == {}
    assert recover(path) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"r.db", "r.db.lock"}


def test_what_another_living_process_has_open_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with gateway(path) as process:
        assert said(process) == "ready"
        assert recover(path) == 0
        assert states(path) == ["ended", "ended", "running", "running"]
    assert broken_chains(path) == {}


def test_two_processes_write_one_file_with_a_chain_each(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def one(number: int) -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for turn in range(30):
            finish(recorder, await called(recorder, number + turn))
        await recorder.close()

    async def body() -> None:
        await asyncio.gather(one(100), one(200), one(300))

    asyncio.run(body())
    assert broken_chains(path) == {}
    with closing(connect(path)) as connection:
        rows = connection.execute("SELECT boot, count(*), max(seq) FROM entries GROUP BY boot")
        assert [row[1:] for row in rows] == [(60, 60)] * 3


def test_what_is_still_open_at_a_proper_end_is_lost_too(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    async def body() -> None:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        begun(recorder, 3)
        await called(recorder, 4)
        await recorder.close()

    asyncio.run(body())
    assert as_json(found(path, 3))["state"] == "cut off"
    assert recover(path) == 2
    assert as_json(found(path, 3))["state"] == as_json(found(path, 4))["state"] == "lost"


def test_a_full_disk_refuses_calls_and_harms_no_chain(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with gateway(path, "full-disk") as process:
        word, number, degraded = said(process).split()
        assert (word, degraded) == ("refused", "True")
        assert said(process) == "again False"
        assert process.wait(30) == 0
    assert int(number) > 3
    assert [e.entry.kind for e in found(path, int(number) - 1).entries] == ["intent", "end"]
    assert [e.entry.kind for e in found(path, 9999).entries] == ["intent", "end"]
    assert broken_chains(path) == {}


def test_a_life_lock_tells_the_living_from_the_dead(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    assert not is_running(path, "b1")
    lock = LifeLock(path, "b1")
    assert is_running(path, "b1")
    lock_path(path, "b2").touch()
    assert not is_running(path, "b2")
    lock.release()
    assert not is_running(path, "b1")


def test_processes_that_write_side_by_side_take_turns_and_keep_whole_chains(
    tmp_path: Path,
) -> None:
    path, each, calls = tmp_path / "r.db", 3, 60

    async def write(number: int) -> str:
        recorder = Recorder(path, SystemClock())
        await recorder.open()
        for call in range(calls):
            finish(recorder, await called(recorder, number * calls + call))
        await recorder.close()
        return recorder.boot

    async def body() -> set[str]:
        # Recorders of one process hold locks of their own, so they wait as processes do.
        return set(await asyncio.gather(*(write(number) for number in range(each))))

    assert len(asyncio.run(body())) == each
    assert broken_chains(path) == {}
    kinds = [entry.entry.kind for n in range(each * calls) for entry in found(path, n).entries]
    assert Counter(kinds) == {"intent": each * calls, "end": each * calls}
