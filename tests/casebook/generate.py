"""What do the words of `generate` stand for?

Lives here: a small grammar over those words, giving lines for a stdio server, the tool they ask
for, or series of text deltas for a scripted provider. Does not live here: sending them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.casebook.cases import KNOWN_CUSTOMER

REASON = "damaged on arrival, photo sent"
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_LONG_TOOL = "long_answer"


class CannotGenerate(ValueError):
    """Words that no rule of this grammar reads."""


@dataclass
class Lines:
    """For a stdio server: what to send, and the body of an extra tool by name."""

    lines: list[str] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Deltas:
    """One stream: its label and the texts of its deltas."""

    label: str
    texts: list[str]
    secret: str = ""


def call(identifier: object, name: str, arguments: object) -> str:
    """One tools/call as a line."""
    params = f'{{"name":{json.dumps(name)},"arguments":{_compact(arguments)}}}'
    return (
        f'{{"jsonrpc":"2.0","id":{json.dumps(identifier)},"method":"tools/call","params":{params}}}'
    )


def _compact(value: object) -> str:
    # Text that is JSON already (too deep for json.dumps) stays as it is.
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def lines(words: str) -> Lines:
    """The lines that `words` ask for; raises CannotGenerate."""
    made = Lines()
    for part in re.split(r"\s*(?:;|,)\s+(?:and\s+)?(?:then\s+|also\s+)?", words):
        for pattern, make in _LINE_FORMS:
            found = re.fullmatch(pattern, part.strip().rstrip("."), re.IGNORECASE | re.DOTALL)
            if found:
                make(made, found)
                break
        else:
            raise CannotGenerate(part)
    return made


def _ping(made: Lines, m: re.Match[str]) -> None:
    made.lines.append(json.dumps({"jsonrpc": "2.0", "id": _id(m["id"]), "method": "ping"}))


def _repeated_field(made: Lines, m: re.Match[str]) -> None:
    arguments: dict[str, Any] = {"customer_id": KNOWN_CUSTOMER}
    if m["tool"] == "trigger_refund":
        arguments |= {"amount": 1.0, "reason": REASON}
    arguments[m["field"]] = m["text"] * int(m["times"])
    made.lines.append(call(_id(m["id"]), m["tool"], arguments))


def _nested(made: Lines, m: re.Match[str]) -> None:
    depth, opening = int(m["depth"]), m["open"][0]
    arrays = opening == "["
    inner = "[" * depth + "]" * depth if arrays else '{"x":' * depth + "1" + "}" * depth
    arguments = f"{{{json.dumps(m['field'])}:{inner}}}"
    made.lines.append(call(_id(m["id"]), m["tool"] or "get_customer_record", arguments))


def _long_answer(made: Lines, m: re.Match[str]) -> None:
    made.tools[_LONG_TOOL] = f'return "r" * {int(m["chars"])}'
    made.lines.append(call(_id(m["id"]), _LONG_TOOL, {}))


def _many(made: Lines, m: re.Match[str]) -> None:
    arguments = {"customer_id": KNOWN_CUSTOMER}
    for number in range(1, int(m["count"]) + 1):
        if m["what"].startswith("ping"):
            made.lines.append(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}))
        else:
            made.lines.append(call(number, "get_customer_record", arguments))


def _id(text: str) -> object:
    return json.loads(text) if re.fullmatch(r'-?\d+|".*"', text) else text


_ID = r'(?:as )?id (?P<id>-?\d+|"[^"]*"|[\w-]+)'
_LINE_FORMS: tuple[tuple[str, Callable[[Lines, re.Match[str]], None]], ...] = (
    (rf"(?:a )?ping (?:with )?{_ID}", _ping),
    (
        rf'(?P<tool>\w+) with (?P<field>\w+) = "(?P<text>[^"]+)" ?\* ?(?P<times>\d+) {_ID}',
        _repeated_field,
    ),
    (
        rf"(?:tools/call|(?P<tool>\w+)) (?:with )?{_ID} with arguments"
        r' \{"(?P<field>\w+)": ?(?P<open>\[+|(?:\{"?\w*"?:? ?)+)\.*(?P<depth>\d+)\.*[\]}]+\}',
        _nested,
    ),
    (
        rf"(?:a )?(?:toolkit )?tool that returns (?P<chars>\d+) characters {_ID}",
        _long_answer,
    ),
    (r"(?P<count>\d+) (?P<what>pings?|calls?|tools/calls?)(?: with ids 1 to \d+)?", _many),
)


def deltas(words: str) -> list[Deltas]:
    """The streams that `words` ask for; raises CannotGenerate."""
    text = re.search(r'text = "(?P<text>[^"]*)"', words)
    found: list[Deltas] = []
    if text is not None:
        found += _splits(words, text["text"])
    size = re.search(r"in (\d+)-character deltas", words)
    for label, description in re.findall(r"\((\w)\) (.+?)(?=; \(\w\)|$)", words):
        secret = _secret(description)
        step = int(size[1]) if size else 10
        whole = f"key {secret} end"
        found.append(Deltas(label, _cut(whole, step), secret))
    if not found:
        raise CannotGenerate(words)
    return found


def _splits(words: str, text: str) -> list[Deltas]:
    found = []
    if re.search(r"each i\b|every (place|position|split)|text\[:i\]", words):
        found += [Deltas(f"cut at {i}", [text[:i], text[i:]]) for i in range(1, len(text))]
    if re.search(r"one delta per character|character by character|1 character", words):
        found.append(Deltas("one by one", list(text)))
    if "whole" in words or not found:
        found.append(Deltas("whole", [text]))
    return found


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _secret(description: str) -> str:
    for pattern, make in _SECRET_FORMS:
        found = re.search(pattern, description)
        if found:
            return make(found)
    raise CannotGenerate(description)


def _filled(length: int, alphabet: str = _ALPHABET) -> str:
    # Fixed, and without long runs of one character class.
    return "".join(alphabet[(7 * at * at + 3 * at) % len(alphabet)] for at in range(length))


def _prefixed(m: re.Match[str]) -> str:
    return str(m["prefix"]) + _filled(int(m["count"]))


def _jwt(m: re.Match[str]) -> str:
    header = "ey" + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    rest = int(m["count"]) - len(header) - 2
    signature = 86
    return f"{header}.{'ey' + _filled(rest - signature - 2)}.{_filled(signature)}"


def _email(m: re.Match[str]) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    left = int(m["domain"]) - len("example.com")
    labels = []
    while left > 0:
        size = min(left - 1, 30) or 1
        labels.append(_filled(size, letters))
        left -= size + 1
    return f"{_filled(int(m['local']), letters)}@{'.'.join([*labels, 'example.com'])}"


_SECRET_FORMS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r'"(?P<prefix>[^"]+)" \+ (?P<count>\d+)(?: of | characters)', _prefixed),
    (r"JWT of (?P<count>\d+) characters", _jwt),
    (
        r"e-?mail with an? (?P<local>\d+)-character local part and an?"
        r" (?P<domain>\d+)-character domain",
        _email,
    ),
    (r'"(?P<text>[^"]+)"', lambda m: str(m["text"])),
)
