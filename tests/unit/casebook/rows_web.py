"""Rows for HTTP answers and for what the upstream got."""

from collections.abc import Sequence
from typing import Any

from tests.casebook.answers import completion
from tests.casebook.seen import Call, Exchange, Seen
from tests.unit.casebook.observations import CARD, MAIL, call_of, envelope, seen, web
from tests.unit.casebook.rows_stdio import Row

KEYED = {"authorization": "Bearer very-secret-key"}
PREFLIGHT = {"origin": "https://app.example", "access-control-request-headers": "a,b"}
REFUSED = web(envelope(), status=400)
PARTS = [{"type": "text", "text": "I am [REDACTED_EMAIL]"}, {"type": "image_url", "image_url": {}}]


def http(right: Exchange, wrong: Exchange) -> tuple[Seen, Seen]:
    """Both as cases of kind http."""
    return seen("http", right), seen("http", wrong)


def allowed(origin: str | None, **more: str) -> Exchange:
    """The answer to a preflight."""
    headers = {} if origin is None else {"access-control-allow-origin": origin}
    return web(None, status=204, asked=PREFLIGHT, headers=headers | more)


def content(*parts: Any) -> dict[str, Any]:
    """A chat request with these parts."""
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}]}


def chat(sent: Any, *got: Any, headers: Sequence[tuple[str, str]] = (), **more: Any) -> Seen:
    """A chat case: what was sent, and what came upstream."""
    calls = [call_of(value, headers=headers) for value in got]
    return seen("llm", web(completion("ok"), sent=sent, calls=calls, **more))


def answered(status: int, exchange: Exchange) -> Exchange:
    """The same, after an upstream that answered with `status`."""
    exchange.calls = [call_of({}, answered=status)]
    return exchange


def with_decoy(hits: int, **more: Any) -> Seen:
    """A chat case beside a listener that nobody should find."""
    made = chat({"api_base": "x"}, {"api_base": "x"}, **more)
    made.decoys = {9999: hits}
    return made


def called(*calls: Call, status: int = 200) -> Seen:
    """A case whose upstream got these."""
    return seen("http", web({}, status=status, calls=calls))


PERSONAL = {"input": f"to {MAIL} with {CARD}"}
CLEAN = {"input": "to [REDACTED_EMAIL] with [REDACTED_CARD]"}
TEXTS = content(*PARTS)

HTTP: list[tuple[str, tuple[Seen, Seen]]] = [
    ("401 or 404", http(web(status=404), web(status=500))),
    ("not 400, 401 or 502", http(web(status=404), web(status=502))),
    ("no 5xx", http(web(status=404), web(status=503))),
    ("WWW-Authenticate: Bearer", http(web(headers={"www-authenticate": "Bearer"}), web())),
    ("Content-Length 0", http(web(headers={"content-length": "0"}), web())),
    (
        "Access-Control-Allow-Origin for that origin",
        http(allowed("https://app.example"), allowed("https://other.example")),
    ),
    ("no Access-Control-Allow-Origin", http(allowed(None), allowed("*"))),
    (
        "no stale Content-Encoding or Content-Length",
        http(web({}), web({}, headers={"content-encoding": "gzip"})),
    ),
    (
        "method POST",
        http(
            allowed("*", **{"access-control-allow-methods": "GET, POST"}),
            allowed("*", **{"access-control-allow-methods": "GET"}),
        ),
    ),
    (
        "the asked headers",
        http(
            allowed("*", **{"access-control-allow-headers": "A, B"}),
            allowed("*", **{"access-control-allow-headers": "A"}),
        ),
    ),
    ("the envelope", http(REFUSED, web({"detail": "no"}, status=400))),
    ("empty body", http(web(None), web(b"null"))),
    ("body is never empty", http(web({}), web(None))),
    ('no "null" body', http(web(None), web(b"null"))),
    (
        "body is the same but for request_id",
        (
            seen("http", REFUSED, web(envelope(), status=400)),
            seen("http", REFUSED, web(envelope("gateway.forbidden"), status=400)),
        ),
    ),
    (
        "no product name, table, hash or echo of the key",
        http(web(envelope(), asked=KEYED), web(envelope(message="very-secret-key?"), asked=KEYED)),
    ),
    ("no version number", http(web({}, headers={"server": "x"}), web({"v": "1.2.3"}))),
    ("no IndexError", http(web({}), web({"error": "IndexError: 0"}))),
    ("no admin data", http(REFUSED, web({"usage": {}}))),
    ("accepted", http(web({}, calls=[call_of({})]), web(envelope(), status=403))),
    (
        "both refused the same way",
        (seen("http", REFUSED, REFUSED), seen("http", REFUSED, web(envelope(), status=413))),
    ),
    ("both orders refused (400, 401)", http(REFUSED, web({}))),
    (
        "no crash",
        (seen("http", web({})), seen("http", web({}), log="Traceback (most recent call last)")),
    ),
    (
        "body is not read or forwarded",
        (
            seen("http", web(status=401), others={"half a body": [web(status=401)]}),
            seen("http", web(status=401), others={"half a body": [web(status=0)]}),
        ),
    ),
    ("gateway code", http(REFUSED, web(envelope("quota"), status=400))),
    ("code gateway.invalid_request", http(REFUSED, web(envelope("gateway.forbidden")))),
    (
        "Retry-After integer 49 to 51",
        http(web(headers={"retry-after": "50"}), web(headers={"retry-after": "60"})),
    ),
    (
        "Content-Type is application/json",
        http(web({}), web({}, headers={"content-type": "text/x"})),
    ),
    ("body is JSON", http(web({}), web(b"<html>"))),
    ("x-request-id on every answer", http(web({}), web({}, headers={"x-request-id": ""}))),
    ("process still running", (seen("http", web({})), seen("http", web({}), alive=False))),
    (
        "400 stays a clean 400",
        http(answered(400, web(envelope(), status=400)), answered(400, web(status=502))),
    ),
]

UPSTREAM: list[tuple[str, tuple[Seen, Seen]]] = [
    ("upstream gets nothing", (called(status=401), called(call_of({})))),
    ("nothing is forwarded", (called(), called(call_of({})))),
    ("exactly 2 reach upstream", (called(call_of({}), call_of({})), called(call_of({})))),
    ("upstream gets one request", (called(call_of({})), called())),
    ("forwarded once", (called(call_of({})), called(call_of({}), call_of({})))),
    (
        "upstream request has the gateway's service credential only",
        (
            called(call_of({})),
            called(call_of({}, headers=[("Authorization", "Bearer of-the-client")])),
        ),
    ),
    (
        "no client Cookie or X-Api-Key upstream",
        (called(call_of({})), called(call_of({}, headers=[("Cookie", "a")]))),
    ),
    (
        "only listed headers pass (Mcp-*, Accept, Content-Type)",
        (
            called(call_of({}, headers=[("Mcp-Name", "a")])),
            called(call_of({}, headers=[("X-Forwarded-For", "a")])),
        ),
    ),
    (
        "never forwarded raw",
        http(
            web({}, sent=PERSONAL, calls=[call_of(CLEAN)]),
            web({}, sent=PERSONAL, calls=[call_of(PERSONAL)]),
        ),
    ),
    (
        "redacted in every text field",
        http(
            web({}, sent=PERSONAL, calls=[call_of(CLEAN)]),
            web({}, sent=PERSONAL, calls=[call_of({"input": f"[REDACTED_EMAIL] {CARD}"})]),
        ),
    ),
    ("no connection to port 9999", (with_decoy(0), with_decoy(1))),
    ("provider key goes to the configured host only", (with_decoy(0), with_decoy(1))),
    (
        "fields are refused with 400",
        (chat({"a": 1}, status=400), chat({"a": 1}, {"a": 1})),
    ),
    ("never obeyed", (with_decoy(0), with_decoy(1))),
    ("upstream body has no e-mail", (chat(PERSONAL, CLEAN), chat(PERSONAL, PERSONAL))),
]

REQUESTS: list[tuple[str, tuple[Seen, Seen]]] = [
    (
        "upstream: same two parts in the same order",
        (chat(TEXTS, TEXTS), chat(TEXTS, content(*reversed(PARTS)))),
    ),
    (
        'texts are "I am [REDACTED_EMAIL]"',
        (chat(TEXTS, TEXTS), chat(TEXTS, content({"type": "text", "text": f"I am {MAIL}"}))),
    ),
    ("image and audio parts unchanged", (chat(TEXTS, TEXTS), chat(TEXTS, content(PARTS[0])))),
    (
        "upstream gets the URL byte for byte",
        (
            chat({"url": "data:image/png;base64,A"}, {"url": "data:image/png;base64,A"}),
            chat({"url": "data:image/png;base64,A"}, {"url": "data:image/png;base64,"}),
        ),
    ),
    (
        "upstream body is JSON-equal (except what redaction changes)",
        (
            chat({"a": [1], "t": MAIL}, {"a": [1], "t": "[REDACTED_EMAIL]"}),
            chat({"a": [1]}, {"a": [1.0]}),
        ),
    ),
    (
        "max_a not renamed to max_b",
        (chat({"max_a": 1}, {"max_a": 1}), chat({"max_a": 1}, {"max_b": 1})),
    ),
    (
        "null content stays null",
        (chat({"content": None}, {"content": None}), chat({"content": None}, {"content": ""})),
    ),
    ("unknown field kept", (chat({"x_new": {}}, {"x_new": {}}), chat({"x_new": {}}, {}))),
    ("field seed kept", (chat({"seed": 1}, {"seed": 1}), chat({"seed": 1}, {}))),
    ("forwarded as plain unknown JSON", (chat({"x_new": 1}, {"x_new": 1}), chat({"x_new": 1}, {}))),
    (
        "upstream gets tools unchanged",
        (chat({"tools": []}, {"tools": []}), chat({"tools": []}, {})),
    ),
    (
        "upstream request has stream_options.include_usage true",
        (chat({}, {"stream_options": {"include_usage": True}}), chat({}, {"stream_options": {}})),
    ),
    (
        "temperature and seed arrive unchanged upstream",
        (
            chat({"temperature": 1, "seed": 2}, {"temperature": 1, "seed": 2}),
            chat({"temperature": 1, "seed": 2}, {"temperature": 1, "seed": 3}),
        ),
    ),
    (
        "system message redacted",
        (
            chat({}, {"messages": [{"role": "system", "content": "[REDACTED_EMAIL]"}]}),
            chat({}, {"messages": [{"role": "system", "content": MAIL}]}),
        ),
    ),
    ('upstream gets "[REDACTED_EMAIL]"', (chat({}, CLEAN), chat({}, PERSONAL))),
    (f"upstream never sees {MAIL}", (chat({}, CLEAN), chat({}, PERSONAL))),
    (f'"{MAIL}" does not reach upstream', (chat({}, CLEAN), chat({}, PERSONAL))),
]

CONTENT: list[tuple[str, tuple[Seen, Seen]]] = [
    ('"jane" does not reach the client', http(web({"a": "x"}), web({"a": "jane"}))),
    ('the answer holds "jane"', http(web({"a": "jane"}), web({"a": "x"}))),
    ("type and code set", http(REFUSED, web({"error": {"type": "x", "code": ""}}))),
    ("type rate_limit_error", http(web(envelope(type="rate_limit_error")), REFUSED)),
    ("the error names the limit plenty", http(web(envelope(message="limit plenty")), REFUSED)),
    (
        "no upstream words",
        http(
            web(envelope(), canned=b'{"error":{"message":"quota of org-4417 exceeded"}}'),
            web(
                envelope(message="quota of org-4417 exceeded"),
                canned=b'{"error":{"message":"quota of org-4417 exceeded"}}',
            ),
        ),
    ),
]
ROWS: list[Row] = [
    (pair[0].case.kind, sentence, *pair)
    for sentence, pair in [*HTTP, *UPSTREAM, *REQUESTS, *CONTENT]
]
