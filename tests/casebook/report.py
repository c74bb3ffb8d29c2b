"""What does the runner print, and with which exit status does it end?

One line for each failing case with what was seen, the tests that covered cases, what is known to
fail, and as the last line `N passed, N failed`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.casebook.judge import Verdict


@dataclass
class Report:
    """Collects verdicts. `known` maps ids to reasons; with `strict` they count as failed."""

    known: Mapping[str, str]
    strict: bool = False
    verdicts: list[Verdict] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Everything to print, in order."""
        for verdict in self.verdicts:
            if not verdict.passed:
                mark = "KNOWN" if self._is_known(verdict) else "FAIL"
                reason = f" ({self.known[verdict.case.id]})" if mark == "KNOWN" else ""
                yield f"{mark} {verdict.line}{reason}"
        cited = [verdict for verdict in self.verdicts if verdict.cited]
        for verdict in cited:
            yield f"{verdict.case.id} is covered by {verdict.cited}"
        for verdict in self.unlisted():
            yield f"PASSES {verdict.case.id}: take it off known_failures.txt"
        if self._known_failures():
            yield f"{len(self._known_failures())} known, listed in known_failures.txt"
        passed = sum(verdict.passed for verdict in self.verdicts)
        yield f"{passed} passed, {len(self._counted())} failed"

    def unlisted(self) -> Sequence[Verdict]:
        """Cases on the list that pass."""
        return [v for v in self.verdicts if v.passed and v.case.id in self.known]

    @property
    def status(self) -> int:
        """0 if nothing failed beyond the list and the list says nothing wrong, else 1."""
        return 1 if self._counted() or self.unlisted() or not self.verdicts else 0

    def _is_known(self, verdict: Verdict) -> bool:
        return verdict.case.id in self.known

    def _known_failures(self) -> Sequence[Verdict]:
        if self.strict:
            return []
        return [v for v in self.verdicts if not v.passed and self._is_known(v)]

    def _counted(self) -> Sequence[Verdict]:
        left = self._known_failures()
        return [v for v in self.verdicts if not v.passed and v not in left]
