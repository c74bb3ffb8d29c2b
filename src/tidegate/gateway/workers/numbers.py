"""How do numbers travel between processes, and how are they shown?

Lives here: from the metrics of this process to messages, and from the sum of all back to the text
of a scrape. Does not live here: which numbers there are (metrics), what they come to (totals).
"""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from tidegate.gateway.metrics import Metrics, as_text
from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.totals import PARENT, Totals
from tidegate.gateway.workers.words import Family, Sample


def families_of(metrics: Metrics) -> tuple[Family, ...]:
    """The numbers of this process now."""
    return tuple(
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            tuple(
                Sample(sample.name, tuple(sample.labels.items()), float(sample.value))
                for sample in metric.samples
            ),
        )
        for metric in metrics.collect()
    )


def scrape(totals: Totals, own: Metrics, standing: Standing) -> tuple[str, bytes]:
    """Content type and body of /metrics for the whole gateway."""
    totals.note(PARENT, "parent", families_of(own))
    return as_text([*_metrics(totals.families()), _workers(standing)])


def _metrics(families: Iterable[Family]) -> list[Metric]:
    found = []
    for family in families:
        metric = Metric(family.name, family.text, family.kind)
        for sample in family.samples:
            metric.add_sample(sample.name, dict(sample.labels), sample.value)
        found.append(metric)
    return found


def _workers(standing: Standing) -> Metric:
    family = GaugeMetricFamily("tidegate_workers", "Worker processes.", labels=("state",))
    states = {
        "wanted": standing.wanted,
        "accepting": standing.accepting,
        "starting": standing.starting,
        "silent": len(standing.silent),
        "crash_loop": len(standing.looping),
    }
    for state, count in states.items():
        family.add_metric((state,), count)
    return family


__all__ = ["families_of", "scrape"]
