"""What does the admin listener of several processes say?

Lives here: asking the workers before an answer, and putting together what they say. Does not live
here: the answers' form (admin), how reports become one (health, totals).
"""

import asyncio
from collections.abc import Callable

from tidegate.gateway.metrics import Metrics
from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.health import Own, whole
from tidegate.gateway.workers.numbers import scrape
from tidegate.gateway.workers.survey import Survey
from tidegate.gateway.workers.totals import Totals
from tidegate.gateway.workers.words import About, Told

_COLLECT_S = 15.0
_SUBJECTS: dict[str, About] = {"/readyz": "readiness", "/metrics": "metrics"}


class Overview:
    """The whole, as far as it is known. `report` and `render` say what the last `refresh` heard.

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
        self.own = own

    async def refresh(self, path: str) -> None:
        """Ask the workers for what an answer on `path` is made of."""
        if (about := _SUBJECTS.get(path)) is not None:
            answers = await self._survey.ask(self._runs(), about)
            if about == "readiness":
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

    def render(self) -> tuple[str, bytes]:
        """See admin.Rendering."""
        return scrape(self._totals, self._metrics, self._standing())


__all__ = ["Overview"]
