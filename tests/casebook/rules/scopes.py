"""Which exchanges or replies do the words before a colon name?

Numbers, ordinals, labels, roles, and what is special about a variant. Does not live here: the
clause after the colon (the rule modules).
"""

import re
from collections.abc import Sequence

from tests.casebook.rules.grammar import Scope, View
from tests.casebook.rules.words import NUMBER, ORDINAL, ids, number, ordinal
from tests.casebook.seen import Exchange, Mismatch, Reply, parsed, same

_WEB = ("http", "llm", "mcp")
Match = re.Match[str]


def _numbered(view: View) -> Sequence[Exchange]:
    """What ordinals count: the variants if there are any, else the requests."""
    return view.seen.variants or view.seen.exchanges


def _numbers(view: View, m: Match) -> View:
    chosen = []
    all_of_them = view.seen.exchanges
    for wanted in ids(m["numbers"]):
        by_id = [e for e in all_of_them if _sent_id(e) == wanted]
        by_place = all_of_them[wanted - 1 : wanted] if isinstance(wanted, int) else []
        found = by_place if not by_id or len(by_id) > 1 else by_id
        if not found:
            raise Mismatch(f"there is no request {wanted}")
        chosen += found
    return view.only(chosen)


def _sent_id(exchange: Exchange) -> object:
    value = exchange.sent.json
    return value.get("id") if isinstance(value, dict) else None


def _ordinals(view: View, m: Match) -> View:
    pool = list(_numbered(view))
    if m["count"]:
        size = number(m["count"])
        if len(pool) < size:
            raise Mismatch(f"there are only {len(pool)} requests")
        return view.only(pool[:size] if m["end"] == "first" else pool[-size:])
    places = [ordinal(name, len(pool)) for name in re.findall(ORDINAL, m["which"])]
    if max(places) >= len(pool):
        raise Mismatch(f"there are only {len(pool)} requests")
    return view.only([pool[place] for place in places])


def _everything(view: View, m: Match) -> View:
    whole = view.seen.everything
    text = m["count"]
    if text and number(text) != len(whole):
        pool = _numbered(view)
        if number(text) != len(pool):
            raise Mismatch(f"{len(whole)} requests were made, not {text}")
        return view.only(pool)
    return view.only(whole)


def _variants(view: View, m: Match) -> View:
    return view.only(view.seen.variants)


def _label(view: View, m: Match) -> View:
    chosen = [e for e in view.seen.everything if e.label == m["label"]]
    if not chosen:
        raise Mismatch(f"there is no part ({m['label']})")
    return view.only(chosen)


def _role(view: View, m: Match) -> View:
    role = m["role"]
    own = view.seen.case.input.get("as")
    return view.only(view.seen.everything if role == own else view.seen.others.get(role, []))


def _page(view: View, m: Match) -> View:
    at = int(m["page"]) - 1
    return view.only(view.seen.exchanges[at : at + 1])


def _special(view: View, m: Match) -> View:
    """Variants by what is special about them: a media type, an encoding, an origin, a host."""
    chosen: list[Exchange] = []
    for words in re.split(r",\s*(?:and )?|\s+and\s+", re.sub(r" when bound to \w+", "", m[0])):
        found = [e for e in view.seen.everything if _is(words.lower(), e)]
        if not found:
            raise Mismatch(f"no request is special for {words!r}")
        chosen += found
    return view.only(chosen)


def _is(words: str, exchange: Exchange) -> bool:
    variant = exchange.variant or {}
    lowered = {str(name).lower(): str(value) for name, value in variant.items()}
    origin, host = exchange.sent.header("origin"), lowered.get("host")
    encoding = lowered.get("body_encoding", "").replace("-", "")
    named = {
        "foreign origin": origin not in (None, "null"),
        "origin null": origin == "null",
        "null origin": origin == "null",
        "no origin": origin is None and host is None,
        "without origin": origin is None and host is None,
        "foreign host": host is not None,
        "compressed body": "content-encoding" in lowered,
        "compressed": "content-encoding" in lowered,
        "gzip": "content-encoding" in lowered,
        "bom": lowered.get("body_prefix", "").startswith("\ufeff"),
    }
    if words in named:
        return named[words]
    if re.fullmatch(r"utf-?(8|16|32)(-?[lb]e)?", words):
        return encoding == words.replace("-", "")
    if "/" in words:
        return lowered.get("content-type", "").split(";")[0].strip() == words
    return any(words in (name, value.lower()) for name, value in lowered.items())


def _reply_array(view: View, m: Match) -> View:
    for exchange in view.exchanges:
        if not isinstance(exchange.json, list):
            raise Mismatch(f"{exchange.name}: status {exchange.status}, no array")
    return view


def _reply_ids(view: View, m: Match) -> View:
    wanted = ids(m["ids"])
    replies = [r for r in view.seen.talk.replies if any(same(r.id, one) for one in wanted)]
    missing = [one for one in wanted if not any(same(r.id, one) for r in replies)]
    if missing:
        raise Mismatch(f"no reply to {missing}")
    return view.replying(replies)


def _lines(view: View, m: Match) -> View:
    """Replies to the n-th line: those with its id; a line without one of its own took the next
    reply with id null."""
    wanted = ids(m["lines"])
    sent = [line for line in view.seen.talk.sent if line.strip()]
    nulls = [reply for reply in view.seen.talk.replies if reply.id is None]
    chosen: list[Reply] = []
    for place, line in enumerate(sent, start=1):
        value = parsed(line)
        own = value.get("id") if isinstance(value, dict) else None
        replies = [] if own is None else view.seen.talk.with_id(own)
        if not replies and nulls:
            replies = [nulls.pop(0)]
        if place in wanted:
            if not replies:
                raise Mismatch(f"no reply to line {place}")
            chosen += replies
    return view.replying(chosen)


def _same_view(view: View, m: Match) -> View:
    return view


_NUMBERS = r"\d+(?:(?:, | and |, and )\d+)*|\d+ (?:to|-) \d+"
SCOPES = (
    Scope(rf"(?:(?:request|answer|call|step|body)s? )?(?P<numbers>{_NUMBERS})", _numbers, _WEB),
    Scope(
        rf"(?:the )?(?P<end>first|last) (?P<count>{NUMBER})(?: requests| variants)?"
        rf"|(?P<which>(?:the )?{ORDINAL}(?:(?:, | and |, and )(?:the )?{ORDINAL})*)(?: "
        r"request| variant| answer)?",
        _ordinals,
        _WEB,
    ),
    Scope(
        rf"in (?:the )?(?P<which>{ORDINAL}(?: and (?:the )?{ORDINAL})*)(?P<end>)(?P<count>)",
        _ordinals,
        _WEB,
    ),
    Scope(
        rf"in (?:all|each|every)(?: of the)?(?: (?P<count>{NUMBER}))?(?: variants?| "
        r"cases?| requests?| answers?)?|in both(?P<c>)|both|all(?: of them)?"
        r"|every (?:variant|case|request|answer)",
        lambda v, m: _everything(v, m) if m["count"] else v.only(v.seen.everything),
        _WEB,
    ),
    Scope(r"in no variant(?P<none>)", _variants, _WEB),
    Scope(r"\((?P<label>\w)\)", _label, _WEB),
    Scope(r"(?:(?:an?|the|with an?|for an?) )?(?P<role>viewer|admin)(?: token)?", _role, ("mcp",)),
    Scope(r"page (?P<page>\d+)", _page, ("mcp",)),
    Scope(r"reply array|an? array", _reply_array, ("mcp",)),
    Scope(
        r"(?:[A-Za-z]+/[\w.+-]+|utf-?\d+(?:-?[lb]e)?|BOM|gzip|compressed(?: body)?"
        r"|foreign (?:origin|host)|origin null|null origin|no origin|without origin)"
        r"(?:(?:, | and |, and )(?:foreign (?:origin|host)|origin null|null origin|BOM"
        r"|utf-?\d+|gzip))*(?: when bound to \w+)?",
        _special,
        _WEB,
    ),
    Scope(
        rf"ids? (?P<ids>{_NUMBERS}|\"[^\"]*\")(?: says?| gets?| is| are)?", _reply_ids, ("stdio",)
    ),
    Scope(rf"lines? (?P<lines>{_NUMBERS})", _lines, ("stdio",)),
    Scope(r"request|stream|denial|the answer|upstream", _same_view, _WEB),
)
