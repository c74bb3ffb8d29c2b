"""What does one line of a case file say?

Lives here: reading and checking a file, the placeholder words in its strings. Does not live
here: what the keys make the drivers do, what the expectations mean (rules).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KNOWN_CUSTOMER = "CUST-10001"
TENANT_KEY = "-".join(("case", "tenant", "key"))

KINDS = ("stdio", "mcp", "llm", "http", "steps")
_ANY = frozenset(["kind", "note"])
INPUT_KEYS: Mapping[str, frozenset[str]] = {
    "stdio": _ANY
    | {"handshake", "send", "send_raw", "send_b64", "then", "tool_under_test", "generate"},
    "mcp": _ANY | {"as", "headers", "body", "variants", "config", "upstream"},
    "llm": _ANY
    | {"request", "upstream", "client", "slow", "generate", "variants", "headers", "config"},
    "http": _ANY | {"config", "requests", "upstream"},
    "steps": _ANY | {"config", "steps", "client", "upstream", "generate"},
}
_REPEAT = re.compile(r"\$REPEAT\(\s*(?P<what>.+?)\s*,\s*(?P<times>[0-9]+)\s*\)", re.DOTALL)


class BadFile(ValueError):
    """A file that is not in the format; the text says where."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `input` has its constant words replaced; `$NEXT` and `$GENERATED` stay."""

    id: str
    title: str
    input: dict[str, Any]
    expect: dict[str, Any]
    place: str

    @property
    def kind(self) -> str:
        """stdio, mcp, llm, http or steps."""
        return str(self.input["kind"])

    @property
    def config(self) -> dict[str, Any]:
        """The words of `input.config`."""
        found = self.input.get("config")
        return found if isinstance(found, dict) else {}

    @property
    def sentences(self) -> list[str]:
        """`expect.assert`."""
        return list(self.expect.get("assert", []))

    @property
    def test_name(self) -> str:
        """The name of the test that may cover it."""
        return "test_case_" + re.sub(r"[^A-Za-z0-9]", "_", self.id)

    def unknown_keys(self) -> list[str]:
        """Keys of the input that no driver reads."""
        return sorted(set(self.input) - INPUT_KEYS[self.kind])


def load(path: Path) -> list[Case]:
    """Every case of a file; raises BadFile."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            cases.append(_case(line, f"{path.name}:{number}"))
    return cases


def _case(line: str, place: str) -> Case:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BadFile(f"{place}: not JSON: {error}") from None
    missing = [key for key in ("id", "input", "expect") if key not in value]
    if missing:
        raise BadFile(f"{place}: no {', '.join(missing)}")
    kind = value["input"].get("kind")
    if kind not in KINDS:
        raise BadFile(f"{place}: unknown kind {kind!r}")
    return Case(
        id=str(value["id"]),
        title=str(value.get("title", "")),
        input=replaced(value["input"]),
        expect=replaced(value["expect"]),
        place=place,
    )


def replaced(value: Any) -> Any:
    """`value` with `$KNOWN`, `$TENANT` and `$REPEAT(x,n)` replaced in every string."""
    if isinstance(value, str):
        value = _REPEAT.sub(lambda m: _unquoted(m["what"]) * int(m["times"]), value)
        return value.replace("$KNOWN", KNOWN_CUSTOMER).replace("$TENANT", TENANT_KEY)
    if isinstance(value, list):
        return [replaced(item) for item in value]
    if isinstance(value, dict):
        return {key: replaced(item) for key, item in value.items()}
    return value


def _unquoted(text: str) -> str:
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def each_file(paths: list[Path]) -> Iterator[Case]:
    """The cases of all files, in order."""
    for path in paths:
        yield from load(path)
