"""Are the numbers right, and is their number bounded?"""

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from tidegate.gateway.metrics import OTHER, Metrics
from tidegate.gateway.target_rows import Credential, TargetRow, target_rows
from tidegate.gateway.watched import Watched
from tidegate.routing import Route, Target, Targets

Sample = tuple[str, tuple[tuple[str, str], ...]]


def scraped(metrics: Metrics) -> dict[Sample, float]:
    content_type, body = metrics.render()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def sample(name: str, **labels: str) -> Sample:
    return f"tidegate_{name}", tuple(sorted(labels.items()))


def test_every_event_counts_under_its_labels() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.request_ended(
            surface="chat", tenant="acme", outcome="ok", seconds=0.2, route="default"
        )
        metrics.refused(code="gateway.unauthenticated")
        metrics.attempt(provider="primary", result="rate_limited")
        metrics.retry(provider="backup", kind="failover")
        metrics.breaker_changed(provider="primary", state="open")
        metrics.cooled(provider="primary", reason="rate_limited")
        metrics.alerted(provider="primary", kind="provider_quota_exhausted")
        metrics.first_byte(provider="primary", seconds=0.3)
        metrics.tokens(tenant="acme", kind="output", amount=21)
        metrics.cost(tenant="acme", micros=74)
        metrics.abandoned(provider="primary", tokens=5, micros=6)
        metrics.limit_rejected(tenant="acme", limit="tpm")
        metrics.redacted(direction="response", found={"email": 2, "ssn": 1})
        metrics.tool_decision(server="backend", decision="deny", rule="rules[0]")
        metrics.tool_server_started(server="files", result="ok")
        metrics.tool_server_ended(server="files", reason="failed")
        metrics.reload_failed()
    metrics.revision("aaa")
    metrics.revision("bbb")
    numbers = scraped(metrics)
    expected = {
        sample("requests_total", surface="chat", tenant="acme", route="default", outcome="ok"): 2,
        sample("request_seconds_count", surface="chat"): 2,
        sample("request_seconds_sum", surface="chat"): 0.4,
        sample("request_seconds_bucket", surface="chat", le="0.1"): 0,
        sample("request_seconds_bucket", surface="chat", le="0.25"): 2,
        sample("refused_total", code="gateway.unauthenticated"): 2,
        sample("attempts_total", provider="primary", result="rate_limited"): 2,
        sample("retries_total", provider="backup", kind="failover"): 2,
        sample("breaker_transitions_total", provider="primary", state="open"): 2,
        sample("coolings_total", provider="primary", reason="rate_limited"): 2,
        sample("provider_alerts_total", provider="primary", kind="provider_quota_exhausted"): 2,
        sample("first_byte_seconds_sum", provider="primary"): 0.6,
        sample("tokens_total", tenant="acme", kind="output"): 42,
        sample("cost_micros_total", tenant="acme"): 148,
        sample("abandoned_tokens_total", provider="primary"): 10,
        sample("abandoned_cost_micros_total", provider="primary"): 12,
        sample("limit_rejections_total", tenant="acme", limit="tpm"): 2,
        sample("redactions_total", kind="email", direction="response"): 4,
        sample("redactions_total", kind="ssn", direction="response"): 2,
        sample("tool_decisions_total", server="backend", decision="deny", rule="rules[0]"): 2,
        sample("tool_server_starts_total", server="files", result="ok"): 2,
        sample("tool_server_ends_total", server="files", reason="failed"): 2,
        sample("config_reload_failures_total"): 2,
        sample("config_revision_info", revision="bbb"): 1,
    }
    assert {key: numbers[key] for key in expected} == expected
    assert sample("config_revision_info", revision="aaa") not in numbers


@dataclass
class Records:
    written: int = 10
    dropped: int = 2
    waiting: int = 3
    lost: int = 1
    degraded: bool = True


@dataclass
class Settlements:
    pending: int = 3
    unconfirmed: int = 2


def row(provider: str, state: str, **known: Any) -> TargetRow:
    (idle,) = target_rows([Route("r", (Target(provider),))], Targets(), 0.0)
    return structs.replace(idle, state=state, **known)


def test_what_is_watched_is_asked_at_each_scrape() -> None:
    metrics, running = Metrics(), [0]
    assert sample("requests_in_flight") not in scraped(metrics)
    metrics.watched = Watched(
        records=Records(),
        in_flight=lambda: running[0],
        store_degraded=lambda: True,
        clock_ahead_s=lambda: -3600.5,
        settlements=Settlements(),
        targets=lambda: [
            row("primary", "closed"),
            row("primary", "half_open", model="large", cooling_s=2.5),
            row("backup", "open", credential=Credential(1, "aaaaaaaa")),
            row("third", "closed"),
            row("odd", "unheard of"),
        ],
        log_fields_dropped=lambda: 4,
        pins=lambda: {"files": 3},
        tool_processes=lambda: {"files": 1, "mail": 0},
    )
    running[0] = 7
    numbers = scraped(metrics)
    expected = {
        sample("requests_in_flight"): 7,
        sample("store_degraded"): 1,
        sample("wall_clock_ahead_seconds"): -3600.5,
        sample("settlements_pending"): 3,
        sample("settlements_unconfirmed_total"): 2,
        sample("log_fields_dropped_total"): 4,
        sample("tool_pins_differing", server="files"): 3,
        sample("tool_server_processes", server="files"): 1,
        sample("tool_server_processes", server="mail"): 0,
        sample("records_written_total"): 10,
        sample("records_dropped_total"): 2,
        sample("records_waiting"): 3,
        sample("records_lost_found"): 1,
        sample("records_degraded"): 1,
        sample("audit_chain_length"): 11,
        sample("breaker_state", provider="primary"): 1,
        sample("breaker_state", provider="backup"): 2,
        sample("breaker_state", provider="third"): 0,
        sample("breaker_state", provider="odd"): 2,
        sample("target_state", provider="primary", model="", credential="0"): 0,
        sample("target_state", provider="primary", model="large", credential="0"): 1,
        sample("target_state", provider="backup", model="", credential="1"): 2,
        sample("target_cooling_seconds", provider="primary", model="", credential="0"): 0,
        sample("target_cooling_seconds", provider="primary", model="large", credential="0"): 2.5,
    }
    assert {key: numbers[key] for key in expected} == expected


@pytest.mark.parametrize("label", ["tenant", "route", "outcome"])
def test_a_label_that_somebody_floods_ends_in_other(label: str) -> None:
    metrics = Metrics()
    base = {"surface": "chat", "tenant": "acme", "route": "r", "outcome": "ok"}
    for number in range(1000):
        metrics.request_ended(seconds=0.1, **{**base, label: f"v{number}"})
    metrics.request_ended(seconds=0.1, **{**base, label: "v0"})
    numbers = scraped(metrics)
    series = [key for key in numbers if key[0] == "tidegate_requests_total"]
    assert len(series) <= 201
    assert numbers[sample("requests_total", **{**base, label: "v0"})] == 2
    assert numbers[sample("requests_total", **{**base, label: OTHER})] == 800


def test_a_label_as_long_as_a_text_is_other() -> None:
    metrics = Metrics()
    metrics.attempt(provider="x" * 129, result="ok")
    assert numbers_of(metrics, "attempts_total") == {(("provider", OTHER), ("result", "ok")): 1}


def numbers_of(metrics: Metrics, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {key[1]: n for key, n in scraped(metrics).items() if key[0] == f"tidegate_{name}"}


def test_two_gateways_in_one_process_do_not_meet_in_a_global_registry() -> None:
    one, other = Metrics(), Metrics()
    one.reload_failed()
    assert scraped(one)[sample("config_reload_failures_total")] == 1
    assert scraped(other)[sample("config_reload_failures_total")] == 0


def test_a_scrape_tells_of_the_process_and_is_not_doubled_by_creation_times() -> None:
    names = {name for name, _labels in scraped(Metrics())}
    assert "process_resident_memory_bytes" in names
    assert not [name for name in names if name.endswith("_created")]
