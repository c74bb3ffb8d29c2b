"""What a breaker must say, worked out from the whole list of what happened to it.

Written from the rules, not from the code: slow, and keeps everything.
"""

from dataclasses import dataclass, field

from tidegate.routing.breaker import BreakerSettings, State


@dataclass
class Given:
    """A permit that is out, as the oracle knows it."""

    period: int
    probe: bool


@dataclass
class Oracle:
    """One breaker. A period lasts from one change of the state to the next."""

    settings: BreakerSettings
    lease_s: float
    now_s: float
    period: int = 0
    is_closed: bool = True
    closed_at_s: float = float("-inf")
    open_until_s: float = float("-inf")
    openings: int = 0
    results: list[tuple[float, bool, bool]] = field(default_factory=list)
    probes: list[tuple[Given, float]] = field(default_factory=list)

    @property
    def state(self) -> State:
        if self.is_closed:
            return State.CLOSED
        return State.OPEN if self.now_s < self.open_until_s else State.HALF_OPEN

    @property
    def share(self) -> float:
        if not self.is_closed:
            return 0.0
        age_s = self.now_s - self.closed_at_s
        return 0.25 if age_s < 5.0 else 0.5 if age_s < 10.0 else 1.0

    def call(self) -> Given | None:
        if self.is_closed:
            return Given(self.period, probe=False)
        if self.state is State.OPEN or any(self.now_s < until for _, until in self.probes):
            return None
        if not self.probes:
            self.period += 1
        given = Given(self.period, probe=True)
        self.probes = [(given, self.now_s + self.lease_s)]
        return given

    def give_back(
        self,
        given: Given,
        *,
        failed: bool,
        slow: bool,
        neutral: bool,
        trip: bool,
        cheap: bool = False,
    ) -> None:
        if self.probes and self.probes[0][0] is given:
            # Its place is free, but the period goes on: an older probe may still decide it.
            self.probes = [(Given(-1, probe=True), float("-inf"))]
        if given.period != self.period or (neutral and not trip):
            return
        if trip:
            self.opens()
        elif not self.is_closed:
            if failed or slow:
                self.opens(cheap=cheap)
            else:
                self.period += 1
                self.is_closed, self.closed_at_s = True, self.now_s
                self.results, self.probes = [], []
        else:
            self.results.append((self.now_s, failed, slow))
            if (failed or slow) and self.is_sick():
                self.opens(cheap=cheap)

    def is_sick(self) -> bool:
        row = [was_bad for _, was_bad, _ in self.results]
        if len(row) >= self.settings.consecutive and all(row[-self.settings.consecutive :]):
            return True
        recent = [r for r in self.results if self.now_s - r[0] < self.settings.window_s]
        enough = len(recent) >= self.settings.min_results or self.now_s - self.closed_at_s < 10.0
        return enough and (
            sum(r[1] for r in recent) >= self.settings.ratio * len(recent)
            or sum(r[2] for r in recent) >= self.settings.slow_ratio * len(recent)
        )

    def opens(self, *, cheap: bool = False) -> None:
        if self.is_closed and self.now_s - self.closed_at_s >= max(self.settings.max_open_s, 10.0):
            self.openings = 0
        pause_s = min(self.settings.open_s * 2**self.openings, self.settings.max_open_s)
        if cheap:
            pause_s = min(pause_s, max(self.settings.open_s, 10.0))
        self.openings += 1
        self.period += 1
        self.is_closed, self.open_until_s = False, self.now_s + pause_s
        self.results, self.probes = [], []
