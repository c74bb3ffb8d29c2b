"""What does the admin listener of several processes say?

Lives here: asking the workers before an answer, and putting together what they say. Does not live
here: the answers' form (admin), how reports become one (health, totals).
"""

import asyncio
from collections.abc import Callable

from tidegate.gateway.metrics import Metrics
from tidegate.gateway.target_rows import TargetRow, TargetsReport, of_workers
from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.health import Own, whole
from tidegate.gateway.workers.numbers import scrape
from tidegate.gateway.workers.survey import Survey
from tidegate.gateway.workers.totals import Totals
from tidegate.gateway.workers.words import About, Told

_COLLECT_S = 15.0
_SUBJECTS: dict[str, About] = {
    "/readyz": "readiness",
    "/metrics": "metrics",
    "/targets": "targets",
}


class Overview:
    """The whole, as far as it is known. `report`, `render` and `targets_report` say what the last
    `refresh` heard.

    `runs` gives the worker processes that can be asked, with their places.
    """

    def __init__(
        self,
        survey: Survey,
        *,
        metrics: Metrics,
        standing: Callable[[], Standing],
        runs: Callable[[], dict[int, int]],
        own: Own,
    ) -> None:
        self._survey, self._metrics = survey, metrics
        self._standing, self._runs = standing, runs
        self._totals = Totals()
        self._reports: list[dict[str, object]] = []
        self._rows: dict[int, tuple[TargetRow, ...]] = {}
        self.own = own

    async def refresh(self, path: str) -> None:
        """Ask the workers for what an answer on `path` is made of."""
        if (about := _SUBJECTS.get(path)) is not None:
            runs = self._runs()
            answers = await self._survey.ask(runs, about)
            if about == "targets":
                rows = {runs[run]: told.targets for run, told in answers.items()}
                self._rows = {place: each for place, each in rows.items() if each is not None}
            elif about == "readiness":
                found = [told.readiness for told in answers.values()]
                self._reports = [report for report in found if report is not None]

    async def collect(self) -> None:
        """Ask for the numbers now and then, for ever: a worker that dies takes its own along."""
        turn = asyncio.Event()
        while True:
            asyncio.get_running_loop().call_later(_COLLECT_S, turn.set)
            await turn.wait()
            turn.clear()
            await self.refresh("/metrics")

    def heard(self, run: int, told: Told) -> None:
        """A worker told something, asked or not."""
        slot = self._runs().get(run)
        if slot is not None and told.families is not None:
            self._totals.note(run, str(slot), told.families)
        self._survey.heard(run, told)

    def gone(self, run: int) -> None:
        """A worker has ended; what it counted stays."""
        self._totals.retire(run)
        self._survey.gone(run)

    def report(self) -> dict[str, object]:
        """See admin.Reporting."""
        return whole(self._reports, self._standing(), self.own)

    def targets_report(self) -> TargetsReport:
        """See admin.Targets."""
        places = range(1, self._standing().wanted + 1)
        return TargetsReport(
            revision=self.own.revision,
            missing=tuple(place for place in places if place not in self._rows),
            targets=of_workers(self._rows),
        )

    def render(self) -> tuple[str, bytes]:
        """See admin.Rendering."""
        return scrape(self._totals, self._metrics, self._standing())


__all__ = ["Overview"]
