"""Which sentences speak about lists of tools, their pages, and what an event stream carries?

Does not live here: calls and their refusals (mcp).
"""

import re
from typing import Any

from tests.casebook.events import decode
from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import items
from tests.casebook.seen import Exchange, check, equal, parsed, short

Match = re.Match[str]
_MCP = ("mcp",)


def _canned_events(exchange: Exchange) -> list[Any]:
    return list(decode([(0.0, exchange.canned)]))


def _holds_notification(exchange: Exchange, m: Match, view: View) -> None:
    methods = [message.get("method") for message in exchange.messages]
    said = [e.json for e in _canned_events(exchange)]
    wanted = [v["method"] for v in said if isinstance(v, dict) and "method" in v]
    check(wanted, "the upstream sent no notification")
    for method in wanted:
        check(method in methods, f"no {method} in {short(exchange.text)}")


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


def _lists_without(exchange: Exchange, m: Match, view: View) -> None:
    names = _tools(exchange)
    wanted, hidden = items(m["tools"]), items(m["hidden"])
    missing = [name for name in wanted if name not in names]
    shown = [name for name in hidden if name in names]
    check(not missing and not shown, f"tools {names}")


def _hidden(exchange: Exchange, m: Match, view: View) -> None:
    prefix = m["prefix"].rstrip("*_ ") if m["prefix"] else "admin"
    shown = [name for name in _tools(exchange) if name.startswith(prefix)]
    check(not shown, f"tools {shown}")


RULES = (
    Rule(
        "holds notification",
        r"(?:the )?client(?: stream)? (?:holds|gets|sees) the notifications?",
        each(_holds_notification),
        _MCP,
    ),
    Rule(
        "lists",
        r"(?:the )?(?:tools event|(?:tools )?list|tools) (?:lists|holds|has|shows) "
        r"only (?P<tools>.+)",
        each(_lists),
        _MCP,
    ),
    Rule(
        "lists",
        r"(?P<tools>(?!request_id)[a-z]\w*_\w+(?:(?:, | and )[a-z]\w*_\w+)*)",
        each(_lists),
        _MCP,
    ),
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
    Rule("no cursor", r"no nextCursor", each(_no_cursor), _MCP),
    Rule(
        "cursor upstream",
        r"(?:the )?cursor is passed upstream (?:byte for byte|unchanged)",
        _cursor_upstream,
        _MCP,
    ),
    Rule(
        "lists without",
        r"(?:the )?(?:tools? )?list (?:holds|has|shows) (?P<tools>.+?)(?:,? and|,? but|,) not"
        r" (?P<hidden>.+)",
        each(_lists_without),
        _MCP,
    ),
    Rule(
        "hidden",
        r"(?P<prefix>\w+)[_*]* tools are (?:hidden|not listed|gone|filtered)(?: from the list)?",
        each(_hidden),
        _MCP,
    ),
    Rule(
        "cursor kept", r"nextCursor (?:is )?kept(?: as sent by upstream)?", each(_cursor_kept), _MCP
    ),
)
