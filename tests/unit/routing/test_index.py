"""Is every known way to fail over wrongly tried on ours, and every requirement?

Two tables: the public reports about failover (number, where it was seen), and what was required of
it from the start. Each row names the tests that answer it. `OTHERWISE` holds what is done otherwise
than asked, with the page that says so to users.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

APP, HEALTH = "app/test_chat_reports.py", "app/test_chat_reports_health.py"
PURE, TABLE = "unit/routing/test_reports.py", "unit/routing/test_taxonomy.py"
FAULTS, PUBLIC = "wire/test_faults_reports.py", "wire/test_faults_public.py"
CANARIES = "acceptance/test_upstream_canaries.py"

SEEN = {
    30: (
        "BerriAI/litellm #40404",
        f"{APP}::test_030_a_stream_that_starts_badly_is_answered_by_the_backup",
        f"{FAULTS}::test_an_error_before_the_first_word_is_never_the_clients",
    ),
    31: (
        "mlflow/mlflow #25262",
        f"{APP}::test_031_a_stream_that_is_refused_is_no_200",
        f"{FAULTS}::test_a_stream_that_nobody_opens_is_no_success",
    ),
    32: (
        "maximhq/bifrost #5395",
        f"{APP}::test_032_an_event_without_content_does_not_begin_the_answer",
    ),
    33: (
        "maximhq/bifrost #7034",
        f"{APP}::test_033_an_upstream_that_says_nothing_is_left_at_its_deadline",
        f"{PUBLIC}::test_s06_s07_silence_costs_one_deadline_and_is_not_asked_again",
    ),
    34: (
        "maximhq/bifrost #4788",
        f"{APP}::test_034_what_one_attempt_left_behind_does_not_meet_the_next",
        f"{PURE}::test_no_state_of_one_attempt_is_met_by_the_next",
        f"{FAULTS}::test_what_broke_one_attempt_is_forgotten_by_the_next",
    ),
    35: (
        "maximhq/bifrost #6472",
        f"{HEALTH}::test_035_a_trickle_is_noticed_although_every_answer_is_whole",
        f"{PURE}::test_a_trickle_of_two_tokens_a_second_opens_after_five_streams",
        f"{FAULTS}::test_a_provider_that_only_trickles_is_left_alone",
    ),
    36: (
        "Portkey-AI/gateway #1797",
        f"{APP}::test_036_half_an_answer_never_looks_like_a_whole_one",
        f"{PUBLIC}::test_s08_s09_s10_half_an_answer_is_never_a_whole_one",
    ),
    37: (
        "BerriAI/litellm #26015",
        f"{APP}::test_037_after_a_429_in_the_middle_nothing_goes_on",
        f"{FAULTS}::test_after_an_error_in_the_middle_everything_goes_on",
    ),
    38: (
        "BerriAI/litellm #19985",
        f"{HEALTH}::test_038_attempts_do_not_multiply",
        f"{PURE}::test_calls_never_exceed_the_attempts_of_the_route",
        f"{FAULTS}::test_providers_are_never_asked_more_often_than_configured",
    ),
    39: (
        "BerriAI/litellm PR #22697",
        f"{PURE}::test_a_prompt_too_long_is_known_by_code_or_words_and_not_repeated",
        f"{TABLE}::test_a_prompt_too_long_goes_to_a_larger_declared_window_only",
    ),
    40: (
        "BerriAI/litellm #40405",
        f"{PURE}::test_a_single_dead_target_is_left_alone_for_most_of_a_minute",
        f"{FAULTS}::test_a_dead_only_target_costs_its_clients_nothing",
    ),
    41: (
        "BerriAI/litellm PR #34836",
        f"{PURE}::test_an_open_target_is_left_alone_in_the_same_instant",
    ),
    42: (
        "BerriAI/litellm PR #27610",
        f"{PURE}::test_connection_errors_count_like_other_failures",
        f"{TABLE}::test_spent_credit_rests_five_minutes_whatever_the_status",
    ),
    43: (
        "voidmind-io/voidllm #184",
        f"{PURE}::test_a_429_neither_heals_nor_keeps_the_place_of_the_probe",
        f"{FAULTS}::test_a_probe_that_meets_a_429_locks_nobody_out",
    ),
    44: (
        "ray-project/ray #65068",
        f"{PURE}::test_a_success_from_before_the_outage_does_not_end_it",
        f"{PURE}::test_a_hundred_requests_at_the_reopen_instant_make_one_call",
        f"{HEALTH}::test_late_results_of_an_earlier_time_neither_open_nor_close",
        f"{FAULTS}::test_a_hundred_at_the_end_of_the_pause_make_one_call",
    ),
    45: (
        "ferro-labs/ai-gateway #136",
        f"{HEALTH}::test_045_streams_that_always_break_in_the_middle_open_the_breaker",
        f"{PURE}::test_streams_that_always_break_mid_way_open_the_breaker",
        f"{FAULTS}::test_streams_that_always_break_open_the_breaker",
    ),
    46: (
        "langwatch/langwatch #7027",
        f"{PURE}::test_a_bare_429_goes_to_the_backup_and_one_that_lasts_hours_is_not_asked_on",
        f"{FAULTS}::test_a_429_without_a_word_goes_to_the_backup",
    ),
    47: (
        "Portkey-AI/gateway #1289",
        f"{HEALTH}::test_047_an_open_target_is_not_called",
        f"{HEALTH}::test_047_all_open_is_a_503_with_the_time_of_the_first_return_and_no_call",
    ),
    48: (
        "envoyproxy/ai-gateway #1866",
        f"{TABLE}::test_every_status_has_a_row_that_neither_crashes_nor_loops",
    ),
    49: (
        "BerriAI/litellm #5762",
        f"{CANARIES}::test_no_word_of_an_upstream_reaches_a_client_a_log_a_metric_or_a_record",
    ),
    50: (
        "BerriAI/litellm #19077",
        "app/test_chat_no_fallback.py::test_who_wants_no_fallback_gets_none_in_any_phase",
        f"{PURE}::test_an_opt_out_of_fallbacks_holds_in_every_phase",
    ),
}

REQUIRED = {
    "R11 no wait beyond the total": (
        "app/test_chat_waits.py::test_no_client_waits_longer_than_its_total",
    ),
    "R12 exactly one end": (
        "app/test_chat_billing.py::test_each_row_of_the_table_of_charges",
        "app/test_chat_billing.py::test_a_gateway_that_was_killed_leaves_a_lease_that_ends_at_its_estimate",
    ),
    "R13 attempts are bounded and failed ones are not billed": (
        f"{HEALTH}::test_038_attempts_do_not_multiply",
        "app/test_chat_billing.py::test_no_attempt_but_the_one_that_served_is_ever_billed",
        f"{PUBLIC}::test_s16_the_answer_names_who_gave_it_and_only_that_is_paid",
    ),
    "R14 no byte of an upstream's error": (
        f"{CANARIES}::test_no_word_of_an_upstream_reaches_a_client_a_log_a_metric_or_a_record",
        f"{CANARIES}::test_what_a_client_gets_does_not_depend_on_the_words_of_an_error",
    ),
    "R15 one probe; neutral and late results change nothing": (
        f"{FAULTS}::test_a_hundred_at_the_end_of_the_pause_make_one_call",
        "unit/routing/test_breaker.py::test_no_late_result_moves_the_state_in_any_order_to_depth_seven",
        "unit/routing/test_breaker.py::test_neutral_probe_frees_the_slot_without_a_verdict",
    ),
    "R16 cancels leave nothing behind": (
        "wire/test_cancels.py::test_five_hundred_random_cancels_leave_everything_as_it_was",
        "wire/test_cancels.py::test_ten_thousand_random_cancels_leave_everything_as_it_was",
    ),
    # All sixteen by their numbers: see below.
    "R17 the sixteen public faults": (
        f"{PUBLIC}::test_s04_a_dead_provider_is_asked_five_times_and_then_left_alone",
        f"{PUBLIC}::test_s13_a_refusal_by_policy_is_not_routed_around",
    ),
}

# What is asked for and done otherwise, with the words of docs/failover.md that say so.
OTHERWISE = {
    "41, R15: a breaker that opens in one worker is seen in the others within 200 ms": (
        "have a breaker each: what one has learned, the others find out for themselves."
    ),
}


def test_every_report_has_its_row() -> None:
    assert list(SEEN) == list(range(30, 51))
    assert {name.partition(" ")[0] for name in REQUIRED} == {f"R{n}" for n in range(11, 18)}


PLACES = [
    *(test for _, *tests in SEEN.values() for test in tests),
    *(test for tests in REQUIRED.values() for test in tests),
]


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_every_row_names_a_test_that_exists(place: str) -> None:
    file, _, name = place.partition("::")
    text = (TESTS / file).read_text()
    assert re.search(rf"^(async )?def {re.escape(name)}\(", text, re.MULTILINE)


def test_each_of_the_sixteen_public_faults_has_its_test() -> None:
    names = re.findall(r"^def test_((?:s\d\d_)+)", (TESTS / PUBLIC).read_text(), re.MULTILINE)
    played = {fault for name in names for fault in name.strip("_").split("_")}
    assert played == {f"s{number:02}" for number in range(1, 17)}


def test_what_is_done_otherwise_is_told_to_users() -> None:
    page = " ".join((TESTS.parent / "docs" / "failover.md").read_text().split())
    assert [claim for claim, words in OTHERWISE.items() if words not in page] == []
