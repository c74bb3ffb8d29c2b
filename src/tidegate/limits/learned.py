"""How far off were the estimates for this tenant and this model?

Lives here: a factor for each (tenant, model) pair, learned from what providers report after the
call. Does not live here: the estimate itself (estimate), who asks and who tells (gateway.quote).

The factor corrects the class-aware guess towards the vocabulary and the texts that really occur.
It is a moving average, kept within bounds, and lives in one process: no worker waits for another
to guess better. What an estimate misses is charged at the settlement, so a bad factor costs
patience or a bounded over-run, never a wrong bill.
"""

from collections import OrderedDict

from tidegate.limits.estimate import SAFETY

LEAST, MOST = 0.5, 3.0
"""A factor never leaves these bounds: nobody can teach the gateway that prompts are free."""

_WEIGHT = 0.2
_MOST_PAIRS = 4096
_LONGEST_MODEL = 128
# Below this the frame of a message weighs more than its text.
_FEWEST_TOKENS = 32


class LearnedFactors:
    """The factors of one process; at most 4,096 pairs, the longest unused forgotten first."""

    def __init__(self) -> None:
        self._factors: OrderedDict[tuple[str, str], float] = OrderedDict()

    def factor(self, tenant: str, model: str) -> float:
        """What an estimate is to be multiplied by; 1.0 for a pair never seen. O(1)."""
        return self._factors.get((tenant, model), 1.0)

    def learn(self, tenant: str, model: str, *, estimated: int, actual: int) -> None:
        """A prompt that was estimated, before any factor, at `estimated` had `actual` tokens.

        Small prompts and overlong model names teach nothing. O(1).
        """
        if estimated < _FEWEST_TOKENS or actual <= 0 or len(model) > _LONGEST_MODEL:
            return
        pair = (tenant, model)
        # The estimate holds the safety margin; learning it away would leave none.
        seen = _bounded(actual * SAFETY / estimated)
        before = self._factors.pop(pair, 1.0)
        self._factors[pair] = _bounded(before + _WEIGHT * (seen - before))
        if len(self._factors) > _MOST_PAIRS:
            self._factors.popitem(last=False)

    def __len__(self) -> int:
        return len(self._factors)


def _bounded(factor: float) -> float:
    return min(max(factor, LEAST), MOST)


__all__ = ["LEAST", "MOST", "LearnedFactors"]
