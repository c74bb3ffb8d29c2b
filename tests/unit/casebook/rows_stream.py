"""Rows for streamed answers: texts, chunks, tool calls, times."""

from tests.casebook.answers import chunk, event, stream
from tests.casebook.seen import Exchange, Seen
from tests.unit.casebook.observations import (
    CARD,
    MAIL,
    calling,
    deltas,
    envelope,
    seen,
    streamed,
    texts,
    web,
)
from tests.unit.casebook.rows_stdio import Row

ERROR = event(envelope("gateway.upstream_interrupted"))
LEAKED = event({"error": {"message": "x", "code": "x", "request_id": ""}})
AB = stream(["A", "B"])
LARGE = deltas({"images": [{"url": "x" * 50}]}, {"content": "done"})
SECRET = "sk-proj-" + "Q7w_e8R-" * 12
TOOLS = calling(
    {"id": "a", "function": {"name": "f", "arguments": "{}"}},
    {"index": 0, "id": "", "function": {"name": "", "arguments": '{"b"'}},
    {"index": 0, "id": None, "function": {"arguments": ":2}"}},
)
NAMED = calling({"index": 0, "id": "a", "function": {"name": "send", "arguments": '{"n":1}'}})
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
LAST = event(chunk({}) | {"choices": [], "usage": USAGE})
COUNTED = stream(["A"], done=False) + LAST + b"data: [DONE]\n\n"
REASONED = deltas({"reasoning_content": f"user {MAIL} "}, {"content": "ok"})
SEEN_REASON = deltas({"reasoning_content": "user [REDACTED_EMAIL] "}, {"content": "ok"})
SAID = f"a {MAIL} b {CARD} c"
PACE = [0.0, 0.1, 0.2, 0.3, 0.4]


def pair(right: Exchange, wrong: Exchange) -> tuple[Seen, Seen]:
    """Both as chat cases."""
    return seen("llm", right), seen("llm", wrong)


def from_canned(canned: bytes, right: bytes, wrong: bytes) -> tuple[Seen, Seen]:
    """What the upstream said, and two streams that the client may have got."""
    return pair(streamed(right, canned=canned), streamed(wrong, canned=canned))


def sdk(exchange: Exchange, text: str | None, error: BaseException | None = None) -> Exchange:
    """The same, read by the SDK."""
    exchange.by_sdk, exchange.sdk_text, exchange.client_error = True, text, error
    return exchange


def paced(late: int = 0) -> Exchange:
    """Three texts, each read a tenth after it was written, or only with a later write."""
    canned = stream(["one ", "2 ", "three "])
    parts = [part + b"\n\n" for part in canned.split(b"\n\n") if part]
    pieces = [b""] * late + [b"".join(parts[: late + 1]), *parts[late + 1 :]]
    return streamed(*pieces, canned=canned, writes=PACE)


def choices(*parts: tuple[int, str, str]) -> bytes:
    """One event for each (index, text, finish)."""
    events = [event(chunk({"content": text}, index=at, finish=end)) for at, text, end in parts]
    return b"".join(events) + b"data: [DONE]\n\n"


def secret(text: str) -> Exchange:
    """A stream for a generated secret."""
    return texts(text, canned=stream([f"key {SECRET} end"]), secret=SECRET)


def called_late() -> Exchange:
    """A request that reached the upstream only after a while."""
    exchange = paced()
    exchange.calls[0].at_s = 9.0
    return exchange


class APIError(Exception):
    """Named as the SDK names it."""


TEXTS: list[tuple[str, tuple[Seen, Seen]]] = [
    ("joined text equals the original", from_canned(AB, stream(["AB"]), stream(["A"]))),
    (
        "always the same joined text",
        (seen("llm", texts("A", "B"), texts("AB")), seen("llm", texts("AB"), texts("A"))),
    ),
    ('text "done" arrives', pair(texts("all done"), texts("all"))),
    ("joined text AB", pair(texts("A", "B"), texts("A"))),
    ('joined text "A B"', pair(sdk(texts("A B"), "A B"), sdk(texts("A B"), "A"))),
    (
        'joined text before it is "Hel"',
        pair(
            streamed(stream(["Hel"], finish=None, done=False), ERROR),
            streamed(stream(["He"], finish=None, done=False), ERROR),
        ),
    ),
    (
        'choice 1: "b", finish stop',
        pair(streamed(choices((1, "b", "stop"))), streamed(choices((0, "b", "stop")))),
    ),
    ("no U+FFFD anywhere", pair(texts("é"), texts("\ufffd"))),
    ("stream not cut", pair(texts("A"), streamed(stream(["A"], done=False)))),
    ("exactly one [DONE]", pair(texts("A"), streamed(AB + b"data: [DONE]\n\n"))),
    ("no [DONE]", pair(streamed(stream(["A"], done=False)), texts("A"))),
    ("[DONE] is the last event", pair(texts("A"), streamed(AB + LAST))),
    ('no event whose data starts with ":"', pair(texts("A"), streamed(b"data: : x\n\n" + AB))),
    ("no event with empty data", pair(texts("A"), streamed(b"data:\n\n" + AB))),
    (
        "comments are not followed by a blank line of their own once an id was sent",
        pair(streamed(b": x\n" + AB), streamed(b"id: 1\ndata: {}\n\n: x\n\n" + AB)),
    ),
    ("ids and retry are dropped", pair(texts("A"), streamed(b"retry: 3\n\n" + AB))),
    ("client collects AB without exception", pair(sdk(texts("AB"), "AB"), sdk(texts("AB"), "A"))),
    (
        "no exception in the client",
        pair(sdk(texts("A"), "A"), sdk(texts("A"), "A", ValueError("x"))),
    ),
    ("client raises APIError", pair(sdk(texts("A"), "A", APIError()), sdk(texts("A"), "A"))),
    (
        "error event holds the gateway's own code, message and request_id",
        pair(streamed(ERROR), streamed(LEAKED)),
    ),
    ("stream ends with an error event", pair(streamed(AB[:-14], ERROR), streamed(ERROR, AB))),
    ("no text after it", pair(streamed(AB[:-14], ERROR), streamed(ERROR, AB))),
    (
        "exactly two placeholders",
        pair(texts("[REDACTED_SSN][REDACTED_SSN]"), texts("[REDACTED_SSN]")),
    ),
    ("exactly one [REDACTED_EMAIL]", pair(texts("[REDACTED_EMAIL]"), texts("[REDACTED_CARD]"))),
    ("nothing is redacted", pair(texts("A"), texts("[REDACTED_CARD]"))),
    (
        "letters a b c and spaces between kept",
        from_canned(
            stream([SAID]),
            stream(["a [REDACTED_EMAIL] b [REDACTED_CARD] c "]),
            stream(["a [REDACTED_EMAIL] [REDACTED_CARD] c "]),
        ),
    ),
    (
        "all two redacted",
        from_canned(
            stream([SAID]),
            stream(["[REDACTED_EMAIL] [REDACTED_CARD]"]),
            stream(["[REDACTED_EMAIL]"]),
        ),
    ),
    ("redaction took place", pair(texts("[REDACTED_CARD]"), texts("A"))),
    ("client decodes each answer", pair(texts("A"), web(b"\x1f\x8b"))),
    ("no part of the card leaks", from_canned(stream([CARD]), stream(["x"]), stream([CARD[:8]]))),
    (
        "a redacted text in each choice",
        pair(
            streamed(choices((0, "[REDACTED_SSN]", "stop"), (1, "[REDACTED_SSN]", "stop"))),
            streamed(choices((0, "[REDACTED_SSN]", "stop"), (1, "raw", "stop"))),
        ),
    ),
    (
        "one placeholder, none of the 96 characters leaks",
        pair(
            secret("key [REDACTED_SECRET] end"), secret(f"key [REDACTED_SECRET]{SECRET[-9:]} end")
        ),
    ),
]
CHUNKS: list[tuple[str, tuple[Seen, Seen]]] = [
    ("all four events arrive in order", from_canned(AB, AB, stream(["A"]))),
    (
        "the chunk with the text comes before the chunk with finish_reason",
        pair(texts("A"), streamed(deltas({"content": "A"}) + event(chunk({"content": "B"})))),
    ),
    (
        'exactly one finish_reason "stop" for index 0',
        pair(texts("A"), streamed(AB[:-14] + AB)),
    ),
    ("no invented finish_reason", pair(streamed(stream(["A"], finish=None)), texts("A"))),
    ("finish_reason is stop", pair(texts("A"), streamed(stream(["A"], finish="length")))),
    ("finish_reason stop arrives once", pair(texts("A"), streamed(AB[:-14] + AB))),
    ("no event is lost or doubled", from_canned(AB, AB, stream(["A"]))),
    ("three events", pair(texts("A"), texts("A", "B"))),
    ("usage arrives unchanged", from_canned(COUNTED, COUNTED, stream(["A"]))),
    ("usage chunk is the last before [DONE]", pair(streamed(COUNTED), streamed(LAST + AB))),
    (
        "id, model and created are unchanged",
        from_canned(AB, AB, AB.replace(b'"id": "c1"', b'"id": "c2"')),
    ),
    (
        "choices keep their index",
        from_canned(choices((1, "b", "stop")), choices((1, "b", "stop")), AB),
    ),
    (
        "role assistant",
        pair(streamed(deltas({"role": "assistant"})), streamed(deltas({"role": "user"}))),
    ),
    (
        "no logprobs in the answer",
        pair(texts("A"), streamed(AB.replace(b'"id"', b'"logprobs":[1],"id"'))),
    ),
    (
        "logprobs are dropped",
        pair(texts("A"), streamed(AB.replace(b'"id"', b'"logprobs":[1],"id"'))),
    ),
    (
        'index, id and name arrive as sent (absent stays absent, "" stays "", null stays null)',
        from_canned(TOOLS, TOOLS, TOOLS.replace(b'"id": null', b'"id": ""')),
    ),
    (
        "argument text per position is complete",
        from_canned(TOOLS, TOOLS, TOOLS.replace(b":2}", b":2")),
    ),
    (
        'joined arguments parse as JSON and equal {"n":1}',
        from_canned(NAMED, NAMED, NAMED.replace(b":1}", b":2}")),
    ),
    ("joined arguments are JSON", from_canned(NAMED, NAMED, NAMED.replace(b":1}", b":1"))),
    (
        "function name and id untouched",
        from_canned(NAMED, NAMED, NAMED.replace(b'"send"', b'"other"')),
    ),
    (
        "every field arrives JSON-equal in the same chunk",
        from_canned(LARGE, LARGE, LARGE.replace(b"images", b"image")),
    ),
    ("fields stay in place", from_canned(REASONED, SEEN_REASON, stream(["ok"]))),
    ('content "ok"', pair(texts("ok"), texts("no"))),
    (
        "hold-back state is kept per field",
        from_canned(REASONED, SEEN_REASON, deltas({"reasoning_content": "ok user"})),
    ),
    ("event arrives whole and unchanged", from_canned(LARGE, LARGE, LARGE.replace(b"xx", b"x", 1))),
]
TIMES: list[tuple[str, tuple[Seen, Seen]]] = [
    (
        "first text reaches the client less than 60 ms after upstream wrote it",
        pair(paced(), paced(late=3)),
    ),
    (
        "no gap between upstream write and client read above 50 ms, except for held digits",
        pair(paced(), paced(late=2)),
    ),
    (
        "first delta leaves before the upstream has finished (no whole-stream buffering)",
        pair(paced(), paced(late=4)),
    ),
    ("total time under 2 s on loopback", pair(web({}), web({}, ended_s=9.0))),
    (
        "extra memory under 16 MB",
        (seen("llm", web({}), extra_bytes=10**6), seen("llm", web({}), extra_bytes=10**8)),
    ),
    (
        "settled tokens = 12",
        (
            seen("llm", web({}), settled={"input": 5, "output": 7}),
            seen("llm", web({}), settled={"input": 5, "output": 8}),
        ),
    ),
    (
        "usage is counted for the limit",
        (
            seen("llm", streamed(AB, canned=COUNTED), settled={"output": 12}),
            seen("llm", streamed(AB, canned=COUNTED), settled={"output": 1}),
        ),
    ),
    ('no "jane" in the log', (seen("llm", web({})), seen("llm", web({}), log="jane"))),
    ('the log holds no "jane"', (seen("llm", web({})), seen("llm", web({}), log="jane"))),
    ('the log names "jane"', (seen("llm", web({}), log="jane"), seen("llm", web({})))),
    ("forwarded within 1 s", pair(paced(), called_late())),
]
ROWS: list[Row] = [(right.case.kind, s, right, w) for s, (right, w) in [*TEXTS, *CHUNKS, *TIMES]]
