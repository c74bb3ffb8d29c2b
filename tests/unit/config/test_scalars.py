import pytest
import yaml

from tidegate.config.scalars import resolve

CLEAR = ["true", "false", "null", "~", "", "0", "-1", "12", "1.5", "-0.5", "1.5e+3", "text", "a:b"]
UNCLEAR = [
    "yes",
    "No",
    "ON",
    "off",
    "010",
    "08",
    "1:30",
    "190:20:30",
    "0x1f",
    "0b11",
    "1_000",
    "0o7",
]


@pytest.mark.parametrize("word", CLEAR)
def test_a_clear_word_is_read_as_an_ordinary_yaml_reader_reads_it(word: str) -> None:
    value, ambiguity = resolve(word)
    assert ambiguity is None
    assert value == yaml.safe_load(word)
    assert type(value) is type(yaml.safe_load(word))


@pytest.mark.parametrize("word", UNCLEAR)
def test_a_word_that_readers_disagree_about_stays_text_and_says_why(word: str) -> None:
    value, ambiguity = resolve(word)
    assert value == word
    assert ambiguity is not None
    assert ambiguity.text == word
    assert ambiguity.reading


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("yes", "true"),
        ("off", "false"),
        ("0777", "777"),
        ("08080", "8080"),
        ("0x10", "16"),
        ("1_000", "1000"),
        ("1:30", ""),
        ("0b11", "3"),
        ("0b_", ""),
    ],
)
def test_the_plain_spelling_is_offered_where_there_is_one(word: str, plain: str) -> None:
    _, ambiguity = resolve(word)
    assert ambiguity is not None
    assert ambiguity.plain == plain


def test_numbers_without_measure_stay_beyond_every_bound() -> None:
    value, _ = resolve("9" * 100_000)
    assert isinstance(value, int)
    assert value > 10**30
    assert resolve("-" + "9" * 100)[0] == int("-" + "9" * 39)
    assert resolve("1." + "9" * 100)[0] == "1." + "9" * 100


def test_special_numbers_are_read_so_that_they_can_be_refused() -> None:
    assert resolve(".inf")[0] == float("inf")
    assert resolve("-.INF")[0] == float("-inf")
    assert str(resolve(".nan")[0]) == "nan"
