"""Which test shows each entry of the catalogue that is about the wire?"""

_HERE = "tests/unit/redaction/test_protocol.py::"
_APP = "tests/app/test_chat_protocol.py::"

PROTOCOL: dict[int, str] = {
    108: f"{_HERE}test_108_choices_that_interleave_are_texts_of_their_own",
    109: f"{_HERE}test_109_content_may_be_null_absent_empty_or_parts",
    110: f"{_HERE}test_110_every_field_with_text_is_held_and_masked",
    111: f"{_HERE}test_111_fragments_of_arguments_are_masked_and_names_stay",
    112: f"{_HERE}test_112_a_message_is_flushed_before_its_block_stops_and_signatures_follow",
    113: f"{_HERE}test_113_every_copy_of_a_response_agrees_and_the_numbers_go_on",
    114: f"{_HERE}test_114_held_text_leaves_before_the_finish_and_usage_has_no_choice",
    115: f"{_HERE}test_115_what_is_held_when_a_stream_breaks_never_leaves_raw",
    116: f"{_HERE}test_116_the_frame_of_an_event_does_not_matter",
    117: f"{_HERE}test_117_a_character_may_be_cut_by_the_network",
    118: f"{_APP}test_118_compressed_answers_are_redacted",
    119: f"{_APP}test_119_plain_answers_errors_and_headers_show_nothing",
    120: f"{_HERE}test_120_an_event_whose_text_is_held_still_leaves",
}
"""Entry to the node of its test. Entry 115 in full (an upstream that dies, a client that leaves)
is also in tests/app/test_chat_commit.py and tests/app/test_chat_leaving.py."""
