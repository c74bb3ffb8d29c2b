"""What leaves while and after a classifier reads a text; the classifier is a table here."""

import json
import re
from collections.abc import Callable

import pytest

from tests.unit.redaction.chat import Client, chunk, content, finish
from tests.unit.redaction.samples import EMAIL
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy, redact_chat_request
from tidegate.redaction.holes import MOST_KNOWN_CHARS, Found, Holes
from tidegate.redaction.spans import Kind
from tidegate.redaction.treatment import Treatment
from tidegate.redaction.vault import Vault
from tidegate.testing.splits import every_split

NONCE = "0123456789abcdef" * 2
POLICY = RedactionPolicy.preset("default")
NAME = Kind("NAME", "name")
JANE = "jane@example.com"
MASK = "[REDACTED_NAME]"
_NAMES = re.compile(r"Jane(?: Doe)?|J\u00fcrgen")


def names(text: str) -> list[Found]:
    """A classifier that knows three names."""
    return [Found(*match.span(), NAME) for match in _NAMES.finditer(text)]


Classifier = Callable[[str], list[Found]]


class Asked:
    """The answer of a model as it leaves when each read ends after so many events."""

    def __init__(self, treatment: Treatment, holes: Holes, classifier: Classifier = names) -> None:
        self.redactor = ChatStreamRedactor(treatment)
        self.client = Client()
        self.texts: list[str] = []
        self._holes = holes
        self._classifier = classifier

    def read(self, events: list[bytes]) -> None:
        """One read of the gateway's."""
        self.leave([data for event in events for data in self.redactor.feed(event)])

    def leave(self, payloads: list[bytes]) -> None:
        """The classifier is asked, then the payloads leave."""
        for text in self._holes.wanted:
            self.texts.append(text)
            self._holes.judge(text, self._classifier(text))
        for data in payloads:
            filled = self._holes.fill(data)
            assert NONCE.encode() not in filled
            self.client.read(filled)


def made(**options: object) -> tuple[Treatment, Holes]:
    holes = Holes(NONCE)
    return Treatment(POLICY, holes=holes, **options), holes  # type: ignore[arg-type]


def streamed(events: list[bytes], at_a_time: int = 1, **options: object) -> tuple[Client, Asked]:
    asked = Asked(*made(**options))
    for place in range(0, len(events), at_a_time):
        asked.read(events[place : place + at_a_time])
    asked.leave(asked.redactor.finish())
    return asked.client, asked


TEXT = f"Ask Jane Doe. She has {JANE} and\nJ\u00fcrgen too! Also 'Jane"
SHOWN = f"Ask {MASK}. She has {EMAIL} and\n{MASK} too! Also '{MASK}"


@pytest.mark.parametrize("at_a_time", [1, 3, 99])
def test_names_are_masked_under_every_cut_whatever_a_read_holds(at_a_time: int) -> None:
    for pieces in every_split(TEXT, three_way_max=0):
        client, asked = streamed([*map(content, pieces), finish()], at_a_time)
        assert client.texts == {0: SHOWN}
        assert client.late == 0
        assert client.finished == {0: "stop"}
        assert asked.redactor.counts == {"name": 3, "email": 1}


def test_a_classifier_reads_sentences_and_none_of_what_a_detector_found() -> None:
    _, asked = streamed([*map(content, TEXT), finish()])
    assert asked.texts == [
        "Ask Jane Doe. ",
        f"She has {EMAIL} and\n",
        "J\u00fcrgen too! ",
        "Also 'Jane",
    ]


def test_a_sentence_leaves_with_the_event_that_ends_it() -> None:
    asked = Asked(*made())
    seen = []
    for piece in ("Ask Jane", " Doe.", " So", "on. "):
        asked.read([content(piece)])
        seen.append(asked.client.texts[0])
    assert seen == ["", "", f"Ask {MASK}. ", f"Ask {MASK}. Soon. "]


def test_what_the_upstream_never_ends_leaves_at_the_end_of_the_stream() -> None:
    client, _ = streamed([content("I am Jane")])
    assert client.texts == {0: f"I am {MASK}"}


def test_a_text_that_comes_twice_is_asked_about_once() -> None:
    holes = Holes(NONCE)
    treatment = Treatment(POLICY, holes=holes)
    first = treatment.whole("Jane is here. Jane is here. 42.")
    assert holes.wanted == ("Jane is here. ",)
    holes.judge("Jane is here. ", names("Jane is here. "))
    assert holes.fill(first.encode()) == f"{MASK} is here. {MASK} is here. 42.".encode()
    again = treatment.whole("Jane is here. ")
    assert holes.wanted == ()
    assert holes.fill(again.encode()) == f"{MASK} is here. ".encode()
    assert treatment.counts == {"name": 3}


@pytest.mark.full
def test_what_is_remembered_of_texts_is_bounded() -> None:
    holes = Holes(NONCE)
    treatment = Treatment(POLICY, holes=holes)
    for number in range(MOST_KNOWN_CHARS // 200 + 2):
        marker = treatment.whole(f"{number:05d} {'word ' * 40}."[:206])
        for text in holes.wanted:
            holes.judge(text, ())
        holes.fill(marker.encode())
    treatment.whole(f"00001 {'word ' * 40}."[:206])
    assert len(holes.wanted) == 1


def test_text_without_a_letter_is_not_asked_about() -> None:
    treatment, holes = made()
    assert treatment.whole("12 + 30 = 42\n") == "12 + 30 = 42\n"
    assert holes.wanted == ()
    client, asked = streamed([content("1. 2. 3.\n"), finish()])
    assert client.texts == {0: "1. 2. 3.\n"}
    assert asked.texts == []


def arguments(text: str) -> bytes:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


def test_names_in_arguments_are_masked_and_the_json_stays_whole_under_every_cut() -> None:
    raw = '{"to": ["Jane\\u0020Doe\\n", "a\\"b\\\\ J\\u00fcrgen"], "Jane": "x", "n": -1.5e3}'
    for pieces in every_split(raw, three_way_max=0):
        client, asked = streamed([*map(arguments, pieces), finish("tool_calls")], 4)
        wanted = {"to": [f"{MASK}\n", f'a"b\\ {MASK}'], "Jane": "x", "n": -1500.0}
        assert json.loads(client.arguments[0, 0]) == wanted
        assert asked.redactor.counts == {"name": 2}


def test_arguments_that_are_no_json_are_read_as_text() -> None:
    client, _ = streamed([arguments("call Jane"), arguments(" now"), finish("tool_calls")])
    assert client.arguments[0, 0] == f"call {MASK} now"


@pytest.mark.parametrize("mode", ["detect", False])
def test_arguments_that_are_not_enforced_are_not_asked_about(mode: object) -> None:
    client, asked = streamed([arguments('{"a":"Jane"}'), finish()], tool_arguments=mode)
    assert client.arguments[0, 0] == '{"a":"Jane"}'
    assert asked.texts == []


def everything(text: str) -> list[Found]:
    return [Found(0, len(text), NAME)]


def test_a_finding_is_cut_around_placeholders() -> None:
    vault = Vault(bytes(16))
    own = vault.placeholder(NAME, "Jane")
    treatment, holes = made(vault=vault)
    text = f" Dear {own} or {EMAIL}{JANE} ... [Jane Doe] "
    asked = Asked(treatment, holes, everything)
    asked.read([content(text), finish()])
    assert asked.client.texts == {0: f" {MASK} Jane {MASK} {EMAIL}{EMAIL} ... {MASK} "}


def test_a_value_that_the_operator_allows_stays() -> None:
    holes = Holes(NONCE)
    treatment = Treatment(POLICY.with_allow("Jane"), holes=holes)
    asked = Asked(treatment, holes)
    asked.read([content("Jane and Jane Doe"), finish()])
    assert asked.client.texts == {0: f"Jane and {MASK}"}
    assert treatment.counts == {"name": 1}


def test_a_restored_name_is_neither_asked_about_nor_masked_under_every_cut() -> None:
    vault = Vault(bytes(16))
    own = vault.placeholder(NAME, "Jane Doe")
    answer = f"Dear {own}, Jane says. Bye {own.lower()} [NAME_x"
    for pieces in every_split(answer, three_way_max=0):
        client, asked = streamed([*map(content, pieces), finish()], 2, vault=vault)
        assert client.texts == {0: f"Dear Jane Doe, {MASK} says. Bye Jane Doe [NAME_x"}
        assert not any("Doe" in text for text in asked.texts)


def test_a_restored_name_in_arguments_is_escaped() -> None:
    vault = Vault(bytes(16))
    own = vault.placeholder(NAME, 'J"\\\nD')
    for pieces in every_split(json.dumps({"to": f"{own} Jane"}), three_way_max=0):
        client, _ = streamed([*map(arguments, pieces), finish()], 3, vault=vault)
        assert json.loads(client.arguments[0, 0]) == {"to": f'J"\\\nD {MASK}'}


def test_a_request_gets_placeholders_for_the_names_found_in_it() -> None:
    holes, vault = Holes(NONCE), Vault(bytes(16))
    treatment = Treatment(POLICY, holes=holes, replace=vault.placeholder)
    body = {"model": "m", "messages": [{"role": "user", "content": "I am Jane. Jane!"}]}
    masked, _ = redact_chat_request(body, treatment)
    for text in holes.wanted:
        holes.judge(text, names(text))
    sent = json.loads(holes.fill(json.dumps(masked).encode()))
    placeholder = vault.placeholder(NAME, "Jane")
    assert sent["messages"] == [{"role": "user", "content": f"I am {placeholder}. {placeholder}!"}]
    assert sent["model"] == "m"
    assert len(vault) == 1


def test_nothing_is_filled_while_a_verdict_is_missing() -> None:
    treatment, holes = made()
    marker = treatment.whole("Jane").encode()
    with pytest.raises(ValueError, match="no verdict"):
        holes.fill(marker)
    with pytest.raises(ValueError, match="no verdict"):
        holes.fill(b"")


def test_what_is_left_of_a_marker_never_leaves() -> None:
    treatment, holes = made()
    marker = treatment.whole("Jane").encode()
    holes.judge("Jane", ())
    for broken in (marker[:-1], marker[1:], marker.replace(b":0", b":x")):
        with pytest.raises(ValueError, match="not whole"):
            holes.fill(broken)
    assert holes.fill(b'"' + marker + b'"') == b'"Jane"'
    with pytest.raises(KeyError):
        holes.fill(marker)


def test_a_marker_that_leaves_later_is_filled_later() -> None:
    """What a stream holds before its first content may leave with a later read."""
    treatment, holes = made()
    first, second = treatment.whole("Jane ").encode(), treatment.whole("Doe").encode()
    for text in holes.wanted:
        holes.judge(text, ())
    assert holes.fill(second) == b"Doe"
    assert holes.fill(first) == b"Jane "


def test_a_nonce_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="32 hexadecimal"):
        Holes("abc")


def test_no_representation_shows_a_text() -> None:
    treatment, holes = made()
    treatment.whole("Jane")
    assert "Jane" not in repr(holes) + repr(treatment)


def test_what_is_held_is_counted_wherever_it_is() -> None:
    vault = Vault(bytes(16))
    own = vault.placeholder(NAME, "Jane")
    treatment, holes = made(vault=vault)
    way = treatment.text()
    assert way.feed("Ask Ja") == ""
    assert way.pending == 6
    marker = way.feed(f"ne. \n{own[:8]}\n")
    for text in holes.wanted:
        holes.judge(text, ())
    assert holes.fill(marker.encode()) == f"Ask Jane. \\n{own[:8]}\\n".encode()
    assert way.pending == 0
    alone = Treatment(POLICY, vault=vault).text()
    assert alone.feed(f"so {own[:8]}") == "so "
    assert alone.pending == 8
