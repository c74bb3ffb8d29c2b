"""Which sentences speak about what the upstream got?

How many requests, which headers and credentials, which parts of the body. Does not live here:
tools that ran (mcp), the answer of the client (http, stream).
"""

import re

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import NUMBER, items, number
from tests.casebook.seen import Call, Exchange, Mismatch, check, equal, short, strings

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


def last_call(exchange: Exchange) -> Call:
    """The last request that the upstream got; Mismatch if there was none."""
    if not exchange.calls:
        raise Mismatch(f"the upstream got nothing; status {exchange.status} {short(exchange.text)}")
    return exchange.calls[-1]


def _own_credential(exchange: Exchange, m: Match, view: View) -> None:
    for call in exchange.calls or [last_call(exchange)]:
        sent = [value for name, value in call.headers if name.lower() == "authorization"]
        check(sent == [f"Bearer {view.seen.credential}"], f"Authorization {short(sent)}")


def _no_client_headers(exchange: Exchange, m: Match, view: View) -> None:
    call = last_call(exchange)
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
        for name, _ in last_call(exchange).headers
        if name.lower() not in listed
        and name.lower() not in _TRANSPORT
        and not (prefixes and name.lower().startswith(prefixes))
    ]
    check(not extra, f"also passed: {', '.join(extra)}")


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
    call = last_call(exchange)
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


def _fields_refused(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.status == 400, f"status {exchange.status}")


def _obeyed(view: View, m: Match) -> None:
    check(all(hits == 0 for hits in view.seen.decoys.values()), "a connection to another host")
    for exchange in view.exchanges:
        for call in exchange.calls:
            equal(call.header("authorization"), f"Bearer {view.seen.credential}", "provider key")


UPSTREAM = r"(?:the )?(?:upstreams?|provider|backend|primary)"
_N = rf"(?P<count>{NUMBER})"
RULES = (
    Rule(
        "nothing upstream",
        rf"{UPSTREAM} (?:gets|sees|got|receives) nothing|nothing (?:is |was )?(?:forwarded"
        rf"|reaches (?:the )?upstream|(?:goes|sent) upstream)|{UPSTREAM} (?:is )?(?:not "
        r"called|never called|not contacted)|never forwarded|not forwarded|no "
        r"upstream (?:call|request)",
        _nothing,
        _WEB,
    ),
    Rule(
        "count upstream",
        rf"(?:exactly |only )?{_N} (?:requests? |calls? )?reach(?:es)? {UPSTREAM}",
        _count,
        _WEB,
    ),
    Rule(
        "count upstream",
        rf"{UPSTREAM} (?:gets|sees|got|receives) (?:exactly |only )?{_N} (?:requests?|calls?)",
        _count,
        _WEB,
    ),
    Rule(
        "forwarded",
        r"(?:(?:the )?(?:\w+ )?notification |(?:the )?(?:call|request) )?(?:is |are )"
        rf"?forwarded(?: exactly| only)?(?: (?P<count>{NUMBER})(?: times)?)?",
        each(_forwarded),
        _WEB,
    ),
    Rule(
        "own credential",
        rf"{UPSTREAM} (?:request has|gets|sees) (?:only )?(?:the gateway's|our|its own) "
        r"(?:own )?(?:service )?credential(?: only)?",
        each(_own_credential),
        _WEB,
    ),
    Rule(
        "client headers",
        rf"no client (?P<names>.+?) (?:reach(?:es)? )?{UPSTREAM}",
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
        "not raw",
        rf"never forwarded raw|nothing raw (?:is forwarded|reaches {UPSTREAM})|{UPSTREAM} "
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
    Rule("fields refused", r"(?:the )?fields are refused with 400", each(_fields_refused), _WEB),
    Rule("never obeyed", r"never obeyed|not obeyed", _obeyed, _WEB),
)
