"""Is every known way to get a limit wrong tried on ours, and every requirement?

Two tables: the public reports about limits and accounting (number, where it was seen), and what
was required of the ledger from the start. Each row names the test that answers it.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

LIFE, LEASES = "contract/ledger/test_lifecycle.py", "contract/ledger/test_leases.py"
REPORTS, COSTS = "contract/ledger/test_reports.py", "unit/limits/test_ledger_costs.py"
REDIS, USAGE = "wire/test_ledger_redis.py", "app/test_chat_usage.py"

SEEN = {
    1: ("BerriAI/litellm #18730", f"{LIFE}::test_fifty_at_once_admit_exactly_ten"),
    2: (
        "BerriAI/litellm #5783",
        f"{REPORTS}::test_twenty_at_once_share_what_a_deployment_may_take",
    ),
    3: ("BerriAI/litellm PR #27001", f"{LIFE}::test_a_refusal_leaves_no_trace"),
    4: ("BerriAI/litellm #39309", f"{LIFE}::test_all_limits_admit_or_none_is_charged"),
    5: (
        "BerriAI/litellm PR #29191",
        f"{LIFE}::test_a_default_is_reserved_and_gives_way_to_a_small_cap",
    ),
    6: (
        "BerriAI/litellm PR #31952",
        "app/test_chat_limits.py::test_a_prompt_of_odd_shape_takes_its_own_room_and_not_all_of_it",
    ),
    7: (
        "BerriAI/litellm #24677",
        f"{LIFE}::test_nothing_carries_over_from_one_window_into_the_next",
    ),
    8: (
        "BerriAI/litellm #13898",
        "app/test_chat_limits.py::test_a_refusal_names_the_limit_its_scope_and_the_numbers",
    ),
    9: (
        "BerriAI/litellm #14457",
        f"{USAGE}::test_who_leaves_after_six_of_a_hundred_pieces_pays_for_six",
    ),
    10: (
        "BerriAI/litellm #34147",
        "app/test_chat_leaving.py::test_the_upstreams_socket_is_closed_at_once",
    ),
    11: (
        "BerriAI/litellm PR #30527",
        f"{USAGE}::test_who_leaves_with_the_whole_answer_has_not_cancelled_it",
    ),
    12: (
        "BerriAI/litellm PR #36459",
        f"{LEASES}::test_a_late_end_never_frees_the_slot_of_another",
    ),
    13: (
        "BerriAI/litellm #29576",
        f"{REPORTS}::test_a_budget_of_one_period_is_there_again_right_after_it",
    ),
    14: (
        "BerriAI/litellm #36926",
        f"{REPORTS}::test_under_load_the_total_is_what_the_rows_add_up_to",
    ),
    15: (
        "BerriAI/litellm #26672",
        "app/test_chat_money.py::test_twenty_calls_of_four_mills_on_a_budget_of_ten_are_two",
    ),
    16: (
        "BerriAI/litellm PR #37734",
        "app/test_chat_money.py::test_a_part_of_a_stream_is_not_free",
    ),
    17: (
        "envoyproxy/ai-gateway #2394",
        "app/test_chat_limits.py"
        "::test_a_request_larger_than_its_limit_never_leaves_and_what_remains_moves_at_once",
    ),
    18: (
        "wso2/api-platform #2932",
        f"{USAGE}::test_what_remains_falls_by_what_was_used_and_not_by_one",
    ),
    19: (
        "maximhq/bifrost #3547",
        "wire/test_ledger_redis_processes.py"
        "::test_processes_racing_one_server_admit_exactly_the_cap",
    ),
    20: ("maximhq/bifrost #4851", f"{COSTS}::test_idle_tenants_cost_the_active_one_nothing"),
    21: ("alisaifee/limits #268", f"{COSTS}::test_ten_thousand_tokens_cost_what_one_token_does"),
    22: (
        "alisaifee/limits PR #112",
        "unit/limits/test_window.py::test_a_larger_charge_waits_longer_than_a_smaller_one",
    ),
    23: (
        "vutran1710/PyrateLimiter #60",
        "wire/test_ledger_processes.py::test_eight_processes_racing_one_file_admit_exactly_the_cap",
    ),
    24: ("cameri/nostream #467", f"{LIFE}::test_requests_at_one_instant_count_one_by_one"),
    25: (
        "andymai/gridfinity-layout-tool PR #3022",
        f"{REPORTS}::test_a_denial_that_lasts_always_names_a_time_to_come",
    ),
    26: (
        "BerriAI/litellm #27823",
        "app/test_chat_limits.py::test_when_all_targets_rest_the_time_to_come_back_is_true",
    ),
    27: (
        "BerriAI/litellm PR #35273",
        f"{REDIS}::test_a_stopped_server_costs_its_callers_one_deadline_and_then_nothing",
    ),
    28: (
        "litellm-rs #836",
        "unit/limits/test_degraded.py::test_four_processes_together_admit_the_cap",
    ),
    29: (
        "BerriAI/litellm #38193",
        "wire/test_ledger_trouble.py::test_more_than_can_ever_be_answered_is_refused_at_once",
    ),
}

REQUIRED = {
    "R1 no window holds more than its cap": (
        "contract/ledger/test_histories.py::test_all_stores_agree_and_never_exceed_a_cap"
    ),
    "R2 the total is the sum of what is live": (
        "unit/limits/test_window.py::test_the_running_total_is_the_sum_of_the_buckets"
    ),
    "R3 a refusal leaves no trace": f"{LIFE}::test_a_refusal_leaves_no_trace",
    "R4 all limits or none": f"{LIFE}::test_all_limits_admit_or_none_is_charged",
    "R5 an end happens once, to its owner": f"{LIFE}::test_a_reservation_ends_once",
    "R5 a late settlement": f"{LEASES}::test_a_late_settlement_corrects_the_estimate_once",
    "R6 the wait is true": f"{REPORTS}::test_the_wait_is_exact_on_a_thousand_random_windows",
    "R6 what never fits": f"{LIFE}::test_a_request_over_the_whole_limit_never_fits",
    "R7 cost": f"{COSTS}::test_a_decision_costs_the_same_however_much_is_live",
    "R8 memory": f"{REPORTS}::test_tenants_that_were_seen_once_are_forgotten",
    "R9 kill -9": ("wire/test_ledger_processes.py::test_what_was_acknowledged_survives_many_kills"),
    "R10 clocks": (f"{LEASES}::test_a_stepped_wall_clock_gives_no_free_quota_and_locks_nobody_out"),
    "R11 no wait beyond the deadline": (
        f"{REDIS}::test_three_seconds_without_a_server_slow_no_request_down"
    ),
    "R12 exactly one end": (
        "contract/ledger/test_charging.py"
        "::test_a_request_cancelled_at_any_await_ends_its_reservation_once"
    ),
}


def test_every_report_has_its_row() -> None:
    assert list(SEEN) == list(range(1, 30))
    assert {name.partition(" ")[0] for name in REQUIRED} == {f"R{n}" for n in range(1, 13)}


@pytest.mark.parametrize("place", [*(test for _, test in SEEN.values()), *REQUIRED.values()])
def test_every_row_names_a_test_that_exists(place: str) -> None:
    file, _, name = place.partition("::")
    text = (TESTS / file).read_text()
    assert f"def {name}(" in text
