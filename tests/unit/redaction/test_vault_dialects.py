"""The vault and a classifier behind the other two dialects: every copy of a text says the same."""

import json
import re
from typing import Any

import pytest

from tests.unit.redaction import messages, responses
from tests.unit.redaction.samples import EMAIL
from tidegate.redaction import MessagesStreamRedactor, RedactionPolicy, ResponsesStreamRedactor
from tidegate.redaction.holes import Found, Holes
from tidegate.redaction.spans import EMAIL as EMAIL_KIND
from tidegate.redaction.spans import Kind
from tidegate.redaction.treatment import Treatment
from tidegate.redaction.vault import Vault
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")
JANE, JOHN = "jane@example.com", "john@example.org"
NAME = Kind("NAME", "name")
VAULT = Vault(bytes(16))
OWN = VAULT.placeholder(EMAIL_KIND, JANE)
QUOTED = VAULT.placeholder(NAME, 'J"\\D')
TEXT = f"To {OWN}, {JOHN}. Or **{OWN.lower()}** [EMAIL_x"
SHOWN = f"To {JANE}, {EMAIL}. Or **{JANE}** [EMAIL_x"
ARGUMENTS = json.dumps({"to": [OWN, QUOTED], OWN: JOHN})
CALLED = {"to": [JANE, 'J"\\D'], OWN: EMAIL}


def arguments_of(text: str) -> Any:
    return json.loads(text)


def responses_events(text: list[str], arguments: list[str]) -> list[bytes]:
    upstream = responses.Upstream()
    upstream.message(text)
    upstream.call(arguments)
    return upstream.completed()


def messages_events(text: list[str], arguments: list[str]) -> list[bytes]:
    upstream = messages.Upstream()
    upstream.text(text)
    upstream.tool(arguments)
    return upstream.stopped("tool_use")


@pytest.mark.full
def test_the_responses_api_restores_every_copy_under_every_cut() -> None:
    treatment = Treatment(POLICY, vault=VAULT)
    for pieces in every_split(TEXT, three_way_max=0):
        client, _ = responses.run(responses_events(pieces, [ARGUMENTS]), treatment)
        assert client.texts()[0] == SHOWN
    for pieces in every_split(ARGUMENTS, three_way_max=0):
        client, _ = responses.run(responses_events([TEXT], pieces), treatment)
        assert arguments_of(client.texts()[1]) == CALLED


def test_the_messages_api_restores_under_every_cut() -> None:
    treatment = Treatment(POLICY, vault=VAULT)
    for pieces in every_split(TEXT, three_way_max=0):
        client, _ = messages.run(messages_events(pieces, [ARGUMENTS]), treatment)
        assert client.texts()[0] == SHOWN
    for pieces in every_split(ARGUMENTS, three_way_max=0):
        client, _ = messages.run(messages_events([TEXT], pieces), treatment)
        assert arguments_of(client.texts()[1]) == CALLED


SPOKEN = f"Ask Jane. It is {OWN}; Jane says 12. Jane"
MASKED = f"Ask [REDACTED_NAME]. It is {JANE}; [REDACTED_NAME] says 12. [REDACTED_NAME]"
SAID = json.dumps({"a": "Jane\n", "b": 'by "Jane"'})
HEARD = {"a": "[REDACTED_NAME]\n", "b": 'by "[REDACTED_NAME]"'}


def filled(redactor: Any, events: list[bytes], holes: Holes, at_a_time: int) -> list[Any]:
    """What leaves when a classifier answers after so many events."""
    out: list[Any] = []

    def leave(named: list[Any]) -> None:
        for text in holes.wanted:
            holes.judge(text, [Found(*m.span(), NAME) for m in re.finditer("Jane", text)])
        out.extend((name, holes.fill(data)) for name, data in named)

    for place in range(0, len(events), at_a_time):
        leave([one for event in events[place : place + at_a_time] for one in redactor.feed(event)])
    leave(redactor.finish())
    return out


@pytest.mark.parametrize("at_a_time", [1, 5, 999])
@pytest.mark.full
def test_a_classifier_gives_every_copy_of_a_response_the_same_verdict(at_a_time: int) -> None:
    for pieces in every_split(SPOKEN, three_way_max=0):
        holes = Holes("ab" * 16)
        redactor = ResponsesStreamRedactor(Treatment(POLICY, vault=VAULT, holes=holes))
        client = responses.Client()
        events = responses_events(pieces, [SAID[:9], SAID[9:]])
        for name, data in filled(redactor, events, holes, at_a_time):
            client.read(name, data)
        text, called = client.texts()
        assert (text, arguments_of(called)) == (MASKED, HEARD)


@pytest.mark.parametrize("at_a_time", [1, 5, 999])
def test_a_classifier_reads_messages_under_every_cut(at_a_time: int) -> None:
    for pieces in every_split(SPOKEN, three_way_max=0):
        holes = Holes("ab" * 16)
        redactor = MessagesStreamRedactor(Treatment(POLICY, vault=VAULT, holes=holes))
        client = messages.Client()
        events = messages_events(pieces, [SAID[:9], SAID[9:]])
        for name, data in filled(redactor, events, holes, at_a_time):
            client.read(name, data)
        text, called = client.texts()
        assert (text, arguments_of(called)) == (MASKED, HEARD)
