"""Is everything that was required of the tool server tried?

One table: what was required (S1 to S12), in the parts it has, and the test that shows each part.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

STDIO, LINES = "wire/test_task1_stdio.py", "unit/tools/test_stdio.py"
STRICT, MODELS = "unit/tools/test_strict.py", "unit/tools/test_models.py"
HTTP, SESSIONS = "unit/tools/test_http.py", "unit/tools/test_http_sessions.py"
PROFILES, CRASHES = "unit/tools/test_profiles.py", "unit/tools/test_crashes.py"
DOORS, MESSAGES = "unit/tools/test_doors.py", "unit/tools/test_messages.py"
SERVED, SUPPORT = "wire/test_tool_server_http.py", "unit/demo/test_support.py"

REQUIRED = {
    "S1 prints, children and C in a call": (
        f"{STDIO}::test_a_tool_that_prints_in_every_way_leaves_stdout_pure"
    ),
    "S1 every way to write": (
        "wire/test_tool_server_isolation.py::test_whatever_writes_to_stdout_writes_to_stderr"
    ),
    "S1 the interpreter's own start": (
        "wire/test_tool_server_isolation.py"
        "::test_what_the_interpreter_prints_while_it_starts_goes_to_stderr"
    ),
    "S1 noise at import and at exit": (
        f"{STDIO}::test_noise_at_import_in_a_call_and_at_exit_lands_on_stderr"
    ),
    "S2 LF alone ends a line": f"{LINES}::test_lines_are_the_same_whatever_the_cuts",
    "S2 the cap, and the next line": (
        f"{STDIO}::test_a_line_beyond_the_cap_is_refused_and_the_next_one_is_read"
    ),
    "S2 the cap, wherever it is cut": (
        f"{LINES}::test_a_line_beyond_the_cap_is_dropped_once_and_the_next_one_is_read"
    ),
    "S2 a stuck call at the end": (
        "wire/test_tool_server_stuck.py"
        "::test_after_the_end_of_stdin_a_stuck_call_is_answered_and_the_process_ends"
    ),
    "S2 never silent": (
        f"{STDIO}::test_bad_lines_are_answered_with_a_null_id_and_the_session_goes_on"
    ),
    "S3 strict JSON on a line": (
        f"{LINES}::test_a_bad_line_has_a_code_and_a_reason_that_quotes_nothing"
    ),
    "S3 strict JSON in a body": f"{MESSAGES}::test_what_no_line_may_hold_no_body_may_hold",
    "S3 other encodings": f"{MESSAGES}::test_a_body_in_another_encoding_is_not_guessed",
    "S3 depth": f"{MESSAGES}::test_depth_64_is_the_last",
    "S3 numbers are what was written": f"{HTTP}::test_a_tool_sees_the_number_that_was_sent",
    "S4 nothing is coerced": f"{MODELS}::test_nothing_is_coerced_and_the_place_is_named",
    "S4 ASCII only, and no line end": (
        f"{SUPPORT}::test_an_odd_customer_id_is_refused_by_schema_and_check"
    ),
    "S4 money": f"{SUPPORT}::test_other_amounts_are_refused_by_name",
    "S4 ten visible characters": f"{SUPPORT}::test_a_reason_needs_ten_visible_characters",
    "S5 schema and model, the same verdict": (
        f"{STRICT}::test_schema_and_check_agree_wherever_the_schema_can_say_it"
    ),
    "S5 random models": (
        "unit/tools/test_schema_verdicts.py::test_random_models_publish_what_they_enforce"
    ),
    "S8 a race, and a kill": (
        "wire/test_support_race.py"
        "::test_two_processes_race_one_balance_and_die_and_the_file_is_right"
    ),
    "S5 odd corners": (f"{MODELS}::test_what_is_published_is_what_is_enforced_in_odd_corners_too"),
    "S5 what could never hold": (
        "unit/tools/test_refused_when_written.py"
        "::test_what_no_call_could_fill_is_refused_when_the_tool_is_written"
    ),
    "S5 closed at every level": (
        f"{MODELS}::test_the_schema_is_closed_at_every_level_and_is_one_of_2020_12"
    ),
    "S6 the table": f"{PROFILES}::test_every_trouble_has_an_answer_in_every_profile",
    "S6 over HTTP, in every revision": (
        f"{PROFILES}::test_a_profile_is_the_same_in_every_revision_over_http"
    ),
    "S6 on stdio, in every revision": (
        f"{PROFILES}::test_a_profile_is_the_same_in_every_revision_on_stdio"
    ),
    "S7 a tool's crash": (f"{CRASHES}::test_a_tool_that_fails_or_breaks_its_word_is_an_incident"),
    "S7 on stdio": (f"{CRASHES}::test_on_stdio_a_crash_is_an_incident_too_and_the_session_goes_on"),
    "S7 every other method": f"{CRASHES}::test_every_other_method_has_the_same_boundary",
    "S7 errors of the SDK": (
        f"{CRASHES}::test_params_that_are_none_of_mcps_are_told_by_pointer_and_quoted_nowhere"
    ),
    "S7 the incident is in the log": (
        f"{SERVED}"
        "::test_what_is_wrong_with_a_request_is_said_over_the_wire_and_the_crash_is_in_the_log"
    ),
    "S8 the same key, the same result": (
        f"{SUPPORT}::test_a_repeated_call_with_the_same_key_gets_the_first_result_again"
    ),
    "S8 the same key, other arguments": (
        f"{SUPPORT}::test_the_same_key_with_other_arguments_is_refused"
    ),
    "S8 a restart": "wire/test_support_desk.py::test_balances_and_keys_outlive_the_process",
    "S9 the stateless era": (
        f"{HTTP}::test_the_body_decides_the_era_and_a_header_that_disagrees_is_refused"
    ),
    "S9 no downgrade": f"{HTTP}::test_a_session_is_no_way_around_that",
    "S9 the handshake era": (
        f"{SESSIONS}::test_a_session_begins_with_the_handshake_and_ends_when_it_is_told_to"
    ),
    "S9 batches where they are": (
        f"{SESSIONS}::test_a_batch_is_answered_in_its_order_where_the_revision_has_batches"
    ),
    "S9 batches on stdio": (
        "unit/tools/test_line_batches.py::test_a_session_of_2025_03_26_takes_batches"
    ),
    "S9 conformance": (
        "conformance/test_judge.py::test_a_run_that_is_as_expected_has_no_complaints"
    ),
    "S10 Host and Origin on any address": (
        f"{HTTP}::test_host_and_origin_are_checked_on_whatever_address_the_server_is_reached"
    ),
    "S10 a host of somebody else's": (
        f"{DOORS}::test_a_name_of_somebody_elses_is_no_host_of_ours_on_any_address"
    ),
    "S10 the media type": f"{DOORS}::test_the_media_type_is_exactly_json",
    "S10 the body is counted": f"{HTTP}::test_a_body_beyond_the_cap_is_refused_while_it_comes",
    "S10 counted on the wire": f"{SERVED}::test_a_body_without_a_length_is_counted_as_it_comes",
    "S10 words of JSON-RPC": (
        f"{HTTP}::test_a_request_that_cannot_be_served_is_refused_in_words_of_json_rpc"
    ),
    "S10 who others reach needs a token": (
        f"{SERVED}::test_an_address_that_others_reach_needs_a_token_and_what_is_none_is_said"
    ),
    "S11 results are held to their schema": (
        f"{CRASHES}::test_a_tool_that_fails_or_breaks_its_word_is_an_incident"
    ),
    "S11 the schema is published": (
        f"{MODELS}::test_what_was_promised_hinted_and_noted_is_published_and_sent"
    ),
    "S12 one file": "unit/tools/test_guide.py::test_the_one_file_example_is_a_server",
    "S12 no suggestions": f"{PROFILES}::test_names_like_the_unknown_one_are_not_suggested",
    "S12 names": (
        "unit/tools/test_refused_when_written.py"
        "::test_a_name_that_clients_could_not_use_is_refused_when_the_tool_is_written"
    ),
}


def test_every_requirement_has_its_row() -> None:
    assert {name.partition(" ")[0] for name in REQUIRED} == {f"S{n}" for n in range(1, 13)}


@pytest.mark.parametrize("place", REQUIRED.values())
def test_every_row_names_a_test_that_exists(place: str) -> None:
    file, _, name = place.partition("::")
    text = (TESTS / file).read_text()
    assert f"def {name}(" in text
