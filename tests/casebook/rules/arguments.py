"""Which sentences speak about arguments of tools, and what is said when they are refused?

Does not live here: the conversation as such (stdio).
"""

import json
import re
from typing import Any

from tests.casebook.rules import profiles
from tests.casebook.rules.grammar import Rule, View
from tests.casebook.rules.stdio import IDS, STDIO, Match, text_of
from tests.casebook.rules.words import ids, items
from tests.casebook.seen import Reply, Talk, check, short

_TYPE_WORDS = {
    "wrong type": r"wrong type|valid (?:string|number|integer|boolean)|must be a|should be a|not a",
    "missing": r"missing|required",
    "null not allowed": r"null|none",
}


def wrong_arguments(reply: Reply, view: View) -> bool:
    return profiles.wrong_arguments(reply.message, view.seen.profile)


def _names_field(view: View, m: Match) -> None:
    for reply in view.replies:
        text = text_of(reply)
        check(m["field"] in text, f"id {short(reply.id)} does not name it: {short(text)}")
        if m["type"]:
            check(m["type"] in text.lower(), f"no {m['type']} in {short(text)}")


def _no_refund(view: View, m: Match) -> None:
    refunded = view.seen.talk.refunded
    check(refunded is not None, "no balance was read")
    check(float(refunded or "nan") == 0.0, f"{refunded} was refunded")


def _no_bare_words(view: View, m: Match) -> None:
    for reply in view.replies:
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', '""', reply.line)
        for word in items(m["words"]):
            check(word not in outside, f"{word} in {short(reply.line)}")


def _refused(view: View, m: Match) -> None:
    chosen = view.seen.talk.requests()
    wanted = ids(m["ids"]) if m["ids"] else [request["id"] for request in chosen]
    for one in wanted:
        found = view.seen.talk.with_id(one)
        there = len(found) == 1 and wrong_arguments(found[0], view)
        check(there, f"id {short(one)}: {short([r.message for r in found])}")
        because = (m["because"] or "").lower()
        if because:
            words = re.findall(r"[a-z]{4,}|\d+", because)
            text = re.sub(r"\bten\b", "10", text_of(found[0]).lower())
            hits = [word for word in words if word in text]
            check(len(hits) * 2 >= len(words), f"id {short(one)}: {short(found[0].message)}")


def _format_rule(view: View, m: Match) -> None:
    for reply in view.replies:
        check(wrong_arguments(reply, view), short(reply.message))
        check("not found" not in text_of(reply).lower(), short(reply.message))


def _published_pattern(view: View, m: Match) -> None:
    """The schema's own patterns, read as ECMA-262 does: digits are ASCII."""
    talk, tried = view.seen.talk, 0
    for name, arguments in tool_calls(talk):
        schema = next((t["inputSchema"] for t in talk.tools if t["name"] == name), {})
        for field, value in arguments.items():
            pattern = schema.get("properties", {}).get(field, {}).get("pattern")
            if pattern and isinstance(value, str):
                tried += 1
                check(
                    re.search(pattern, value, re.ASCII) is None, f"{pattern} takes {short(value)}"
                )
    check(tried, "no published pattern was tried")


def tool_calls(talk: Talk) -> list[tuple[str, dict[str, Any]]]:
    """(tool, arguments) of every call that was sent."""
    found = []
    for request in talk.requests():
        params = request.get("params")
        if isinstance(params, dict) and isinstance(params.get("arguments"), dict):
            found.append((str(params.get("name")), params["arguments"]))
    return found


def _values(view: View, m: Match) -> None:
    passes = bool(m["passes"])
    for value in items(m["values"]):
        line = next((s for s in view.seen.talk.sent if f":{value},".encode() in s), None)
        check(line is not None, f"{value} was not sent")
        identifier = json.loads(line or b"{}")["id"]
        found = view.seen.talk.with_id(identifier)
        check(found, f"no reply for {value}")
        refused = wrong_arguments(found[0], view)
        check(refused != passes, f"{value}: {short(found[0].message)}")


def _passes_rule(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        check(found, f"no reply to id {wanted}")
        refused = wrong_arguments(found[0], view)
        check(not refused, f"id {wanted}: {short(found[0].message)}")


def _says(view: View, m: Match) -> None:
    pattern = _TYPE_WORDS.get(m["words"].strip('"').lower(), re.escape(m["words"].strip('"')))
    for reply in view.replies:
        text = text_of(reply).lower()
        check(re.search(pattern, text, re.IGNORECASE), f"id {short(reply.id)}: {short(text)}")
        if m["words"].lower() == "wrong type":
            missing = re.search(r"missing|required", text)
            check(not missing, f"id {short(reply.id)} says missing: {short(text)}")


def _refunded(view: View, m: Match) -> None:
    refunded = view.seen.talk.refunded
    check(refunded is not None, "no balance was read")
    if m["sum"]:
        check(float(refunded or "nan") == float(m["sum"]), f"{refunded} was refunded")
    else:
        results = [r for r in view.seen.talk.replies if r.result and not r.refused]
        check(float(refunded or 0) > 0, "nothing was refunded")
        check(len(results) >= 1, "no call succeeded")


def _no_echo(view: View, m: Match) -> None:
    """No text that was sent as an argument comes back in a refusal."""
    for reply in view.replies:
        if not reply.refused:
            continue
        for _, arguments in tool_calls(view.seen.talk):
            for value in arguments.values():
                long_text = isinstance(value, str) and len(value) >= 6
                echoed = long_text and value in text_of(reply)
                check(not echoed, f"{short(value)} in {short(reply.message)}")


RULES = (
    Rule(
        "refunded",
        r"(?:(?:exactly )?one |(?:the )?)refund(?: is)? (?:recorded|made|booked)(?: "
        r"once)?|(?P<sum>[0-9.]+) (?:is|was|are)"
        r" refunded",
        _refunded,
        STDIO,
    ),
    Rule(
        "no echo",
        r"(?:the )?values? (?:is|are) not (?:echoed|repeated)|no value is (?:echoed|repeated)",
        _no_echo,
        STDIO,
    ),
    Rule(
        "names field",
        r"(?:each|the message or data|the (?:message|error|data)|it) names (?:the )"
        r"?(?:field )?(?P<field>\w+)(?: and says a (?P<type>\w+) is wanted)?",
        _names_field,
        STDIO,
    ),
    Rule(
        "no refund",
        r"no refund(?: (?:is |was )?recorded| of [0-9.]+| is made)?|no tool runs"
        r"|nothing (?:is |was )?(?:refunded|recorded)",
        _no_refund,
        STDIO,
    ),
    Rule(
        "no bare words",
        r"no reply contains the bare words? (?P<words>.+?)(?: as JSON values?)?",
        _no_bare_words,
        STDIO,
    ),
    Rule(
        "refused",
        rf"(?:(?:both|all|{IDS}|are|is) )*refused(?: \([^)]*\))?(?:: (?P<because>.+))?",
        _refused,
        STDIO,
    ),
    Rule(
        "format rule",
        r'(?:both |all |it is )?refused by the format rule(?: \(not "not found"\))?',
        _format_rule,
        STDIO,
    ),
    Rule(
        "published pattern",
        r"the published (?:JSON )?schema(?: pattern)? refuses (?:them|it)(?: too)?",
        _published_pattern,
        STDIO,
    ),
    Rule(
        "values",
        r"(?P<values>-?[0-9][0-9.e+-]*(?:(?:, and |, | and )-?[0-9][0-9.e+-]*)+) "
        r"(?:(?P<passes>pass) the \w+ rule(?: \(.*\))?|are refused)",
        _values,
        STDIO,
    ),
    Rule("passes rule", rf"{IDS} pass(?:es)? the \w+ rule(?: \(.*\))?", _passes_rule, STDIO),
    Rule("says", r"(?:it |reply )?says:? (?P<words>.+)", _says, STDIO),
    Rule("says", r"(?P<words>wrong type|missing|null not allowed)", _says, STDIO),
)
