"""In which order are cases played, so that they disturb neither each other nor the clock?

First the gateway cases, alone, because they measure time; then the stdio conversations and the
covering tests, two at a time, since they mostly wait. Does not live here: how one is played.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.casebook import configs, cover, stdio
from tests.casebook.cases import Case
from tests.casebook.drivers import PLAYS
from tests.casebook.judge import Verdict, judge
from tests.casebook.lane import Lane
from tests.casebook.seen import Seen

AT_ONCE = 2
Seens = dict[str, Seen | BaseException]


def run(
    cases: Sequence[Case],
    *,
    profile: str = "brief",
    tests: Mapping[str, Callable[[], None]] | None = None,
) -> list[Verdict]:
    """The verdicts, in the order of the cases."""
    covers = cover.covering() if tests is None else tests
    seen: Seens = {}
    asyncio.run(_gateway_cases(cases, profile, seen))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lock = threading.Lock()
        jobs = [pool.submit(_finish, case, profile, covers, seen, lock) for case in cases]
        return [job.result() for job in jobs]


async def _gateway_cases(cases: Sequence[Case], profile: str, seen: Seens) -> None:
    lanes: dict[str, Lane] = {}
    for case in cases:
        if case.kind not in PLAYS:
            continue
        try:
            wanted = configs.wanted(case.config, profile)
        except ValueError as error:
            seen[case.place] = error
            continue
        lane = lanes.setdefault(wanted.key, Lane(wanted, profile))
        lane.add(case, PLAYS[case.kind])
    for lane in lanes.values():
        await lane.run(lambda case, found: seen.setdefault(case.place, found))


def _finish(
    case: Case,
    profile: str,
    covers: Mapping[str, Callable[[], None]],
    seen: Seens,
    lock: threading.Lock,
) -> Verdict:
    found = seen.get(case.place)
    if case.kind == "stdio":
        try:
            found = stdio.run(case, profile=profile)
        except (ValueError, RuntimeError, OSError) as error:
            found = error
    test = covers.get(case.test_name)
    name = cover.citation(test) if test is not None else ""
    return judge(case, found, test, name)
