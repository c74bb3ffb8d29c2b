"""The numbers tell what the records tell."""

from tests.unit.gateway.test_metrics import sample, scraped
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.tally import tally
from tidegate.policy import Principal
from tidegate.records.entries import Trail


def trail() -> Trail:
    return Trail("mcp", "a" * 32, Principal("vera", "acme", ("viewer",), "9f86d081"), "r1")


def test_every_step_that_has_a_counter_is_counted() -> None:
    made, metrics = trail(), Metrics()
    made.step("identity", "ok")
    made.step("attempt", "rate_limited", provider="primary", status=429)
    made.step("attempt", "ok", provider="backup", status=200)
    made.step("authorize", "deny", rule="mcp.rules[0]", server="backend", tool="admin_reset_key")
    made.step("limits", "deny", limit="tpm", cap=5, requested=9)
    made.step("limits", "settle", input_tokens=12, output_tokens=31)
    made.step("federation", "missing", server="crm")
    made.step("listing", "left_out", server="crm", count=3)
    for stage in ("request", "response", "arguments", "result"):
        made.counts(f"redact_{stage}", "enforce", {"email": 2}, unscanned=3)
    tally(made.steps, "acme", metrics)
    numbers = scraped(metrics)
    expected = {
        sample("attempts_total", provider="primary", result="rate_limited"): 1,
        sample("attempts_total", provider="backup", result="ok"): 1,
        sample("tool_decisions_total", server="backend", decision="deny", rule="mcp.rules[0]"): 1,
        sample("tool_parts_missing_total", server="crm", part="all"): 1,
        sample("tool_parts_missing_total", server="crm", part="names"): 3,
        sample("limit_rejections_total", tenant="acme", limit="tpm"): 1,
        sample("tokens_total", tenant="acme", kind="input"): 12,
        sample("tokens_total", tenant="acme", kind="output"): 31,
        sample("redactions_total", kind="email", direction="request"): 2,
        sample("redactions_total", kind="email", direction="response"): 2,
        sample("redactions_total", kind="email", direction="tool_arguments"): 2,
        sample("redactions_total", kind="email", direction="tool_results"): 2,
        sample("unscanned_total", direction="tool_results"): 3,
    }
    assert {key: numbers.get(key) for key in expected} == expected


def test_steps_without_a_counter_change_nothing() -> None:
    made, metrics = trail(), Metrics()
    before = scraped(metrics)
    for stage, verdict in [("route", "match"), ("limits", "reserved"), ("cut", "error_event")]:
        made.step(stage, verdict)
    tally(made.steps, "acme", metrics)
    assert {k: n for k, n in scraped(metrics).items() if "process" not in k[0]} == {
        k: n for k, n in before.items() if "process" not in k[0]
    }
