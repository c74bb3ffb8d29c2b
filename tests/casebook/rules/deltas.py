"""Which sentences compare chunks with what the upstream sent, field by field?

Tool calls, vendor fields, reasoning, secrets longer than a window. Does not live here: joined
texts (stream), requests (upstream).
"""

import json
import re
from typing import Any

from tests.casebook.events import TEXT_FIELDS
from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.seen import Exchange, check, equal, parsed, same, short

Match = re.Match[str]
_LLM = ("llm",)
# Characters of a secret that prove a leak; shorter runs occur by chance.
_LEAK_CHARS = 8


def _skeleton(call: dict[str, Any]) -> dict[str, Any]:
    """A tool-call delta without its argument text."""
    kept = {key: value for key, value in call.items() if key != "function"}
    function = call.get("function")
    if isinstance(function, dict):
        kept["function"] = {key: value for key, value in function.items() if key != "arguments"}
    return kept


def _calls_as_sent(exchange: Exchange, m: Match, view: View) -> None:
    said = [_skeleton(call) for _, _, call in exchange.canned_chat.tool_deltas()]
    got = [_skeleton(call) for _, _, call in exchange.chat.tool_deltas()]
    check(said, "the upstream sent no tool calls")
    # One event may be added to let held text out before the finish; it names nothing.
    added = len(got) - len(said)
    if added == 1 and not got[-1].get("id") and not (got[-1].get("function") or {}).get("name"):
        got = got[:-1]
    equal(got, said, "tool calls")


def _arguments_complete(exchange: Exchange, m: Match, view: View) -> None:
    said = {str(key): text for key, text in exchange.canned_chat.arguments().items()}
    got = {str(key): text for key, text in exchange.chat.arguments().items()}
    check(said, "the upstream sent no arguments")
    equal(got, said, "arguments")


def _arguments_are(exchange: Exchange, m: Match, view: View) -> None:
    texts = list(exchange.chat.arguments().values())
    check(len(texts) == 1, f"arguments of {len(texts)} calls")
    got, wanted = parsed(texts[0]), parsed(m["json"])
    check(got is not None, f"not JSON: {short(texts[0])}")
    equal(got, wanted, "arguments")


def _name_untouched(exchange: Exchange, m: Match, view: View) -> None:
    def named(chat: Any) -> list[object]:
        return [
            (call.get("id"), (call.get("function") or {}).get("name"))
            for _, _, call in chat.tool_deltas()
            if call.get("id") or (call.get("function") or {}).get("name")
        ]

    check(named(exchange.canned_chat), "the upstream named no function")
    equal(json.dumps(named(exchange.chat)), json.dumps(named(exchange.canned_chat)), "names, ids")


def _blank(value: Any) -> Any:
    """A chunk with the texts that may be held taken out; the fields themselves stay."""
    if isinstance(value, dict):
        return {
            k: "" if k in TEXT_FIELDS and isinstance(v, str) else _blank(v)
            for k, v in value.items()
        }
    return [_blank(item) for item in value] if isinstance(value, list) else value


def _fields_equal(exchange: Exchange, m: Match, view: View) -> None:
    said = [chunk for _, chunk in exchange.canned_chat.chunks]
    got = [chunk for _, chunk in exchange.chat.chunks]
    equal(exchange.chat.texts.__repr__(), exchange.canned_chat.texts.__repr__(), "texts")
    left = list(got)
    for chunk in said:
        at = next((n for n, other in enumerate(left) if same(_blank(other), _blank(chunk))), None)
        check(at is not None, f"no chunk equals {short(chunk)}")
        left = left[(at or 0) + 1 :]
    added = len(got) - len(said)
    check(added <= 1, f"{added} chunks more than the upstream sent")


def _fields_in_place(exchange: Exchange, m: Match, view: View) -> None:
    said, got = exchange.canned_chat, exchange.chat
    equal(sorted(map(str, got.texts)), sorted(map(str, said.texts)), "text fields")
    for (index, name), text in got.texts.items():
        original = said.texts[index, name]
        masked = "[REDACTED_" in text
        personal = re.search(r"@|\d{13,}|\d{3}-\d{2}-\d{4}", original)
        check(bool(masked) == bool(personal), f"{name}: {short(text)} for {short(original)}")


def _field_value(exchange: Exchange, m: Match, view: View) -> None:
    equal(exchange.chat.text(0, m["field"]), m["value"], m["field"])


def _held_per_field(exchange: Exchange, m: Match, view: View) -> None:
    """Each field, redacted as if it were alone, gives what arrived."""
    for (_, name), text in exchange.chat.texts.items():
        said = exchange.canned_chat.texts.get((0, name), "")
        around = re.split(r"\[REDACTED_[A-Z_]+\]", text)
        at = 0
        for part in around:
            found = said.find(part, at)
            check(found >= 0, f"{name}: {short(part)} is not of this field")
            at = found + len(part)


def _event_whole(exchange: Exchange, m: Match, view: View) -> None:
    said = [chunk for _, chunk in exchange.canned_chat.chunks]
    largest = max(said, key=lambda chunk: len(json.dumps(chunk)))
    got = [chunk for _, chunk in exchange.chat.chunks]
    check(any(same(chunk, largest) for chunk in got), f"{len(got)} chunks, none is the large one")


def _no_leak(exchange: Exchange, secret: str) -> None:
    """No run of the secret's own characters in the answer, and one placeholder for it."""
    text = exchange.chat.text()
    body = secret.removeprefix("sk-proj-")
    for at in range(len(body) - _LEAK_CHARS + 1):
        run = body[at : at + _LEAK_CHARS]
        check(run not in text and run not in exchange.text, f"{run!r} of the secret leaked")
    marks = re.findall(r"\[REDACTED_[A-Z_]+\]", text)
    check(len(marks) == 1, f"placeholders {marks} in {short(text)}")
    check(text.startswith("key ") and text.endswith(" end"), f"text {short(text)}")


def _secret_gone(exchange: Exchange, m: Match, view: View) -> None:
    secret = exchange.secret
    check(secret, "no secret was generated")
    if m.groupdict().get("optional") and secret in exchange.chat.text():
        return  # the detector of this kind is off: then the text is as it was
    _no_leak(exchange, secret)


RULES = (
    Rule(
        "tool calls as sent",
        r"(?:index|id|name|type)(?:(?:, | and |, and )(?:index|id|name|type))* "
        r"(?:arrive|are|stay) as sent(?: \(.*\))?",
        each(_calls_as_sent),
        _LLM,
    ),
    Rule(
        "arguments complete",
        r"argument(?:s'?| text)s?(?: (?:per|of|for) (?:both |all |each |every )?(?:tool )?"
        r"(?:positions?|index|calls?))? (?:is|are) complete",
        each(_arguments_complete),
        _LLM,
    ),
    Rule(
        "arguments are",
        r"joined arguments (?:parse as JSON and )?(?:equal|are) (?P<json>\{.*\})",
        each(_arguments_are),
        _LLM,
    ),
    Rule(
        "names untouched",
        r"(?:the )?(?:function )?names?(?: and ids?)? (?:are |is )?(?:untouched|unchanged|as sent)",
        each(_name_untouched),
        _LLM,
    ),
    Rule(
        "fields equal",
        r"(?:every|each|all) (?:unknown )?fields? arrives? (?:JSON-)?equal(?: in the "
        r"same chunk)?|(?:unknown|extra|vendor) fields? (?:arrives?|(?:is|are) kept)"
        r"(?: unchanged)?",
        each(_fields_equal),
        _LLM,
    ),
    Rule(
        "fields in place",
        r"fields stay in place(?:, values redacted)?|values redacted",
        each(_fields_in_place),
        _LLM,
    ),
    Rule(
        "field value",
        rf'(?P<field>{"|".join(TEXT_FIELDS)})(?: is)? "(?P<value>[^"]*)"',
        each(_field_value),
        _LLM,
    ),
    Rule(
        "held per field",
        r"hold-?back state is kept per (?:field|choice|position)",
        each(_held_per_field),
        _LLM,
    ),
    Rule(
        "event whole", r"(?:the )?event arrives whole(?: and unchanged)?", each(_event_whole), _LLM
    ),
    Rule(
        "secret gone",
        r"one placeholder, none of the \d+ characters leaks|(?:same|the same)"
        r"(?P<optional> if the detector is on)?|no character of it leaks",
        each(_secret_gone),
        _LLM,
    ),
)
