"""Which sentences speak about single replies over stdio: their code, time, words and result?

Does not live here: the conversation as a whole (stdio), arguments and refunds (arguments).
"""

import re

from tests.casebook.rules import profiles
from tests.casebook.rules.arguments import tool_calls
from tests.casebook.rules.grammar import Rule, View
from tests.casebook.rules.stdio import IDS, STDIO, Match, fits, text_of
from tests.casebook.rules.words import RPC_CODE, ids, literal, quoted, seconds
from tests.casebook.seen import WIDEN, check, same, short


def _only(view: View, m: Match) -> None:
    wanted = ids(m["ids"])
    got = [reply.id for reply in view.seen.talk.replies]
    there = len(got) == len(wanted) and all(any(same(one, g) for g in got) for one in wanted)
    check(there, f"replies to {short(got)}")


def _id_result(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        there = len(found) == 1 and found[0].result is not None and not found[0].refused
        check(there, f"id {short(wanted)}: {short([r.message for r in found])}")


def _exit_code(view: View, m: Match) -> None:
    code = view.seen.talk.exit_code
    check(code == int(m["code"]), f"exit code {code}")


def _quiet_code(view: View, m: Match) -> None:
    """The code, and none of the words of the exception that the tool under test raised."""
    words = re.findall(r"\w+=\w+|[A-Z]\w+(?:Error|Exception)", view.seen.talk.stderr)
    found = [r for r in view.replies if fits(r, int(m["code"]), view)]
    check(found, short([reply.message for reply in view.replies]))
    for reply in found:
        told = [word for word in words if word in text_of(reply)]
        check(not told, f"{told} in {short(reply.message)}")


def _lacks(view: View, m: Match) -> None:
    for reply in view.replies:
        for word in quoted(m["things"]):
            check(word not in text_of(reply), f"{word!r} in {short(reply.message)}")


def _holds(view: View, m: Match) -> None:
    for word in quoted(m["things"]):
        there = any(word in text_of(reply) for reply in view.replies)
        check(there, f"{word!r} in none of {short([r.message for r in view.replies])}")


def _balance(view: View, m: Match) -> None:
    refunded = view.seen.talk.refunded
    check(refunded is not None, "no balance was read")
    check(float(refunded or "nan") == 0.0, f"{refunded} was refunded")


def _names_the_field(view: View, m: Match) -> None:
    """Some argument that was sent, or one that the schema knows."""
    talk = view.seen.talk
    fields = {name for _, arguments in tool_calls(talk) for name in arguments}
    for tool in talk.tools:
        fields |= set(tool.get("inputSchema", {}).get("properties", {}))
    for reply in view.replies:
        if reply.refused:
            there = any(field in text_of(reply) for field in fields)
            check(there, f"names no field: {short(reply.message)}")


def _in_time(view: View, m: Match) -> None:
    bound_s = seconds(m["bound"]) * WIDEN
    replies = list(view.replies)
    if m["code"]:
        replies = [r for r in replies if fits(r, int(m["code"]), view)]
    check(replies, f"no such reply: {short([r.message for r in view.replies])}")
    for reply in replies:
        check(reply.after_s < bound_s, f"id {short(reply.id)} after {reply.after_s:.2f} s")


def _schema(view: View, m: Match) -> None:
    tools = view.seen.talk.tools
    check(tools, "no tools were listed")
    for tool in tools:
        got = tool.get("inputSchema", {}).get(m["key"])
        check(same(got, literal(m["value"])), f"{tool.get('name')}: {m['key']} {short(got)}")


def _id_is(view: View, m: Match) -> None:
    found = view.seen.talk.with_id(literal(m["id"]))
    check(found, f"ids {short([reply.id for reply in view.replies])}")


def _next_answered(view: View, m: Match) -> None:
    """The last request of the case, and the process after it."""
    talk = view.seen.talk
    requests = talk.requests()
    check(requests, "no request was sent")
    check(talk.with_id(requests[-1]["id"]), f"no reply to id {short(requests[-1]['id'])}")
    check(talk.running, "the process has ended")


def _refused_ids(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        there = len(found) == 1 and found[0].refused
        check(there, f"id {short(wanted)}: {short([r.message for r in found])}")
        if m["field"]:
            check(m["field"] in text_of(found[0]), f"{m['field']}: {short(found[0].message)}")


def _unknown_tool(view: View, m: Match) -> None:
    found = [r for r in view.replies if fits(r, profiles.UNKNOWN_TOOL, view)]
    check(found, short([reply.message for reply in view.replies]))


_BOUND = r"(?P<bound>[0-9.]+ ?(?:ms|s))"
_THINGS = r'(?P<things>"[^"]*"(?:(?:, | and | or )"[^"]*")*)'
_SAYER = r"(?:message|reply|answer|error|text)s?"
_HOLDS = r"(?:contains?|holds?|names?|shows?)"
RULES = (
    Rule("only ids", rf"only {IDS} (?:is|are|gets?) (?:answered|an answer|a reply)", _only, STDIO),
    Rule(
        "id result",
        rf"{IDS}:? (?:is |are |gets? |has |have )?(?:an? |the |its |normal |real )*results?",
        _id_result,
        STDIO,
    ),
    Rule("exit code", r"(?:the )?exit (?:code|status)(?: is)? (?P<code>-?\d+)", _exit_code, STDIO),
    Rule(
        "quiet code",
        rf"(?P<code>{RPC_CODE}) without (?:the |any )?(?:exception|its) (?:text|words|message)",
        _quiet_code,
        STDIO,
    ),
    Rule(
        "reply lacks",
        rf"(?:no {_SAYER}|(?:the )?{_SAYER} (?:do(?:es)? not|never)) {_HOLDS} {_THINGS}",
        _lacks,
        STDIO,
    ),
    Rule("reply holds", rf"(?:the |a )?{_SAYER} {_HOLDS} {_THINGS}", _holds, STDIO),
    Rule("balance", r"(?:the )?balance is (?:unchanged|the same|untouched)", _balance, STDIO),
    Rule(
        "names the field",
        r"(?:it |each )?names the field(?: at fault)?",
        _names_the_field,
        STDIO,
    ),
    Rule(
        "in time",
        rf"(?:(?:answered|replied|(?P<code>{RPC_CODE})|an? (?:reply|answer|error)),? )"
        rf"?within {_BOUND}",
        _in_time,
        STDIO,
    ),
    Rule(
        "schema",
        r"the (?:tools/list |published )?(?:JSON )?schema (?:says|has) (?P<key>\w+)(?: is|:)?"
        r" (?P<value>\S+)",
        _schema,
        STDIO,
    ),
    Rule("id is", r'(?:the )?(?:reply )?id is (?P<id>"[^"]*"|-?\d+|null)', _id_is, STDIO),
    Rule(
        "next answered",
        r"(?:the )?next (?:ping|request|call) (?:is )?answered|(?:the )?(?:server|process) keeps"
        r" (?:running|serving)",
        _next_answered,
        STDIO,
    ),
    Rule(
        "ids refused",
        rf"{IDS} (?:is|are) refused(?: and names (?:the )?(?:field )?(?P<field>\w+))?",
        _refused_ids,
        STDIO,
    ),
    Rule(
        "unknown tool",
        r"(?:an? )?unknown tool(?: error)?",
        _unknown_tool,
        STDIO,
    ),
    Rule(
        "pure",
        r"(?:no traceback|nothing but JSON-RPC)(?: (?:is|ends))? on stdout|stdout holds only"
        r" JSON-RPC(?: lines| messages)?",
        lambda view, m: check(not view.seen.talk.impure, f"stdout: {short(view.seen.talk.impure)}"),
        STDIO,
    ),
)
