import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.redaction.laws import random_pieces, seeded, streamed
from tidegate.redaction import FAMILIES, RedactionPolicy
from tidegate.redaction.cues import CUES
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICY = RedactionPolicy(dict.fromkeys(CUES, "mask"))
N, A, D = "[REDACTED_NAME]", "[REDACTED_ADDRESS]", "[REDACTED_BIRTH_DATE]"

FOUND = [
    ("Hi, my name is Jane Doe and I live in Rome.", f"Hi, my name is {N} and I live in Rome."),
    ("MY NAME IS JANE DOE", f"MY NAME IS {N}"),
    ("My name is Jane. I am 5", f"My name is {N}. I am 5"),
    ("my name's Jean-Luc d'Arc", f"my name's {N} d'Arc"),
    ("Ich hei\u00dfe J\u00fcrgen", f"Ich hei\u00dfe {N}"),
    ("Je m'appelle \u00c9lodie Dupont.", f"Je m'appelle {N}."),
    ("Dear Mr. Smith,", f"Dear Mr. {N},"),
    ("Dear Jane,\nthanks", f"Dear {N},\nthanks"),
    ("Dr. Ludwig van Beethoven, MD", f"Dr. {N}, MD"),
    ("Mrs O'Brien-Smith", f"Mrs {N}"),
    ("Herr M\u00fcller kam", f"Herr {N} kam"),
    ("Full name: Maria Jos\u00e9 de la Cruz\nAge: 3", f"Full name: {N}\nAge: 3"),
    ("Attn: John Doe", f"Attn: {N}"),
    ("Best regards,\nJane Q. Doe\nCEO", f"Best regards,\n{N}\nCEO"),
    ("My n\u200bame is Ja\u200bne", f"My n\u200bame is {N}"),
    ("DOB: 12/03/1984", f"DOB: {D}"),
    ("date of birth: March 12, 1984", f"date of birth: {D}"),
    ("She was born on 12 March 1984 in Rome", f"She was born on {D} in Rome"),
    ("born 1984-03-12.", f"born {D}."),
    ('{"date_of_birth": "1984-03-12"}', f'{{"date_of_birth": "{D}"}}'),
    ("dob=12.03.84&x", f"dob={D}&x"),
    ("Birthday: the 12th of March 1984", f"Birthday: {D}"),
    ("geboren am 3. Mai 1990", f"geboren am {D}"),
    ("to 742 Evergreen Terrace, Springfield, OR 97403 last", f"to {A} last"),
    ("1600 Pennsylvania Avenue NW, Washington, DC 20500", A),
    ("221B Baker Street, London NW1 6XE", A),
    ("5 5th Ave, New York, NY 10003-1234", A),
    ("Address: 12 Main St", f"Address: {A}"),
    ("lives at 12 Main Street, Apt 4B, Springfield IL 62701.", f"lives at {A}."),
    ("12 rue de la Paix, 75002 Paris", A),
    ("Hauptstra\u00dfe 12a, 10115 Berlin", A),
    ("Lange Stra\u00dfe 5\n12345 Neustadt", f"Lange {A}"),
    ("Musterweg 3, A-1234 Wien", A),
    ("Dorpsstraat 12, 1234 AB Amsterdam", A),
]
KEPT = [
    *("my name is not important", "the name is Apollo", "Dear Sir or Madam", "Dear Customer,"),
    *("attn: someone", "Regards,\nThe Support Team", "born to run", "Mr", "Dear ", "5 Ms", "DOB: "),
    *("5 Main points in 2024", "12 Apples St", "address: unknown", "12 Main Street", "birthday: x"),
    *("my name is", "overmyname is Jane", "xMr Smith", "ship to production", "version 1984-03-12"),
]


@pytest.mark.parametrize(("text", "shown"), FOUND)
def test_what_a_cue_announces_is_masked_in_every_split(text: str, shown: str) -> None:
    whole = POLICY.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=14):
        assert streamed(POLICY, pieces) == (shown, whole.spans)


@pytest.mark.parametrize("text", KEPT)
def test_what_no_cue_announces_stays_in_every_split(text: str) -> None:
    for pieces in every_split(text, three_way_max=14):
        assert streamed(POLICY, pieces) == (text, ())


def test_no_preset_uses_rules_of_thumb() -> None:
    assert set(CUES) < set(FAMILIES)
    for name in ("default", "strict", "code"):
        assert not set(CUES) & set(RedactionPolicy.preset(name).actions)


FRAGMENTS = [
    *("my ", "name", " is ", "Jane", " Doe", "Dear ", "Mr", ". ", " ", "\n", "DOB", ":", "12", "/"),
    *("03/1984", "born on ", "March ", "1984", "742 ", "Evergreen ", "Terrace", ", ", "OR 97403"),
    *("Springfield", "Hauptstra\u00dfe ", "10115 Berlin", "12a", "J\u00fc", "van ", "\u200b", "a"),
]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=10))
def test_any_text_is_the_same_in_every_two_pieces(fragments: list[str]) -> None:
    text = "".join(fragments)
    whole = POLICY.redact(text)
    for place in range(len(text) + 1):
        assert streamed(POLICY, [text[:place], text[place:]]) == (whole.text, whole.spans)


def test_long_random_text_is_the_same_in_random_pieces() -> None:
    rnd = seeded(5)
    made = RedactionPolicy.preset("strict").with_actions(dict.fromkeys(CUES, "mask"))
    text = "".join(rnd.choice(FRAGMENTS) for _ in range(800))
    whole = made.redact(text)
    for _ in range(4):
        assert streamed(made, random_pieces(text, rnd)) == (whole.text, whole.spans)
