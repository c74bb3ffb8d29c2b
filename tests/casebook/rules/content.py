"""Which sentences name a text, a field or a number of things in an answer or in a request?

The general ones: "X does not reach the client", "upstream gets X", "usage arrives unchanged".
Does not live here: joined texts (stream), tool calls (deltas).
"""

import json
import re
from typing import Any

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.keys import visible
from tests.casebook.rules.upstream import PERSONAL
from tests.casebook.rules.words import items, literal
from tests.casebook.seen import Exchange, check, equal, parsed, short, strings

Match = re.Match[str]
_LLM = ("llm",)
_WEB = ("http", "llm", "mcp")
_QUOTES = r'(?:"(?:[^"\\]|\\.)*"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)'
_THINGS = rf"(?P<things>{_QUOTES}(?:(?:, |,? and |,? or |,? nor ){_QUOTES})*)"


def _words(text: str) -> list[str]:
    """What stands in quotes, and addresses without them."""
    found = re.findall(_QUOTES, text)
    return [word[1:-1] if word.startswith('"') else word for word in found]


def _absent(exchange: Exchange, m: Match, view: View) -> None:
    texts = visible(exchange)
    for word in _words(m["things"]):
        found = next((text for text in texts if word in text), None)
        check(found is None, f"{word!r} in {short(found or '')}")


def _present(exchange: Exchange, m: Match, view: View) -> None:
    texts = visible(exchange)
    for word in _words(m["things"]):
        check(any(word in text for text in texts), f"no {word!r} in {short(exchange.text)}")


def _upstream_present(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.calls, "the upstream got nothing")
    texts = list(strings(exchange.calls[-1].json))
    for word in _words(m["things"]):
        there = any(word in text for text in texts)
        check(there, f"the upstream did not get {word!r}: {short(exchange.calls[-1].body)}")


def _upstream_absent(view: View, m: Match) -> None:
    for exchange in view.exchanges:
        for call in exchange.calls:
            texts = [call.body.decode("utf-8", "replace"), *strings(call.json)]
            for word in _words(m["things"]):
                check(not any(word in text for text in texts), f"the upstream got {word!r}")


def _field_gone(exchange: Exchange, m: Match, view: View) -> None:
    for name in items(m["names"]):
        found = [value for value in _members(_values(exchange), name) if value is not None]
        check(not found, f"{name}: {short(found)}")


def _values(exchange: Exchange) -> list[Any]:
    return [event.json for event in exchange.events] if exchange.is_stream else [exchange.json]


def _members(value: object, name: str) -> list[object]:
    found: list[object] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found += [item] if key == name else []
            found += _members(item, name)
    elif isinstance(value, list):
        for item in value:
            found += _members(item, name)
    return found


def _error_member(exchange: Exchange, m: Match, view: View) -> None:
    for message in (*exchange.chat.errors, exchange.rpc):
        error = message.get("error")
        if isinstance(error, dict):
            equal(error.get(m["name"]), literal(m["value"]), f"error.{m['name']}")
            return
    check(holds=False, seen=f"no error: {short(exchange.text)}")


def _members_set(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.chat.errors, f"no error: {short(exchange.text)}")
    error = exchange.chat.errors[-1]["error"]
    unset = [name for name in items(m["names"]) if not error.get(name)]
    check(not unset, f"not set: {', '.join(unset)}")


def _error_names(exchange: Exchange, m: Match, view: View) -> None:
    errors = [e.get("error") for e in (*exchange.chat.errors, exchange.rpc) if e.get("error")]
    check(errors, f"no error: {short(exchange.text)}")
    text = json.dumps(errors[-1], ensure_ascii=False)
    for word in items(m["words"]):
        plain = re.sub(r"^(?:the )?(?:field |limit |rule )?", "", word)
        check(plain in text, f"the error does not name {plain}: {short(text)}")


def _no_upstream_words(exchange: Exchange, m: Match, view: View) -> None:
    """Nothing of the upstream's error but its kind: no run of its words reaches the client."""
    said = " ".join(strings(parsed(exchange.canned))) or exchange.canned.decode("utf-8", "replace")
    words = re.findall(r"[\w.-]+", said)
    for at in range(len(words) - 2):
        run = " ".join(words[at : at + 3])
        check(run not in exchange.text, f"{run!r} of the upstream in {short(exchange.text)}")


def _no_personal_upstream(view: View, m: Match) -> None:
    for exchange in view.exchanges:
        for call in exchange.calls:
            found = PERSONAL.findall(call.body.decode("utf-8", "replace"))
            check(not found, f"the upstream got {short(found)}")


_UP = r"(?:the )?(?:upstream|provider|backend|server)"
_FIELDS = r"[a-z_]+(?:(?:, | and |, and )[a-z_]+)*"
RULES = (
    Rule(
        "absent",
        rf"(?:no |neither )?{_THINGS} (?:(?:does|do|must) (?:not|never) |never )?(?:in the answer"
        r"|reach(?:es)? the client|leaves?|leaks?|appears?(?: in the answer)?)",
        each(_absent),
        _WEB,
    ),
    Rule(
        "present",
        rf"(?:the )?(?:answer|body|client) (?:holds|contains|has|gets|sees|reads) {_THINGS}",
        each(_present),
        _WEB,
    ),
    Rule(
        "upstream present",
        rf"{_UP} (?:gets|sees|receives) {_THINGS}",
        each(_upstream_present),
        _WEB,
    ),
    Rule(
        "upstream absent",
        rf"(?:no )?{_THINGS} (?:(?:does not |never )?(?:reach(?:es)?|goes to)) {_UP}",
        _upstream_absent,
        _WEB,
    ),
    Rule(
        "upstream absent",
        rf"{_UP} (?:never|does not) (?:gets?|sees?) {_THINGS}",
        _upstream_absent,
        _WEB,
    ),
    Rule("field gone", r"no (?P<names>logprobs)(?: in the answer)?", each(_field_gone), _LLM),
    Rule(
        "field gone",
        rf"(?:the )?(?:fields? )?(?P<names>{_FIELDS}) (?:are|is) (?:dropped|removed|absent)",
        each(_field_gone),
        _LLM,
    ),
    Rule(
        "members set",
        r"(?P<names>(?:type|code|message|request_id)(?:(?:, | and |, and )"
        r"(?:type|code|message|request_id))*) (?:are |is )?set",
        each(_members_set),
        ("http", "llm"),
    ),
    Rule(
        "error member",
        r"(?:error )?(?P<name>type|code|param) (?:is )?(?P<value>\"[^\"]*\"|[a-z]\w+)",
        each(_error_member),
        ("http", "llm"),
    ),
    Rule(
        "error names",
        r"(?:the )?(?:error|message|error message|body) names (?P<words>.+)",
        each(_error_names),
        _WEB,
    ),
    Rule(
        "no personal upstream",
        rf"{_UP} (?:body|request) has no (?:e-?mail|card|ssn|key|personal data|secret"
        r"|PII)s?(?: .*)?",
        _no_personal_upstream,
        _WEB,
    ),
    Rule(
        "no upstream words",
        r"(?:nothing|no (?:word|detail)s?) of the upstream(?:'s (?:error|message|answer))?"
        r"(?: reach(?:es)? the client| passes| in the (?:answer|error))?"
        r"|no upstream words(?: in the (?:answer|error))?",
        each(_no_upstream_words),
        _WEB,
    ),
)
