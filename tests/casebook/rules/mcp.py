"""Which sentences speak about JSON-RPC over HTTP and the tools that ran?

Does not live here: status and headers (http), stdio (stdio).
"""

import json
import re
from typing import Any

from tests.casebook.events import decode
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
    if m["code"]:
        fits = profiles.fits(found[0], int(m["code"]), view.seen.profile)
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


def _holds_notification(exchange: Exchange, m: Match, view: View) -> None:
    methods = [message.get("method") for message in exchange.messages]
    said = [e.json for e in _canned_events(exchange)]
    wanted = [v["method"] for v in said if isinstance(v, dict) and "method" in v]
    check(wanted, "the upstream sent no notification")
    for method in wanted:
        check(method in methods, f"no {method} in {short(exchange.text)}")


def _canned_events(exchange: Exchange) -> list[Any]:
    return list(decode([(0.0, exchange.canned)]))


def _tools(exchange: Exchange) -> list[str]:
    found = [
        [tool.get("name") for tool in message["result"]["tools"]]
        for message in exchange.messages
        if isinstance(message.get("result"), dict)
        and isinstance(message["result"].get("tools"), list)
    ]
    check(len(found) == 1, f"{len(found)} tool lists: {short(exchange.text)}")
    return list(found[0])


def _lists(exchange: Exchange, m: Match, view: View) -> None:
    equal(_tools(exchange), items(m["tools"]), "tools")


def _odd_line(exchange: Exchange, m: Match, view: View) -> None:
    lists = [message for message in exchange.messages if "tools" in (message.get("result") or {})]
    check(len(lists) == 1, f"{len(lists)} tool lists")
    odd = [e.data for e in _canned_events(exchange) if e.data and e.json is None]
    check(odd, "the upstream sent no odd line")
    for data in odd:
        check("tools" not in data or data not in exchange.text, f"{short(data)} went on")
    check("admin_" not in exchange.text, f"a hidden tool in {short(exchange.text)}")


def _filtered_list(exchange: Exchange, m: Match, view: View) -> None:
    names = _tools(exchange)
    check(names and not [n for n in names if n.startswith("admin_")], f"tools {names}")


def _not_empty_tools(exchange: Exchange, m: Match, view: View) -> None:
    result = exchange.rpc.get("result")
    check(not (isinstance(result, dict) and result.get("tools") == []), "an empty tools array")


def _not_raw(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.body.strip() != exchange.canned.strip(), "the upstream's body, raw")
    check("admin_" not in exchange.text, f"raw: {short(exchange.text)}")


def _empty_tools(exchange: Exchange, m: Match, view: View) -> None:
    result = exchange.rpc.get("result") or {}
    check(result.get("tools") == [], f"tools {short(result.get('tools'))}")


def _cursor_kept(exchange: Exchange, m: Match, view: View) -> None:
    said = (parsed(exchange.canned) or {}).get("result", {}).get("nextCursor")
    check(said is not None, "the upstream sent no nextCursor")
    equal((exchange.rpc.get("result") or {}).get("nextCursor"), said, "nextCursor")


def _no_cursor(exchange: Exchange, m: Match, view: View) -> None:
    result = exchange.rpc.get("result") or {}
    check("nextCursor" not in result, f"nextCursor {short(result.get('nextCursor'))}")


def _cursor_upstream(view: View, m: Match) -> None:
    given = [
        (exchange.rpc.get("result") or {}).get("nextCursor") for exchange in view.seen.exchanges
    ]
    said = [
        (parsed(exchange.canned) or {}).get("result", {}).get("nextCursor")
        for exchange in view.seen.exchanges
    ]
    came = [
        (call.json or {}).get("params", {}).get("cursor")
        for exchange in view.seen.exchanges[1:]
        for call in exchange.calls
    ]
    check(came, "no cursor came upstream")
    equal(came, [cursor for cursor in said if cursor is not None], "cursors upstream")
    check(any(cursor is not None for cursor in given), "the client got no cursor")


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


_UP = r"(?:the )?(?:upstream|backend|server)"
RULES = (
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
        r"id (?P<id>-?\d+|\"[^\"]*\"):? (?:is |gets |has |an? |the )*(?P<what>result"
        rf"|error)(?: (?P<code>{RPC_CODE}))?",
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
        "holds notification",
        r"(?:the )?client(?: stream)? (?:holds|gets|sees) the notifications?",
        each(_holds_notification),
        _MCP,
    ),
    Rule(
        "lists",
        r"(?:the )?(?:tools event|list|tools) (?:lists|holds|has|shows) only (?P<tools>.+)",
        each(_lists),
        _MCP,
    ),
    Rule("lists", r"(?P<tools>[a-z]\w*_\w+(?:(?:, | and )[a-z]\w*_\w+)*)", each(_lists), _MCP),
    Rule(
        "odd line",
        r"the odd line neither disables the filter nor passes a tool list",
        each(_odd_line),
        _MCP,
    ),
    Rule(
        "filtered list",
        r"(?:either )?the filtered list reaches the client",
        each(_filtered_list),
        _MCP,
    ),
    Rule("not empty tools", r"not an empty tools array", each(_not_empty_tools), _MCP),
    Rule("not raw", r"not the raw body", each(_not_raw), _MCP),
    Rule("empty tools", r'"tools": \[\](?: \(.*\))?', each(_empty_tools), _MCP),
    Rule(
        "cursor kept", r"nextCursor (?:is )?kept(?: as sent by upstream)?", each(_cursor_kept), _MCP
    ),
    Rule("no cursor", r"no nextCursor", each(_no_cursor), _MCP),
    Rule(
        "cursor upstream",
        r"(?:the )?cursor is passed upstream (?:byte for byte|unchanged)",
        _cursor_upstream,
        _MCP,
    ),
    Rule(
        "result equal",
        r"the result reaches the client (?:JSON-)?equal(?:, field for field)?(?:, "
        r"numbers not re-rounded)?|(?:the )?numbers (?:are )?not re-rounded",
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
