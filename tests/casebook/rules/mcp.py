"""Which sentences speak about JSON-RPC over HTTP and the tools that ran?

Does not live here: status and headers (http), stdio (stdio).
"""

import json
import re
from typing import Any

from tests.casebook.rules import profiles
from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.http import _accepted, _refused
from tests.casebook.rules.words import NUMBER, RPC_CODE, items, literal, number
from tests.casebook.seen import Exchange, Mismatch, check, equal, parsed, same, short

Match = re.Match[str]
_MCP = ("mcp",)


def _not_executed(view: View, m: Match) -> None:
    tool = m.groupdict().get("tool")
    named = [tool] if tool else _named_tools(view)
    for exchange in view.exchanges:
        ran = [name for name in exchange.executed if name in named]
        forwarded = [call for call in exchange.calls if _runs(call.json, named)]
        check(not ran and not forwarded, f"{exchange.name}: the upstream got {short(named)}")


def _named_tools(view: View) -> list[str]:
    """The tools that the requests in view call."""
    found = []
    for exchange in view.exchanges:
        value = exchange.sent.json
        for message in value if isinstance(value, list) else [value]:
            params = message.get("params") if isinstance(message, dict) else None
            if isinstance(params, dict) and isinstance(params.get("name"), str):
                found.append(params["name"])
    return found or ["admin_reset_key"]


def _runs(value: Any, names: list[str]) -> bool:
    messages = value if isinstance(value, list) else [value]
    return any(
        isinstance(message, dict)
        and isinstance(message.get("params"), dict)
        and message["params"].get("name") in names
        for message in messages
    )


def _id_null(exchange: Exchange, m: Match, view: View) -> None:
    check("id" in exchange.rpc and exchange.rpc["id"] is None, f"id {short(exchange.rpc)}")


def _element(exchange: Exchange, m: Match, view: View) -> None:
    wanted = literal(m["id"])
    found = [message for message in exchange.messages if same(message.get("id"), wanted)]
    check(len(found) == 1, f"{len(found)} answers with id {m['id']}: {short(exchange.text)}")
    code = m["code"] or m["bare"]
    if code:
        fits = profiles.fits(found[0], int(code), view.seen.profile)
        check(fits, f"id {m['id']}: {short(found[0])}")
    else:
        check(m["what"] in found[0], f"id {m['id']}: {short(found[0])}")


def _request_order(exchange: Exchange, m: Match, view: View) -> None:
    sent = [message["id"] for message in exchange.sent.json if "id" in message]
    got = [message.get("id") for message in exchange.messages]
    equal(got, sent, "order of ids")


def _batch_refused(exchange: Exchange, m: Match, view: View) -> None:
    version = exchange.sent.header("mcp-protocol-version") or ""
    check(version >= "2025-06-18", f"the version is {version or 'not named'}")
    check(exchange.status == 400, f"status {exchange.status}")


def _name_escaped(exchange: Exchange, m: Match, view: View) -> None:
    error = exchange.rpc.get("error") or {}
    data = error.get("data")
    name = exchange.sent.json["params"]["name"]
    shown = data.get("tool") if isinstance(data, dict) else None
    if view.seen.profile == "spec" and shown is None:
        return
    equal(shown, name, "data.tool")
    odd = [byte for byte in exchange.body if byte > 126 or (byte < 32 and byte not in (10, 13))]
    check(not odd, "the name is not escaped")


def _exact(data: bytes | str) -> Any:
    """JSON with every number kept as it is written."""
    return json.loads(data, parse_float=lambda s: ["number", s], parse_int=lambda s: ["number", s])


def _result_equal(exchange: Exchange, m: Match, view: View) -> None:
    said = _exact(exchange.canned)
    got = [_exact(e.data or "") for e in exchange.events if e.data] or [_exact(exchange.body)]
    wanted = said.get("result") if isinstance(said, dict) else None
    equal(got[-1].get("result"), wanted, "result")


def _meta_unchanged(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.calls, "the upstream got nothing")
    sent = _exact(exchange.sent.body)["params"]["_meta"]
    equal(_exact(exchange.calls[0].body)["params"].get("_meta"), sent, "_meta")


def _token_is(exchange: Exchange, m: Match, view: View) -> None:
    tokens = [
        message["params"].get("progressToken")
        for message in exchange.messages
        if message.get("method") == "notifications/progress"
    ]
    check(tokens, "no progress notification")
    equal(tokens, [literal(m["token"])] * len(tokens), "tokens")


def _passes(exchange: Exchange, m: Match, view: View) -> None:
    check(len(exchange.calls) == 1, f"forwarded {len(exchange.calls)} times")
    equal(exchange.calls[0].json, exchange.sent.json, "forwarded body")
    said = parsed(exchange.canned)
    equal(exchange.json if not exchange.is_stream else exchange.rpc, said, "answer")


def _judged(exchange: Exchange, m: Match, view: View) -> None:
    """As the same call without a coding: refused if it has to be, and not run."""
    fits = profiles.fits(exchange.rpc, profiles.DENIED, view.seen.profile)
    check(fits, f"status {exchange.status}: {short(exchange.text)}")
    _not_executed(view.only([exchange]), m)


def _may_be(exchange: Exchange, m: Match, view: View) -> None:
    profile = view.seen.profile
    named = view.seen.case.expect.get("error_code")
    codes = [int(m["code"]), *([named] if isinstance(named, int) else [])]
    fits = any(profiles.fits(exchange.rpc, code, profile) for code in codes)
    check(fits, f"status {exchange.status}: {short(exchange.text)}")


def _from_body(view: View, m: Match) -> None:
    groups = [view.seen.everything, *view.seen.others.values()]
    for exchange in (exchange for group in groups for exchange in group):
        check(not exchange.executed, f"{exchange.name}: {short(exchange.executed)} ran")


def _data_member(exchange: Exchange, m: Match, view: View) -> None:
    data = (exchange.rpc.get("error") or {}).get("data") or {}
    for member in re.findall(r"data\.(\w+)", m[0]):
        check(member in data, f"no data.{member} in {short(data)}")


def _answers(exchange: Exchange, m: Match, view: View) -> None:
    wanted = number(m["count"])
    got = [message for message in exchange.messages if "result" in message or "error" in message]
    check(len(got) == wanted, f"{len(got)} answers")


def _has_result(exchange: Exchange, m: Match, view: View) -> None:
    check("result" in exchange.rpc, f"status {exchange.status}: {short(exchange.text)}")


def _unknown_alike(view: View, m: Match) -> None:
    shapes = {(e.status, str(e.rpc.get("error"))) for e in view.exchanges}
    if len(shapes) != 1:
        raise Mismatch(f"different answers: {short(sorted(map(str, shapes)))}")


def _runs_times(view: View, m: Match) -> None:
    wanted = number(m["count"])
    for exchange in view.exchanges:
        ran = exchange.executed.count(m["tool"])
        check(ran == wanted, f"{exchange.name}: {m['tool']} ran {ran} times")


def _code_with_id(exchange: Exchange, m: Match, view: View) -> None:
    fits = profiles.fits(exchange.rpc, int(m["code"]), view.seen.profile)
    check(fits and same(exchange.rpc.get("id"), literal(m["id"])), short(exchange.text))


def _id_as_sent(exchange: Exchange, m: Match, view: View) -> None:
    sent = exchange.sent.json
    wanted = [one["id"] for one in (sent if isinstance(sent, list) else [sent]) if "id" in one]
    got = [one.get("id") for one in exchange.messages if "method" not in one]
    equal(got, wanted, "ids")


def _one_object(exchange: Exchange, m: Match, view: View) -> None:
    check(isinstance(exchange.json, dict), f"answer {short(exchange.text)}")


def _members_kept(exchange: Exchange, m: Match, view: View) -> None:
    said = (parsed(exchange.canned) or {}).get("result") or {}
    got = exchange.rpc.get("result") or {}
    for name in items(m["names"]):
        check(name in said, f"the upstream sent no {name}")
        equal(got.get(name), said[name], name)


def _generic_error(exchange: Exchange, m: Match, view: View) -> None:
    error = exchange.rpc.get("error") or {}
    check(error.get("code") == -32603, f"error {short(error)}")
    said = (parsed(exchange.canned) or {}).get("error") or {}
    text = str(said.get("message", "\x00"))
    check(text not in exchange.text, f"the upstream's words in {short(exchange.text)}")


def _data_is(exchange: Exchange, m: Match, view: View) -> None:
    data = (exchange.rpc.get("error") or {}).get("data") or {}
    equal(data.get(m["member"]), literal(m["value"]), f"data.{m['member']}")


_UP = r"(?:the )?(?:upstream|backend|server)"
_IDS_KEPT = (
    r"(?:the )?ids?(?: type and value)? (?:(?:comes? back|arrives?|is|are|stays?"
    r"|keeps? (?:their|its)) )?"
    r"(?:as sent|type|identical(?: to the request)?|unchanged)"
)
RULES = (
    Rule(
        "runs",
        rf"(?:{_UP} runs )?(?P<tool>[a-z]\w*_\w+)(?: runs| is run)? (?:exactly )?"
        rf"(?P<count>once|twice|{NUMBER} times)",
        _runs_times,
        _MCP,
    ),
    Rule(
        "code with id",
        rf"(?:error )?(?P<code>{RPC_CODE}) (?:with|and) id (?P<id>-?\d+|\"[^\"]*\")",
        each(_code_with_id),
        _MCP,
    ),
    Rule("id as sent", _IDS_KEPT, each(_id_as_sent), _MCP),
    Rule(
        "one object",
        r"(?:one|a single) JSON object(?:, not an array)?|not an array",
        each(_one_object),
        _MCP,
    ),
    Rule(
        "members kept",
        r"(?P<names>_?[a-z]\w+(?:(?:, | and |, and )_?[a-z]\w+)*) (?:is|are) (?:kept|untouched)",
        each(_members_kept),
        _MCP,
    ),
    Rule(
        "generic error",
        r"(?:the )?error is generic|(?:an? )?generic error",
        each(_generic_error),
        _MCP,
    ),
    Rule(
        "data is",
        r"data\.(?P<member>\w+) (?:is |= ?|: ?)(?P<value>\"[^\"]*\"|\S+)",
        each(_data_is),
        _MCP,
    ),
    Rule(
        "not executed",
        rf"{_UP} (?:never (?:sees|gets|runs)|does not (?:see|get|run)) "
        rf"(?P<tool>[a-z]\w*_\w+)|{_UP} does not run (?:the tool|it)",
        _not_executed,
        _MCP,
    ),
    Rule(
        "not executed",
        r"(?:in no variant )?(?:does )?a viewer's admin call (?:never )?reach(?:es)? "
        r"(?:the )?upstream",
        _not_executed,
        _MCP,
    ),
    Rule(
        "not executed",
        r"(?:the )?tool (?:is not run|does not run|never runs)|no tool (?:runs|is run)",
        _not_executed,
        _MCP,
    ),
    Rule("id null", r"id null", each(_id_null), _MCP),
    Rule(
        "element",
        r"id (?P<id>-?\d+|\"[^\"]*\"):? (?:is |gets |has |an? |the )*(?:(?P<what>result"
        rf"|error)(?: (?P<code>{RPC_CODE}))?|(?P<bare>{RPC_CODE}))",
        each(_element),
        _MCP,
    ),
    Rule(
        "request order",
        r"in request order|in the order of the requests?",
        each(_request_order),
        _MCP,
    ),
    Rule(
        "batch refused",
        r"the whole batch (?:is )?refused with 400 when the protocol version is "
        r"2025-06-18 or later",
        each(_batch_refused),
        _MCP,
    ),
    Rule(
        "name escaped", r"the error data shows the name as sent, escaped", each(_name_escaped), _MCP
    ),
    Rule("every one refused", r"every one is refused \((?P<how>.+)\)", each(_refused), _MCP),
    Rule(
        "result equal",
        r"(?:the )?result reaches the client (?:(?:JSON-)?equal|unchanged|as sent)"
        r"(?:, field for field)?(?:, numbers not re-rounded)?|(?:the )?numbers (?:are "
        r")?not re-rounded",
        each(_result_equal),
        _MCP,
    ),
    Rule("meta unchanged", rf"{_UP} (?:sees|gets) _meta unchanged", each(_meta_unchanged), _MCP),
    Rule(
        "token",
        r"(?:the )?(?:progress )?token is (?P<token>[\w-]+|\"[^\"]+\")(?:, not one "
        r"made up by the gateway)?",
        each(_token_is),
        _MCP,
    ),
    Rule(
        "passes",
        r"pass(?:es)?(?: through)? unchanged|(?:is|are) forwarded unchanged",
        each(_passes),
        _MCP,
    ),
    Rule("judged", r"decoded and judged", each(_judged), _MCP),
    Rule(
        "may be",
        rf"with an? (?P<role>viewer) token the answer may be (?P<code>{RPC_CODE}) instead",
        lambda v, m: each(_may_be)(v.only(v.seen.others.get(m["role"], [])), m),
        _MCP,
    ),
    Rule("from body", r"the decision is always taken from the body", _from_body, _MCP),
    Rule("data members", r"data\.\w+(?:(?:, | and |, and )data\.\w+)*", each(_data_member), _MCP),
    Rule(
        "answers",
        rf"(?:exactly )?(?P<count>{NUMBER}) (?:answers?|replies|reply)",
        each(_answers),
        _MCP,
    ),
    Rule("result", r"(?:an? |the |normal |its )*result", each(_has_result), _MCP),
    Rule(
        "alike",
        r"(?:all |both )?(?:answers )?(?:look|are) (?:alike|the same|identical)",
        _unknown_alike,
        _MCP,
    ),
    Rule(
        "call works",
        r"(?:the )?(?:second |next )?call works(?: in the same session)?",
        each(_accepted),
        _MCP,
    ),
)
