import pytest

from tests.unit.redaction.laws import random_pieces, seeded
from tidegate.redaction.sentences import MAX_CHARS, MAX_WORDS, Sentences
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full


def cut(pieces: list[str]) -> list[str]:
    sentences = Sentences()
    found = []
    for piece in pieces:
        found += sentences.feed(piece)
        assert sentences.pending < MAX_CHARS
    return found + sentences.flush()


ENDS = [
    ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
    ("a\nb\n\nc", ["a\n", "b\n", "\n", "c"]),
    (
        'He said "no." Then (yes.) And\u2026 so',
        ['He said "no." ', "Then (yes.) ", "And\u2026 ", "so"],
    ),
    ("3.14 is v1.2.3 of a.b", ["3.14 is v1.2.3 of a.b"]),
    ("Dr. Jane R. Doe is here. She", ["Dr. Jane R. Doe is here. ", "She"]),
    ("Mrs. Smith, St. Ives. Bye", ["Mrs. Smith, St. Ives. ", "Bye"]),
    (
        "\u5f20\u4e09\u3002\u674e\u56db\uff01\u597d",
        ["\u5f20\u4e09\u3002", "\u674e\u56db\uff01", "\u597d"],
    ),
    ("**Bold.** Next. ", ["**Bold.** ", "Next. "]),
    ("Wait... what?! Yes", ["Wait... ", "what?! ", "Yes"]),
    ("", []),
    ("   ", ["   "]),
    ("Warm. \n\nWord", ["Warm. ", "\n", "\n", "Word"]),
]


@pytest.mark.parametrize(("text", "sentences"), ENDS)
def test_a_sentence_ends_where_a_reader_would_say_so_under_every_cut(
    text: str, sentences: list[str]
) -> None:
    for pieces in every_split(text, three_way_max=30):
        assert cut(pieces) == sentences


def test_a_sentence_that_does_not_end_is_cut_at_its_last_space() -> None:
    text = ("abcdefgh " * 40)[: 9 * 40 - 1]
    assert [len(part) for part in cut([text])] == [234, 125]


def test_a_run_without_a_space_is_cut_at_the_bound() -> None:
    assert [len(part) for part in cut(["x" * 500])] == [240, 240, 20]


def test_a_sentence_has_at_most_so_many_words() -> None:
    parts = cut(["ab  " * 100])
    assert [len(part.split()) for part in parts] == [MAX_WORDS, MAX_WORDS, 20]
    assert all(part.strip() for part in parts)


LONG = [
    "x" * 239 + "A. Then" + "y" * 30,
    "x" * 240 + "Dr. Jane",
    ("M" * 239) + "r. Jane. " + "z " * 90,
    "Dr. " * 100,
    "\u00a0word " * 80,
    ". " * 150,
    "a b" * 110,
    "\n " * 15 + "q" * 250 + "?" * 20,
]


@pytest.mark.parametrize("text", LONG)
def test_a_long_text_is_cut_in_the_same_places_however_it_arrives(text: str) -> None:
    whole = cut([text])
    assert "".join(whole) == text
    assert max(map(len, whole)) <= MAX_CHARS
    for pieces in every_split(text, three_way_max=0):
        assert cut(pieces) == whole


def test_random_texts_are_cut_in_the_same_places_however_they_arrive() -> None:
    rnd = seeded(11)
    parts = ["Mr", "Dr", "A", ".", "! ", " ", "\n", '"', ")", "word", "\u3002", "x" * 70, "\u00e9"]
    for _ in range(80):
        text = "".join(rnd.choice(parts) for _ in range(rnd.randrange(60)))
        whole = cut([text])
        assert "".join(whole) == text
        assert cut(random_pieces(text, rnd)) == cut(list(text)) == whole


def test_after_a_flush_a_new_text_begins() -> None:
    sentences = Sentences()
    assert sentences.feed("Dr") == []
    assert sentences.flush() == ["Dr"]
    assert sentences.feed(". Jane") == [". "]
    assert sentences.flush() == ["Jane"]
