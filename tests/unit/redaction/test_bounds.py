"""However long a text or a secret is: what is held, what is shown, what is remembered."""

import resource
import sys
from collections.abc import Iterator

import pytest

from tests.unit.redaction.documents import document
from tests.unit.redaction.samples import BODY, MASKED, SECRET
from tidegate.redaction import RedactionPolicy, Redactor
from tidegate.redaction.folding import OPEN_MAX
from tidegate.redaction.hits import HOLD

pytestmark = pytest.mark.full

POLICIES = {name: RedactionPolicy.preset(name) for name in ("default", "strict")}
MB = 1024 * 1024
_PEM = "-" * 5 + "{} RSA PRIVATE KEY" + "-" * 5
_URL_SAFE = BODY.replace("0", "-").replace("9", "_")
# How a secret begins and ends, and what it is made of.
SECRETS = {
    "jwt": ("ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J", _URL_SAFE, ""),
    "jwt_header": ("ey" + "J", _URL_SAFE, ""),
    "jwe": ("ey" + "JhbGciOiJSU0EifQ.", _URL_SAFE + ".", "a"),
    "key": ("sk-" + "proj-", _URL_SAFE, ""),
    "github": ("gh" + "p_", BODY, ""),
    "pem": (_PEM.format("BEGIN") + "\n", BODY[:64] + "\n", _PEM.format("END")),
    "pem_line": (_PEM.format("BEGIN") + "\\n", BODY[:64] + "\\n", _PEM.format("END")),
}


def secret(name: str, size: int) -> str:
    head, body, tail = SECRETS[name]
    inner = size - len(head) - len(tail)
    return head + (body * (inner // max(1, len(body)) + 1))[:inner] + tail


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


NAMES = list(SECRETS)
SIZES = (64, 100, 400, 511, 513, 1_000, 5_000, 70_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_secret_is_shown_however_long_it_is(name: str, size: int) -> None:
    _hidden(name, max(size, 260 if name == "jwt_header" else 0), piece=4 if size < 600 else 1000)


@pytest.mark.full
@pytest.mark.parametrize("size", [1 * MB, 10 * MB])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_huge_secret_is_shown(name: str, size: int) -> None:
    _hidden(name, size, piece=4096)
    _hidden(name, size // 50, piece=7)


def _hidden(name: str, size: int, *, piece: int) -> None:
    value = secret(name, size)
    redactor = Redactor(POLICIES["default"], keep_spans=False)
    shown = redactor.feed("before ")
    fed = 0
    for part in pieces(value, piece):
        shown += redactor.feed(part)
        fed += len(part)
        assert redactor.pending < HOLD + OPEN_MAX
        # The placeholder stands there once 512 characters of the secret have arrived.
        assert shown == (f"before {SECRET}" if fed >= 512 else shown)
        assert shown in {"before ", f"before {SECRET}"}
    assert shown + redactor.feed(" after") + redactor.flush() == f"before {SECRET} after"


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("sample", "text", "shown"), MASKED, ids=[name for name, *_ in MASKED])
def test_no_beginning_of_a_value_is_ever_shown(
    name: str, sample: str, text: str, shown: str
) -> None:
    policy = POLICIES[name]
    whole = policy.redact(text)
    redactor = Redactor(policy)
    seen = ""
    for char in text:
        seen += redactor.feed(char)
        # What has left is never taken back, and none of it is the beginning of a value.
        assert whole.text.startswith(seen)
    for span in whole.spans:
        head = text[span.start_in : span.start_in + 4]
        assert head not in seen or head in whole.text


@pytest.mark.full
@pytest.mark.parametrize("number", range(200))
def test_what_has_left_is_the_beginning_of_what_a_whole_document_shows(number: int) -> None:
    text, policy = document(number), POLICIES["strict"]
    whole, redactor, seen = policy.redact(text).text, Redactor(policy), ""
    for char in text:
        seen += redactor.feed(char)
        assert whole.startswith(seen)


def _stream(megabytes: int) -> Iterator[str]:
    """A text that repeats itself: prose, values, secrets, odd characters, endless words."""
    text = "".join(document(number) for number in range(40)) + "x" * 3000 + "\u200b" * 2000
    text += "Plain words, of which there are many more than of anything else. " * 4000
    for _ in range(megabytes * MB // len(text) + 1):
        yield from pieces(text, 3001)


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@pytest.mark.full
@pytest.mark.parametrize(("name", "megabytes"), [("default", 100), ("strict", 2)])
def test_memory_does_not_grow_over_a_hundred_megabytes(name: str, megabytes: int) -> None:
    redactor = Redactor(POLICIES[name], keep_spans=False)
    for part in _stream(2):
        redactor.feed(part)
    before = _peak_bytes()
    for part in _stream(megabytes):
        redactor.feed(part)
    assert _peak_bytes() - before < 2 * MB
