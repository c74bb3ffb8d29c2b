"""Does the judge of the conformance runs notice whatever is not as it must be?"""

import json
from pathlib import Path

import pytest

from tests.conformance.harness import CLIENT_RUNS, HERE, RUNS, expected
from tests.conformance.judge import Check, complaints, counted, read_checks, total

GOOD = [Check("ping", "ping", "SUCCESS"), Check("ping", "wire", "SUCCESS")] * 2
TABLE = {"ping": {"ping": 2, "wire": 2}}


def test_a_run_that_is_as_expected_has_no_complaints() -> None:
    assert complaints(GOOD, TABLE) == []
    assert counted(GOOD) == TABLE
    assert total(TABLE) == 4


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "ELSE"])
def test_whatever_is_no_success_is_a_complaint(status: str) -> None:
    checks = [Check("ping", "ping", status, "why"), *GOOD[1:]]
    assert complaints(checks, TABLE) == [f"ping: ping: {status} why"]


@pytest.mark.parametrize("left_out", range(4))
def test_a_check_that_was_left_out_is_a_complaint(left_out: int) -> None:
    checks = GOOD[:left_out] + GOOD[left_out + 1 :]
    gone = GOOD[left_out].id
    assert complaints(checks, TABLE) == [f"ping: {gone}: checked 1 times instead of 2"]


def test_a_scenario_that_was_left_out_or_came_in_is_a_complaint() -> None:
    assert len(complaints([], TABLE)) == 2
    other = [*GOOD, Check("tasks", "tasks", "SUCCESS")]
    assert complaints(other, TABLE) == ["tasks: tasks: checked 1 times instead of 0"]


def test_what_the_harness_wrote_is_read_by_scenario_without_what_is_no_verdict(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "server-tools-call-image-2026-12-01T00-55-12-460Z"
    folder.mkdir()
    items = [
        {"id": "a", "status": "SUCCESS"},
        {"id": "b", "status": "INFO"},
        {"id": "c", "status": "FAILURE", "errorMessage": "no picture"},
    ]
    (folder / "checks.json").write_text(json.dumps(items))
    assert read_checks(tmp_path) == [
        Check("tools-call-image", "a", "SUCCESS"),
        Check("tools-call-image", "c", "FAILURE", "no picture"),
    ]


def test_the_table_holds_as_many_checks_as_the_harness_counts_for_a_good_server() -> None:
    tables = expected()
    assert {name: total(table) for name, table in tables.items()} == {
        "2025-03-26": 3,
        "2025-06-18": 56,
        "2025-11-25": 84,
        "2026-07-28": 152,
        "0.1.16": 40,
        "connect 2025-11-25": 11,
        "connect 2026-07-28": 62,
    }
    assert {run.name: run.total for run in (*RUNS, *CLIENT_RUNS)} == {
        name: total(table) for name, table in tables.items()
    }


def test_the_lock_of_the_harness_has_hashes_and_no_address() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 100
    assert [name for name, entry in packages.items() if "integrity" not in entry] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert lock["packages"][""]["dependencies"] == wanted
