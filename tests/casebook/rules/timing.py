"""Which sentences speak about when something arrived, and what it cost?

Time windows are widened threefold, so each rule also asks for an order of events that no slow
machine can disturb. Lives here too: memory, tokens, the log. Does not live here: what arrived
(stream).
"""

import re

from tests.casebook.events import Chat, decode
from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import quoted, seconds, size_bytes
from tests.casebook.seen import WIDEN, Call, Exchange, Mismatch, check, short

Match = re.Match[str]
_WEB = ("http", "llm", "mcp")
_BOUNDED_BYTES = 16 * 2**20


def _call(exchange: Exchange) -> Call:
    if not exchange.calls:
        raise Mismatch("the upstream got nothing")
    return exchange.calls[-1]


def _written(exchange: Exchange) -> list[tuple[float, int]]:
    """(time, characters of choice 0 so far) for each text delta the upstream wrote."""
    call = _call(exchange)
    ends, total = [], 0
    for at_s, data in call.writes:
        total += len(data)
        ends.append((total, at_s))
    found, characters, offset = [], 0, 0
    for event, end in _event_ends(exchange):
        characters += event
        offset = end
        at_s = next((when for until, when in ends if until >= offset), None)
        if event and at_s is not None:
            found.append((at_s, characters))
    return found


def _event_ends(exchange: Exchange) -> list[tuple[int, int]]:
    """(characters of text, offset of its end in the canned stream) for each event."""
    found, start = [], 0
    for match in re.finditer(rb"(?:\r\n\r\n|\n\n|\r\r)", exchange.canned):
        block = exchange.canned[start : match.end()]
        start = match.end()
        found.append((len(Chat.of_events(decode([(0.0, block)])).text()), match.end()))
    return found


def _first_soon(exchange: Exchange, m: Match, view: View) -> None:
    written, read = _written(exchange), exchange.chat.arrivals()
    check(written and read, "no text")
    late_s = read[0][0] - written[0][0]
    bound_s = seconds(m["bound"]) * WIDEN
    check(late_s < bound_s, f"first text {late_s * 1000:.0f} ms after it was written")
    last_s = _call(exchange).writes[-1][0]
    check(read[0][0] < last_s, "first text only after the upstream's last write")


def _gaps(exchange: Exchange, m: Match, view: View) -> None:
    written, read = _written(exchange), exchange.chat.arrivals()
    check(written and read, "no text")
    bound_s = seconds(m["bound"]) * WIDEN
    said = exchange.canned_chat.text()
    spared = bool(m["spared"])
    start = 0
    for at_s, until in written:
        text, start = said[start:until], until
        if spared and any(character.isdigit() for character in text):
            continue
        came_s = next((when for when, count in read if count >= until), None)
        check(came_s is not None, f"{text!r} did not arrive")
        gap_s = (came_s or 0.0) - at_s
        check(gap_s <= bound_s, f"{text!r} came {gap_s * 1000:.0f} ms after it was written")


def _before_end(exchange: Exchange, m: Match, view: View) -> None:
    call = _call(exchange)
    arrivals = exchange.chat.arrivals() or [(event.at_s, 1) for event in exchange.events]
    check(arrivals, f"no delta: status {exchange.status}")
    check(len(call.writes) > 1, "the upstream wrote everything at once")
    check(arrivals[0][0] < call.writes[-1][0], "first delta only after the upstream had finished")


def _total_under(exchange: Exchange, m: Match, view: View) -> None:
    took_s = exchange.ended_s - exchange.started_s
    check(took_s < seconds(m["bound"]) * WIDEN, f"took {took_s:.2f} s")


def _memory(view: View, m: Match) -> None:
    extra = view.seen.extra_bytes
    check(extra is not None, "memory was not measured")
    bound = size_bytes(m["bound"]) if m["bound"] else _BOUNDED_BYTES
    check((extra or 0) < bound, f"{(extra or 0) / 2**20:.1f} MiB more at the peak")


def _settled(view: View, m: Match) -> None:
    got = view.seen.settled
    check(got, "nothing was settled")
    if m["total"]:
        total = sum(got.values())
        check(total == int(m["total"]), f"{total} tokens were settled: {got}")
    else:
        usage = _usage(view.exchanges[-1])
        check(usage, "the upstream sent no usage")
        check(sum(got.values()) == usage, f"{got} were settled for {usage}")


def _usage(exchange: Exchange) -> int:
    for _, chunk in reversed(exchange.canned_chat.chunks):
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            return int(usage["total_tokens"])
    return 0


def _first_event_before(exchange: Exchange, m: Match, view: View) -> None:
    events = [event for event in exchange.events if event.data]
    wanted = [e for e in events if m["what"].split("/")[-1].lower() in (e.data or "").lower()]
    check(wanted, f"no {m['what']} event reached the client")
    at_s = wanted[0].at_s - exchange.started_s
    check(at_s < seconds(m["bound"]) * WIDEN, f"first {m['what']} event after {at_s:.2f} s")
    last_s = _call(exchange).writes[-1][0]
    check(wanted[0].at_s < last_s, "it came only with the upstream's last write")


def _gateway_hop(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.calls, "the upstream got nothing")
    late_s = exchange.calls[0].at_s - exchange.started_s
    check(late_s < seconds(m["bound"]) * WIDEN, f"forwarded after {late_s:.2f} s")


def _log_lacks(view: View, m: Match) -> None:
    for word in quoted(m["things"]):
        at = view.seen.log.find(word)
        check(at < 0, f"{word!r} in the log: {short(view.seen.log[max(0, at - 60) : at + 60])}")


def _log_holds(view: View, m: Match) -> None:
    for word in quoted(m["things"]):
        check(word in view.seen.log, f"no {word!r} in the log")


_LOGGED = r'(?P<things>"[^"]*"(?:(?:, | and | or )"[^"]*")*)'
_BOUND = r"(?P<bound>[0-9.]+ ?(?:ms|s))"
RULES = (
    Rule(
        "log lacks",
        rf"(?:no )?{_LOGGED} (?:is |are )?(?:not |never )?in (?:the|any) logs?(?: lines?)?",
        _log_lacks,
        _WEB,
    ),
    Rule("log lacks", rf"(?:the )?log (?:holds|has|shows) no {_LOGGED}", _log_lacks, _WEB),
    Rule("log holds", rf"(?:the )?log (?:holds|has|shows|names) {_LOGGED}", _log_holds, _WEB),
    Rule(
        "first text soon",
        r"first (?:text|token|delta|content) reaches the client (?:in )?(?:less than"
        rf"|under|within) {_BOUND} after (?:the )?upstream wrote it",
        each(_first_soon),
        _WEB,
    ),
    Rule(
        "no gaps",
        rf"no gap between upstream write and client read above {_BOUND}(?P<spared>,? "
        r"except for held (?:digits|text))?",
        each(_gaps),
        _WEB,
    ),
    Rule(
        "before the end",
        r"first (?:delta|text|token|event|content) (?:leaves|arrives|reaches the "
        r"client) before (?:the )?upstream has finished(?: \(.*\))?|no whole-stream "
        r"buffering",
        each(_before_end),
        _WEB,
    ),
    Rule(
        "total time",
        r"(?:the )?(?:total time|answer comes|it takes|takes|answered) (?:is )"
        rf"?(?:under|below|within|before|in under|less than) {_BOUND}(?: on loopback)?",
        each(_total_under),
        _WEB,
    ),
    Rule(
        "memory",
        r"(?:extra )?memory (?:stays |is |still )*(?:under|below|bounded)(?: "
        r"(?P<bound>[0-9.]+ ?[kMG]i?B))?",
        _memory,
        _WEB,
    ),
    Rule(
        "settled",
        r"settled (?:tokens|usage) (?:=|is|are) (?P<total>\d+)|(?:the )?usage is "
        r"(?:counted|settled)(?: for the limit)?",
        _settled,
        ("llm",),
    ),
    Rule(
        "first event before",
        r"first (?P<what>[\w/]+) (?:event|notification) reaches the client (?:before"
        rf"|within|in under) {_BOUND}",
        each(_first_event_before),
        _WEB,
    ),
    Rule("hop", rf"forwarded (?:within|in under) {_BOUND}", each(_gateway_hop), _WEB),
)
