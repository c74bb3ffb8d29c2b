"""Which cases are played a second time, and who hears of it?

Cases measure time and start processes on a machine that others use, too: the few that fail are
played once more, on gateways of their own, and the report names them. More than `MOST` are no
accident; they stay failed.
"""

from collections.abc import Callable, Container, Sequence

from tests.casebook.cases import Case
from tests.casebook.judge import Verdict

MOST = 3

Play = Callable[[Sequence[Case]], list[Verdict]]


def tried_again(
    verdicts: Sequence[Verdict], known: Container[str], play: Play
) -> tuple[list[Verdict], list[str]]:
    """The verdicts that count, in their order, and a line for each case that was played again."""
    failed = [v for v in verdicts if not v.passed and v.case.id not in known]
    if not 0 < len(failed) <= MOST:
        return list(verdicts), []
    second = {v.case.place: v for v in play([v.case for v in failed])}
    return (
        [second.get(v.case.place, v) for v in verdicts],
        [f"SECOND TRY {v.line}" for v in failed],
    )
