"""Which sentences speak about one HTTP answer?

Status, headers, the error envelope, what the answer must not tell. Does not live here: streams
(stream), what the upstream got (upstream), JSON-RPC (mcp).
"""

import re

from tests.casebook.rules import profiles
from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import (
    RPC_CODE,
    STATUSES,
    items,
    status_fits,
    statuses,
)
from tests.casebook.seen import Exchange, Mismatch, check, parsed, short

_WEB = ("http", "llm", "mcp")
Match = re.Match[str]
_HEADER = r"(?:(?!utf-)(?-i:[A-Z])[A-Za-z]*|x)(?:-[A-Za-z0-9]+)+|Allow|Location|Server"
r"|Via|Vary|Origin|Connection"
_TELLS = {
    "version": r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])",
    "product name": r"tidegate|litellm|uvicorn|aiohttp|starlette|python/",
    "table": r"sqlite|\btable\b|select .* from",
    "hash": r"[0-9a-f]{64}|sha-?256",
    "stack trace": r"traceback|File \"",
    "traceback": r"traceback|File \"",
    "host": r"[\w-]+\.internal\b|127\.0\.0\.1",
    "path": r"/(?:usr|home|opt|srv|var)/|\.py\b",
    "exception": r"\b\w+(?:Error|Exception)\b",
}


def _status(exchange: Exchange, m: Match, view: View) -> None:
    wanted = statuses(m["codes"])
    check(status_fits(exchange.status, wanted), f"status {exchange.status}: {short(exchange.text)}")


def _not_status(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.status, "no answer")
    check(not status_fits(exchange.status, statuses(m["codes"])), f"status {exchange.status}")


def _stays(exchange: Exchange, m: Match, view: View) -> None:
    said = exchange.calls[-1].answered if exchange.calls else 0
    if said == int(m["code"]):
        check(exchange.status == int(m["code"]), f"{said} became {exchange.status}")
        _envelope(exchange, m, view)


def _rpc_code(exchange: Exchange, m: Match, view: View) -> None:
    wanted = [int(code) for code in re.findall(RPC_CODE, m["codes"])]
    profile = view.seen.profile
    fits = any(profiles.fits(exchange.rpc, code, profile) for code in wanted)
    check(fits, f"status {exchange.status}, {short(exchange.text)}")


def _header_value(exchange: Exchange, m: Match, view: View) -> None:
    got = exchange.header(m["name"])
    wanted = m["value"].strip().strip('"').lower()
    check(got is not None and wanted in got.lower(), f"{m['name']}: {got}")


def _has_header(exchange: Exchange, m: Match, view: View) -> None:
    got = exchange.header(m["name"])
    check(got is not None, f"no {m['name']}")
    if m["origin"]:
        check(got in (exchange.sent.header("origin"), "*"), f"{m['name']}: {got}")


def _no_header(exchange: Exchange, m: Match, view: View) -> None:
    for name in re.findall(_HEADER, m["names"], re.IGNORECASE):
        check(exchange.header(name) is None, f"{name}: {exchange.header(name)}")


def _stale(exchange: Exchange, m: Match, view: View) -> None:
    coding, length = exchange.header("content-encoding"), exchange.header("content-length")
    check(coding in (None, "identity"), f"Content-Encoding: {coding}")
    fits = length is None or int(length) == len(exchange.body)
    check(fits, f"Content-Length {length} for {len(exchange.body)} bytes")
    check(exchange.whole, "the answer was cut")


def _methods(exchange: Exchange, m: Match, view: View) -> None:
    allowed = exchange.header("access-control-allow-methods") or ""
    check(m["method"].upper() in items(allowed.upper()), f"methods {allowed or 'none'}")


def _asked_headers(exchange: Exchange, m: Match, view: View) -> None:
    asked = items((exchange.sent.header("access-control-request-headers") or "").lower())
    allowed = items((exchange.header("access-control-allow-headers") or "").lower())
    missing = [name for name in asked if name not in allowed and "*" not in allowed]
    check(asked and not missing, f"not allowed: {', '.join(missing) or 'nothing was asked'}")


def _envelope(exchange: Exchange, m: Match, view: View) -> None:
    errors = exchange.chat.errors
    check(errors, f"no error envelope: {short(exchange.text)}")
    error = errors[-1].get("error")
    check(isinstance(error, dict), f"error is {short(error)}")
    missing = {"type", "code", "message", "request_id"} - set(error)
    check(not missing and set(errors[-1]) == {"error"}, f"envelope without {sorted(missing)}")
    known = str(error["code"]).startswith("gateway.") or error["code"] in (
        "context_length_exceeded",
        "content_filter",
    )
    check(known, f"code {error['code']} is not the gateway's")
    check(error["request_id"] == exchange.header("x-request-id"), "another request id in the head")


def _rpc_error(exchange: Exchange, m: Match, view: View) -> None:
    error = exchange.rpc.get("error")
    clear = isinstance(error, dict) and isinstance(error.get("code"), int) and error.get("message")
    check(clear, f"no JSON-RPC error: {short(exchange.text)}")


def _empty_body(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.body == b"", f"a body: {short(exchange.text)}")


def _body_not_empty(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.body.strip(), "an empty body")


def _not_null_body(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.body.strip() != m["word"].encode(), f"the body is {short(exchange.text)}")


def _same_bodies(view: View, m: Match) -> None:
    bodies = []
    for exchange in view.exchanges:
        text = exchange.text
        error = exchange.json.get("error", {}) if isinstance(exchange.json, dict) else {}
        bodies.append(text.replace(str(error.get("request_id", "\x00")), "REQUEST-ID"))
    different = next((body for body in bodies if body != bodies[0]), None)
    check(different is None, f"{short(different)} beside {short(bodies[0] if bodies else '')}")


def _tells_nothing(exchange: Exchange, m: Match, view: View) -> None:
    heads = "\n".join(f"{name}: {value}" for name, value in exchange.headers)
    text = f"{exchange.text}\n{heads}"
    for thing in items(m["things"]):
        pattern = next((p for word, p in _TELLS.items() if word in thing.lower()), None)
        if pattern is None and "echo" in thing.lower():
            sent = (exchange.sent.header("authorization") or "").split(" ")[-1]
            check(len(sent) < 4 or sent not in text, f"the key itself: {short(exchange.text)}")
        elif pattern is None:
            check(thing.lower() not in text.lower(), f"{thing!r} in {short(exchange.text)}")
        else:
            found = re.search(pattern, text, re.IGNORECASE)
            check(found is None, f"{found and found[0]!r} tells of a {thing}")


def _no_error_word(view: View, m: Match) -> None:
    for exchange in view.exchanges:
        check(m["word"] not in exchange.text, f"{m['word']} in {short(exchange.text)}")
    check(m["word"] not in view.seen.log, f"{m['word']} in the log")


def _no_admin_data(exchange: Exchange, m: Match, view: View) -> None:
    value = exchange.json
    only_error = isinstance(value, dict) and set(value) <= {"error", "jsonrpc", "id"}
    check(not exchange.body or only_error, f"data: {short(exchange.text)}")


def _accepted(exchange: Exchange, m: Match, view: View) -> None:
    served = exchange.status in (200, 202) and "error" not in exchange.rpc
    check(served and not exchange.chat.errors, f"status {exchange.status} {short(exchange.text)}")
    check(exchange.calls, "nothing was forwarded")


def _refused(exchange: Exchange, m: Match, view: View) -> None:
    refused = exchange.status >= 400 or "error" in exchange.rpc or exchange.error_code is not None
    check(refused, f"status {exchange.status}: {short(exchange.text)}")
    named = [
        str(c) for c in re.findall(rf"{RPC_CODE}|\b[45]\d\d\b", m.groupdict().get("how") or "")
    ]
    if named:
        profile, status = view.seen.profile, str(exchange.status)
        fits = status in named or any(
            profiles.fits(exchange.rpc, int(code), profile) for code in named if code[0] == "-"
        )
        check(fits, f"status {exchange.status}: {short(exchange.text)}")


def _same_way(view: View, m: Match) -> None:
    ways = {(exchange.status, str(exchange.error_code)) for exchange in view.exchanges}
    check(len(ways) == 1, f"different answers: {sorted(ways)}")
    for exchange in view.exchanges:
        _refused(exchange, m, view)


def _no_crash(view: View, m: Match) -> None:
    check(view.seen.alive, "the process ended")
    check("Traceback" not in view.seen.log, "a traceback in the log")
    for exchange in view.exchanges:
        fine = exchange.status and exchange.status != 500 and exchange.whole
        check(fine, f"{exchange.name}: status {exchange.status}, whole {exchange.whole}")


def _unread_body(view: View, m: Match) -> None:
    early = view.seen.others.get("half a body", [])
    check(early, "no request with half a body was tried")
    for exchange in early:
        check(exchange.status == 401, f"half a body: status {exchange.status}")
    for exchange in view.exchanges:
        check(not exchange.calls, f"{exchange.name}: forwarded")


def _own_code(exchange: Exchange, m: Match, view: View) -> None:
    code = exchange.error_code
    own = str(code).startswith("gateway.") or code in ("context_length_exceeded", "content_filter")
    check(own, f"code {code}: {short(exchange.text)}")


def _codes_word(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.error_code == m["code"], f"code {exchange.error_code}")


def _retry_after(exchange: Exchange, m: Match, view: View) -> None:
    value = exchange.header("retry-after")
    check(value is not None and value.isdigit(), f"Retry-After: {value}")
    bounds = [int(number) for number in re.findall(r"\d+", m["bounds"] or "")]
    if bounds and value:
        check(min(bounds) <= int(value) <= max(bounds), f"Retry-After: {value}")


def _content_type(exchange: Exchange, m: Match, view: View) -> None:
    got = exchange.header("content-type") or ""
    check(got.startswith(m["type"]), f"Content-Type: {got}")


def _valid_json(exchange: Exchange, m: Match, view: View) -> None:
    check(parsed(exchange.body) is not None, f"no JSON: {short(exchange.text)}")


def _request_id(exchange: Exchange, m: Match, view: View) -> None:
    got = exchange.header("x-request-id")
    check(got, "no x-request-id")
    errors = exchange.chat.errors
    if errors:
        check(errors[-1]["error"].get("request_id") == got, "another request_id in the body")


def _still_serves(view: View, m: Match) -> None:
    if not view.seen.alive:
        raise Mismatch("the process ended")


_SAY = (
    r"(?:(?:HTTP|status|answer(?:s|ed)?(?: with)?|returns?|gets?|client(?: gets)?|is|are|as|a|an"
    r") )*"
)
RULES = (
    Rule(
        "status", rf"{_SAY}(?P<codes>{STATUSES})(?: at once| as usual| again)?", each(_status), _WEB
    ),
    Rule(
        "status not",
        rf"(?:not|never|no)(?: an?)? (?P<codes>{STATUSES}|\dxx)",
        each(_not_status),
        _WEB,
    ),
    Rule(
        "status stays", r"(?:an? )?(?P<code>\d{3}) stays an? (?:clean )?\d{3}", each(_stays), _WEB
    ),
    Rule(
        "json-rpc code",
        rf"{_SAY}(?:JSON-RPC )?(?:error |error code |code )"
        rf"?(?P<codes>{RPC_CODE}(?:(?:,? or |, ){RPC_CODE})*)"
        r"(?: as usual| unknown tool)?",
        each(_rpc_code),
        ("http", "mcp"),
    ),
    Rule(
        "header value",
        rf"(?P<name>{_HEADER}): (?P<value>(?:(?!(?: and|,) [A-Z][\w-]+: ).)+)",
        each(_header_value),
        _WEB,
    ),
    Rule("header value", r"(?P<name>Content-Length) (?P<value>\d+)", each(_header_value), _WEB),
    Rule(
        "header there",
        rf"(?:an? |the )?(?:header )?(?P<name>{_HEADER})(?: header)?(?: is there| set| returns?)?"
        r"(?P<origin> for (?:that|the) origin)?",
        each(_has_header),
        _WEB,
    ),
    Rule(
        "header absent",
        rf"(?:no|without)(?: an?)? (?P<names>(?:{_HEADER})(?:(?:, | or |, or )"
        rf"(?:{_HEADER}))*)(?: header)?",
        each(_no_header),
        _WEB,
    ),
    Rule("framing headers", r"no stale Content-Encoding or Content-Length", each(_stale), _WEB),
    Rule("cors method", r"methods? (?P<method>[A-Z]+)", each(_methods), _WEB),
    Rule("cors headers", r"the (?:asked|requested) headers", each(_asked_headers), _WEB),
    Rule(
        "envelope",
        r"(?:a |the |its |our |own |clean |OpenAI )*(?:error )?envelope",
        each(_envelope),
        _WEB,
    ),
    Rule("json-rpc error", r"(?:an? )?(?:clear )?JSON-RPC error", each(_rpc_error), ("mcp",)),
    Rule(
        "empty body",
        r"(?:an? )?(?:empty body|no body|without a body|body is empty)",
        each(_empty_body),
        _WEB,
    ),
    Rule("body", r"(?:the )?body is never empty|never an empty body", each(_body_not_empty), _WEB),
    Rule("not this body", r'no "(?P<word>[^"]+)" body', each(_not_null_body), _WEB),
    Rule(
        "same bodies",
        r"(?:the )?bod(?:y is|ies are) the same(?: but for request_id)?",
        _same_bodies,
        _WEB,
    ),
    Rule(
        "tells nothing",
        r"no (?P<things>(?:product name|version|table|hash|echo|stack trace|traceback|host name"
        r"|internal host|path)\b.*?)(?: in (?:any|the) answers?)?",
        each(_tells_nothing),
        _WEB,
    ),
    Rule(
        "no error word", r"no (?P<word>[A-Z]\w*(?:Error|Exception)|Traceback)", _no_error_word, _WEB
    ),
    Rule("no admin data", r"no admin data", each(_no_admin_data), _WEB),
    Rule(
        "accepted",
        r"(?:is |are )?(?:accepted|served|answered|passes|allowed)(?: as usual)?",
        each(_accepted),
        ("http", "mcp"),
    ),
    Rule("refused the same way", r"(?:both |all |\w+ )?refused the same way", _same_way, _WEB),
    Rule(
        "refused",
        r"(?:(?:both|all|are|is|be|was|were|whole batch|the whole batch|both orders"
        r"|viewer|request) )*(?:refused|denied|rejected|blocked)(?: \((?P<how>.+)\))?",
        each(_refused),
        _WEB,
    ),
    Rule("no crash", r"no crash|does not crash|without (?:a )?crash(?:ing)?", _no_crash, _WEB),
    Rule("body unread", r"(?:the )?body is not read(?: or forwarded)?", _unread_body, _WEB),
    Rule("own code", r"(?:the )?(?:gateway's own |gateway |own )code", each(_own_code), _WEB),
    Rule(
        "error code word",
        r"(?:code )?(?P<code>gateway\.\w+|context_length_exceeded|content_filter)",
        each(_codes_word),
        _WEB,
    ),
    Rule(
        "retry-after",
        r"Retry-After(?: is)?(?: an)?(?: integer)?(?P<bounds> (?:of )?\d+(?: to \d+)?)"
        r"?(?: s| seconds)?",
        each(_retry_after),
        _WEB,
    ),
    Rule(
        "content type",
        r"(?:Content-Type )?(?:is )?(?P<type>application/json|text/event-stream)",
        each(_content_type),
        _WEB,
    ),
    Rule(
        "valid JSON",
        r"(?:valid|well-formed) JSON|(?:the )?body (?:is|parses as) (?:valid )?JSON",
        each(_valid_json),
        _WEB,
    ),
    Rule(
        "request id",
        r"(?:an? |the )?(?:x-request-id|request_id|request id)(?: header)?(?: (?:on"
        r"|in) every answer)?",
        each(_request_id),
        _WEB,
    ),
    Rule(
        "still serving",
        r"(?:the )?(?:process|gateway|server) (?:is )?(?:still )?(?:alive|running|serving|up)",
        _still_serves,
        _WEB,
    ),
)
