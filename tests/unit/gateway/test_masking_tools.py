"""Which redaction applies to what a client and a tool server say to one another?"""

import pytest

from tidegate.gateway.masking import Masking, Mode
from tidegate.redaction import RedactionPolicy

MODES: tuple[Mode, ...] = ("off", "detect", "enforce")
MAIL = "jane@example.com"
POLICY = RedactionPolicy.preset()
MARK = "[REDACTED_EMAIL]"


@pytest.mark.parametrize("mode", MODES)
def test_a_result_is_searched_as_its_mode_says_and_changed_only_if_enforced(mode: Mode) -> None:
    result = {"content": [{"type": "text", "text": MAIL}]}
    masked, found = Masking(POLICY, tool_results=mode).mask_result(result, "acme")
    assert found == ({} if mode == "off" else {"email": 1})
    assert (masked is result) == (mode != "enforce")
    assert (MARK in repr(masked)) == (mode == "enforce")


@pytest.mark.parametrize("mode", MODES)
def test_what_a_client_says_is_searched_text_by_text_and_changed_only_if_enforced(
    mode: Mode,
) -> None:
    texts = {"arguments": {"to": MAIL}, "reason": MAIL, "context": {"a": 1}}
    told, found = Masking(POLICY, tool_arguments=mode).mask_arguments(texts, "acme")
    assert found == ({} if mode == "off" else {"email": 2})
    assert (told is texts) == (mode != "enforce")
    assert texts["reason"] == MAIL
    if mode == "enforce":
        assert told == {"arguments": {"to": MARK}, "reason": MARK, "context": {"a": 1}}
        assert told["context"] is texts["context"]
    harmless = {"arguments": {"city": "Oslo", "count": 3}}
    calm, found = Masking(POLICY, tool_arguments=mode).mask_arguments(harmless, "acme")
    assert (calm is harmless, found) == (True, {})
