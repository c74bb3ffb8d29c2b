"""Is everything that was required of the MCP gateway tried, and where?

One table: what was required (G1 to G22), in the parts it has, and the test that shows each part;
and what is a matter of time on a clock, which no test may judge, with the bench that measures it.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

RULES, RESOURCES = "unit/mcp/test_authorize.py", "unit/mcp/test_authorize_resources.py"
LAWS, PATHS, PURE = "app/test_tool_traffic_laws.py", "app/test_tool_traffic.py", "unit/mcp"
BATCHES, ANSWERS = "app/test_tool_traffic_batches.py", "app/test_tool_traffic_answers.py"
HEADERS, NOTHING = "app/test_tool_traffic_headers.py", "app/test_tool_nothing_allowed.py"
SESSIONS = "app/test_tool_traffic_sessions.py"
STREAMS, TOKENS = "app/test_tool_traffic_streams.py", "app/test_identity_tokens.py"
PINS = "app/test_tool_pins.py"
CURSORS = "app/test_tool_cursors"
OFFERED = "app/test_tool_offered"
AMONG = "app/test_tool_federation"
STDIO, CHILDREN = "unit/mcp/test_stdio_upstream.py", "wire/test_tool_children"
LISTENING, BOUNDS = "app/test_tool_streams.py", "app/test_tool_streams_bounds.py"
RESUMED = "app/test_tool_streams_resumed.py"
FOLDERS, JWT = "unit/config/test_rules_dir.py", "unit/identity/test_jwt.py"

REQUIRED = {
    "G1 lists unfiltered are the server's bytes": (
        f"{ANSWERS}::test_without_hiding_a_list_is_the_bytes_of_the_server"
    ),
    "G1 unknown fields and numbers": (f"{STREAMS}::test_unknown_fields_and_exact_numbers_survive"),
    "G2 one strict parse": f"{PATHS}::test_what_is_not_one_unambiguous_message_is_refused",
    "G2 no way to write a body": f"{LAWS}::test_no_way_to_write_a_body_runs_what_is_denied",
    "G2 numbers as written": f"{PATHS}::test_numbers_reach_the_server_as_they_were_written",
    "G3 the era is the body's": (
        f"{PURE}/test_eras.py::test_no_version_header_talks_a_modern_body_out_of_the_rules"
    ),
    "G3 headers agree with the body": (
        f"{PURE}/test_eras.py"
        "::test_method_and_name_headers_agree_with_the_body_or_the_request_is_refused"
    ),
    "G3 versions": f"{HEADERS}::test_an_unknown_version_is_told_what_is_supported",
    "G3 headers of parameters": (
        "app/test_tool_param_headers.py"
        "::test_whatever_a_client_sends_a_server_reads_in_a_header_what_it_reads_in_the_body"
    ),
    "G3 headers of our making": (
        f"{HEADERS}::test_a_modern_call_reaches_the_server_with_headers_of_our_making"
    ),
    "G4 closed by default": f"{RULES}::test_without_rules_nothing_but_the_protocol_passes",
    "G4 unknown methods": (f"{HEADERS}::test_an_unknown_method_is_answered_without_asking_anybody"),
    "G4 completion": f"{RULES}::test_a_completion_follows_what_it_completes",
    "G4 tasks": f"{SESSIONS}::test_a_task_belongs_to_whoever_began_it",
    "G4 subscriptions": f"{NOTHING}::test_a_subscription_is_narrowed_to_what_may_be_read",
    "G4 levels of logs": (
        f"{RULES}::test_what_changes_the_server_is_for_those_who_may_use_something_of_it"
    ),
    "G5 order and effects": (
        f"{PURE}/test_authorize_laws.py"
        "::test_order_is_irrelevant_and_more_rules_only_add_or_only_take_away"
    ),
    "G5 conditions": (
        f"{PURE}/test_predicates.py::test_an_allow_needs_certainty_and_a_deny_only_doubt"
    ),
    "G5 what is possible is listed": (
        f"{RULES}::test_what_can_be_called_with_some_arguments_is_visible"
    ),
    "G5 disguises": f"{LAWS}::test_no_spelling_of_a_denied_tool_is_run",
    "G5 spellings of URIs": (f"{RESOURCES}::test_a_denied_resource_is_denied_in_every_spelling"),
    "G5 a broken rule": (
        "unit/config/test_corpus.py::test_a_broken_file_is_refused_with_exactly_these_messages"
    ),
    "G5 names that no server has": (
        "unit/config/test_shown_names.py"
        "::test_a_deny_of_what_clients_see_is_refused_and_what_is_said_instead_denies"
    ),
    "G5 rules of a tenant": (
        f"{PURE}/test_authorize_laws.py"
        "::test_rules_of_a_tenant_are_as_if_they_stood_in_the_list_for_it_alone"
    ),
    "G5 a broken file of a tenant": (
        f"{FOLDERS}::test_a_file_that_is_not_right_refuses_a_start_and_keeps_the_last_good_rules"
    ),
    "G6 denied never leaves": (
        "app/test_tool_traffic_properties.py::test_no_denied_call_appears_in_the_log_of_the_server"
    ),
    "G6 hidden is like absent": (
        f"{LAWS}::test_a_hidden_thing_is_answered_like_one_that_does_not_exist"
    ),
    "G6 hidden is like absent, whatever its server is like": (
        f"{OFFERED}_laws.py::test_they_are_alike_whatever_the_server_is_like"
    ),
    "G6 hidden is like absent, over everything at random": (
        f"{OFFERED}_laws.py::test_a_denied_tool_and_one_that_does_not_exist_are_alike_in_everything"
    ),
    "G6 what is unknown is free": (
        f"{OFFERED}_ends.py::test_an_unknown_tool_is_free_and_is_told_of_in_the_record"
    ),
    "G6 one look a second": (
        f"{OFFERED}.py::test_a_server_is_asked_at_most_once_a_second_however_often_it_is_tried"
    ),
    "G6 real servers": (
        "wire/test_tool_offered_clients.py"
        "::test_a_server_that_demands_sessions_gives_no_denied_tool_away"
    ),
    "G6 listed is callable": (
        f"{LAWS}::test_whatever_is_listed_can_be_used_in_every_way_and_nothing_else_can"
    ),
    "G7 brief": f"{PATHS}::test_a_denied_call_gets_exactly_the_denial_and_never_leaves",
    "G7 spec": f"{PURE}/test_denials.py::test_the_spec_profile_answers_with_a_challenge",
    "G7 401": f"{PATHS}::test_without_a_key_there_is_a_401_that_both_layers_understand",
    "G7 the metadata": (
        f"{TOKENS}::test_the_metadata_names_the_audience_and_its_issuers_and_nothing_else"
    ),
    "G8 keys": "unit/identity/test_keys.py::test_every_bad_credential_gets_the_same_answer",
    "G8 algorithms": f"{JWT}::test_a_public_key_is_never_the_secret_of_a_symmetric_signature",
    "G8 claims": f"{JWT}::test_a_claim_that_is_wrong_is_refused",
    "G8 unknown keys": (f"{TOKENS}::test_a_flood_of_unknown_keys_is_refused_with_one_fetch"),
    "G8 outage": (f"{TOKENS}::test_in_an_outage_known_keys_hold_and_what_cannot_be_judged_is_503"),
    "G9 nothing of the client travels": (
        f"{HEADERS}::test_nothing_of_the_client_but_its_message_travels"
    ),
    "G9 tokens neither": (
        f"{TOKENS}::test_a_token_calls_what_its_roles_may_and_never_travels_upstream"
    ),
    "G10 element by element": (f"{BATCHES}::test_a_batch_is_decided_element_by_element_in_order"),
    "G10 where they are": f"{BATCHES}::test_later_revisions_have_no_batches",
    "G10 flaws": f"{BATCHES}::test_a_batch_that_cannot_be_split_is_refused_whole",
    "G10 types of ids": (
        f"{PURE}/test_batch.py::test_answers_keep_the_order_of_the_requests_and_the_type_of_ids"
    ),
    "G11 every form": f"{ANSWERS}::test_a_list_is_filtered_in_every_form",
    "G11 pages": f"{ANSWERS}::test_an_emptied_page_stays_a_page_and_cursors_are_opaque",
    "G11 whose a cursor is": (f"{CURSORS}.py::test_a_cursor_works_exactly_where_it_was_given"),
    "G11 cursors of one's own alone": (
        f"{CURSORS}.py::test_the_cursor_of_somebody_else_is_invalid"
    ),
    "G11 cursors of every process": (
        f"{CURSORS}_shared.py::test_a_list_is_read_to_its_end_in_one_process_and_another"
    ),
    "G11 cursors of every worker": (
        "acceptance/test_shared_cursors.py::test_a_page_at_one_worker_and_the_next_at_another"
    ),
    "G11 no list is not an empty one": (
        f"{ANSWERS}::test_what_is_no_list_is_a_failure_and_not_shown"
    ),
    "G11 caches": (f"{ANSWERS}::test_each_principal_sees_its_own_list_and_no_cache_may_share_it"),
    "G11 news of what is hidden": (
        f"{PURE}/test_listing.py::test_news_of_a_hidden_resource_is_not_heard"
    ),
    "G1 the checks of the protocol's authors, direct and through the gateway": (
        "conformance/__main__.py::whole"
    ),
    "G1 what a server says by itself": (
        f"{LISTENING}::test_what_a_server_says_by_itself_reaches_the_session_it_is_for"
    ),
    "G1 a stream that its server lets go": (
        f"{RESUMED}::test_a_call_that_was_let_go_is_answered_by_a_get"
    ),
    "G11 pages of several servers": (f"{AMONG}_lists.py::test_all_pages_of_each_server_become_one"),
    "G11 caches of several servers": (
        f"{AMONG}_lists.py::test_a_modern_list_is_private_and_lives_as_short_as_the_shortest"
    ),
    "G12 by the table alone": (
        f"{PURE}/test_federation.py"
        "::test_two_names_clash_exactly_when_some_two_tools_would_be_shown_alike"
    ),
    "G12 ambiguous names are refused": (
        "unit/config/test_corpus.py::test_a_broken_file_is_refused_with_exactly_these_messages"
    ),
    "G12 dead and slow servers": (
        f"{AMONG}_lists.py::test_a_broken_server_is_named_and_the_others_are_listed"
    ),
    "G12 listed and callable": (
        f"{AMONG}_laws.py::test_whatever_is_listed_can_be_used_at_its_server_and_nothing_else_can"
    ),
    "G12 a name of no server": (
        f"{AMONG}.py::test_a_name_of_no_server_is_answered_like_a_denied_one"
    ),
    "G12 one subscription": (
        f"{AMONG}_listening.py"
        "::test_one_acknowledgment_stands_for_all_and_then_each_server_is_heard"
    ),
    "G12 sessions with us": (
        f"{AMONG}_own.py::test_the_session_of_another_principal_is_unknown_and_survives"
    ),
    "G12 every era behind every era": (
        "wire/test_tool_federation_clients.py::test_tools_of_every_server_through_one_endpoint"
    ),
    "G13 whose answer it is": (
        f"{STDIO}::test_an_id_is_never_used_twice_so_a_late_answer_meets_nobody"
    ),
    "G13 two clients, the same ids": (
        f"{CHILDREN}.py::test_two_clients_with_the_same_ids_at_once_have_their_own_answers"
    ),
    "G13 nothing of our environment": (
        f"{CHILDREN}.py::test_the_process_gets_its_own_variables_a_path_and_a_locale"
        "_and_nothing_else_of_ours"
    ),
    "G13 junk": f"{CHILDREN}.py::test_junk_disturbs_no_call_and_is_not_in_the_log",
    "G13 a line of any length": (
        f"{CHILDREN}.py::test_a_line_of_64_mib_is_drained_and_what_follows_it_is_read"
    ),
    "G13 stderr": (
        f"{CHILDREN}_lives.py::test_stderr_is_logged_line_by_line_masked_and_not_without_end"
    ),
    "G13 a crash": (
        f"{CHILDREN}_lives.py::test_a_crash_answers_every_call_at_once_and_none_is_made_again"
    ),
    "G13 pauses before the next start": (
        f"{CHILDREN}_lives.py"
        "::test_the_pause_before_the_next_start_grows_with_each_short_life_and_is_counted_down"
    ),
    "G13 nobody is left": "acceptance/test_stdio_servers.py::test_a_kill_leaves_nothing_behind",
    "G14 sessions are one's own": (
        f"{SESSIONS}::test_the_session_of_another_principal_is_unknown_and_survives"
    ),
    "G14 bounds": f"{PURE}/test_sessions.py::test_one_principal_cannot_fill_the_table",
    "G14 one's own in every process": (
        "app/test_tool_sessions.py::test_nobody_else_has_the_session_in_any_process_and_it_survives"
    ),
    "G14 known to every worker": (
        "acceptance/test_shared_sessions.py"
        "::test_an_official_client_on_fresh_connections_is_served_by_every_worker"
    ),
    "G14 ended for every worker": (
        "acceptance/test_shared_sessions.py"
        "::test_a_session_is_of_one_principal_and_ends_once_in_all_workers"
    ),
    "G14 sealed": (
        "app/test_tool_sessions.py::test_whoever_reads_the_store_learns_no_session_and_no_principal"
    ),
    "G14 none for modern clients": (
        f"{SESSIONS}::test_no_session_is_minted_for_a_modern_client_or_by_another_method"
    ),
    "G15 every text": f"{STREAMS}::test_personal_data_is_masked_wherever_it_stands",
    "G15 event by event": (f"{STREAMS}::test_progress_reaches_the_client_before_the_result_exists"),
    "G15 numbers": (
        "app/test_tool_traffic_numbers.py"
        "::test_a_card_as_a_number_in_structured_content_refuses_the_result"
    ),
    "G16 one generic error": (f"{ANSWERS}::test_whatever_fails_behind_us_is_one_generic_error"),
    "G17 what is pinned": (
        f"{PURE}/test_pin_forms.py"
        "::test_a_change_of_any_pinned_member_is_another_definition_and_named"
    ),
    "G17 modes": f"{PINS}::test_a_tool_that_is_not_what_was_pinned",
    "G17 listed again": (
        f"{PINS}::test_a_tool_that_left_and_is_listed_again_is_compared_with_its_old_pin"
    ),
    "G17 news of changed tools": (
        f"{PINS}::test_news_of_changed_tools_in_an_answer_has_them_looked_at_before_the_next_call"
    ),
    "G17 before the first call": (
        f"{PINS}::test_the_first_call_after_a_start_is_preceded_by_a_list_and_no_later_one_is"
    ),
    "G17 until it is approved": (
        "unit/cli/test_mcp_pins.py::test_an_approval_shows_what_it_accepts_and_holds"
    ),
    "G17 names that look alike": (
        f"{PURE}/test_pins.py"
        "::test_a_name_that_looks_like_one_of_another_server_is_flagged_and_the_same_name_is_not"
    ),
    "G17 hidden characters": (
        f"{PURE}/test_pin_forms.py"
        "::test_what_is_written_to_be_overlooked_is_flagged_wherever_it_stands"
    ),
    "G18 limits of calls, denied ones free": (
        f"{BATCHES}::test_calls_beyond_their_limit_are_refused_and_denied_ones_are_free"
    ),
    "G18 statuses": f"{BATCHES}::test_the_spec_profile_refuses_with_statuses",
    "G14 streams too": (
        f"{LISTENING}::test_the_session_of_another_principal_is_unknown_and_its_stream_goes_on"
    ),
    "G14 events too": f"{RESUMED}::test_a_place_is_of_use_in_its_own_session_alone",
    "G15 what a server says by itself": (
        f"{LISTENING}::test_what_may_not_be_seen_is_not_heard_and_personal_data_is_masked"
    ),
    "G18 a call that waits stays charged": (
        f"{RESUMED}::test_what_a_call_is_charged_stays_charged_until_it_is_answered"
    ),
    "G19 streams of one principal": f"{BOUNDS}::test_one_principal_cannot_have_all_streams",
    "G19 a client that listens and leaves": (
        f"{BOUNDS}::test_a_client_that_leaves_frees_everything_at_once"
    ),
    "G19 a silent stream": (f"{BOUNDS}::test_a_silent_stream_is_kept_alive_and_its_session_in_use"),
    "G19 bounds of what comes back": (
        f"{PURE}/test_http_upstream.py::test_a_body_or_event_beyond_the_bound_is_refused"
    ),
    "G19 a client that leaves": f"{STREAMS}::test_a_client_that_leaves_ends_its_call",
    "G19 keep-alives": f"{STREAMS}::test_a_silent_stream_is_kept_alive",
    "G20 before it leaves": (
        f"{BATCHES}::test_the_intent_is_recorded_before_anything_leaves_and_the_end_once"
    ),
    "G20 no record, no call": f"{BATCHES}::test_without_a_record_nothing_leaves",
    "G20 a chain": "unit/records/test_chain.py::test_every_single_change_is_found_at_its_entry",
    "G20 asked before": ("unit/cli/test_decision.py::test_the_gateway_decides_and_says_the_same"),
    "G22 Host and Origin": "app/test_front.py::test_loopback_names_and_known_origins_get_in",
    "G22 baggage": f"{PURE}/test_http_upstream.py::test_baggage_does_not_cross_the_gateway",
}

MEASURED = {"G21": "bench/bench_mcp_gateway.py"}
"""The overhead of the gateway, beside proxies that only pass bytes."""


@pytest.mark.parametrize("part", REQUIRED)
def test_each_part_has_a_test_that_exists(part: str) -> None:
    file, _, name = REQUIRED[part].partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


def test_every_number_is_there_and_what_is_measured_has_its_bench() -> None:
    tried = {part.partition(" ")[0] for part in REQUIRED}
    assert tried | set(MEASURED) == {f"G{number}" for number in range(1, 23)}
    assert not tried & set(MEASURED)
    assert all((TESTS.parent / bench).is_file() for bench in MEASURED.values())
