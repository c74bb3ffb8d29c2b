"""Which deadline is in force, and whose time is passing?

Lives here: the clocks of one answer, and what they measure on the way: when the first token came
and how fast the rest did. Does not live here: the deadline of an attempt (routing.failover), the
timer (transport.inbox), what follows from an answer that was slow (routing.breaker).
"""

from tidegate.clock import Clock
from tidegate.routing.plan import Deadlines

FEWEST_TOKENS = 20
"""A stream of fewer says nothing about its pace: one pause would be most of it."""

_EXCUSED_SHARE = 0.05


class Clocks:
    """The deadline in force: that of the attempt until the first token, then idle and total.

    Time in which the client did not take what it was sent, or in which we worked on it, does not
    count against the upstream. `began_s` is when the attempt began, `started_s` the request, and
    `due_s` the end of the attempt; all readings of `clock`.
    """

    __slots__ = (
        "_began_s",
        "_clock",
        "_first_held_s",
        "_first_s",
        "_held_s",
        "_idle_s",
        "_last_held_s",
        "_last_s",
        "_longest_s",
        "_started_s",
        "_stopped_s",
        "_stream",
        "_tokens",
        "_total_due_s",
        "due_s",
    )

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        *,
        stream: bool,
        started_s: float,
        began_s: float,
        due_s: float,
    ) -> None:
        self._clock = clock
        self._idle_s = deadlines.idle_s
        self._started_s = started_s
        self._total_due_s = started_s + (deadlines.stream_total_s if stream else deadlines.total_s)
        self._stream = stream
        self._began_s = began_s
        self._tokens = 0
        self._stopped_s = 0.0
        self._held_s = self._first_held_s = self._last_held_s = self._longest_s = 0.0
        self._first_s: float | None = None
        self._last_s = 0.0
        self.due_s = due_s

    @property
    def left_s(self) -> float:
        """Seconds until the request's time is over, whoever takes it."""
        return max(0.0, max(self._total_due_s, self.due_s) - self._clock.monotonic_s())

    def saw(self, tokens: int) -> None:
        """Only a token moves the deadline: comments and empty deltas do not."""
        if tokens <= self._tokens:
            return
        self._tokens = tokens
        now_s = self._last_s = self._clock.monotonic_s()
        self._last_held_s = self._held_s
        if self._first_s is None:
            self._first_s, self._first_held_s = now_s, self._held_s
        if self._stream:
            self.due_s = min(now_s + self._idle_s, self._total_due_s)

    def stopped(self) -> "Clocks":
        """A block in which we wait for the client, or work ourselves."""
        return self

    def __enter__(self) -> None:
        self._stopped_s = self._clock.monotonic_s()

    def __exit__(self, *exc: object) -> None:
        waited_s = self._clock.monotonic_s() - self._stopped_s
        self._held_s += waited_s
        self._longest_s = max(self._longest_s, waited_s)
        self.due_s = min(self.due_s + waited_s, max(self._total_due_s, self.due_s))

    @property
    def was_held_up(self) -> bool:
        """The deadline in force is the end of the request, and the upstream did not have it all.

        When that ends an answer, it is not the upstream's fault: a client that reads nothing until
        shortly before could otherwise take a target away from everybody.
        """
        lasted_s = self._clock.monotonic_s() - self._started_s
        return self.due_s >= self._total_due_s and self._held_s > _EXCUSED_SHARE * lasted_s

    @property
    def left_waiting(self) -> bool:
        """Whether the upstream once had to wait as long for us as would end it for a silence.

        One that then gave up its connection did what we would do.
        """
        return self._longest_s >= self._idle_s

    @property
    def first_token_s(self) -> float | None:
        """Seconds from the attempt's beginning to its first token; None while there is none.

        The first token of a plain answer is the whole answer.
        """
        if self._first_s is None:
            return None
        return max(0.0, self._first_s - self._first_held_s - self._began_s)

    def is_slower(self, tokens: int, than_per_s: float) -> bool:
        """Whether a stream of `tokens` came at less than that pace, from its first to its last.

        Never for fewer than FEWEST_TOKENS, a plain answer, or a pace of 0.
        """
        if not than_per_s or not self._stream or tokens < FEWEST_TOKENS or self._first_s is None:
            return False
        took_s = self._last_s - self._last_held_s - (self._first_s - self._first_held_s)
        return tokens < than_per_s * took_s


__all__ = ["FEWEST_TOKENS", "Clocks"]
