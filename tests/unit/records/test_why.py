"""Does the one sentence name what decided?"""

import pytest

from tidegate import errors
from tidegate.policy import Principal
from tidegate.records import Trail
from tidegate.records.why import why
from tidegate.routing.outcome import Outcome

ACME = Principal("acme", "acme", ("tenant",), "9f86d081")
# An attempt: what came of it, who was asked, the status of the answer.
DOWN, SPARE_OK = ("server_error", "first", 503), ("ok", "spare", 200)


def told(outcome: str, *attempts: tuple[str, str, int], **step: object) -> str:
    """The sentence for a trail of these attempts, and of `step` if there is one."""
    trail = Trail.begin("chat", "f" * 32, ACME, "3fa41c22d0aa")
    for verdict, provider, status in attempts:
        trail.step("attempt", verdict, provider=provider, status=status)
    if step:
        names = {name: str(step.pop(name, "")) for name in ("stage", "verdict", "rule")}
        trail.step(names["stage"], names["verdict"], names["rule"], **step)
    trail.finish(outcome, 200)
    return why(trail.snapshot().body(b"k"))


def test_what_went_as_it_should_needs_no_sentence() -> None:
    assert told("ok") == ""
    assert told("ok", SPARE_OK) == ""
    assert told("a word of a later release") == ""
    assert why({}) == ""


def test_an_answer_of_the_next_target_says_what_the_first_one_did() -> None:
    assert told("ok", DOWN, SPARE_OK) == "spare answered after first server error (HTTP 503)."
    timeout = ("timeout", "first", 0)
    assert told("ok", timeout, DOWN, SPARE_OK) == (
        "spare answered after first timeout, first server error (HTTP 503)."
    )
    assert told("ok", SPARE_OK, ("cancelled", "first", 0)) == ""


def test_a_limit_is_named_with_its_numbers() -> None:
    deny: dict[str, object] = {"stage": "limits", "verdict": "deny", "limit": "tpm"}
    numbers = {"cap": 1000, "requested": 975}
    assert told("gateway.rate_limited", **deny, **numbers) == (
        "Limit tpm was full: 975 more asked for."
    )
    assert told("gateway.rate_limited", **deny, **numbers, used=43, retry_after_s=59.75) == (
        "Limit tpm was full: 43 of 1000 used, 975 more asked for."
        " There is room again after 59.75 s."
    )
    assert told("gateway.request_exceeds_limit", **deny, **numbers) == (
        "It asks for 975 of limit tpm, which never allows more than 1000: waiting does not help."
    )
    assert told("gateway.rate_limited", **deny, **numbers, scope="tenant").startswith(
        "Limit tpm (per tenant) was full: "
    )
    reserved: dict[str, object] = {"stage": "limits", "verdict": "reserved"}
    assert told("gateway.rate_limited", **reserved) == "A limit was full."
    assert "than a limit ever allows" in told("gateway.request_exceeds_limit", **reserved)


def test_a_block_names_its_detector_and_its_side() -> None:
    block: dict[str, object] = {"stage": "redaction", "verdict": "block", "detector": "email"}
    told_of = "Detector email blocks what it found in the"
    assert told("gateway.content_blocked", **block) == f"{told_of} request."
    assert told("gateway.content_blocked", SPARE_OK, **block) == f"{told_of} answer."
    assert told("gateway.content_blocked") == "A detector blocks what it found in the request."
    arguments = {**block, "stage": "redact_arguments"}
    assert told("gateway.content_blocked", **arguments) == f"{told_of} arguments."
    result = {**block, "stage": "redact_result"}
    assert told("gateway.content_blocked", **result).startswith(f"{told_of} result, after")


def test_an_answer_that_could_not_be_checked_names_the_classifier_if_one_was_asked() -> None:
    step: dict[str, object] = {
        "stage": "classifier",
        "verdict": "hold",
        "reason": "late",
        "mode": "response",
    }
    assert told("gateway.redaction_failed", **step) == (
        "The classifier gave no usable answer (late) for the response,"
        " and what it has not read is not passed on."
    )
    assert told("gateway.redaction_failed") == (
        "Redaction failed, and what it could not check was not passed on."
    )


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (
            "gateway.all_providers_failed",
            "No target could serve it: first server error (HTTP 503).",
        ),
        (
            "gateway.upstream_rejected_request",
            "first (HTTP 503) refused the request as invalid, and another would do the same.",
        ),
        (
            "gateway.upstream_credential",
            "first (HTTP 503) refused the gateway's own credential.",
        ),
        (
            "gateway.upstream_interrupted",
            "first (HTTP 503) broke off after the answer had begun to leave.",
        ),
    ],
)
def test_a_failure_names_who_failed(outcome: str, sentence: str) -> None:
    assert told(outcome, DOWN) == sentence
    assert told(outcome)
    assert "first" not in told(outcome)


def test_a_denial_names_its_rule_and_what_was_asked_for() -> None:
    deny: dict[str, object] = {"stage": "authorize", "verdict": "deny", "method": "tools/call"}
    assert told("denied", **deny, rule="mcp.rules[0]", tool="admin_reset") == (
        "Rule mcp.rules[0] denies tool admin_reset."
    )
    assert told("no_rule", **deny, rule="default", prompt="greet") == (
        "No rule allows prompt greet, and what nothing allows is denied."
    )
    assert told("denied", **deny, rule="mcp.rules[0]") == "Rule mcp.rules[0] denies tools/call."
    assert told("arguments", **deny, rule="mcp.rules[2]", tool="refund") == (
        "Rule mcp.rules[2] denies tool refund with these arguments."
    )
    assert told("arguments", **deny, rule="default", tool="refund") == (
        "No rule allows tool refund with these arguments."
    )
    assert told("no_rule") == "No rule allows it, and what nothing allows is denied."
    offer: dict[str, object] = {"stage": "offer", "verdict": "deny", "tool": "wipe"}
    for steps, named in ((offer, "tool wipe"), ({}, "a tool of that name")):
        assert told("not_offered", **steps) == (
            f"The MCP server does not list {named}, which is answered like one that is denied."
        )


def test_a_tool_that_is_not_what_was_approved_is_named_with_the_way_to_look_at_it() -> None:
    pin: dict[str, object] = {"stage": "pin", "verdict": "deny", "server": "files", "tool": "read"}
    look = "tidegate mcp pins approve --show files/read"
    assert told("pin_changed", **pin) == (
        f"The definition of files/read is not the one that was approved: {look}"
    )
    assert told("pin_new", **pin) == (
        f"The definition of files/read came after the first list and was not approved: {look}"
    )
    assert told("pin_flagged", **pin).endswith(look)
    for word in ("pin_changed", "pin_new", "pin_flagged", "pin_unpinned"):
        assert told(word).endswith(".")
    failed = {**pin, "reason": "pin_reset"}
    assert told("gateway.upstream_failed", **failed) == (
        "The MCP server's list of tools, which is compared with its pins, failed (reset)."
    )


def test_a_tool_server_that_failed_says_how() -> None:
    failed: dict[str, object] = {"stage": "upstream", "verdict": "failed", "reason": "timeout"}
    assert told("gateway.upstream_failed", **failed) == (
        "The MCP server gave no usable answer (timeout)."
    )
    assert told("gateway.upstream_failed") == "The MCP server gave no usable answer."


def test_every_code_of_a_client_has_a_sentence() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type):
            assert told(kind.code).endswith("."), name
    assert told("gateway.invalid_request") == errors.InvalidRequest.public_message
    words = [
        "cancelled",
        "unknown_method",
        "invalid_params",
        "invalid_cursor",
        "unknown_task",
        "odd_name",
    ]
    assert all(told(word).endswith(".") for word in [*words, "nothing_allowed"])


CODES = (
    "gateway.all_providers_failed",
    "gateway.upstream_rejected_request",
    "gateway.upstream_credential",
    "gateway.upstream_interrupted",
    "context_length_exceeded",
    "content_filter",
)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_class_of_failure_has_a_sentence_that_names_the_target(
    code: str, outcome: Outcome
) -> None:
    sentence = told(code, (outcome.value, "first", 0))
    assert sentence.startswith(("first ", "No target could serve it: first "))
    assert sentence.endswith(".")
    assert "_" not in sentence
    assert "?" not in sentence


def attempted(*attempts: tuple[str, dict[str, object]], outcome: str = "ok") -> str:
    trail = Trail.begin("chat", "f" * 32, ACME, "3fa41c22d0aa")
    for verdict, values in attempts:
        trail.step("attempt", verdict, **values)  # type: ignore[arg-type]
    trail.finish(outcome, 200)
    return why(trail.snapshot().body(b"k"))


def test_the_time_of_an_attempt_is_told_with_its_status() -> None:
    ok: tuple[str, dict[str, object]] = ("ok", {"provider": "spare", "status": 200})
    fast = ("server_error", {"provider": "first", "status": 503, "took_ms": 12.4})
    slow = ("timeout", {"provider": "first", "status": 0, "took_ms": 10_004.2})
    assert attempted(fast, slow, ok) == (
        "spare answered after first server error (HTTP 503, 12 ms), first timeout (10.0 s)."
    )


def test_a_target_that_was_passed_over_says_why_and_for_how_long() -> None:
    is_open = ("open", {"provider": "first", "reason": "consecutive", "wait_s": 3.2})
    rests = ("cooling", {"provider": "spare", "wait_s": 8.0})
    assert attempted(is_open, rests, outcome="gateway.all_providers_failed") == (
        "No target could serve it: first skipped (its breaker is open for 3.2 s more),"
        " spare skipped (it rests for 8.0 s more)."
    )
    assert attempted(("open", {"provider": "first"}), ("ok", {"provider": "spare"})) == (
        "spare answered after first skipped (its breaker is open)."
    )


def test_targets_of_one_provider_are_told_apart() -> None:
    refused = ("rate_limited", {"provider": "p", "status": 429})
    other = ("ok", {"provider": "p", "status": 200, "credential": 1, "model": "gpt-large"})
    assert attempted(refused, other) == ("p/gpt-large #1 answered after p rate limited (HTTP 429).")


def test_a_wish_for_no_other_target_is_told() -> None:
    trail = Trail.begin("chat", "f" * 32, ACME, "3fa41c22d0aa")
    trail.step("route", "match", rule="default", fallback=False)
    trail.step("attempt", "server_error", provider="first", status=500)
    trail.finish("gateway.all_providers_failed", 502)
    assert why(trail.snapshot().body(b"k")) == (
        "No target could serve it: first server error (HTTP 500);"
        " the client wanted no other target asked."
    )
