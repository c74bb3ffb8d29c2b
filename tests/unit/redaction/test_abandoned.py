"""Work that goes on in a thread when its caller has left: how much of it is still done?"""

import pytest

from tidegate.redaction import RedactionPolicy, redact_chat_completion, redact_chat_request
from tidegate.redaction.hits import Hit
from tidegate.redaction.treatment import Abandoned, Treatment

LONG = "say x! " * 60_000


class Leaver:
    """A detector at whose first look the caller leaves; it counts the characters it sees."""

    family, rank, shortest, anchors = "leaver", 39, 1, (("x", ""),)

    def __init__(self) -> None:
        self.treatment: Treatment | None = None
        self.seen = 0

    def find(self, text: str, start: int, end: int) -> list[Hit]:
        self.seen += end - start
        if self.treatment is not None:
            self.treatment.abandon()
        return []


def test_a_long_text_is_not_read_to_its_end() -> None:
    leaver = Leaver()
    treatment = Treatment(RedactionPolicy({}).with_detectors(leaver))
    assert treatment.whole(LONG) == LONG
    everything, leaver.seen = leaver.seen, 0
    leaver.treatment = treatment
    with pytest.raises(Abandoned):
        treatment.whole(LONG)
    assert 0 < leaver.seen < everything / 4


def test_the_other_texts_of_a_document_are_not_begun() -> None:
    leaver = Leaver()
    treatment = Treatment(RedactionPolicy({}).with_detectors(leaver))
    leaver.treatment = treatment
    body = {"messages": [{"role": "user", "content": f"say x! {n}"} for n in range(50)]}
    with pytest.raises(Abandoned):
        redact_chat_request(body, treatment)
    assert leaver.seen < 30


@pytest.mark.parametrize("tool_arguments", [True, "detect"])
def test_the_arguments_of_a_call_are_abandoned_with_the_rest(tool_arguments: object) -> None:
    leaver = Leaver()
    policy = RedactionPolicy({}).with_detectors(leaver)
    treatment = Treatment(policy, tool_arguments=tool_arguments)  # type: ignore[arg-type]
    assert treatment.for_arguments is not None
    treatment.abandon()
    message = {"content": "say x! now", "tool_calls": [{"function": {"arguments": '{"a": "x"}'}}]}
    with pytest.raises(Abandoned):
        redact_chat_completion({"choices": [{"index": 0, "message": message}]}, treatment)
    with pytest.raises(Abandoned):
        treatment.for_arguments.whole("say x! now")
    assert leaver.seen < 10  # names of members are looked at by themselves
