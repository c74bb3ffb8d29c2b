"""Which values do the words of a sentence stand for?

Lives here: numbers, quoted strings, lists and sizes in English. Does not live here: sentences.
"""

import json
import re
from typing import Any

_NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
]
NUMBER = r"(?:\d+|" + "|".join(_NUMBERS) + r"|once|twice|both|an?|no|none|a single)"
ORDINAL = r"(?:" + "|".join(_ORDINALS) + r"|last)"
STATUSES = r"[1-5](?:\d\d|xx)(?:(?:,? or |, |/)(?:an? )?[1-5](?:\d\d|xx))*"
RPC_CODE = r"-3\d{4}"


def number(text: str) -> int:
    """A number in figures or letters."""
    text = text.lower().strip()
    special = {"once": 1, "twice": 2, "both": 2, "a": 1, "an": 1, "a single": 1, "no": 0, "none": 0}
    if text in special:
        return special[text]
    return int(text) if text.isdigit() else _NUMBERS.index(text)


def ordinal(text: str, count: int) -> int:
    """Position from 0 of "first", "third", "last" among `count`."""
    return count - 1 if text.lower() == "last" else _ORDINALS.index(text.lower())


def statuses(text: str) -> list[str]:
    """Status codes and classes ("5xx") in a text."""
    return re.findall(r"\b[1-5](?:\d\d|xx)\b", text)


def status_fits(status: int, wanted: list[str]) -> bool:
    """Whether a status is one of these codes or classes."""
    return any(
        str(status) == code or (code.endswith("xx") and str(status)[:1] == code[0])
        for code in wanted
    )


def seconds(text: str) -> float:
    """A duration such as "60 ms", "1 s" or "0.5 s" in seconds."""
    found = re.search(r"([0-9.]+)\s*(ms|s|min)", text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * {"ms": 0.001, "s": 1.0, "min": 60.0}[found[2]]


def size_bytes(text: str) -> int:
    """A size such as "16 MB" in bytes."""
    found = re.search(r"([0-9.]+)\s*(k|M|G)?i?B", text)
    if found is None:
        raise ValueError(text)
    return int(float(found[1]) * {None: 1, "k": 2**10, "M": 2**20, "G": 2**30}[found[2]])


def quoted(text: str) -> list[str]:
    """Every string in double quotes."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', text)


def items(text: str) -> list[str]:
    """The members of "a, b and c" (or "a, b or c", "a/b"); quotes are taken off."""
    parts = re.split(r",\s*(?:and |or |nor )?|\s+(?:and|or|nor)\s+|(?<=\w)/(?=\w)", text)
    return [part.strip().strip('"') for part in parts if part.strip()]


def literal(text: str) -> Any:
    """A JSON literal, or the text itself (without quotes)."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip('"')


def ids(text: str) -> list[Any]:
    """Ids in "1, 2 and 3" or "3 to 6"."""
    span = re.fullmatch(r"(\d+) (?:to|-|through|…) (\d+)", text.strip())
    if span:
        return list(range(int(span[1]), int(span[2]) + 1))
    return [literal(item) for item in items(text)]
