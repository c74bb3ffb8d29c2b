"""Which sentences speak about what the upstream got?

How many requests, which headers and credentials, which parts of the body. Does not live here:
tools that ran (mcp), the answer of the client (http, stream).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import NUMBER, items, number, quoted
from tests.casebook.seen import Call, Exchange, Mismatch, check, equal, same, short, strings

_WEB = ("http", "llm", "mcp")
Match = re.Match[str]
PERSONAL = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b(?:\d[ -]?){13,16}\b|\b\d{3}-\d{2}-\d{4}\b|\bsk-[\w-]{16,}"
)
# What any HTTP client sends by itself.
_TRANSPORT = {
    "host",
    "content-length",
    "connection",
    "accept-encoding",
    "user-agent",
    "transfer-encoding",
    "authorization",
}


def _nothing(view: View, m: Match) -> None:
    for exchange in view.exchanges:
        got = [f"{call.method} {call.target}" for call in exchange.calls]
        check(not got, f"{exchange.name}: the upstream got {short(got)}")


def _count(view: View, m: Match) -> None:
    wanted = number(m["count"])
    total = sum(len(exchange.calls) for exchange in view.exchanges)
    check(total == wanted, f"{total} requests reached the upstream")


def _forwarded(exchange: Exchange, m: Match, view: View) -> None:
    wanted = number(m["count"] or "once")
    check(len(exchange.calls) == wanted, f"forwarded {len(exchange.calls)} times")


def _last(exchange: Exchange) -> Call:
    if not exchange.calls:
        raise Mismatch(f"the upstream got nothing; status {exchange.status} {short(exchange.text)}")
    return exchange.calls[-1]


def _own_credential(exchange: Exchange, m: Match, view: View) -> None:
    for call in exchange.calls or [_last(exchange)]:
        sent = [value for name, value in call.headers if name.lower() == "authorization"]
        check(sent == [f"Bearer {view.seen.credential}"], f"Authorization {short(sent)}")


def _no_client_headers(exchange: Exchange, m: Match, view: View) -> None:
    call = _last(exchange)
    for name in items(m["names"]):
        if name.lower() == "authorization":
            client = exchange.sent.header("authorization")
            check(client not in [v for _, v in call.headers], "the client's Authorization went on")
        else:
            check(call.header(name) is None, f"{name}: {call.header(name)} went on")


def _only_listed(exchange: Exchange, m: Match, view: View) -> None:
    listed = [name.lower() for name in items(m["names"])]
    prefixes = tuple(name[:-1] for name in listed if name.endswith("*"))
    extra = [
        name
        for name, _ in _last(exchange).headers
        if name.lower() not in listed
        and name.lower() not in _TRANSPORT
        and not (prefixes and name.lower().startswith(prefixes))
    ]
    check(not extra, f"also passed: {', '.join(extra)}")


def _parts(value: Any) -> list[dict[str, Any]]:
    """The content parts of every message of a chat request."""
    found = []
    for message in value.get("messages", []) if isinstance(value, dict) else []:
        content = message.get("content") if isinstance(message, dict) else None
        found += (
            [part for part in content or [] if isinstance(part, dict)]
            if isinstance(content, list)
            else []
        )
    return found


def _part_order(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = _parts(exchange.sent.json), _parts(_last(exchange).json)
    equal([part.get("type") for part in got], [part.get("type") for part in sent], "parts")
    check(len(got) == number(m["count"] or str(len(got))), f"{len(got)} parts")


def _part_texts(exchange: Exchange, m: Match, view: View) -> None:
    got = [part["text"] for part in _parts(_last(exchange).json) if part.get("type") == "text"]
    equal(got, quoted(m["texts"]), "texts")


def _parts_unchanged(exchange: Exchange, m: Match, view: View) -> None:
    def others(value: Any) -> list[dict[str, Any]]:
        return [part for part in _parts(value) if part.get("type") != "text"]

    sent, got = others(exchange.sent.json), others(_last(exchange).json)
    check(sent, "no such part was sent")
    equal(got, sent, "parts that are no text")


def _leaves(
    value: object, path: tuple[object, ...] = ()
) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
        if not value:
            yield path, value
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))
        if not value:
            yield path, value
    else:
        yield path, value


def _urls(exchange: Exchange, m: Match, view: View) -> None:
    urls = [text for text in strings(exchange.sent.json) if re.match(r"(data|https?):", text)]
    check(urls, "no URL was sent")
    got = set(strings(_last(exchange).json))
    for url in urls:
        check(url in got, f"the upstream did not get {short(url)}")


def _body_equal(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(_last(exchange).json))
    missing = [short(".".join(map(str, path))) for path in sent if path not in got]
    added = [short(".".join(map(str, path))) for path in got if path not in sent]
    check(not missing and not added, f"missing {missing}, added {added}")
    for path, value in sent.items():
        masked = isinstance(got[path], str) and "[REDACTED_" in str(got[path])
        if not same(got[path], value) and not masked:
            raise Mismatch(f"{'.'.join(map(str, path))}: {short(got[path])} for {short(value)}")


def _not_renamed(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = _pairs(exchange.sent.json), _pairs(_last(exchange).json)
    old, new = m["old"], m["new"]
    check(any(old in pair for pair in sent), f"{old} was not sent")
    check(sum(old in p for p in got) == sum(old in p for p in sent), f"{old} did not arrive")
    check(sum(new in p for p in got) == sum(new in p for p in sent), f"{new} was made up")


def _pairs(value: object) -> list[tuple[object, object]]:
    """(key, value) of every member of every object; values that are containers as None."""
    found: list[tuple[object, object]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found.append((key, item if isinstance(item, str | int | float) else None))
            found += _pairs(item)
    elif isinstance(value, list):
        for item in value:
            found += _pairs(item)
    return found


def _stays_null(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(_last(exchange).json))
    paths = [path for path, value in sent.items() if value is None and path[-1] == m["field"]]
    check(paths, f"no null {m['field']} was sent")
    for path in paths:
        check(path in got and got[path] is None, f"{m['field']} became {short(got.get(path))}")


def _unknown_kept(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = exchange.sent.json, _last(exchange).json
    check(isinstance(sent, dict) and isinstance(got, dict), "no JSON object")
    for key, value in sent.items():
        if key not in ("messages", "stream", "stream_options"):
            masked = "[REDACTED_" in json.dumps(got.get(key))
            fits = key in got and (masked or same(got[key], value))
            check(fits, f"{key}: {short(got.get(key))}")


def _field_kept(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(_last(exchange).json))
    paths = [path for path in sent if m["field"] in path]
    check(paths, f"no {m['field']} was sent")
    for path in paths:
        check(path in got and same(got[path], sent[path]), f"{m['field']}: {short(got.get(path))}")


def _raw(view: View, m: Match) -> None:
    for exchange in view.exchanges:
        personal = [
            found for text in strings(exchange.sent.json) for found in PERSONAL.findall(text)
        ]
        for call in exchange.calls:
            got = call.body.decode("utf-8", "replace")
            leaked = [text for text in personal if text in got]
            check(not leaked, f"{exchange.name}: {short(leaked)} was forwarded")


def _redacted(exchange: Exchange, m: Match, view: View) -> None:
    call = _last(exchange)
    personal = [found for text in strings(exchange.sent.json) for found in PERSONAL.findall(text)]
    check(personal, "nothing personal was sent")
    got = call.body.decode("utf-8", "replace")
    check(not [text for text in personal if text in got], f"forwarded {short(got)}")
    check("[REDACTED_" in got, f"no placeholder in {short(got)}")


def _no_decoy(view: View, m: Match) -> None:
    port = int(m["port"])
    decoys = view.seen.decoys
    check(port in decoys, f"nobody listened on port {port}")
    check(decoys[port] == 0, f"{decoys[port]} connections to port {port}")


def _configured_host(view: View, m: Match) -> None:
    check(all(hits == 0 for hits in view.seen.decoys.values()), "a connection to another host")
    sent = [call for exchange in view.exchanges for call in exchange.calls]
    check(sent, "nothing reached the configured host")
    for call in sent:
        equal(call.header("authorization"), f"Bearer {view.seen.credential}", "provider key")


def _plain_json(exchange: Exchange, m: Match, view: View) -> None:
    _unknown_kept(exchange, m, view)


def _fields_refused(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.status == 400, f"status {exchange.status}")


def _obeyed(view: View, m: Match) -> None:
    check(all(hits == 0 for hits in view.seen.decoys.values()), "a connection to another host")
    for exchange in view.exchanges:
        for call in exchange.calls:
            equal(call.header("authorization"), f"Bearer {view.seen.credential}", "provider key")


def _same_value(exchange: Exchange, m: Match, view: View) -> None:
    sent = exchange.sent.json.get(m["field"]) if isinstance(exchange.sent.json, dict) else None
    got = _last(exchange).json
    equal(got.get(m["field"]) if isinstance(got, dict) else None, sent, m["field"])


_UP = r"(?:the )?(?:upstreams?|provider|backend|primary)"
_N = rf"(?P<count>{NUMBER})"
RULES = (
    Rule(
        "nothing upstream",
        rf"{_UP} (?:gets|sees|got|receives) nothing|nothing (?:is |was )?(?:forwarded"
        rf"|reaches (?:the )?upstream|(?:goes|sent) upstream)|{_UP} (?:is )?(?:not "
        r"called|never called|not contacted)|never forwarded|not forwarded|no "
        r"upstream (?:call|request)",
        _nothing,
        _WEB,
    ),
    Rule(
        "count upstream",
        rf"(?:exactly |only )?{_N} (?:requests? )?reach(?:es)? {_UP}",
        _count,
        _WEB,
    ),
    Rule(
        "forwarded",
        rf"(?:is |are )?forwarded(?: exactly| only)?(?: (?P<count>{NUMBER})(?: times)?)?",
        each(_forwarded),
        _WEB,
    ),
    Rule(
        "own credential",
        rf"{_UP} (?:request has|gets|sees) (?:only )?(?:the gateway's|our|its own) "
        r"(?:own )?(?:service )?credential(?: only)?",
        each(_own_credential),
        _WEB,
    ),
    Rule(
        "client headers",
        rf"no client (?P<names>.+?) (?:reach(?:es)? )?{_UP}",
        each(_no_client_headers),
        _WEB,
    ),
    Rule(
        "listed headers",
        r"only (?:the )?listed headers pass \((?P<names>.+)\)",
        each(_only_listed),
        _WEB,
    ),
    Rule(
        "part order",
        rf"(?:{_UP}: )?(?:the )?same (?P<count>{NUMBER})? ?parts in the same order",
        each(_part_order),
        ("llm",),
    ),
    Rule("part texts", r'(?:the )?texts? (?:are|is) (?P<texts>".+")', each(_part_texts), ("llm",)),
    Rule(
        "parts unchanged",
        r"(?:the )?(?:[\w-]+(?:,? and |, ))*[\w-]+ parts? (?:are |is )?(?:un(?:changed"
        r"|touched)|as sent)",
        each(_parts_unchanged),
        ("llm",),
    ),
    Rule(
        "urls",
        rf"{_UP} (?:gets|sees) the URLs? (?:byte for byte|unchanged|as sent)",
        each(_urls),
        ("llm",),
    ),
    Rule(
        "body equal",
        rf"{_UP} (?:body|request) is (?:JSON-)?equal(?: \(except what redaction "
        rf"changes\))?|{_UP} (?:gets|sees) the (?:body|request) (?:un(?:changed"
        r"|touched)|as sent|byte for byte)",
        each(_body_equal),
        ("llm",),
    ),
    Rule(
        "not renamed",
        r"(?:the )?(?:role )?(?P<old>\w+) (?:is |was )?not (?:renamed|turned|changed"
        r"|converted|mapped) (?:to|into) (?P<new>\w+)",
        each(_not_renamed),
        ("llm",),
    ),
    Rule("null stays", r"null (?P<field>\w+) stays null", each(_stays_null), ("llm",)),
    Rule(
        "unknown kept",
        r"(?:the )?unknown fields?(?: is| are)? (?:kept|forwarded|passed on|untouched)",
        each(_unknown_kept),
        ("llm",),
    ),
    Rule(
        "field kept",
        r"(?:the )?(?:field )?(?P<field>[a-z_]+)(?: is| are)? (?:kept|forwarded"
        r"|passed on)(?: unchanged)?",
        each(_field_kept),
        ("llm",),
    ),
    Rule(
        "not raw",
        rf"never forwarded raw|nothing raw (?:is forwarded|reaches {_UP})|{_UP} "
        r"(?:never )?(?:gets|sees) (?:nothing|no) (?:raw|personal).*",
        _raw,
        _WEB,
    ),
    Rule(
        "request redacted",
        r"(?:is |are )?redacted(?: in every text field)?",
        each(_redacted),
        ("http",),
    ),
    Rule(
        "no connection",
        r"no (?:connection|request) to (?:port|127\.0\.0\.1:)\s?(?P<port>\d+)",
        _no_decoy,
        _WEB,
    ),
    Rule(
        "configured host",
        r"(?:the )?provider key goes to the configured host only",
        _configured_host,
        _WEB,
    ),
    Rule(
        "plain JSON", r"(?:are |is )?forwarded as plain (?:unknown )?JSON", each(_plain_json), _WEB
    ),
    Rule("fields refused", r"(?:the )?fields are refused with 400", each(_fields_refused), _WEB),
    Rule("never obeyed", r"never obeyed|not obeyed", _obeyed, _WEB),
    Rule(
        "same value",
        rf"{_UP} (?:gets|sees) (?P<field>[a-z_]+) (?:un(?:changed|touched)|as sent)",
        each(_same_value),
        ("llm",),
    ),
)
