"""Which numbers are read only when they are scraped?

Lives here: what is asked for its state then, and the names and labels of what it answers. Does
not live here: what is counted as it happens (metrics).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate.gateway.target_rows import TargetRow

_BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}


class RecordsState(Protocol):
    """What the records tell about themselves."""

    @property
    def written(self) -> int:
        """Entries committed."""

    @property
    def dropped(self) -> int:
        """Ends not recorded."""

    @property
    def waiting(self) -> int:
        """Not yet on disk."""

    @property
    def lost(self) -> int:
        """Found unfinished at the start."""

    @property
    def degraded(self) -> bool:
        """Whether records are not being kept right now."""


class SettlementsState(Protocol):
    """What is known of the ends of reservations."""

    @property
    def pending(self) -> int:
        """Not yet confirmed by the store."""

    @property
    def unconfirmed(self) -> int:
        """Not confirmed in time."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is asked for its state at each scrape; None is left out."""

    records: RecordsState | None = None
    in_flight: Callable[[], int] | None = None
    store_degraded: Callable[[], bool] | None = None
    clock_ahead_s: Callable[[], float] | None = None
    settlements: SettlementsState | None = None
    targets: Callable[[], Iterable[TargetRow]] | None = None
    log_fields_dropped: Callable[[], int] | None = None
    broken_rules: Callable[[], int] | None = None
    pins: Callable[[], Mapping[str, int]] | None = None
    tool_processes: Callable[[], Mapping[str, int]] | None = None


class AtScrape(Collector):
    """Asks what is watched, so that nothing has to be kept up to date between scrapes."""

    def __init__(self, watched: Callable[[], Watched]) -> None:
        self._watched = watched

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would otherwise collect once to learn the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """What is watched now, family after family."""
        watched = self._watched()
        if watched.in_flight is not None:
            yield _gauge("requests_in_flight", "Requests being answered.", watched.in_flight())
        if watched.store_degraded is not None:
            degraded = watched.store_degraded()
            yield _gauge("store_degraded", "1 while the ledger's store fails.", degraded)
        if watched.clock_ahead_s is not None:
            text = "Wall clock minus the time in the books; 0 while they agree."
            yield _gauge("wall_clock_ahead_seconds", text, watched.clock_ahead_s())
        yield from _tools(watched)
        if watched.settlements is not None:
            yield from _settlements(watched.settlements)
        if watched.log_fields_dropped is not None:
            dropped = watched.log_fields_dropped()
            yield _total("log_fields_dropped", "Log fields outside the allow-list.", dropped)
        if watched.records is not None:
            yield from _records(watched.records)
        if watched.targets is not None:
            yield from _targets(tuple(watched.targets()))


def _tools(watched: Watched) -> Iterator[Metric]:
    if watched.broken_rules is not None:
        text = "Files of mcp.rules_dir in whose place the last good rules are in force."
        yield _gauge("tenant_rules_broken", text, watched.broken_rules())
    if watched.pins is not None:
        text = "Tools of a server that are not what was approved."
        yield _by_server("tool_pins_differing", text, watched.pins())
    if watched.tool_processes is not None:
        text = "Processes of a server on stdio that can be asked: 0 if it is down."
        yield _by_server("tool_server_processes", text, watched.tool_processes())


def _by_server(name: str, text: str, counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(f"tidegate_{name}", text, labels=("server",))
    for server, count in counts.items():
        family.add_metric((server,), count)
    return family


def _settlements(settlements: SettlementsState) -> Iterator[Metric]:
    text = "Ends of reservations that the store has yet to confirm."
    yield _gauge("settlements_pending", text, settlements.pending)
    text = "Ends of reservations that the store did not confirm in time."
    yield _total("settlements_unconfirmed", text, settlements.unconfirmed)


def _records(records: RecordsState) -> Iterator[Metric]:
    yield _total("records_written", "Decision records committed.", records.written)
    yield _total("records_dropped", "Decision records not kept.", records.dropped)
    yield _gauge("records_waiting", "Records not yet in their database.", records.waiting)
    yield _gauge("records_degraded", "1 while records are not being kept.", records.degraded)
    yield _gauge("records_lost_found", "Unfinished requests found at the start.", records.lost)
    length = records.written + records.lost
    yield _gauge("audit_chain_length", "Entries in the chain of this process.", length)


def _targets(rows: Sequence[TargetRow]) -> Iterator[Metric]:
    worst: dict[str, int] = {}
    names = ("provider", "model", "credential")
    text = "0 closed, 1 half open, 2 open: the breaker of each target."
    states = GaugeMetricFamily("tidegate_target_state", text, labels=names)
    text = "What is left of a target's rest."
    rests = GaugeMetricFamily("tidegate_target_cooling_seconds", text, labels=names)
    for row in rows:
        state = _BREAKER_STATES.get(row.state, 2)
        worst[row.provider] = max(worst.get(row.provider, 0), state)
        # Both names are the file's; a key that replaces another one is the same series.
        labels = (row.provider, row.model or "", str(row.credential.index if row.credential else 0))
        states.add_metric(labels, state)
        rests.add_metric(labels, row.cooling_s)
    yield states
    yield rests
    text = "0 closed, 1 half open, 2 open: the worst target of the provider."
    family = GaugeMetricFamily("tidegate_breaker_state", text, labels=("provider",))
    for provider, value in worst.items():
        family.add_metric((provider,), value)
    yield family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tidegate_{name}", text, value=value)


def _total(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"tidegate_{name}", text, value=value)


__all__ = ["AtScrape", "RecordsState", "SettlementsState", "Watched"]
