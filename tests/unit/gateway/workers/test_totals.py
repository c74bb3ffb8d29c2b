"""Do the numbers of all workers add up, and does no counter ever go down?"""

from fractions import Fraction
from random import Random

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from tidegate.gateway.metrics import Metrics, Watched
from tidegate.gateway.target_rows import target_rows
from tidegate.gateway.workers.actions import Standing
from tidegate.gateway.workers.numbers import families_of, scrape
from tidegate.gateway.workers.totals import FARTHEST, PARENT, Totals
from tidegate.gateway.workers.words import Family, Sample
from tidegate.routing import Route, Target, Targets

OPEN = structs.replace(
    target_rows([Route("r", (Target("p"),))], Targets(), 0.0)[0], state="open", cooling_s=3.0
)
STANDING = Standing(2, 1, 1, (2,), (1,), draining=False)


def counter(**tenants: float) -> Family:
    samples = (Sample("c_total", (("tenant", t),), n) for t, n in tenants.items())
    return Family("c", "Counted.", "counter", tuple(samples))


def gauge(name: str, value: float, **labels: str) -> Family:
    return Family(name, "Now.", "gauge", (Sample(name, tuple(labels.items()), value),))


def numbers(totals: Totals) -> dict[tuple[str, str], float]:
    return {
        (sample.name, ",".join(f"{n}={v}" for n, v in sample.labels)): sample.value
        for family in totals.families()
        for sample in family.samples
    }


def test_counters_of_the_living_and_the_dead_are_summed() -> None:
    totals = Totals()
    totals.note(1, "1", [counter(a=1, b=2)])
    totals.note(2, "2", [counter(a=10)])
    totals.note(1, "1", [counter(a=3, b=2)])
    assert numbers(totals) == {("c_total", "tenant=a"): 13, ("c_total", "tenant=b"): 2}
    totals.retire(1)
    totals.retire(1)
    assert numbers(totals)["c_total", "tenant=a"] == 13
    totals.note(3, "1", [counter(a=1)])
    assert numbers(totals) == {("c_total", "tenant=a"): 14, ("c_total", "tenant=b"): 2}


def test_gauges_are_summed_or_one_of_them_counts_and_the_dead_have_none() -> None:
    totals = Totals()
    for run, waiting, broken in ((1, 5, 0), (2, 7, 2)):
        families = [
            gauge("tidegate_records_waiting", waiting),
            gauge("tidegate_tool_server_processes", 1, server="s"),
            gauge("tidegate_breaker_state", broken, provider="p"),
            gauge("tidegate_wall_clock_ahead_seconds", -3600.0 * broken),
            gauge("process_resident_memory_bytes", 100 * run),
        ]
        totals.note(run, str(run), families)
    assert numbers(totals) == {
        ("tidegate_records_waiting", ""): 12,
        ("tidegate_tool_server_processes", "server=s"): 2,
        ("tidegate_breaker_state", "provider=p"): 2,
        ("tidegate_wall_clock_ahead_seconds", ""): -7200,
        ("process_resident_memory_bytes", "worker=1"): 100,
        ("process_resident_memory_bytes", "worker=2"): 200,
    }
    totals.retire(2)
    assert numbers(totals) == {
        ("tidegate_records_waiting", ""): 5,
        ("tidegate_tool_server_processes", "server=s"): 1,
        ("tidegate_breaker_state", "provider=p"): 0,
        ("tidegate_wall_clock_ahead_seconds", ""): 0,
        ("process_resident_memory_bytes", "worker=1"): 100,
    }


def test_words_are_those_of_the_parent() -> None:
    def info(revision: str) -> Family:
        return Family("r", "Which.", "info", (Sample("r_info", (("revision", revision),), 1),))

    totals = Totals()
    totals.note(1, "1", [info("old")])
    assert numbers(totals) == {}
    totals.note(PARENT, "parent", [info("new")])
    assert numbers(totals) == {("r_info", "revision=new"): 1}


def test_no_label_has_more_values_than_a_scrape_should_carry() -> None:
    totals = Totals()
    for run in range(3):
        totals.note(run, str(run), [counter(**{f"t{run}_{n}": 1 for n in range(150)})])
        totals.retire(run)
    found = numbers(totals)
    assert len(found) == 201
    assert found["c_total", "tenant=other"] == 250
    assert sum(found.values()) == 450


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.full
def test_no_counter_ever_goes_down_whatever_happens_to_workers(seed: int) -> None:
    dice, totals = Random(seed), Totals()  # noqa: S311 - a test
    alive, runs, before = {}, 0, {}
    for _ in range(300):
        if not alive or dice.random() < 0.1:
            runs += 1
            alive[runs] = Metrics()
        run = dice.choice(list(alive))
        happened = dice.random()
        if happened < 0.6:
            seconds = dice.choice((0.001, 0.2, 400.0))
            tenant = f"t{dice.randrange(4)}"
            alive[run].request_ended(surface="chat", tenant=tenant, outcome="ok", seconds=seconds)
            alive[run].tokens(tenant=tenant, kind="input", amount=3)
        elif happened < 0.9:
            totals.note(run, "1", families_of(alive[run]))
        else:
            totals.note(run, "1", families_of(alive.pop(run)))
            totals.retire(run)
        counted = {
            (sample.name, sample.labels): sample.value
            for family in totals.families()
            if family.kind in ("counter", "histogram")
            for sample in family.samples
        }
        assert {key: value for key, value in before.items() if counted[key] < value} == {}
        before = counted
    assert any(name == "tidegate_request_seconds_bucket" for name, _ in counted)


def test_what_the_dead_counted_is_kept_to_the_last_digit() -> None:
    dice, totals, exact = Random(1), Totals(), Fraction()  # noqa: S311 - a test
    for run in range(2000):
        value = dice.random() * 10.0 ** dice.randrange(-9, 9)
        exact += Fraction(value)
        totals.note(run, "1", [counter(a=value)])
        totals.retire(run)
    assert numbers(totals) == {("c_total", "tenant=a"): float(exact)}


def test_a_scrape_is_valid_and_histograms_keep_their_order() -> None:
    totals = Totals()
    for run in (1, 2):
        metrics = Metrics()
        is_broken = run == 2
        metrics.watched = Watched(
            store_degraded=lambda broken=is_broken: broken, targets=lambda: [OPEN]
        )
        metrics.request_ended(surface="chat", tenant='a"\n\\', outcome="ok", seconds=0.02)
        metrics.revision("worker's")
        totals.note(run, str(run), families_of(metrics))
    own = Metrics()
    own.revision("whole")
    own.reload_failed()
    content_type, body = scrape(totals, own, STANDING)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    families = {f.name: f for f in text_string_to_metric_families(body.decode())}
    samples = {
        (s.name, tuple(sorted(s.labels.values()))): s.value
        for f in families.values()
        for s in f.samples
    }
    assert samples["tidegate_requests_total", ("", 'a"\n\\', "chat", "ok")] == 2
    assert samples["tidegate_store_degraded", ()] == 1
    assert samples["tidegate_breaker_state", ("p",)] == 2
    assert samples["tidegate_target_state", ("", "0", "p")] == 2
    assert samples["tidegate_target_cooling_seconds", ("", "0", "p")] == 3
    assert samples["tidegate_config_revision_info", ("whole",)] == 1
    assert samples["tidegate_config_reload_failures_total", ()] == 1
    assert samples["tidegate_workers", ("accepting",)] == 1
    assert samples["tidegate_workers", ("crash_loop",)] == 1
    buckets = [
        float(s.labels["le"])
        for s in families["tidegate_request_seconds"].samples
        if s.name.endswith("_bucket")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == float("inf")
    lines = body.decode().splitlines()
    helps = [line for line in lines if line.startswith("# HELP ")]
    assert len(helps) == len(set(helps))


def test_every_gauge_of_states_is_known_as_one() -> None:
    metrics = Metrics()
    metrics.watched = Watched(
        store_degraded=lambda: False,
        targets=lambda: [OPEN],
        clock_ahead_s=lambda: 0.0,
    )
    shown = {f.name for f in families_of(metrics) if f.kind == "gauge"}
    states = {
        n
        for n in shown
        if n.startswith("tidegate") and n.endswith(("_degraded", "_state", "_seconds"))
    }
    assert states <= FARTHEST
