import json
import re

import pytest

from tests.unit.redaction.chat import Client, chunk, content, finish
from tests.unit.redaction.laws import random_pieces, seeded
from tests.unit.redaction.samples import EMAIL, MASKED
from tidegate.redaction import (
    ChatStreamRedactor,
    RedactionPolicy,
    redact_chat_completion,
    redact_chat_request,
)
from tidegate.redaction.spans import CARD, SECRET, Kind
from tidegate.redaction.spans import EMAIL as EMAIL_KIND
from tidegate.redaction.treatment import Treatment
from tidegate.redaction.vault import DRIFT, MAX_ENTRIES, Vault
from tidegate.testing.splits import every_split

pytestmark = pytest.mark.full

POLICY = RedactionPolicy.preset("default")
SALT = bytes(range(16))
JANE, JOHN = "jane@example.com", "john@example.org"
ODD = 'a"b\\c\n\u00fc\U0001f600</script>'


def filled() -> tuple[Vault, str, str, str]:
    """A vault of three values, and their placeholders."""
    vault = Vault(SALT)
    id_kind = Kind("NATIONAL_ID", "national_id")
    placeholders = [
        vault.placeholder(EMAIL_KIND, JANE),
        vault.placeholder(EMAIL_KIND, JOHN),
        vault.placeholder(id_kind, ODD),
    ]
    return vault, *placeholders


def streamed(vault: Vault, pieces: list[str]) -> str:
    restorer = vault.restorer()
    out = ""
    for piece in pieces:
        out += restorer.feed(piece)
        assert restorer.pending <= max(map(len, filled()[1:])) + DRIFT
    return out + restorer.flush()


def oracle(text: str) -> str:
    """Placeholder after placeholder, by one regex each over the whole text."""
    _, *placeholders = filled()
    longest = max(map(len, placeholders)) + DRIFT
    found: dict[int, tuple[int, str]] = {}
    for placeholder, value in zip(placeholders, (JANE, JOHN, ODD), strict=True):
        core = [char for char in placeholder if char.isalnum()]
        drift = r"[_\- *`\\]*"
        body = drift + drift.join(core) + drift
        for pair in (rf"\\\[{body}\\\]", rf"\[{body}\]"):
            for match in re.finditer(pair, text, re.IGNORECASE | re.ASCII):
                if len(match[0]) <= longest:
                    found.setdefault(match.start(), (match.end(), value))
    out, place = "", 0
    for start in sorted(found):
        if start >= place:
            out += text[place:start] + found[start][1]
            place = found[start][0]
    return out + text[place:]


def test_a_placeholder_names_the_kind_and_is_no_word_and_no_number() -> None:
    for placeholder, word in zip(filled()[1:], ("EMAIL", "EMAIL", "NATIONAL_ID"), strict=True):
        assert re.fullmatch(rf"\[{word}_[bcdfghjkmnpqrstvwxyz]{{14}}\]", placeholder)


def test_the_same_value_has_the_same_placeholder_and_another_kind_another() -> None:
    vault, jane, john, _ = filled()
    assert vault.placeholder(EMAIL_KIND, JANE) == jane
    assert len({jane, john, vault.placeholder(SECRET, JANE)}) == 3
    assert len(vault) == 4


def test_two_requests_never_share_a_placeholder() -> None:
    vaults = [Vault(number.to_bytes(16)) for number in range(2000)]
    issued = [
        vault.placeholder(kind, value)
        for vault in vaults
        for kind, value in ((EMAIL_KIND, JANE), (EMAIL_KIND, JOHN), (CARD, "4"))
    ]
    assert len(set(issued)) == len(issued)


def test_a_salt_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="16 random bytes"):
        Vault(b"short")


@pytest.mark.parametrize("name", ["default", "strict", "code"])
def test_no_detector_matches_a_placeholder(name: str) -> None:
    policy = RedactionPolicy.preset(name)
    for placeholder in filled()[1:]:
        for text in (
            placeholder,
            f"**{placeholder}**",
            f"password: {placeholder}",
            f'{{"api_key": "{placeholder}"}}',
            f"Authorization: Bearer {placeholder}",
            f"my SSN is {placeholder}, card {placeholder}.",
            f"mailto:{placeholder}",
        ):
            assert policy.redact(text).text == text


def drifted(placeholder: str) -> list[str]:
    inner = placeholder[1:-1]
    word, token = inner.rsplit("_", 1)
    return [
        placeholder,
        placeholder.lower(),
        f"[{word.title()}_{token.upper()}]",
        f"[ {inner} ]",
        f"[{word} {token}]",
        f"[{word}-{token}]",
        f"[{word} _ {token}]",
        rf"\[{word}\_{token}\]",
        f"[**{inner}**]",
        f"[`{inner}`]",
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_models_do_to_the_spelling_of_a_placeholder_is_forgiven(place: int) -> None:
    vault, *placeholders = filled()
    value = (JANE, JOHN, ODD)[place]
    for spelling in drifted(placeholders[place]):
        text = f"an **{spelling}**, [{spelling}] ({spelling})"
        assert vault.restore(text) == f"an **{value}**, [{value}] ({value})"


def test_a_placeholder_that_was_never_issued_stays_literal() -> None:
    vault, jane, john, _ = filled()
    token = jane[7:-1]
    for text in (
        "[EMAIL_1]",
        "[EMAIL_bcdfghjkmnpqrs]",
        f"[PHONE_{token}]",
        f"[NATIONAL_ID_{token}]",
        f"EMAIL_{token}",
        f"[EMAIL_{token}",
        f"[EMAIL_{token}x]",
        f"[EMAIL_{token[:-1]}]",
        f"[EMAIL.{token}]",
        f"(EMAIL_{token})",
        f"[EMAIL{'_' * (DRIFT + 8)}{token}]",
        f"[EMAIL_\u0131{token}]",
        john.replace(john[7:10], jane[7:10]),
        Vault(SALT[::-1]).placeholder(EMAIL_KIND, JANE),
        "[REDACTED_EMAIL]",
        "[[[",
        "\\",
    ):
        assert vault.restore(text) == text
    assert Vault(SALT).restore(jane) == jane


@pytest.mark.parametrize(
    "text",
    [
        rf"CORP\{JANE}",
        rf"C:\users\{JANE}\d",
        f"\\{JANE}\\",
        rf"\\{JANE}\\ [\{JANE}\]",
        rf"[\[{JANE}\]",
        f"`{JANE}` *{JOHN}* _{JANE} - {JOHN}",
    ],
)
def test_a_backslash_of_the_clients_own_comes_back(text: str) -> None:
    vault, seen = masked(text)
    for pieces in every_split(seen, three_way_max=0):
        assert streamed(vault, pieces) == text
    raw = json.dumps({"path": seen})
    for pieces in every_split(raw, three_way_max=0):
        joined = answered(vault, [*map(call, pieces), finish("tool_calls")]).arguments[0, 0]
        assert json.loads(joined) == {"path": text}


def texts() -> list[str]:
    _, jane, john, odd = filled()
    return [
        f"Write to {jane}, or to {john}; never to {odd}.",
        f"{jane}{john}{odd}",
        f"[{jane[:-1]}{jane}{jane[:9]}",
        rf"\\{jane} \[{john[1:]} [a\_b] \{odd}\\",
        rf"C:\{jane}\d \[{jane[1:-1]}\] \[{john[1:-1]} \ ] \\[{odd[1:-1]}\\]",
        " ".join(drifted(jane)),
        f"[EMAIL_{'*' * 9}{jane[7:]}[EMAIL{'*' * 8}{jane[7:]}",
        f"{jane[:8]}\u00e9{jane[8:]} [x] {john.swapcase()}",
    ]


@pytest.mark.parametrize("text", texts())
def test_every_cut_of_a_text_is_restored_as_the_oracle_does(text: str) -> None:
    vault = filled()[0]
    expected = oracle(text)
    for pieces in every_split(text, three_way_max=0):
        assert streamed(vault, pieces) == expected


@pytest.mark.full
@pytest.mark.parametrize("text", [*texts()[1:4], texts()[5]])
def test_every_three_way_cut_of_a_text_is_restored_as_the_oracle_does(text: str) -> None:
    vault = filled()[0]
    expected = oracle(text)
    for pieces in every_split(text, three_way_max=200):
        assert streamed(vault, pieces) == expected


def test_random_texts_of_placeholder_parts_are_restored_as_the_oracle_does() -> None:
    rnd = seeded(5)
    vault, jane, john, odd = filled()
    parts = [*jane, *drifted(jane), *drifted(odd), john, "[", "]", "\\", "_", " ", "\\[", jane[:12]]
    for _ in range(120):
        text = "".join(rnd.choice(parts) for _ in range(rnd.randrange(30)))
        assert streamed(vault, random_pieces(text, rnd)) == vault.restore(text) == oracle(text)


def test_text_without_a_bracket_is_never_held() -> None:
    restorer = filled()[0].restorer()
    for piece in ("Dear ", "Jane", ", EMAIL_", "x] "):
        assert restorer.feed(piece) == piece
    assert restorer.feed("[Ema") == ""
    assert restorer.feed("nuel]") == "[Emanuel]"


def test_a_full_vault_masks_for_good() -> None:
    vault = Vault(SALT)
    for number in range(MAX_ENTRIES):
        vault.placeholder(EMAIL_KIND, f"user{number}@example.com")
    assert vault.refused == 0
    assert vault.placeholder(EMAIL_KIND, JANE) == EMAIL
    assert vault.placeholder(EMAIL_KIND, "user7@example.com") != EMAIL
    assert (len(vault), vault.refused) == (MAX_ENTRIES, 1)


def test_no_representation_shows_a_value() -> None:
    vault, jane, *_ = filled()
    restorer = vault.restorer()
    restorer.feed(jane[:9])
    shown = repr(vault) + repr(restorer) + repr(Treatment(POLICY, vault=vault))
    assert JANE not in shown
    assert jane not in shown


def masked(text: str) -> tuple[Vault, str]:
    """The vault of a request with this prompt, and the prompt as the provider sees it."""
    vault = Vault(SALT)
    treatment = Treatment(POLICY, replace=vault.placeholder)
    body, found = redact_chat_request({"messages": [{"content": text}]}, treatment)
    assert found == {"email": text.count("@")}
    return vault, body["messages"][0]["content"]  # type: ignore[index]


def answered(vault: Vault, events: list[bytes], **options: object) -> Client:
    redactor = ChatStreamRedactor(Treatment(POLICY, vault=vault, **options))  # type: ignore[arg-type]
    client = Client()
    for event in events:
        for data in redactor.feed(event):
            client.read(data)
    for data in redactor.finish():
        client.read(data)
    return client


def test_a_prompt_and_its_answer_make_the_round_trip_under_every_cut() -> None:
    prompt = f"Write to {JANE} and {JOHN}, then to {JANE} again."
    vault, seen = masked(prompt)
    assert JANE not in seen
    assert JOHN not in seen
    assert len(vault) == 2
    answer = seen.replace("again", "twice")
    for pieces in every_split(answer, three_way_max=0):
        client = answered(vault, [*(content(piece) for piece in pieces), finish()])
        assert client.texts == {0: prompt.replace("again", "twice")}
        assert client.late == 0


def test_the_users_value_is_restored_and_the_models_own_is_masked() -> None:
    """Echo and injection at once, as pii-leak-benchmark v2 scores them."""
    vault, seen = masked(f"I am {JANE}")
    placeholder = seen.removeprefix("I am ")
    answer = f"Hello {placeholder}; {JANE} and {JOHN} are other people's."
    for pieces in every_split(answer, three_way_max=0):
        client = answered(vault, [*(content(piece) for piece in pieces), finish()])
        assert client.texts == {0: f"Hello {JANE}; {EMAIL} and {EMAIL} are other people's."}


def call(arguments: str, **more: object) -> bytes:
    function = {"arguments": arguments, **more}
    return chunk({"tool_calls": [{"index": 0, "function": function}]})


@pytest.mark.parametrize("mode", [True, "detect", False])
def test_arguments_make_the_round_trip_under_every_cut_and_stay_json(mode: object) -> None:
    vault, jane, _, odd = filled()
    raw = json.dumps({"to": [jane, f"<{odd}>"], jane: "x", "n": 1, "k": f"\\/{jane.lower()}"})
    raw = raw.replace("<", "\\u003c")
    for pieces in every_split(raw, three_way_max=0):
        client = answered(vault, [*map(call, pieces), finish("tool_calls")], tool_arguments=mode)
        joined = client.arguments[0, 0]
        # A key is structure: what a model writes there is never made a value of the user's.
        wanted = {"to": [JANE, f"<{ODD}>"], jane: "x", "n": 1, "k": f"\\/{JANE}"}
        assert json.loads(joined) == wanted
        assert "\\u003c" in joined


def test_a_value_cannot_break_out_of_the_arguments() -> None:
    """What stands for a value may hold quotes: it stays one string, and adds no member."""
    vault = Vault(SALT)
    evil = 'x", "bcc": "eve@example.com'
    placeholder = vault.placeholder(Kind("NAME", "name"), evil)
    events = [call(f'{{"to": "{placeholder}"}}'), finish("tool_calls")]
    assert json.loads(answered(vault, events).arguments[0, 0]) == {"to": evil}


def test_a_placeholder_across_two_strings_of_the_arguments_stays_in_pieces() -> None:
    vault, jane, *_ = filled()
    raw = json.dumps([jane[:9], jane[9:]])
    assert json.loads(answered(vault, [call(raw)]).arguments[0, 0]) == [jane[:9], jane[9:]]


def test_a_masked_value_ends_a_placeholder_that_has_begun() -> None:
    vault, jane, *_ = filled()
    raw = json.dumps(f"{jane[:9]} {JANE} {jane[9:]} {jane}")
    for pieces in every_split(raw, three_way_max=0):
        joined = answered(vault, [call(piece) for piece in pieces]).arguments[0, 0]
        assert json.loads(joined) == f"{jane[:9]} {EMAIL} {jane[9:]} {JANE}"


def test_a_whole_answer_is_restored_as_its_stream_is() -> None:
    vault, jane, john, _ = filled()
    text = f"{jane} {JOHN} {john.lower()} [EMAIL_x"
    arguments = json.dumps({"to": jane})
    message = {"content": text, "tool_calls": [{"function": {"arguments": arguments}}]}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    treatment = Treatment(POLICY, vault=vault, tool_arguments="detect")
    whole, found = redact_chat_completion(answer, treatment)
    shown = whole["choices"][0]["message"]  # type: ignore[index]
    assert shown["content"] == f"{JANE} {EMAIL} {JOHN} [EMAIL_x"
    assert json.loads(shown["tool_calls"][0]["function"]["arguments"]) == {"to": JANE}
    assert found == {"email": 1}
    streamed_answer = answered(vault, [*(content(char) for char in text), finish()])
    assert streamed_answer.texts == {0: shown["content"]}


def test_an_empty_vault_leaves_every_byte_as_it_came() -> None:
    event = content("[EMAIL_x] \\ ")
    redactor = ChatStreamRedactor(Treatment(POLICY, vault=Vault(SALT)))
    assert redactor.feed(event) == [event]


# Certain before their end is in sight, so what is there of them cannot be kept.
ENDLESS = {"jwt_700", "pem", "pem_pkcs8", "pem_one_line", "pem_pgp"}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text, _ in MASKED])
def test_every_masked_sample_comes_back_unless_its_end_was_not_in_sight(
    name: str, text: str
) -> None:
    vault = Vault(SALT)
    seen = POLICY.redact(text, replace=vault.placeholder).text
    assert seen != text
    assert (vault.restore(seen) == text) == (name not in ENDLESS)
