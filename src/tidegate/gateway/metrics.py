"""Which numbers does the gateway count for Prometheus?

Lives here: the names, their labels and the bound on label values. Every method is one event,
named by what happened. Does not live here: when something happens (the path functions), what is
read at the scrape (watched), the listener (admin). Never a label: keys, principals, request ids,
model names as clients send them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from tidegate.gateway.labeled import Labeled
from tidegate.gateway.watched import AtScrape, Watched

OTHER = "other"
_MOST_VALUES = 200
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The numbers of one process, in a registry of its own. For one event loop."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self.watched = Watched()
        self._make_counters()
        self._make_tool_counters()
        self._make_histograms()
        self._revision = Info(
            "tidegate_config_revision", "The configuration in force.", registry=self._registry
        )
        self._registry.register(AtScrape(lambda: self.watched))
        ProcessCollector(registry=self._registry)

    def request_ended(
        self, *, surface: str, tenant: str, outcome: str, seconds: float, route: str = ""
    ) -> None:
        """One authenticated request is over; `outcome` is "ok", "cancelled" or a code."""
        labels = (
            surface,
            self._bounded("tenant", tenant),
            self._bounded("route", route),
            self._bounded("outcome", outcome),
        )
        self._requests.labels(*labels).inc()
        self._request_seconds.labels(surface).observe(seconds)

    def refused(self, *, code: str) -> None:
        """One request was refused before its caller was known."""
        self._refused.labels(self._bounded("outcome", code)).inc()

    def attempt(self, *, provider: str, result: str) -> None:
        """One target was tried or skipped."""
        labels = (self._bounded("provider", provider), self._bounded("outcome", result))
        self._attempts.labels(*labels).inc()

    def retry(self, *, provider: str, kind: str) -> None:
        """A request asks a further target, or the same again: `kind` is failover, same_target."""
        self._retries.labels(self._bounded("provider", provider), kind).inc()

    def breaker_changed(self, *, provider: str, state: str) -> None:
        """The breaker of a target is in this state from now on."""
        self._transitions.labels(self._bounded("provider", provider), state).inc()

    def cooled(self, *, provider: str, reason: str) -> None:
        """A target begins to rest; `reason` is an outcome."""
        labels = (self._bounded("provider", provider), self._bounded("outcome", reason))
        self._coolings.labels(*labels).inc()

    def alerted(self, *, provider: str, kind: str) -> None:
        """A target needs its operator; `kind` names the log line."""
        self._alerts.labels(self._bounded("provider", provider), kind).inc()

    def first_byte(self, *, provider: str, seconds: float) -> None:
        """The first content of an answer left, so long after its provider had been asked."""
        self._first_byte.labels(self._bounded("provider", provider)).observe(seconds)

    def tokens(self, *, tenant: str, kind: str, amount: int) -> None:
        """So many tokens of `kind` (input, output) were settled."""
        self._tokens.labels(self._bounded("tenant", tenant), kind).inc(amount)

    def cost(self, *, tenant: str, micros: int) -> None:
        """So much money was settled, by the prices of the file."""
        if micros:
            self._cost.labels(self._bounded("tenant", tenant)).inc(micros)

    def abandoned(self, *, provider: str, tokens: int, micros: int) -> None:
        """An attempt that no client pays for may have taken so much of the operator's account."""
        if tokens:
            self._abandoned_tokens.labels(self._bounded("provider", provider)).inc(tokens)
        if micros:
            self._abandoned_cost.labels(self._bounded("provider", provider)).inc(micros)

    def limit_rejected(self, *, tenant: str, limit: str) -> None:
        """A limit refused a request."""
        labels = (self._bounded("tenant", tenant), self._bounded("limit", limit))
        self._limit_rejections.labels(*labels).inc()

    def redacted(self, *, direction: str, found: Mapping[str, int]) -> None:
        """Detectors matched in one text; `direction` is request, response or tool_results."""
        for kind, count in found.items():
            self._redactions.labels(self._bounded("detector", kind), direction).inc(count)

    def unscanned(self, *, direction: str, amount: int) -> None:
        """So many texts passed although nobody read them, or although something was found."""
        unscanned = self._unscanned.labels(direction)
        if amount:
            unscanned.inc(amount)

    def classified(self, *, result: str) -> None:
        """A classifier was asked: `result` is ok, late, failed, or skipped (it was left alone)."""
        self._classified.labels(result).inc()

    def tool_decision(self, *, server: str, decision: str, rule: str) -> None:
        """One MCP message was allowed or denied."""
        labels = (self._bounded("server", server), decision, self._bounded("rule", rule))
        self._tool_decisions.labels(*labels).inc()

    def tool_pin(self, *, server: str, state: str) -> None:
        """A tool came into a state: pinned, changed, new, flagged, gone; or a list unchecked."""
        self._tool_pins.labels(self._bounded("server", server), state).inc()

    def pin_decision(self, *, server: str, decision: str) -> None:
        """A call of a tool that is not what its pin says: warn or deny."""
        self._pin_decisions.labels(self._bounded("server", server), decision).inc()

    def tool_part_missing(self, *, server: str, part: str, amount: int = 1) -> None:
        """What a server has to do with an answer is missing: `part` is all, or so many names."""
        self._tool_parts_missing.labels(self._bounded("server", server), part).inc(amount)

    def tool_server_started(self, *, server: str, result: str) -> None:
        """The process of a server on stdio was to begin: `result` is ok or failed."""
        self._tool_server_starts.labels(self._bounded("server", server), result).inc()

    def tool_server_ended(self, *, server: str, reason: str) -> None:
        """One has ended: closed, exited, failed, killed or hung (servers.child.EndReason)."""
        self._tool_server_ends.labels(self._bounded("server", server), reason).inc()

    def reload_failed(self) -> None:
        """A new configuration was refused."""
        self._reload_failures.inc()

    def revision(self, revision: str) -> None:
        """This configuration is in force now."""
        self._revision.info({"revision": revision})

    def render(self) -> tuple[str, bytes]:
        """Content type and body of one scrape, in the text format 0.0.4."""
        return as_text(self.collect())

    def collect(self) -> Iterator[Metric]:
        """The families of one scrape."""
        return _WithoutCreated(self._registry).collect()

    def _make_counters(self) -> None:
        counter = self._counter
        self._requests = counter(
            "requests", "Authenticated requests.", "surface", "tenant", "route", "outcome"
        )
        self._refused = counter("refused", "Requests refused before identity.", "code")
        self._attempts = counter("attempts", "Targets tried or skipped.", "provider", "result")
        self._retries = counter(
            "retries", "Further attempts at one request, by whom they asked.", "provider", "kind"
        )
        self._transitions = counter(
            "breaker_transitions", "Changes of a breaker's state.", "provider", "state"
        )
        self._coolings = counter("coolings", "Rests begun.", "provider", "reason")
        self._alerts = counter(
            "provider_alerts", "Refusals that only an operator can mend.", "provider", "kind"
        )
        self._tokens = counter("tokens", "Tokens settled.", "tenant", "kind")
        self._cost = counter("cost_micros", "Money settled, in millionths.", "tenant")
        self._abandoned_tokens = counter(
            "abandoned_tokens", "Tokens of attempts that nobody is charged for.", "provider"
        )
        self._abandoned_cost = counter(
            "abandoned_cost_micros", "Their price, in millionths.", "provider"
        )
        self._limit_rejections = counter(
            "limit_rejections", "Requests over a limit.", "tenant", "limit"
        )
        self._redactions = counter("redactions", "Detector matches.", "kind", "direction")
        self._unscanned = counter("unscanned", "Texts that passed unread.", "direction")
        self._classified = counter("classifier_calls", "Calls of a classifier.", "result")
        self._reload_failures = Counter(
            "tidegate_config_reload_failures", "Configurations refused.", registry=self._registry
        )

    def _make_tool_counters(self) -> None:
        counter = self._counter
        self._tool_decisions = counter(
            "tool_decisions", "MCP messages decided.", "server", "decision", "rule"
        )
        self._tool_pins = counter(
            "tool_pins", "Tools that came into a state, lists unchecked.", "server", "state"
        )
        self._pin_decisions = counter(
            "tool_pin_decisions",
            "Calls of tools that are not what was approved.",
            "server",
            "decision",
        )
        self._tool_parts_missing = counter(
            "tool_parts_missing", "What answers lack of a server, or its names.", "server", "part"
        )
        self._tool_server_starts = counter(
            "tool_server_starts", "Starts of servers on stdio.", "server", "result"
        )
        self._tool_server_ends = counter(
            "tool_server_ends", "Ends of servers on stdio.", "server", "reason"
        )

    def _make_histograms(self) -> None:
        self._request_seconds = self._histogram(
            "request_seconds", "Duration of authenticated requests.", "surface"
        )
        self._first_byte = self._histogram(
            "first_byte_seconds",
            "From asking the provider that answered to its first content leaving.",
            "provider",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Labeled[Counter]:
        return Labeled(Counter(f"tidegate_{name}", text, labels, registry=self._registry))

    def _histogram(self, name: str, text: str, label: str) -> Labeled[Histogram]:
        full, where = f"tidegate_{name}", self._registry
        return Labeled(Histogram(full, text, (label,), buckets=_SECONDS, registry=where))

    def _bounded(self, label: str, value: str) -> str:
        """`value`, or "other" once this label has as many values as a scrape should carry."""
        known = self._names[label]
        if value in known:
            return value
        if len(known) >= _MOST_VALUES or len(value) > 128:
            return OTHER
        known.add(value)
        return value


def as_text(families: Iterable[Metric]) -> tuple[str, bytes]:
    """Content type and body, in the text format 0.0.4."""
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_Collected(families))


class _Collected(Collector):
    """What was collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _WithoutCreated(Collector):
    """A registry without the `_created` series, which double the size of a scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric


__all__ = ["OTHER", "Metrics", "as_text"]
