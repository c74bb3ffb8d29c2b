"""What does one answer on /readyz say of several workers?"""

from typing import Any

import pytest

from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.health import Own, merged, whole

OWN = Own("3fa4", reload_failed=False, demo=False)
ALL_WELL = Standing(2, 2, 0, (), (), draining=False)


def report(**more: Any) -> dict[str, object]:
    return {
        "ready": True,
        "reasons": [],
        "config": {"revision": "old", "last_reload": "ok"},
        "store": {"degraded": False},
        "records": {"degraded": False, "dropped": 1},
        "draining": False,
        "demo": False,
    } | more


def test_all_well_reads_like_one_process_and_counts_workers() -> None:
    assert whole([report(), report()], ALL_WELL, OWN) == {
        "ready": True,
        "reasons": [],
        "config": {"revision": "3fa4", "last_reload": "ok"},
        "store": {"degraded": False},
        "records": {"degraded": False, "dropped": 2},
        "draining": False,
        "demo": False,
        "workers": {"wanted": 2, "accepting": 2, "starting": 0, "silent": [], "crash_loop": []},
    }


@pytest.mark.parametrize(
    ("reports", "standing", "ready", "reasons"),
    [
        ([], Standing(2, 0, 2, (), (), draining=False), False, ["no_worker", "worker_missing"]),
        ([report()], Standing(2, 1, 1, (), (), draining=False), True, ["worker_missing"]),
        (
            [report()],
            Standing(2, 1, 0, (), (2,), draining=False),
            True,
            ["worker_missing", "worker_crash_loop"],
        ),
        (
            [report()],
            Standing(2, 1, 0, (1,), (), draining=False),
            True,
            ["worker_missing", "worker_silent"],
        ),
        ([], ALL_WELL, False, ["no_worker"]),
        ([report()], Standing(2, 1, 0, (), (), draining=True), False, ["draining"]),
        (
            [report(), report(ready=False, reasons=["store_degraded"])],
            ALL_WELL,
            False,
            ["store_degraded"],
        ),
        (
            [report(ready=False, draining=True, reasons=["draining"])],
            Standing(1, 1, 0, (), (), draining=True),
            False,
            ["draining"],
        ),
    ],
    ids=["none", "one short", "loop", "silent", "no answer", "drain", "one sick", "drain once"],
)
def test_what_is_wrong_is_named_and_decides(
    reports: list[dict[str, object]], standing: Standing, *, ready: bool, reasons: list[str]
) -> None:
    found = whole(reports, standing, OWN)
    assert (found["ready"], found["reasons"]) == (ready, reasons)


def test_a_failed_reload_is_said_and_leaves_it_ready() -> None:
    found = whole([report(), report()], ALL_WELL, Own("3fa4", reload_failed=True, demo=True))
    assert found["ready"] is True
    assert found["reasons"] == ["config_reload_failed"]
    assert found["config"] == {"revision": "3fa4", "last_reload": "failed"}
    assert found["demo"] is True


def test_what_others_add_to_a_report_is_merged_by_its_kind() -> None:
    one = {
        "a": False,
        "n": 2,
        "s": "closed",
        "l": ["x"],
        "d": {"n": 1.5},
        "null": None,
        "ahead_s": 1,
    }
    two = {
        "a": True,
        "n": 3,
        "s": "open",
        "l": ["x", "y"],
        "d": {"n": 2, "m": 1},
        "late": 7,
        "ahead_s": -3,
    }
    assert merged([one, two]) == {
        "a": True,
        "n": 5,
        "s": "closed",
        "l": ["x", "y"],
        "d": {"n": 3.5, "m": 1},
        "null": None,
        "late": 7,
        "ahead_s": -3,
    }
    assert merged([]) == {}
